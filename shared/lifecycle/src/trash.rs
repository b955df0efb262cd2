//! Which entries of a backend's trash are removed for ever.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use crate::{BackendName, Policy, Tier, Time, policy::Percent, snapshot::Disk};

/// Something that was moved to the trash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrashEntry {
    /// Its name there.
    pub entry: Arc<str>,
    /// What it is.
    pub tier: Tier,
    /// When it was moved.
    pub at: Time,
    /// Its size, where it was measured.
    pub bytes: u64,
}

/// Why an entry is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum TrashReason {
    /// It lay there for longer than `trash.keep`.
    Expired {
        /// `trash.keep`.
        #[serde(with = "crate::duration::text")]
        keep: Duration,
    },
    /// The disk is over budget, and this can be rebuilt.
    DiskBudget {
        /// `disk.budget`, in percent.
        budget: u8,
    },
}

/// An entry to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashDue {
    /// Which.
    pub entry: TrashEntry,
    /// Why.
    pub reason: TrashReason,
}

/// The entries that are due at `now`, oldest first.
///
/// What is older than `trash.keep` goes (zero keeps for ever). While the disk is still over the budget that the policies set
/// for this backend, what can be rebuilt (caches, dependencies) goes too, the oldest first; work never
/// goes before its time.
#[must_use]
pub fn due(
    entries: &[TrashEntry],
    backend: &BackendName,
    disk: Option<Disk>,
    policy: &Policy,
    now: Time,
) -> Vec<TrashDue> {
    let keep = policy.trash_keep;
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|a, b| (a.at, &a.entry).cmp(&(b.at, &b.entry)));
    let (expired, young): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|entry| !keep.is_zero() && now.since(entry.at) > keep);
    let mut freed = expired.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.bytes));
    let take = |entry: &TrashEntry, reason| TrashDue { entry: entry.clone(), reason };
    let mut due: Vec<_> = expired.into_iter().map(|entry| take(entry, TrashReason::Expired { keep })).collect();
    let Some((disk, budget)) = disk.zip(strictest(policy, backend)) else { return due };
    for entry in young.into_iter().filter(|entry| entry.tier != Tier::Runtime) {
        if disk.used.saturating_sub(freed) <= budget.of(disk.total) {
            break;
        }
        freed = freed.saturating_add(entry.bytes);
        due.push(take(entry, TrashReason::DiskBudget { budget: budget.get() }));
    }
    due
}

/// What was saved of this backend's deleted runtimes before then has outlived `retention.workspace`. A deleted
/// runtime's labels are gone, so the longest of the policies for its backend counts, and one without a limit keeps
/// for ever. `None`: nothing has.
#[must_use]
pub fn saves_before(backend: &BackendName, policy: &Policy, now: Time) -> Option<Time> {
    let matching = policy.rules.iter().filter(|rules| rules.matches.backend(backend));
    let limits = matching.map(|rules| rules.retention.workspace.filter(|keep| !keep.is_zero()));
    let keep = limits.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    Some(now.minus(keep.saturating_add(policy.slack())))
}

/// The lowest disk budget of the policies for `backend`: the one that sheds into this trash first.
fn strictest(policy: &Policy, backend: &BackendName) -> Option<Percent> {
    policy.rules.iter().filter(|rules| rules.matches.backend(backend)).filter_map(|rules| rules.disk_budget).min()
}
