//! Merges the pages of a listing, answers of probes and records into one snapshot, whatever their order.

use std::{cmp::Ordering, collections::BTreeMap};

use crate::{
    Activity, BackendName, Busy, Capabilities, Observation, Ownership, Record, RuntimeId, State, Subject, Time,
    UnitSnapshot, snapshot::Listing,
};

use super::ProbeAnswer;

/// Builds a [`UnitSnapshot`]. The order of the calls, and how a listing was cut into pages, change nothing.
#[derive(Debug)]
#[must_use]
pub struct SnapshotBuilder {
    unit: UnitSnapshot,
    subjects: BTreeMap<RuntimeId, Subject>,
}

impl SnapshotBuilder {
    /// Begins with an empty inventory.
    pub fn new(backend: BackendName, can: Capabilities, listing: Listing) -> Self {
        Self { unit: UnitSnapshot::new(backend, can, listing), subjects: BTreeMap::new() }
    }

    /// Adds what was seen, as one page or several. Of two rows of one runtime the safer stays.
    pub fn seen(mut self, page: impl IntoIterator<Item = Observation>) -> Self {
        for row in page {
            let subject = entry(&mut self.subjects, row.id.clone());
            subject.seen = safer(subject.seen.take(), Some(Box::new(row)), compare_rows);
        }
        self
    }

    /// Adds what the ledger keeps. Of two records of one runtime the newer stays.
    pub fn records(mut self, records: impl IntoIterator<Item = (RuntimeId, Record)>) -> Self {
        for (id, record) in records {
            let subject = entry(&mut self.subjects, id);
            subject.record = safer(subject.record.take(), Some(Box::new(record)), compare_records);
        }
        self
    }

    /// Adds what the agent server inside a runtime answered. Of two answers both count.
    pub fn probe(mut self, id: RuntimeId, answer: ProbeAnswer) -> Self {
        let subject = entry(&mut self.subjects, id);
        subject.probe = Some(subject.probe.map_or(answer, |other| other.join(answer)));
        self
    }

    /// The snapshot. What else it holds (sweep, budgets, pause, disk) are its public fields.
    pub fn build(mut self) -> UnitSnapshot {
        self.unit.subjects = self.subjects.into_values().collect();
        self.unit
    }
}

fn entry(subjects: &mut BTreeMap<RuntimeId, Subject>, id: RuntimeId) -> &mut Subject {
    subjects.entry(id.clone()).or_insert(Subject { id, seen: None, record: None, probe: None })
}

/// The one that `compare` puts last. A total order makes this independent of the order of arrival.
fn safer<T>(one: Option<Box<T>>, other: Option<Box<T>>, compare: fn(&T, &T) -> Ordering) -> Option<Box<T>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if compare(&one, &other).is_lt() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Sorts, and merges rows of one runtime: what [`UnitSnapshot::set_subjects`] does.
pub(super) fn merged(mut subjects: Vec<Subject>) -> Vec<Subject> {
    subjects.sort_by(|a, b| a.id.cmp(&b.id));
    subjects.dedup_by(|later, first| {
        if later.id != first.id {
            return false;
        }
        first.seen = safer(first.seen.take(), later.seen.take(), compare_rows);
        first.record = safer(first.record.take(), later.record.take(), compare_records);
        first.probe = match (first.probe, later.probe) {
            (Some(one), Some(other)) => Some(one.join(other)),
            (one, other) => one.or(other),
        };
        true
    });
    subjects
}

/// The row that shows more activity, or less right to act, is last. Total: equal only when equal in all.
fn compare_rows(a: &Observation, b: &Observation) -> Ordering {
    row_rank(a).cmp(&row_rank(b)).then_with(|| json(a).cmp(&json(b)))
}

type RowRank = (u8, u8, Option<Time>, (u8, Time), (u8, Time), Option<Time>);

fn row_rank(row: &Observation) -> RowRank {
    let owner = match row.ownership {
        Ownership::Ours => 0,
        Ownership::Unlabelled => 1,
        Ownership::Foreign => 2,
    };
    let state = match row.state {
        State::Gone => 0,
        State::Archived => 1,
        State::Suspended => 2,
        State::Running => 3,
        State::Suspending | State::Archiving | State::Deleting | State::Resuming => 4,
    };
    let busy = match row.busy {
        Busy::No => (0, Time::MIN),
        Busy::Until(until) => (1, until),
        Busy::Unread => (2, Time::MIN),
    };
    let active = match row.activity {
        Activity::Frozen => (0, Time::MIN),
        Activity::At(at) => (1, at),
        Activity::Unknown => (2, Time::MIN),
    };
    (owner, state, row.running_since, busy, active, row.state_since)
}

/// The record of the later registration, claim and activity is last.
fn compare_records(a: &Record, b: &Record) -> Ordering {
    let rank = |record: &Record| (record.epoch, record.token, record.idle_from);
    rank(a).cmp(&rank(b)).then_with(|| json(a).cmp(&json(b)))
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
