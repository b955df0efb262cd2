//! Merges the pages of a listing, answers of probes and records into one snapshot, whatever their order.

use std::collections::BTreeMap;

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

    /// Adds what was seen, as one page or several. Two rows of one runtime are merged into the safer.
    pub fn seen(mut self, page: impl IntoIterator<Item = Observation>) -> Self {
        for row in page {
            let subject = entry(&mut self.subjects, row.id.clone());
            subject.seen = merge(subject.seen.take(), Some(Box::new(row)), join_rows);
        }
        self
    }

    /// Adds what the ledger keeps. Of two records of one runtime the newer stays.
    pub fn records(mut self, records: impl IntoIterator<Item = (RuntimeId, Record)>) -> Self {
        for (id, record) in records {
            let subject = entry(&mut self.subjects, id);
            subject.record = merge(subject.record.take(), Some(Box::new(record)), newer);
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

/// Both, or the one that is there.
fn merge<T>(one: Option<Box<T>>, other: Option<Box<T>>, join: fn(Box<T>, Box<T>) -> Box<T>) -> Option<Box<T>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
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
        first.seen = merge(first.seen.take(), later.seen.take(), join_rows);
        first.record = merge(first.record.take(), later.record.take(), newer);
        first.probe = match (first.probe, later.probe) {
            (Some(one), Some(other)) => Some(one.join(other)),
            (one, other) => one.or(other),
        };
        true
    });
    subjects
}

/// Of two rows the one that gives less right to act, with the latest signs of life of both. What makes
/// one the lesser is in no joined field, so that any order of joining gives the same.
fn join_rows(one: Box<Observation>, other: Box<Observation>) -> Box<Observation> {
    let order = rank(&one).cmp(&rank(&other));
    let swap = order.then_with(|| rest(&one).cmp(&rest(&other))).is_lt();
    let (mut row, other) = if swap { (other, one) } else { (one, other) };
    row.busy = row.busy.join(other.busy);
    row.running_since = row.running_since.max(other.running_since);
    if order.is_ne() {
        return row;
    }
    row.state_since = row.state_since.max(other.state_since);
    if let (Activity::At(at), Activity::At(other)) = (row.activity, other.activity) {
        row.activity = Activity::At(at.max(other));
    }
    row
}

/// Whose it is, what it is on, and whether its activity is known.
fn rank(row: &Observation) -> (u8, u8, u8) {
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
    let known = match row.activity {
        Activity::Frozen => 0,
        Activity::At(_) => 1,
        Activity::Unknown => 2,
    };
    (owner, state, known)
}

/// All that is not joined, in an order that means nothing.
fn rest(row: &Observation) -> Vec<u8> {
    let activity = match row.activity {
        Activity::At(_) => Activity::At(Time::MIN),
        other => other,
    };
    json(&Observation { busy: Busy::No, running_since: None, state_since: None, activity, ..row.clone() })
}

/// The record of the later registration, claim and activity.
fn newer(one: Box<Record>, other: Box<Record>) -> Box<Record> {
    let rank = |record: &Record| (record.epoch, record.token, record.idle_from);
    let order = rank(&one).cmp(&rank(&other)).then_with(|| json(&one).cmp(&json(&other)));
    if order.is_lt() { other } else { one }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
