//! The disk budget: idle runtimes give up files that can be rebuilt until the disk is under it.

use super::{
    Kept,
    make::{Spare, Want, saves},
};
use crate::{Action, Reason, judge::Judge, policy::Percent, snapshot::Disk};

/// Moves from `spares` to `wants` what the disk budget needs, and the rest to `keeps`: caches before
/// dependencies, the longest idle first. What was not measured frees nothing that could be counted on.
pub(super) fn shed<'a>(judge: &Judge<'_>, wants: &mut Vec<Want<'a>>, spares: Vec<Spare<'a>>, keeps: &mut Vec<Kept>) {
    let Some(disk) = judge.unit.disk else {
        keeps.extend(spares.into_iter().map(|spare| spare.kept));
        return;
    };
    let wanted = wants.iter().map(|want| saves(&want.facts, want.action, <_>::default()).bytes);
    let mut freed = wanted.fold(0, u64::saturating_add);
    let mut spares: Vec<_> = spares.into_iter().map(|spare| (spare.facts.idle_from(judge.now), spare)).collect();
    spares.sort_by(|(a_from, a), (b_from, b)| {
        (a.tier, a_from).cmp(&(b.tier, b_from)).then_with(|| a.kept.runtime.cmp(&b.kept.runtime))
    });
    for (idle_from, spare) in spares {
        let budget = spare.facts.active.and_then(|active| active.over_disk);
        match budget.filter(|budget| disk.used.saturating_sub(freed) > budget.of(disk.total)) {
            Some(budget) => {
                freed = freed.saturating_add(spare.facts.bytes(spare.tier).unwrap_or(0));
                let reason = Reason::DiskBudget { used: percent(disk), budget: Percent::get(budget) };
                wants.push(Want { facts: spare.facts, action: Action::Shed(spare.tier), reason, idle_from });
            }
            None => keeps.push(spare.kept),
        }
    }
}

/// How full the disk is, rounded up so that it never reads as the budget that it is over.
fn percent(disk: Disk) -> u8 {
    let full = u128::from(disk.used).saturating_mul(100).div_ceil(u128::from(disk.total).max(1));
    u8::try_from(full).unwrap_or(u8::MAX)
}
