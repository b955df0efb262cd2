//! The disk budget: idle runtimes give up files that can be rebuilt until the disk is under it.

use super::{
    make::{Spare, Want, saves},
    order::Late,
};
use crate::{Action, Reason, judge::Judge, snapshot::Disk};

/// Moves from `spares` to `wants` what the disk budget needs, and gives back the rest: caches before
/// dependencies, the longest idle first. What was not measured frees nothing that could be counted on.
pub(super) fn shed<'a>(judge: &Judge<'_>, wants: &mut Vec<Want<'a>>, mut spares: Vec<Spare<'a>>) -> Late<'a> {
    let disk = judge.unit.disk.unwrap_or(Disk { total: 0, used: 0 });
    let wanted = wants.iter().map(|want| saves(want.place.seen, want.action, <_>::default()).bytes);
    let mut freed = wanted.fold(0, u64::saturating_add);
    spares.sort_unstable_by_key(|spare| (spare.tier, spare.place.order()));
    let mut late = Late::new();
    for Spare { place, tier, budget, kept } in spares {
        if disk.used.saturating_sub(freed) > budget.of(disk.total) {
            freed = freed.saturating_add(place.seen.files.of(tier).unwrap_or(0));
            let reason = Reason::DiskBudget { used: disk.percent(), budget: budget.get() };
            wants.push(Want { place, action: Action::Shed(tier), reason });
        } else {
            late.push((place, kept));
        }
    }
    late
}
