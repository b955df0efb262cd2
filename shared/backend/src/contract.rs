//! The contract that any backend keeps, as cases that any backend runs.
//!
//! ```text
//! a backend's test: impl Harness ──► judge(&harness) ──► Report { passed, not_applicable, violated }
//!                                       └── CASES, one after another, each on runtimes of its own
//! ```
//!
//! A case uses only the roles and what the [`Harness`] can do behind the backend's back. What a harness or a
//! backend can't do is [`NotApplicable`], by case and with the reason, so that a test can compare the list and
//! nothing is skipped in silence:
//!
//! ```
//! # use backend::contract::Report;
//! # let report = Report::default();
//! let report = report.kept(); // panics with the name of every violated case
//! assert_eq!(report.not_applicable_cases(), Vec::<&str>::new());
//! ```
//!
//! What the contract says of a deadline: a verb whose `bounds.deadline` has passed begins nothing and answers
//! an error of kind [`crate::ErrorKind::Unreachable`] (see [`crate::Bounds::left`]). `Outcome::Unknown` says
//! that something was asked.

mod aim;
mod deleting;
mod inside;
mod looking;
mod shedding;
mod suspending;

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use lifecycle::{RuntimeId, State, Tier, Time};

use crate::{Backend, Bounds, Sighting, Target};

/// Something that a harness can't do, or that a backend is not able to, with the reason for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotApplicable(pub Arc<str>);

impl NotApplicable {
    /// For this reason.
    pub fn because(why: impl Into<Arc<str>>) -> Self {
        Self(why.into())
    }
}

/// What a harness did or saw, unless it can't.
pub type Can<T> = Result<T, NotApplicable>;

/// Bytes by path.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// What a runtime holds, seen behind the backend's back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The user's own files, in the place that the backend's suspend keeps.
    pub work: Tree,
    /// Files of [`Tier::Caches`].
    pub caches: Tree,
    /// Files of [`Tier::Dependencies`].
    pub dependencies: Tree,
}

impl Content {
    fn of(&self, tier: Tier) -> &Tree {
        match tier {
            Tier::Caches => &self.caches,
            Tier::Dependencies => &self.dependencies,
            Tier::Runtime => &self.work,
        }
    }
}

/// The hands of the suite: what a backend's test can do to its engine or files, apart from the backend.
///
/// Only the first five are required. A harness panics when it fails at what it can do.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The backend under test. Always the same one; other runtimes than the suite's may be in it.
    fn backend(&self) -> Backend;

    /// The time now, of the clock that the backend was given.
    fn now(&self) -> Time;

    /// Makes a runtime of ours in this state (`Running`; `Suspended` unless the backend rests), of a plain kind
    /// that every role of the backend works on, with at least one file of the user's that a deletion need not
    /// save, and, where the backend sheds, with files in both tiers.
    async fn make(&self, state: State) -> Can<RuntimeId>;

    /// What a runtime holds now; `None`: no runtime, nothing.
    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>>;

    /// Removes a runtime behind the backend's back.
    async fn vanish(&self, id: &RuntimeId) -> Can<()>;

    /// Starts it anew behind the backend's back: the same id, another incarnation, running.
    async fn restart(&self, _id: &RuntimeId) -> Can<()> {
        Err(NotApplicable::because("the harness can't restart a runtime"))
    }

    /// The same backend, configured against an engine or a folder that can't be asked.
    async fn broken(&self) -> Can<Backend> {
        Err(NotApplicable::because("the harness can't break the backend"))
    }

    /// How long a verb of this backend is given: more than its provider may take for it.
    fn patience(&self) -> Duration {
        Duration::from_mins(1)
    }

    /// Moves the clock that the backend was given.
    async fn advance(&self, _by: Duration) -> Can<()> {
        Err(NotApplicable::because("the harness can't move the clock"))
    }

    /// Waits until what is under way has come to its end.
    async fn settle(&self) {}

    /// Makes a running one that is somebody else's: another label, another owner.
    async fn make_foreign(&self) -> Can<RuntimeId> {
        Err(NotApplicable::because("the harness can't make a foreign runtime"))
    }

    /// Makes a running one that looks like an agent's, but is not in the scope.
    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Err(NotApplicable::because("the harness can't make an unlabelled runtime"))
    }

    /// Makes a running one of ours that stopping would delete.
    async fn make_ephemeral(&self) -> Can<RuntimeId> {
        Err(NotApplicable::because("the harness can't make a runtime that stopping deletes"))
    }

    /// Makes one that may be deleted (suspended; running where the backend rests) and whose deletion would lose
    /// work.
    async fn make_unsaved(&self) -> Can<RuntimeId> {
        Err(NotApplicable::because("the harness can't make a runtime with unsaved work"))
    }

    /// Puts something else where a shed tier of this runtime, or (`Tier::Runtime`) the deleted runtime itself
    /// was.
    async fn occupy(&self, _id: &RuntimeId, _tier: Tier) -> Can<()> {
        Err(NotApplicable::because("the harness can't put something new in the place"))
    }

    /// An id of this backend that no runtime ever had.
    fn never_was(&self) -> RuntimeId {
        match RuntimeId::new(&self.backend().name, b"furlough-contract-never-was") {
            Ok(id) => id,
            Err(error) => panic!("the suite's own id is no id: {error}"),
        }
    }
}

