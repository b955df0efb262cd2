//! The disk budget takes from some and spares others: nobody is forgotten between the two.

use lifecycle::{
    Reason, RuntimeId,
    policy::{Percent, Rules},
    snapshot::Disk,
};
use proptest::{collection::vec, option, prelude::*};

use super::worlds::{Runtime, id, mins, plan_of, policy, rules, running, unit, worktree};

/// Idle long enough to give up files, with what was measured of them.
fn idle(at: usize, minutes: u64, caches: Option<u64>, dependencies: Option<u64>) -> Runtime {
    running(&format!("r{at:02}")).active(mins(minutes)).seen(|seen| {
        seen.running_since = None;
        seen.files.caches = caches;
        seen.files.dependencies = dependencies;
    })
}

/// What is done with each, and what is kept, for a disk of 1,000 with `used` under a budget of `percent`.
fn split(used: u64, percent: u8, fleet: Vec<Runtime>) -> (Vec<RuntimeId>, Vec<(RuntimeId, Reason)>) {
    let policy = policy(Rules { disk_budget: Percent::new(percent), idle_after: Some(mins(30)), ..rules() });
    let mut unit = unit(worktree(), fleet);
    unit.disk = Some(Disk { total: 1_000, used });
    let plan = plan_of(unit, &policy);
    let acts = plan.items.into_iter().map(|item| item.runtime).collect();
    (acts, plan.kept.into_iter().map(|kept| (kept.runtime, kept.reason)).collect())
}

#[test]
fn what_the_disk_does_not_need_is_kept_by_name_with_its_own_reason() {
    let fleet = || (0..3).map(|at| idle(at, 600 - at as u64, Some(50), None)).collect();
    let (acts, whole) = split(800, 80, fleet());
    assert_eq!((acts, whole.len()), (vec![], 3), "a disk that is not over its budget needs nothing");
    assert_eq!(split(820, 80, fleet()), (vec![id("r00")], whole[1..].to_vec()));
    assert_eq!(split(870, 80, fleet()), (vec![id("r00"), id("r01")], whole[2..].to_vec()));
    let all = vec![id("r00"), id("r01"), id("r02")];
    assert_eq!(split(1_000, 80, fleet()), (all, vec![]));
}

proptest! {
    /// Whatever the disk needs, each runtime is in one of the two lists, once, and the kept ones are in order.
    #[test]
    fn a_runtime_is_shed_or_spared_and_never_neither(
        used in 0..=1_000_u64,
        percent in 1..=100_u8,
        fleet in vec((20..200_u64, option::of(0..200_u64), option::of(0..200_u64)), 0..12),
    ) {
        let names: Vec<_> = (0..fleet.len()).map(|at| id(&format!("r{at:02}"))).collect();
        let fleet = fleet.into_iter().enumerate();
        let fleet = fleet.map(|(at, (minutes, caches, dependencies))| idle(at, minutes, caches, dependencies));
        let (acts, kept) = split(used, percent, fleet.collect());
        let kept: Vec<_> = kept.into_iter().map(|(id, _)| id).collect();
        prop_assert!(kept.is_sorted(), "{:?}", kept);
        let mut all = [acts, kept].concat();
        all.sort();
        prop_assert_eq!(all, names);
    }
}
