//! All that a plan is made from, at one moment.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{BackendName, Busy, Observation, Record, RuntimeId, Survives, Time, policy::BudgetKind};

mod builder;

pub use builder::SnapshotBuilder;

/// What a backend's roles are, as data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one role is there; none is a parameter")]
pub struct Capabilities {
    /// Its runtimes run nothing of their own: their files at rest are all there is (a git worktree). Or its provider
    /// has no state but running, and its owner said that what is idle may go from there (Cloudflare, Modal).
    /// They have no suspended state; a deletion counts `idle.after + retention.suspended` from activity.
    pub rests: bool,
    /// It suspends, and this survives.
    pub suspend: Option<Survives>,
    /// It archives.
    pub archive: bool,
    /// It deletes.
    pub delete: bool,
    /// Its delete first saves what would be lost, verified, or refuses.
    pub saves_first: bool,
    /// It sheds files.
    pub files: bool,
    /// What it takes back for a while after a shed or a delete.
    pub undo: bool,
}

/// The last complete sweep of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// When.
    pub at: Time,
    /// How many runtimes of ours it saw.
    pub count: u64,
}

/// A filesystem, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its size.
    pub total: u64,
    /// In use.
    pub used: u64,
}

impl Disk {
    /// How full it is, rounded up so that it never reads as the budget that it is over.
    pub fn percent(self) -> u8 {
        let full = u128::from(self.used).saturating_mul(100).div_ceil(u128::from(self.total).max(1));
        u8::try_from(full).unwrap_or(u8::MAX)
    }
}

/// One runtime: what the backend shows and what the ledger keeps. At least one of them is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Which.
    pub id: RuntimeId,
    /// `None`: not in the listing.
    pub seen: Option<Box<Observation>>,
    /// `None`: Furlough has no record yet.
    pub record: Option<Box<Record>>,
    /// `None`: the agent server inside was not asked.
    pub probe: Option<ProbeAnswer>,
}

/// What the agent server inside answered when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The newest activity that it proves; `None`: it proves none.
    pub last_active: Option<Time>,
    /// Whether work is under way. [`Busy::Unread`]: no answer came.
    pub busy: Busy,
}

impl ProbeAnswer {
    /// What two answers tell together: the later activity, the stronger veto.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { last_active: self.last_active.max(other.last_active), busy: self.busy.join(other.busy) }
    }
}

/// How a listing went. A failed or partial one is never an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// It reached the end without an error.
    pub complete: bool,
    /// When it was begun.
    pub at: Time,
    /// What went wrong, for people.
    pub error: Option<Arc<str>>,
}

/// One backend, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitSnapshot {
    /// Which.
    pub backend: BackendName,
    /// What it can do.
    pub can: Capabilities,
    /// How its listing went.
    pub listing: Listing,
    /// The last complete sweep before this one.
    pub last_sweep: Option<Sweep>,
    /// The trailing mean of the share of heartbeat-fed records found silent, 0 to 1.
    pub silent_mean: Option<f64>,
    /// Somebody paused it.
    pub paused: bool,
    /// How much of each budget the present window has used. Missing or unreadable: all of it.
    pub used: BTreeMap<BudgetKind, u64>,
    /// Its filesystem, where it has one.
    pub disk: Option<Disk>,
    /// Sorted by id, each once: see [`UnitSnapshot::set_subjects`].
    subjects: Vec<Subject>,
}

/// All that a plan is made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// One a backend, sorted by name.
    pub units: Vec<UnitSnapshot>,
}

impl UnitSnapshot {
    /// An empty inventory, of which nothing else is known: no sweep, every budget used, no disk.
    pub fn new(backend: BackendName, can: Capabilities, listing: Listing) -> Self {
        Self {
            backend,
            can,
            listing,
            last_sweep: None,
            silent_mean: None,
            paused: false,
            used: BTreeMap::new(),
            disk: None,
            subjects: Vec::new(),
        }
    }

    /// Replaces the runtimes, in any order. Rows of one runtime are merged: the safer observation, the
    /// newer record.
    pub fn set_subjects(&mut self, subjects: Vec<Subject>) {
        self.subjects = builder::merged(subjects);
    }

    /// The runtime `id`, if it is in it.
    pub fn subject(&self, id: &RuntimeId) -> Option<&Subject> {
        let at = self.subjects.binary_search_by(|subject| subject.id.cmp(id)).ok()?;
        self.subjects.get(at)
    }

    /// The runtimes, sorted by id, each once.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }
}
