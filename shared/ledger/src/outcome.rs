//! What the ledger answers. A lost race is an answer.

use lifecycle::{Incarnation, Record, RuntimeId, State, Time, Token, record::Epoch};

/// Why a conditional write did not happen: what stood in the record at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// There is no record.
    NoRecord,
    /// The runtime is no more.
    Gone,
    /// It is in another state.
    State {
        /// Which.
        state: State,
    },
    /// It was registered again, or somebody claimed it since.
    Superseded {
        /// The present token.
        token: Token,
    },
    /// Another run of it than the one that was looked at.
    Moved {
        /// The present one; `None`: none was ever observed.
        incarnation: Option<Incarnation>,
    },
    /// Somebody has a claim on it.
    Claimed {
        /// From then on it can be claimed or taken over (the claim's end and the clocks' skew).
        until: Time,
    },
    /// It is held.
    Held,
    /// A refused heartbeat asked for it.
    Wanted,
    /// It was active since.
    Active {
        /// What its clock says now.
        idle_from: Time,
    },
    /// It entered its state, began to run or was first seen after the cutoff.
    Since {
        /// When; `None`: that is not known.
        since: Option<Time>,
    },
    /// Work is under way.
    Busy {
        /// The veto ends then.
        until: Time,
    },
    /// Notice of the deletion was not delivered, or not long enough ago.
    NotNoticed,
    /// Not saved since its last activity.
    NotSaved,
}

/// The answer to a claim, a take-over and a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Claimed {
    /// It is ours until then; the record as it is now, with our token.
    Won(Box<Record>),
    /// It is not, and nothing was written.
    Lost(Lost),
}

/// The answer to the end of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Completed {
    /// It is written.
    Done {
        /// A heartbeat was refused meanwhile: wake it. The record is due at once.
        wanted: bool,
    },
    /// The claim is no longer ours: nothing was written, and nothing more may be done under it.
    Fenced,
}

/// The answer to a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Registered {
    /// The record of the new life.
    Done(Box<Record>),
    /// Somebody has a claim on it: 409, try again from then on.
    Claimed {
        /// The claim's end and the clocks' skew.
        until: Time,
    },
    /// Its record knows of something later, by clocks that may differ: that it came to rest, ended or was active. 409:
    /// if it runs all the same, a registration that is made from then on is taken.
    Overtaken {
        /// That time, so far off that clocks can agree.
        until: Time,
    },
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Heartbeat {
    /// It moved the clock.
    Recorded,
    /// The clock says as much already.
    Coalesced,
    /// 404: there is no record, and none is made.
    Unknown,
    /// 410: the runtime is no more.
    Gone,
    /// 409: it was registered again; this token is of an earlier life.
    Superseded {
        /// The present registration.
        epoch: Epoch,
    },
    /// 409: it does not run. It is marked as wanted and due at once; the next pass, or the holder, wakes it.
    NotRunning {
        /// Its state.
        state: State,
        /// Since when it is wanted.
        wanted: Time,
    },
}

/// The answer to a save.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Saved {
    /// All that was done until then is known to be kept.
    Noted {
        /// Until when.
        as_of: Time,
    },
    /// 409: the workspace has no such generation.
    NotThere {
        /// Its newest one, if there is any.
        generation: Option<u64>,
    },
    /// 404: there is no record, and none is made.
    Unknown,
    /// 410: the runtime is no more.
    Gone,
    /// 409: it was registered again; this token is of an earlier life.
    Superseded {
        /// The present registration.
        epoch: Epoch,
    },
}

/// The answer to a probe's result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Noted {
    /// The record as it is now.
    Record(Box<Record>),
    /// It was not written down, for this reason.
    Lost(Lost),
}

/// The answer to a re-arm.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Rearmed {
    /// It was active since it was armed: it comes due again then. No read, no policy was needed.
    Until(Time),
    /// It needs a look. The record as it is, so that no read is needed; `None`: there is none.
    Look(Option<Box<Record>>),
}

/// The answer to a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum HoldSet {
    /// It holds. A claim in the record that is still live may yet be finished: it was made before.
    Held(Box<Record>),
    /// The runtime is no more: there is nothing to hold.
    Gone,
}

/// The answer to a unit's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Leased {
    /// It is ours, under this fence.
    Won {
        /// The fence.
        token: Token,
    },
    /// Somebody has it.
    Busy {
        /// Who.
        owner: String,
        /// From then on it is free (its end and the clocks' skew).
        until: Time,
    },
}

/// The answer to a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// One is taken.
    Taken {
        /// How many are used now, this one included.
        used: u64,
    },
    /// None is left.
    Spent {
        /// How many are used; `u64::MAX`: that can't be read.
        used: u64,
    },
}

/// What is due, soonest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// Which, and since when.
    pub ids: Vec<(RuntimeId, Time)>,
    /// More are due than the limit.
    pub more: bool,
    /// Keys in the index that are no runtime's, for people.
    pub unreadable: Vec<String>,
}

/// Records that were asked for, each apart: one that can't be read takes none of the others along.
#[derive(Debug, Default)]
pub struct Many {
    /// Those that could be read.
    pub records: std::collections::BTreeMap<RuntimeId, Record>,
    /// Those that could not, with the reason. They are there, so they are kept.
    pub unreadable: Vec<(RuntimeId, crate::LedgerError)>,
}

/// A page of a backend's records.
#[derive(Debug, Default)]
pub struct RecordPage {
    /// Those that could be read.
    pub records: Vec<(RuntimeId, Record)>,
    /// Those that could not, with the reason.
    pub unreadable: Vec<(String, crate::LedgerError)>,
    /// The next page; `None`: this was the last.
    pub next: Option<Cursor>,
}

/// What a page of healing found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Healed {
    /// Records of the backend looked at.
    pub scanned: u64,
    /// Those that were missing from the due index and are in it again, due at once. Expected: none.
    pub healed: Vec<RuntimeId>,
    /// The next page; `None`: this was the last.
    pub next: Option<Cursor>,
}

/// Where the next page of a scan begins. Opaque.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) pk: String,
    pub(crate) sk: String,
}
