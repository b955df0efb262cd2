//! Budgets: how many acts of each kind the present window still allows.

use std::collections::BTreeMap;

use super::{
    Kept,
    make::{Want, kept},
    order::Late,
};
use crate::{Reason, judge::Judge, policy::BudgetKind};

/// Splits what is wanted: within the budgets it stays, the longest idle first, then by id; the rest is kept.
pub(super) fn cut<'a>(judge: &Judge<'_>, ours: u64, mut wants: Vec<Want<'a>>, late: &mut Late<'a>) -> Vec<Want<'a>> {
    wants.sort_unstable_by_key(|want| want.place.order());
    let mut left = BTreeMap::new();
    let mut within = Vec::new();
    for want in wants {
        let Some(kind) = want.action.budget() else {
            within.push(want);
            continue;
        };
        let left = left.entry(kind).or_insert_with(|| remaining(judge, ours, kind));
        if *left > 0 {
            *left -= 1;
            within.push(want);
        } else {
            late.push((want.place, spent(judge, ours, &want, kind)));
        }
    }
    within
}

/// How many acts of `kind` a window allows: a share of the last complete sweep, else of this listing
/// when it is complete, else of nothing.
pub(crate) fn limit(judge: &Judge<'_>, ours: u64, kind: BudgetKind) -> u64 {
    let counted = if judge.unit.listing.complete { ours } else { 0 };
    let fleet = judge.unit.last_sweep.map_or(counted, |sweep| sweep.count);
    judge.policy.budgets.of(kind).map_or(0, |budget| budget.allows(fleet))
}

/// What the present window has left. A count of what was used that is missing is all of it.
fn remaining(judge: &Judge<'_>, ours: u64, kind: BudgetKind) -> u64 {
    let used = judge.unit.used.get(&kind).copied().unwrap_or(u64::MAX);
    limit(judge, ours, kind).saturating_sub(used)
}

fn spent(judge: &Judge<'_>, ours: u64, want: &Want<'_>, kind: BudgetKind) -> Kept {
    let reason = Reason::Budget { kind, limit: limit(judge, ours, kind) };
    let next = judge.policy.budgets.of(kind).map(|budget| budget.next_window(judge.now));
    kept(want.place.subject, reason, next)
}
