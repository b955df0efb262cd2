//! The roles: what a backend may be able to do. Each implements those that it has and no other.
//!
//! Every verb takes a [`Target`] and does nothing (`Outcome::Moved`) when what it finds is another
//! incarnation or state. It ends before `bounds.deadline`, or answers `Unknown`. When the deadline has passed
//! already, nothing is begun and the answer is the error of [`Bounds::left`]: `Unknown` is only for what was asked.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use lifecycle::{
    Busy, Incarnation, NativeObserved, Observation, RuntimeId, State, Survives, Tier, Time, snapshot::Disk,
};

use crate::{BackendError, ErrorKind, Outcome};

/// What an act is aimed at: the runtime of its evidence, in the run and the state that were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which runtime.
    pub id: RuntimeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// In which state.
    pub state: State,
}

impl Target {
    /// The runtime of this look, in the run and the state that it was seen in.
    pub fn of(seen: &Observation) -> Self {
        Self { id: seen.id.clone(), incarnation: seen.incarnation.clone(), state: seen.state }
    }
}

/// Limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The call ends before this.
    pub deadline: Time,
}

impl Bounds {
    /// How long a call that begins at `now` may take. Once nothing is left, an [`ErrorKind::Unreachable`] that
    /// says so: the first thing that every verb asks for, so that none begins what it can't end in time.
    pub fn left(self, now: Time) -> Result<Duration, BackendError> {
        if now < self.deadline {
            return Ok(self.deadline.since(now));
        }
        let late = now.since(self.deadline).as_millis();
        let message = format!("the deadline had passed {late} ms before: nothing was begun");
        Err(BackendError::new(ErrorKind::Unreachable, message))
    }
}

/// Where the next page of a listing begins. Opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageToken(pub Arc<str>);

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// What was seen. At most 1,000 a page.
    pub seen: Vec<Observation>,
    /// What could not be read, for people, one line each; the listing is then partial.
    pub unreadable: Vec<Arc<str>>,
    /// The next page; `None`: this was the last.
    pub next: Option<PageToken>,
}

/// One look at one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// It is there.
    Seen(Box<Observation>),
    /// The backend says, for this id, that there is none.
    NotThere,
}

/// Lists its runtimes.
#[async_trait]
pub trait Listable: Send + Sync {
    /// One page. An error is an error, never an empty page. A vanishing runtime is left out.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError>;

    /// The filesystem that its runtimes lie on, where there is one to watch.
    async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        Ok(None)
    }
}

/// Shows one runtime by id.
#[async_trait]
pub trait Inspectable: Send + Sync {
    /// Looks at one runtime, fresh.
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError>;
}

/// What the agent server inside told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The newest activity that it proves; `None`: it proves none.
    pub last_active: Option<Time>,
    /// Whether work is under way.
    pub busy: Busy,
}

/// Asks the agent server inside.
#[async_trait]
pub trait Probed: Send + Sync {
    /// Asks without leaving a trace. An unread probe is an error or [`Busy::Unread`], never idleness.
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError>;
}

/// Suspends and resumes.
#[async_trait]
pub trait Suspendable: Send + Sync {
    /// What is still there after a suspend.
    fn survives(&self) -> Survives;
    /// Stops the runtime and keeps what [`Suspendable::survives`] says.
    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError>;
    /// Brings a suspended runtime back. Done carries the new incarnation.
    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError>;
}

/// Moves a suspended runtime to colder storage.
#[async_trait]
pub trait Archivable: Send + Sync {
    /// What is still there after an archive.
    fn archive_survives(&self) -> Survives;
    /// Archives a suspended runtime.
    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError>;
}

/// What a delete did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Where the work was saved first, if something was saved.
    pub saved: Option<Arc<str>>,
    /// What it can be taken back by, if it can.
    pub undo: Option<Arc<str>>,
    /// What stayed behind on purpose, for people: a named volume, a branch.
    pub kept: Vec<Arc<str>>,
    /// Bytes that it held.
    pub bytes: u64,
}

