//! What must be so in the end: the faults have ceased, and enough passes were made.

use std::time::Duration;

use lifecycle::{
    RuntimeId, State, Time,
    policy::{Budget, WorkspaceRule},
};

use super::{Auditor, Row};
use crate::simulation::{
    scenario::{MINUTE, Scenario, Shows},
    trace::offset,
    world::{By, Runtime, World},
};

/// How far apart the passes of the end are.
pub(crate) const TICK: Duration = Duration::from_mins(3);

/// What a run promises: after the faults have ceased, a dead holder's claim ends, is found, failed attempts wait, a
/// whole idle period passes, and a pass comes; then the rests of a budget's windows.
pub(crate) fn promised(scenario: &Scenario) -> Duration {
    let limits = &scenario.limits;
    let claim = 3 * limits.look_timeout + limits.act_timeout + 2 * scenario.policy.skew;
    let idle = scenario.rules().idle_after.unwrap_or_default().max(scenario.rules().unknown_after.unwrap_or_default());
    claim
        + 2 * limits.backoff_max
        + limits.sweep_every
        + idle
        + 5 * TICK
        + silence(scenario)
        + windows(scenario, scenario.policy.budgets.suspend)
}

/// The same for what rests: until it has left its stage.
pub(crate) fn promised_at_rest(scenario: &Scenario) -> Duration {
    let rules = scenario.rules();
    let keep = rules.retention.suspended.max(rules.retention.archived).unwrap_or_default();
    let budgets = scenario.policy.budgets;
    let windows = windows(scenario, budgets.archive).max(windows(scenario, budgets.delete));
    keep + rules.notice_before_delete.unwrap_or_default()
        + scenario.limits.backoff_max
        + 6 * TICK
        + silence(scenario)
        + windows
}

/// How long a fleet that really fell silent may keep the breaker of silent heartbeats open: each sweep moves the
/// trailing mean by an eighth of what it lacks, until the policy allows the rest.
fn silence(scenario: &Scenario) -> Duration {
    let Some(allowed) = scenario.policy.breakers.silent else { return Duration::ZERO };
    let mut sweeps = 0;
    let mut above_the_mean = 1.0;
    while above_the_mean > f64::from(allowed.get()) / 100.0 {
        above_the_mean *= 7.0 / 8.0;
        sweeps += 1;
    }
    (scenario.limits.sweep_every + TICK) * sweeps
}

/// As many windows as the whole fleet needs.
fn windows(scenario: &Scenario, budget: Option<Budget>) -> Duration {
    let fleet = u32::try_from(scenario.runtimes.len()).unwrap_or(u32::MAX);
    budget.map_or(Duration::ZERO, |budget| budget.per * fleet.div_ceil(budget.min.max(1)))
}

/// What is not as it must be in the end: the invariant, the runtime, and what.
pub(crate) type Wrong = (u8, RuntimeId, String);

impl Auditor {
    /// The end has come, and this is still wrong.
    pub(crate) fn too_late(&mut self, wrong: Vec<Wrong>, now: Time) {
        if let Some((invariant, id, what)) = wrong.into_iter().next() {
            self.violated(invariant, now, Some(&id), what);
        }
    }

    /// Nothing is claimed, in a middle state, forgotten by the index or unlike what is there; what was idle is
    /// reclaimed; who was refused got his runtime back.
    pub(crate) fn out_of_order(&self, world: &World, calm_since: Time, now: Time) -> Vec<Wrong> {
        let of_rows = self.rows.iter().filter_map(|(id, row)| {
            let what = out_of_order(row, world.runtimes.get(id), now)?;
            Some((5, id.clone(), what))
        });
        let ours = world.runtimes.iter().filter(|(_, there)| there.ours());
        let of_runtimes = ours.flat_map(|(id, there)| {
            let unseen = (!self.rows.contains_key(id)).then(|| (5, "it is there, and has no record".to_owned()));
            let wrong = [
                unseen,
                self.never_got_back(id, there),
                self.not_reclaimed(id, there, calm_since, now),
                self.not_left_alone(there, now),
            ];
            wrong.into_iter().flatten().map(|(invariant, what)| (invariant, id.clone(), what))
        });
        of_rows.chain(of_runtimes).collect()
    }

