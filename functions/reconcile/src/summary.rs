//! How a pass ended for each backend, in words that an alarm can wait for.

use std::collections::BTreeMap;

use lifecycle::{BackendName, Fate, policy::Mode, report::BackendReport};
use pass::Outcome;
use serde::Serialize;

/// How a pass over one backend ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Everything that was due was looked at.
    Completed,
    /// Some of it is left to the next pass.
    Unfinished,
    /// Another pass has the backend: nothing was done twice.
    Busy,
    /// The backend or the ledger could not be asked.
    Failed,
}

/// What a pass came to, as the invocation's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Where the whole report is.
    pub report: String,
    /// One a backend.
    pub backends: Vec<UnitSummary>,
}

/// What a pass over one backend came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitSummary {
    /// Which.
    pub backend: BackendName,
    /// How it ended.
    pub ended: Ended,
    /// Acts by what became of them.
    pub acts: BTreeMap<Fate, u64>,
    /// What could not be asked or done.
    pub errors: usize,
    /// More was due than one pass takes.
    pub more_due: bool,
}

/// One a backend, in the report's order.
pub(crate) fn units(outcome: &Outcome) -> Vec<UnitSummary> {
    let backends = outcome.report.backends.iter();
    let mut units: Vec<_> = backends.map(|report| unit(outcome, report)).collect();
    // What another pass has is in no report.
    let absent = |name: &BackendName| !outcome.report.backends.iter().any(|report| report.note.backend == *name);
    units.extend(outcome.upkeep.busy.iter().filter(|busy| absent(&busy.backend)).map(|busy| UnitSummary {
        backend: busy.backend.clone(),
        ended: Ended::Busy,
        acts: BTreeMap::new(),
        errors: 0,
        more_due: false,
    }));
    units
}

fn unit(outcome: &Outcome, report: &BackendReport) -> UnitSummary {
    let name = &report.note.backend;
    let mut acts = BTreeMap::new();
    for entry in outcome.report.entries.iter().filter(|entry| entry.runtime.backend() == name) {
        *acts.entry(entry.fate).or_default() += 1;
    }
    let more_due = outcome.upkeep.more_due.contains(name);
    let left = outcome.report.mode == Mode::Enforce && acts.contains_key(&Fate::Left);
    let ended = if outcome.upkeep.busy.iter().any(|busy| busy.backend == *name) {
        Ended::Busy
    } else if outcome.upkeep.unasked.contains(name) {
        Ended::Failed
    } else if more_due || left {
        Ended::Unfinished
    } else {
        Ended::Completed
    };
    UnitSummary { backend: name.clone(), ended, acts, errors: report.errors.len(), more_due }
}