/// How a backend kept the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Report {
    /// Cases that it kept.
    pub passed: Vec<&'static str>,
    /// Cases that don't apply, with the reason.
    pub not_applicable: Vec<(&'static str, Arc<str>)>,
    /// Cases that it broke, with what happened.
    pub violated: Vec<(&'static str, String)>,
}

impl Report {
    /// The report, if nothing was violated.
    ///
    /// # Panics
    /// With the name of every violated case and what happened.
    pub fn kept(self) -> Self {
        assert!(self.violated.is_empty(), "the contract was violated:\n{self}");
        self
    }

    /// The names of the cases that don't apply, in the order of [`CASES`].
    pub fn not_applicable_cases(&self) -> Vec<&'static str> {
        self.not_applicable.iter().map(|(case, _)| *case).collect()
    }

    /// The names of the violated cases, in the order of [`CASES`].
    pub fn violated_cases(&self) -> Vec<&'static str> {
        self.violated.iter().map(|(case, _)| *case).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, what) in &self.violated {
            writeln!(f, "violated        {case}: {what}")?;
        }
        for (case, why) in &self.not_applicable {
            writeln!(f, "not applicable  {case}: {why}")?;
        }
        for case in &self.passed {
            writeln!(f, "passed          {case}")?;
        }
        Ok(())
    }
}

/// Runs every case. Never panics because of the backend.
pub async fn judge(harness: &dyn Harness) -> Report {
    let mut report = Report::default();
    for case in CASES {
        judge_case(case, harness, &mut report).await;
    }
    report
}

/// Runs every case and panics when one was violated.
///
/// # Panics
/// As [`Report::kept`].
pub async fn run(harness: &dyn Harness) -> Report {
    judge(harness).await.kept()
}

async fn judge_case(case: &Case, harness: &dyn Harness, report: &mut Report) {
    match (case.run)(harness).await {
        Ok(()) => report.passed.push(case.name),
        Err(Stop::NotApplicable(why)) => report.not_applicable.push((case.name, why.0)),
        Err(Stop::Violated(what)) => report.violated.push((case.name, what)),
    }
}

/// One sentence of the contract.
pub struct Case {
    /// The sentence, as a name.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Harness) -> Checking<'a>,
}

type Checking<'a> = Pin<Box<dyn Future<Output = Checked> + Send + 'a>>;

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Why a case came to no good end.
#[derive(Debug)]
enum Stop {
    NotApplicable(NotApplicable),
    Violated(String),
}

type Checked<T = ()> = Result<T, Stop>;

impl From<NotApplicable> for Stop {
    fn from(why: NotApplicable) -> Self {
        Self::NotApplicable(why)
    }
}

fn violated<T>(what: impl Into<String>) -> Checked<T> {
    Err(Stop::Violated(what.into()))
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { violated(what()) }
}

