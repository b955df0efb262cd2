//! What a pass did, for people and programs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    Action, BackendName, Headline, Item, Plan, Reason, RuntimeId, Saves, Time, plan::BackendNote, policy::Mode,
};

mod tables;
mod words;

pub use tables::Table;
pub use words::{Bytes, Money};

/// What a pass did. Opens with idle hours and what they cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Report {
    /// When it began.
    pub at: Time,
    /// How long it took.
    #[serde(with = "crate::duration::text")]
    pub took: Duration,
    /// Whether it was to act.
    pub mode: Mode,
    /// Idle hours and what they cost, when it began.
    pub headline: Headline,
    /// One a backend.
    pub backends: Vec<BackendReport>,
    /// One an act of the plan, in its order.
    pub entries: Vec<Entry>,
    /// How many runtimes were kept, by the code of the reason.
    pub kept: BTreeMap<String, u64>,
    /// How many runtimes of the last complete sweep were not due, and were not looked at.
    pub not_due: u64,
    /// Records that were in no index and were put back; expected 0.
    pub healed: u64,
}

/// How a pass went for one backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendReport {
    /// What the plan says of it.
    pub note: BackendNote,
    /// What could not be asked or done, for people.
    pub errors: Vec<Arc<str>>,
}

/// What became of one act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The runtime.
    pub runtime: RuntimeId,
    /// One line for people: a path, an image.
    pub about: Arc<str>,
    /// The act.
    pub action: Action,
    /// Why it was to be done.
    pub reason: Reason,
    /// What became of it.
    pub fate: Fate,
    /// More of it, for people: why it was refused, where the work was saved, how to take it back.
    pub detail: Option<Arc<str>>,
    /// What it saved, when it was done.
    pub saves: Saves,
}

/// What became of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Done by this pass.
    Done,
    /// It was so already.
    AlreadyDone,
    /// The runtime was gone.
    Gone,
    /// Under way; a later pass looks again.
    Pending,
    /// Another run, state or activity than planned: nothing was done.
    Moved,
    /// Refused for a reason, by the backend, a hold, a budget or a breaker: nothing was done.
    Refused,
    /// Left to the next pass: this one's time was up, or it only reports.
    Left,
    /// It was asked and no answer came; a later pass looks.
    Unknown,
    /// It could not be done.
    Failed,
}

impl Fate {
    /// Every fate, best first.
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::AlreadyDone,
        Self::Gone,
        Self::Pending,
        Self::Moved,
        Self::Refused,
        Self::Left,
        Self::Unknown,
        Self::Failed,
    ];

    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AlreadyDone => "already done",
            Self::Gone => "gone",
            Self::Pending => "under way",
            Self::Moved => "moved",
            Self::Refused => "refused",
            Self::Left => "left to the next pass",
            Self::Unknown => "no answer",
            Self::Failed => "failed",
        }
    }

    /// What it means for the whole.
    pub const fn standing(self) -> Standing {
        match self {
            Self::Done | Self::AlreadyDone | Self::Gone => Standing::AllDone,
            Self::Pending | Self::Moved | Self::Refused | Self::Left => Standing::SomeNotDone,
            Self::Unknown | Self::Failed => Standing::SomeFailed,
        }
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a pass ended as a whole, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Everything that was to be done is so.
    AllDone,
    /// Some were refused, moved, under way, or left.
    SomeNotDone,
    /// Something failed.
    SomeFailed,
}

impl Report {
    /// The report of a pass over `plan`, before anything is done: every item is left.
    pub fn of(plan: &Plan, mode: Mode) -> Self {
        let backends = plan
            .backends
            .iter()
            .map(|note| BackendReport { note: note.clone(), errors: note.listing.error.iter().cloned().collect() });
        Self {
            at: plan.made_at,
            took: Duration::ZERO,
            mode,
            headline: plan.headline,
            backends: backends.collect(),
            entries: plan.items.iter().map(Entry::left).collect(),
            kept: plan.kept_by_reason(),
            not_due: 0,
            healed: 0,
        }
    }

    /// Writes down what became of the plan's item number `at` (from 0), and how many bytes it moved where
    /// that was measured. Nothing, when the plan has no such item.
    pub fn settle(&mut self, at: usize, fate: Fate, detail: Option<Arc<str>>, bytes: Option<u64>) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        entry.fate = fate;
        entry.detail = detail;
        entry.saves.bytes = bytes.unwrap_or(entry.saves.bytes);
    }

    /// Adds what could not be asked or done to its backend.
    pub fn fail(&mut self, backend: &BackendName, error: impl Into<Arc<str>>) {
        if let Some(report) = self.backends.iter_mut().find(|report| report.note.backend == *backend) {
            report.errors.push(error.into());
        }
    }

    /// How many acts met each fate.
    pub fn counts(&self) -> BTreeMap<Fate, u64> {
        self.entries.iter().fold(BTreeMap::new(), |mut counts, entry| {
            *counts.entry(entry.fate).or_default() += 1;
            counts
        })
    }

    /// What was saved by the acts that were done.
    pub fn saved(&self) -> Saves {
        let done = self.entries.iter().filter(|entry| entry.fate == Fate::Done);
        done.fold(Saves::default(), |sum, entry| sum.plus(entry.saves))
    }

    /// How it ended as a whole.
    pub fn standing(&self) -> Standing {
        let errors = self.backends.iter().any(|backend| !backend.errors.is_empty());
        let errors = if errors { Standing::SomeFailed } else { Standing::AllDone };
        self.entries.iter().map(|entry| entry.fate.standing()).fold(errors, Standing::max)
    }
}

impl Entry {
    fn left(item: &Item) -> Self {
        Self {
            runtime: item.runtime.clone(),
            about: item.evidence.about.clone(),
            action: item.action,
            reason: item.reason.clone(),
            fate: Fate::Left,
            detail: None,
            saves: item.saves,
        }
    }
}

impl Plan {
    /// How many runtimes are kept, by the code of the reason.
    pub fn kept_by_reason(&self) -> BTreeMap<String, u64> {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for kept in &self.kept {
            *counts.entry(kept.reason.code()).or_default() += 1;
        }
        counts.into_iter().map(|(code, count)| (code.to_owned(), count)).collect()
    }
}
