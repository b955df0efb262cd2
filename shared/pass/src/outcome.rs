//! What a pass did beside the acts of its plan.

use std::{fmt, sync::Arc};

use lifecycle::{
    BackendName, Fate, Plan, Report, RuntimeId, State, Time, plan::BackendNote, policy::Mode, snapshot::Listing,
};
use serde::Serialize;

use crate::attempt::Fated;

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use]
pub struct Outcome {
    /// The acts, and what was kept.
    #[serde(flatten)]
    pub report: Report,
    /// What it put in order.
    pub upkeep: Upkeep,
}

/// What a pass put in order beside its plan, and what it could not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Upkeep {
    /// Claims that outlived their holder, and how they ended.
    pub recovered: Vec<Recovered>,
    /// Runtimes that were called back because somebody had asked for them.
    pub woken: Vec<RuntimeId>,
    /// Runtimes whose absence was seen twice.
    pub gone: Vec<RuntimeId>,
    /// Runtimes that failed several times in a row. They back off alone; a person may want to look.
    pub stuck: Vec<Stuck>,
    /// Entries of the trash that were removed for ever.
    pub emptied: Vec<Emptied>,
    /// Saves of deleted runtimes that outlived `retention.workspace` and were removed for ever.
    pub forgotten: Vec<Arc<str>>,
    /// Backends that another pass has.
    pub busy: Vec<Busy>,
    /// Backends that were listed as a whole.
    pub swept: Vec<BackendName>,
    /// Backends with more due than one pass takes: the next goes on.
    pub more_due: Vec<BackendName>,
    /// Backends that could not be listed, or for which the ledger could not be asked. The report has the errors.
    pub unasked: Vec<BackendName>,
}

/// A claim that outlived its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// Whose.
    pub runtime: RuntimeId,
    /// The state that it was left in.
    pub was: State,
    /// How it ended.
    #[serde(flatten)]
    pub how: Recovery,
}

/// How the claim of a dead or slow holder ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Recovery {
    /// What was begun is so.
    Finished {
        /// The state that was reached.
        state: State,
    },
    /// What was begun is not so.
    GivenBack {
        /// The state that is there.
        state: State,
    },
    /// The backend is still on its way: looked at again.
    UnderWay {
        /// What it shows.
        state: State,
    },
    /// It is not there; a second look makes that certain.
    Absent,
    /// It was absent at two looks.
    Gone,
    /// Somebody else took it over first.
    Taken,
    /// It could not be looked at: tried again later.
    Unread {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { state } => write!(f, "finished, it is {state}"),
            Self::GivenBack { state } => write!(f, "given back, it is {state}"),
            Self::UnderWay { state } => write!(f, "still under way, it is {state}"),
            Self::Absent => f.write_str("not there; looked at again later"),
            Self::Gone => f.write_str("gone"),
            Self::Taken => f.write_str("taken over by somebody else"),
            Self::Unread { why } => write!(f, "could not be looked at: {why}"),
        }
    }
}

/// A runtime that keeps failing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Which.
    pub runtime: RuntimeId,
    /// How often it failed in a row.
    pub attempts: u32,
    /// When it is tried next.
    pub next: Option<Time>,
}

/// An entry of the trash that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emptied {
    /// Of which backend.
    pub backend: BackendName,
    /// Which entry.
    pub entry: Arc<str>,
    /// Its size, where it was measured.
    pub bytes: u64,
}

/// A backend that another pass has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Which.
    pub backend: BackendName,
    /// Who has it.
    pub owner: String,
    /// Until when at the latest.
    pub until: Time,
}

/// One unit's part of a pass.
pub(crate) struct Part {
    pub(crate) plan: Plan,
    /// What became of each item, in the plan's order.
    pub(crate) fates: Vec<Fated>,
    pub(crate) upkeep: Upkeep,
    pub(crate) errors: Vec<Arc<str>>,
    pub(crate) healed: u64,
    /// Runtimes of the last sweep that were not due.
    pub(crate) not_due: u64,
}

impl Part {
    /// Which unit's it is.
    pub(crate) fn backend(&self) -> Option<&BackendName> {
        let noted = self.plan.backends.first().map(|note| &note.backend);
        noted.or(self.upkeep.busy.first().map(|busy| &busy.backend))
    }
}

/// A backend of which nothing was counted.
pub(crate) fn note(backend: &BackendName, listing: Listing) -> BackendNote {
    BackendNote {
        backend: backend.clone(),
        listing,
        ours: 0,
        foreign: 0,
        unlabelled: 0,
        silent_share: None,
        breaker: None,
        paused: false,
    }
}

impl Upkeep {
    fn take(&mut self, other: Self) {
        self.recovered.extend(other.recovered);
        self.woken.extend(other.woken);
        self.gone.extend(other.gone);
        self.stuck.extend(other.stuck);
        self.emptied.extend(other.emptied);
        self.forgotten.extend(other.forgotten);
        self.busy.extend(other.busy);
        self.swept.extend(other.swept);
        self.more_due.extend(other.more_due);
        self.unasked.extend(other.unasked);
    }
}

impl Outcome {
    /// Puts the parts of all units together.
    pub(crate) fn of(parts: Vec<Part>, empty: &Plan, mode: Mode, now: Time) -> Self {
        let mut outcome = Self { report: Report::of(empty, mode), upkeep: Upkeep::default() };
        for part in parts {
            let mut report = Report::of(&part.plan, mode);
            for (entry, fated) in report.entries.iter_mut().zip(part.fates) {
                entry.fate = fated.fate;
                entry.detail = fated.detail;
                entry.saves.bytes = fated.bytes.unwrap_or(entry.saves.bytes);
            }
            if let Some(backend) = report.backends.first_mut() {
                let new = part.errors.into_iter().filter(|error| !backend.errors.contains(error));
                let new: Vec<_> = new.collect();
                backend.errors.extend(new);
            }
            (report.healed, report.not_due) = (part.healed, part.not_due);
            outcome.add(report, part.upkeep);
        }
        outcome.report.took = now.since(outcome.report.at);
        outcome
    }

    /// One line a pass.
    pub(crate) fn log(&self) {
        let counts = self.report.counts();
        let of = |fate: Fate| counts.get(&fate).copied().unwrap_or(0);
        tracing::info!(
            done = of(Fate::Done),
            refused = of(Fate::Refused),
            moved = of(Fate::Moved),
            left = of(Fate::Left),
            failed = of(Fate::Failed),
            unknown = of(Fate::Unknown),
            recovered = self.upkeep.recovered.len(),
            gone = self.upkeep.gone.len(),
            stuck = self.upkeep.stuck.len(),
            healed = self.report.healed,
            not_due = self.report.not_due,
            took_ms = u64::try_from(self.report.took.as_millis()).unwrap_or(u64::MAX),
            "a pass over {} backends",
            self.report.backends.len(),
        );
    }

    fn add(&mut self, report: Report, upkeep: Upkeep) {
        let (all, one) = (&mut self.report.headline, report.headline);
        all.runtimes += one.runtimes;
        all.idle += one.idle;
        all.idle_hours += one.idle_hours;
        all.idle_cost_micros = all.idle_cost_micros.saturating_add(one.idle_cost_micros);
        all.saves = all.saves.plus(one.saves);
        self.report.backends.extend(report.backends);
        self.report.entries.extend(report.entries);
        for (code, count) in report.kept {
            *self.report.kept.entry(code).or_default() += count;
        }
        self.report.healed += report.healed;
        self.report.not_due += report.not_due;
        self.upkeep.take(upkeep);
    }
}