macro_rules! cases {
    ($($module:ident { $($case:ident),+ $(,)? })+) => {
        /// Every case, in the order in which they run.
        pub const CASES: &[Case] = &[
            $($(Case { name: stringify!($case), run: |harness| Box::pin($module::$case(harness)) }),+),+
        ];
    };
}

cases! {
    looking {
        list_has_every_runtime_of_ours_once,
        list_leaves_out_what_vanished,
        list_shows_a_foreign_runtime_as_not_ours,
        list_shows_an_unlabelled_runtime_as_not_ours,
        list_and_inspect_agree,
        a_look_is_plausible,
        a_vanished_runtime_is_not_there,
        a_runtime_that_never_was_is_not_there,
        a_runtime_of_another_backend_is_not_seen,
        a_broken_backend_is_an_error_never_an_empty_page,
        a_broken_backend_is_an_error_never_an_absence,
        own_looks_leave_no_trace,
        own_looks_leave_no_trace_as_time_passes,
    }
    suspending {
        suspend_and_resume_keep_what_they_say,
        suspend_twice_is_already_done,
        suspend_of_another_incarnation_moves_nothing,
        suspend_of_another_state_moves_nothing,
        suspend_of_what_is_gone_is_gone,
        suspend_is_refused_where_stopping_deletes,
        suspend_of_a_foreign_runtime_does_nothing,
        resume_of_a_running_one_is_already_done,
        resume_of_what_is_gone_is_gone,
        archive_keeps_what_it_says,
        archive_of_a_running_one_is_never_done,
        archive_of_what_is_gone_is_gone,
    }
    deleting {
        delete_removes_it_and_nothing_else,
        delete_of_a_running_one_is_never_done,
        delete_of_what_is_gone_is_gone,
        delete_after_a_restart_moves_nothing,
        delete_of_a_foreign_runtime_does_nothing,
        two_deletes_at_once_do_it_once,
        delete_saves_first_what_would_be_lost,
        undo_of_a_delete_brings_it_back,
        undo_of_a_delete_refuses_when_something_new_stands_there,
    }
    shedding {
        shed_of_the_runtime_tier_is_refused,
        shed_takes_its_tier_and_nothing_else,
        shed_twice_is_already_done,
        shed_of_another_incarnation_moves_nothing,
        shed_of_what_is_gone_is_gone,
        undo_of_a_shed_restores_the_same_bytes,
        undo_of_a_shed_refuses_when_something_new_stands_there,
        undo_twice_is_not_done_twice,
        the_trash_lists_what_was_shed,
        emptying_removes_for_ever,
    }
    inside {
        probe_is_aimed,
        native_timers_stand_as_they_were_set,
        execute_is_bounded_in_output,
        execute_is_aimed,
        a_passed_deadline_begins_nothing,
        a_broken_backend_is_an_error_from_every_verb,
    }
}

/// Bounds of a minute from now, or of as long as the backend's verbs take.
fn minute(harness: &dyn Harness) -> Bounds {
    Bounds { deadline: harness.now().plus(harness.patience()) }
}

/// Looks at a runtime that has to be there.
async fn see(harness: &dyn Harness, id: &RuntimeId) -> Checked<lifecycle::Observation> {
    match harness.backend().inspect.inspect(id).await {
        Ok(Sighting::Seen(seen)) => Ok(*seen),
        other => violated(format!("inspect of `{id}`, which is there, answered {other:?}")),
    }
}

/// Makes a runtime and looks at it.
async fn made(harness: &dyn Harness, state: State) -> Checked<(Target, Content)> {
    let id = harness.make(state).await?;
    let seen = see(harness, &id).await?;
    check(seen.state == state, || format!("a runtime made `{state}` is seen `{}`", seen.state))?;
    Ok((Target::of(&seen), holds(harness, &id).await?))
}

/// The content of a runtime that has to be there.
async fn holds(harness: &dyn Harness, id: &RuntimeId) -> Checked<Content> {
    match harness.content(id).await? {
        Some(content) => Ok(content),
        None => violated(format!("`{id}` holds nothing any more")),
    }
}

/// The state in which this backend's runtimes may be deleted.
fn deletable(backend: &Backend) -> State {
    if backend.rests { State::Running } else { State::Suspended }
}