    /// Invariant 1: a heartbeat that was refused is not forgotten. A runtime may have run already when it was refused,
    /// when nobody had written down yet that it was called back: what was missing then is that its record says so.
    fn never_got_back(&self, id: &RuntimeId, there: &Runtime) -> Option<(u8, String)> {
        let truth = self.truths.get(id)?;
        let refused = truth.refused?;
        let back = there.state == State::Running || there.running_since >= refused || truth.running >= Some(refused);
        (!back).then(|| (1, format!("a heartbeat was refused at {}, and it never ran again", offset(refused))))
    }

    /// What was idle for long enough is reclaimed.
    fn not_reclaimed(&self, id: &RuntimeId, there: &Runtime, calm_since: Time, now: Time) -> Option<(u8, String)> {
        if there.state != State::Running || self.exempt(id, there) {
            return None;
        }
        let rules = self.scenario.rules();
        // Whoever has taken the id again need not be whose heartbeats were heard.
        let heard = self.truths.get(id).is_some_and(|truth| truth.acknowledged >= Some(there.born));
        let known = there.kind.shows != Shows::Nothing || heard || rules.unknown_after.is_some();
        let idle_since = there.active.max(there.running_since);
        if known && !there.kind.lasting && idle_since <= calm_since.plus(10 * MINUTE) {
            return Some((5, format!("it is idle since {} and runs", offset(idle_since))));
        }
        let long = rules.lifetime_max.map(|max| max + promised_at_rest(&self.scenario))?;
        let outlived = now.since(there.running_since) > long;
        outlived.then(|| (7, format!("it runs since {}, for longer than its lifetime", offset(there.running_since))))
    }

    /// What works is left alone.
    fn not_left_alone(&self, there: &Runtime, now: Time) -> Option<(u8, String)> {
        let works = there.kind.lasting && !there.kind.mute() && self.scenario.rules().lifetime_max.is_none();
        let stopped = there.by == By::Us && there.state != State::Running && there.active.plus(5 * MINUTE) > now;
        (works && stopped).then(|| (1, format!("it works, and is {}", there.state)))
    }

    /// What rests since before `since` is archived or deleted in the end.
    pub(crate) fn still_at_rest(&self, world: &World, since: Time) -> Vec<Wrong> {
        let rules = self.scenario.rules();
        let ours = world.runtimes.iter().filter(|(_, there)| there.ours());
        ours.filter_map(|(id, there)| {
            let keep = match there.state {
                State::Suspended => rules.retention.suspended,
                State::Archived => rules.retention.archived,
                _ => None,
            };
            keep?;
            let archives = there.state == State::Suspended && self.scenario.archives;
            let loses = rules.workspace == WorkspaceRule::Save && !archives;
            let rests = there.state_since <= since && !loses && !self.exempt(id, there);
            rests.then(|| (5, id.clone(), format!("it is {} since {}", there.state, offset(there.state_since))))
        })
        .collect()
    }

    /// Somebody holds it.
    fn exempt(&self, id: &RuntimeId, there: &Runtime) -> bool {
        there.hold_label || self.rows.get(id).is_some_and(|row| row.hold.is_some())
    }

    /// Invariant 5: nothing has to be healed.
    pub(crate) fn healed(&mut self, healed: u64, now: Time) {
        if healed > 0 {
            self.violated(5, now, None, format!("{healed} records had fallen out of the index"));
        }
    }
}

/// What is wrong with a record at rest.
fn out_of_order(row: &Row, there: Option<&Runtime>, now: Time) -> Option<String> {
    if row.state == State::Gone {
        return there.filter(|there| there.ours()).map(|_| "its record says gone, and it is there".to_owned());
    }
    let Some(due) = row.due else { return Some(format!("it is {} and in no index", row.state)) };
    if row.state.is_middle() || row.until.is_some() {
        return Some(format!("it is {} under a claim of {:?} for ever", row.state, row.owner));
    }
    if due.plus(4 * TICK) < now {
        return Some(format!("it is due since {}, and nobody looks", offset(due)));
    }
    match there {
        None => Some(format!("it is no more, and its record says {}", row.state)),
        Some(there) if there.ours() && there.state != row.state => {
            Some(format!("it is {}, and its record says {}", there.state, row.state))
        }
        Some(_) => None,
    }
}