/// Deletes.
#[async_trait]
pub trait Deletable: Send + Sync {
    /// Whether a delete saves first what would be lost, and refuses when it can't.
    fn saves_first(&self) -> bool {
        false
    }
    /// Deletes without force. A runtime that is gone already is a success ([`Outcome::Gone`]).
    /// `save`: as the policy's `workspace` says; `Discard` lets it lose what is not saved.
    async fn delete(
        &self,
        target: &Target,
        save: lifecycle::policy::WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError>;
}

/// What a shed did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shed {
    /// What it can be taken back by.
    pub undo: Vec<Arc<str>>,
    /// Bytes moved.
    pub bytes: u64,
}

/// Sheds files by tier.
#[async_trait]
pub trait FileReclaimable: Send + Sync {
    /// Sheds one tier, never [`Tier::Runtime`]: that is a delete. `AlreadyDone` when there is nothing.
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError>;
}

/// Something in the trash, or something saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// What `undo` takes.
    pub entry: Arc<str>,
    /// Which runtime it came from.
    pub runtime: RuntimeId,
    /// Which tier it was.
    pub tier: Tier,
    /// When it was moved.
    pub at: Time,
    /// Where it came from, for people.
    pub origin: Arc<str>,
    /// Its size, where it was measured.
    pub bytes: u64,
}

/// Keeps for a while what it sheds and deletes.
#[async_trait]
pub trait Recoverable: Send + Sync {
    /// What can be taken back, newest first.
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError>;
    /// Puts an entry back where it came from. Refuses when something new stands there. `Gone`: there is no such
    /// entry any more.
    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError>;
    /// Removes an entry for ever. Links are removed, never followed. `Gone`: there is no such entry any more.
    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError>;
    /// Removes for ever what was saved before `before` of runtimes that were deleted, and says what it removed. What
    /// killed processes left of saves that were only begun goes too, whatever `before` is.
    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError>;
}

/// The provider's own settings that a policy wants for one runtime. `None`: the provider does not do it by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct NativeWanted {
    /// Suspend by itself after this long without activity.
    pub idle_suspend: Option<Duration>,
    /// Archive by itself this long after a suspend.
    pub archive: Option<Duration>,
    /// Delete by itself this long after a suspend.
    pub delete: Option<Duration>,
}

impl NativeWanted {
    /// Whether the provider shows something else: the settings drifted, or were never written.
    pub fn differs_from(&self, observed: &NativeObserved) -> bool {
        (self.idle_suspend, self.archive, self.delete) != (observed.idle_suspend, observed.archive, observed.delete)
    }
}

/// Reads and writes the provider's own timers.
#[async_trait]
pub trait NativeLifecycle: Send + Sync {
    /// What the provider would hold if `wanted` were written: its own steps and bounds, never sooner than
    /// wanted (a timer that it can't have so late is `None`). To be compared with what it shows, so that a
    /// rounded value is no drift.
    fn attainable(&self, wanted: NativeWanted) -> NativeWanted;
    /// The settings as the provider shows them now.
    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError>;
    /// Writes the settings without touching the runtime's activity. `AlreadyDone` when they stand so;
    /// `Refused` when this runtime's can't be written. Done carries what stands now.
    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError>;
}

/// A command to run inside. Its arguments may hold secrets: they are in no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; no shell.
    pub argv: Vec<String>,
    /// The working directory, absolute; `None`: the runtime's own.
    pub cwd: Option<String>,
    /// At most so many bytes of each of stdout and stderr are kept; the rest is read and dropped.
    pub output_limit: usize,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.argv.first())
            .field("arguments", &self.argv.len().saturating_sub(1))
            .field("output_limit", &self.output_limit)
            .finish_non_exhaustive()
    }
}

/// What a command left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; 128 + n when signal n ended it.
    pub code: i32,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
    /// Whether some output was dropped.
    pub truncated: bool,
}

/// Runs a command inside.
#[async_trait]
pub trait Executable: Send + Sync {
    /// Runs `command` to its end. Refreshes the runtime's activity where the provider counts it: read the
    /// activity before. A command still running at the deadline is ended, and the answer is `Unknown`.
    async fn execute(
        &self,
        target: &Target,
        command: &Command,
        bounds: Bounds,
    ) -> Result<Outcome<Output>, BackendError>;
}
