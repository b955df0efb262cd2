//! What concerns a backend as a whole, as steps of an explanation: the plan asks it after the rules.

use std::time::Duration;

use super::{Said, Step};
use crate::{
    Action, Plan, Reason, Time, Verdict,
    duration::Human,
    judge::{Decision, Facts, Judge},
    plan::{BackendNote, budget},
    policy::BudgetKind,
    verdict::Breaker,
};

/// A backend's part in the verdict on one of its runtimes.
pub(super) struct Whole<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) facts: &'a Facts<'a>,
    pub(super) decision: &'a Decision,
    pub(super) plan: &'a Plan,
    pub(super) verdict: &'a Verdict,
}

impl Whole<'_> {
    /// Pause, breakers, the disk, and the budget of what the rules ask for.
    pub(super) fn steps(&self) -> Vec<Step> {
        let Some(note) = self.plan.backends.first() else { return Vec::new() };
        let mut steps = vec![self.pause(note), self.inventory(note), self.silence(note), self.disk()];
        steps.extend(self.wanted().and_then(Action::budget).map(|kind| self.budget(kind, note.ours)));
        steps
    }

    /// What the rules, or the disk, ask for.
    fn wanted(&self) -> Option<Action> {
        match (self.decision, self.verdict) {
            (Decision::Want(action, _), _) | (Decision::Keep(..), Verdict::Act(action, ..)) => Some(*action),
            (Decision::Keep(..), Verdict::Keep(Reason::Budget { kind: BudgetKind::Shed, .. }, _)) => {
                self.facts.next_tier().map(Action::Shed)
            }
            (Decision::Keep(..), Verdict::Keep(..)) => None,
        }
    }

    /// What the verdict is, where it is this step's; else nothing.
    fn kept(&self, mine: impl Fn(&Reason) -> bool) -> (Said, Option<Time>) {
        match self.verdict {
            Verdict::Keep(reason, next) if mine(reason) => (Said::Keep(reason.clone()), *next),
            _ => (Said::Pass, None),
        }
    }

    fn pause(&self, note: &BackendNote) -> Step {
        let (said, next) = self.kept(|reason| *reason == Reason::Paused);
        let saw = if note.paused { "paused" } else { "not paused" };
        step("pause", (saw.to_owned(), None), (said, next))
    }

    fn inventory(&self, note: &BackendNote) -> Step {
        let last = self.judge.unit.last_sweep;
        let saw = match (self.judge.policy.breakers.inventory_drop, last) {
            (None, _) => "no limit".to_owned(),
            (Some(_), None) => "no complete sweep to compare with".to_owned(),
            (Some(drop), Some(last)) => {
                format!("{} runtimes, {} at the last sweep, limit {}% fewer", note.ours, last.count, drop.get())
            }
        };
        let age = last.map(|last| self.judge.now.since(last.at));
        step("breaker.inventory_drop", (saw, age), self.tripped(Breaker::InventoryDrop))
    }

    fn silence(&self, note: &BackendNote) -> Step {
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let mean = percent(self.judge.unit.silent_mean.unwrap_or(0.0));
        let saw = match (self.judge.policy.breakers.silent, note.silent_share) {
            (None, _) => "no limit".to_owned(),
            (Some(_), None) => "nothing here lives by heartbeats".to_owned(),
            (Some(more), Some(share)) => {
                format!("{} silent, {mean} on average, limit {}% more", percent(share), more.get())
            }
        };
        step("breaker.silent", (saw, None), self.tripped(Breaker::Silent))
    }

    fn tripped(&self, mine: Breaker) -> (Said, Option<Time>) {
        self.kept(|reason| matches!(reason, Reason::Breaker { breaker } if *breaker == mine))
    }

    fn disk(&self) -> Step {
        let budget = self.facts.active.and_then(|active| active.rules.disk_budget);
        let saw = match (budget, self.judge.unit.disk) {
            (None, _) => "no budget".to_owned(),
            (Some(_), None) => "how full the disk is is not known".to_owned(),
            (Some(budget), Some(disk)) => format!("{}% full, budget {}%", disk.percent(), budget.get()),
        };
        let said = match self.verdict {
            Verdict::Act(action, reason @ Reason::DiskBudget { .. }, _) => Said::Act(*action, reason.clone()),
            _ => Said::Pass,
        };
        step("disk.budget", (saw, None), (said, None))
    }

    fn budget(&self, kind: BudgetKind, ours: u64) -> Step {
        let rule = match kind {
            BudgetKind::Suspend => "budget.suspend",
            BudgetKind::Archive => "budget.archive",
            BudgetKind::Delete => "budget.delete",
            BudgetKind::Shed => "budget.shed",
        };
        let used = self.judge.unit.used.get(&kind);
        let saw = match (self.judge.policy.budgets.of(kind), used) {
            (None, _) => "no budget".to_owned(),
            (Some(_), None) => "how much is used is not known, so all".to_owned(),
            (Some(budget), Some(used)) => {
                let limit = budget::limit(self.judge, ours, kind);
                format!("{used} of {limit} used in this window of {}", Human(budget.per))
            }
        };
        step(rule, (saw, None), self.kept(|reason| matches!(reason, Reason::Budget { kind: its, .. } if *its == kind)))
    }
}

fn step(rule: &'static str, (saw, age): (String, Option<Duration>), (said, next): (Said, Option<Time>)) -> Step {
    Step { rule, saw, age, said, next }
}
