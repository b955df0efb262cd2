//! What must be so in the end: the faults have ceased, and enough passes were made.

use std::time::Duration;

use lifecycle::{RuntimeId, State, Time, policy::Budget};

use super::{Auditor, Row};
use crate::simulation::{
    scenario::{MINUTE, Scenario},
    trace::offset,
    world::{Runtime, World},
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
        + windows(scenario, scenario.policy.budgets.suspend)
}

/// The same for what rests: until it has left its stage.
pub(crate) fn promised_at_rest(scenario: &Scenario) -> Duration {
    let rules = scenario.rules();
    let keep = rules.retention.suspended.max(rules.retention.archived).unwrap_or_default();
    let budgets = scenario.policy.budgets;
    let windows = windows(scenario, budgets.archive).max(windows(scenario, budgets.delete));
    keep + rules.notice_before_delete.unwrap_or_default() + scenario.limits.backoff_max + 6 * TICK + windows
}

/// As many windows as the whole fleet needs.
fn windows(scenario: &Scenario, budget: Option<Budget>) -> Duration {
    let fleet = u32::try_from(scenario.runtimes.len()).unwrap_or(u32::MAX);
    budget.map_or(Duration::ZERO, |budget| budget.per * fleet.div_ceil(budget.min.max(1)))
}

impl Auditor {
    /// Nothing is claimed, in a middle state, forgotten by the index or unlike what is there; what was idle is
    /// reclaimed; who was refused got his runtime back.
    pub(crate) fn in_order(&mut self, world: &World, calm_since: Time, now: Time) {
        for (id, row) in self.rows.clone() {
            if let Some(what) = out_of_order(&row, world.runtimes.get(&id), now) {
                self.violated(5, now, Some(&id), what);
            }
        }
        for (id, there) in &world.runtimes {
            if !there.ours() {
                if self.rows.contains_key(id) {
                    self.count("what is not ours has a record");
                }
                continue;
            }
            if !self.rows.contains_key(id) {
                self.violated(5, now, Some(id), "it is there, and has no record".to_owned());
            }
            self.got_it_back(id, there, now);
            self.reclaimed(id, there, calm_since, now);
            self.left_alone(id, there, now);
        }
    }

    /// Invariant 1: a heartbeat that was refused is not forgotten.
    fn got_it_back(&mut self, id: &RuntimeId, there: &Runtime, now: Time) {
        let refused = self.truth(id).refused;
        if let Some(refused) = refused.filter(|at| there.state != State::Running && there.running_since < *at) {
            let what = format!("a heartbeat was refused at {}, and it never ran again", offset(refused));
            self.violated(1, now, Some(id), what);
        }
    }

    /// What was idle for long enough was reclaimed.
    fn reclaimed(&mut self, id: &RuntimeId, there: &Runtime, calm_since: Time, now: Time) {
        let rules = self.scenario.rules().clone();
        let known = !there.kind.mute() || self.truth(id).acknowledged.is_some() || rules.unknown_after.is_some();
        let exempt = self.exempt(id, there) || self.scenario.policy.breakers.silent.is_some();
        let idle_since = there.active.max(there.running_since);
        if there.state == State::Running
            && known
            && !exempt
            && !there.kind.lasting
            && idle_since <= calm_since.plus(10 * MINUTE)
        {
            let what = format!("it is idle since {} and runs", offset(idle_since));
            self.violated(5, now, Some(id), what);
        }
        let long = rules.lifetime_max.map(|max| max + promised_at_rest(&self.scenario));
        if long.is_some_and(|long| there.state == State::Running && now.since(there.running_since) > long) && !exempt {
            self.violated(7, now, Some(id), "it has run for longer than its lifetime".to_owned());
        }
    }

    /// What works is left alone.
    fn left_alone(&mut self, id: &RuntimeId, there: &Runtime, now: Time) {
        let works = there.kind.lasting && !there.kind.mute() && self.scenario.rules().lifetime_max.is_none();
        let ours = there.by == crate::simulation::world::By::Us;
        if works && ours && there.state != State::Running && there.active.plus(5 * MINUTE) > now {
            self.violated(1, now, Some(id), format!("it works, and is {}", there.state));
        }
    }

    /// What rests is archived or deleted in the end.
    pub(crate) fn left_its_stage(&mut self, world: &World, since: Time, now: Time) {
        let rules = self.scenario.rules().clone();
        for (id, there) in &world.runtimes {
            let keep = match there.state {
                State::Suspended => rules.retention.suspended,
                State::Archived => rules.retention.archived,
                _ => None,
            };
            let archives = there.state == State::Suspended && self.scenario.archives;
            let loses = rules.workspace == lifecycle::policy::WorkspaceRule::Save && !archives;
            if keep.is_some() && there.ours() && there.state_since <= since && !loses && !self.exempt(id, there) {
                let what = format!("it is {} since {}", there.state, offset(there.state_since));
                self.violated(5, now, Some(id), what);
            }
        }
    }

    /// Somebody holds it.
    fn exempt(&mut self, id: &RuntimeId, there: &Runtime) -> bool {
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
