//! Why one runtime gets its verdict: every rule in order, from the code that plans.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    Plan, Policy, Reason, RuntimeId, Snapshot, Subject, Time, UnitSnapshot, Verdict,
    judge::{Judge, trace::Steps},
    plan,
};

mod whole;

pub use crate::judge::trace::{Said, Step};
use whole::Whole;

/// Every rule that was asked about one runtime, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Which runtime.
    pub runtime: RuntimeId,
    /// When it was judged.
    pub at: Time,
    /// The policy that matched.
    pub policy: Option<Arc<str>>,
    /// Every rule in order, also those after the one that decided; then what concerns the backend as a whole.
    pub steps: Vec<Step>,
    /// The verdict of a plan made now, in which pause, breakers, the disk and budgets have their say.
    pub verdict: Verdict,
}

/// Explains the verdict on `subject`, as it is in `unit` or fresher.
///
/// The verdict is read from a plan of the whole backend, so that this and [`plan()`] can't disagree.
pub fn explain(subject: &Subject, unit: &UnitSnapshot, policy: &Policy, now: Time) -> Explanation {
    let mut unit = unit.clone();
    if unit.subject(&subject.id) != Some(subject) {
        let others = unit.subjects().iter().filter(|other| other.id != subject.id).cloned();
        let subjects = others.chain([subject.clone()]).collect();
        unit.set_subjects(subjects);
    }
    let mut trace = Steps::default();
    let judge = Judge::new(&unit, policy, now);
    let judged = judge.judge(subject, &mut trace);
    let matched = judged.facts.and_then(|facts| facts.active);
    let policy_name = matched.map(|active| active.rules.name.clone());
    let plan = plan(&Snapshot { units: vec![unit.clone()] }, policy, now);
    // A plan has a verdict on each runtime of its snapshot, and `subject` is one.
    let verdict = plan.verdict(&subject.id).unwrap_or(Verdict::Keep(Reason::Gone, None));
    if let Some(facts) = &judged.facts {
        let (judge, decision, plan, verdict) = (&judge, &judged.decision, &plan, &verdict);
        trace.steps.extend(Whole { judge, facts, decision, plan, verdict }.steps());
    }
    Explanation { runtime: subject.id.clone(), at: now, policy: policy_name, steps: trace.steps, verdict }
}

impl Plan {
    /// The verdict on one runtime; `None` when the plan knows none of that id.
    pub fn verdict(&self, id: &RuntimeId) -> Option<Verdict> {
        if let Some(item) = self.items.iter().find(|item| item.runtime == *id) {
            return Some(Verdict::Act(item.action, item.reason.clone(), item.evidence.clone()));
        }
        let at = self.kept.binary_search_by(|kept| kept.runtime.cmp(id)).ok()?;
        self.kept.get(at).map(|kept| Verdict::Keep(kept.reason.clone(), kept.next_check))
    }
}
