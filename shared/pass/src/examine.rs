//! The closer look: a listing may be cheap, so what a plan would act on is looked at and asked before it is
//! planned again. Our own looks are no activity: they write nothing but what the runtime itself told.

use std::collections::{HashMap, HashSet};

use backend::{BackendError, Sighting};
use futures::{StreamExt, stream};
use ledger::{LedgerError, Noted, ProbeSeen};
use lifecycle::{
    Activity, Busy, Observation, Ownership, Plan, ProbeAnswer, Reason, Record, Role, RuntimeId, Snapshot, State,
    Subject, UnitSnapshot, plan,
};

use crate::{
    context::Context,
    scene::{Scene, Verdict, may_ask},
    watch::Step,
};

/// Whether a look may be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Into the runtime's record.
    Record,
    /// Nowhere: a plan changes nothing.
    Nothing,
}

/// How often a plan is made again after closer looks. What is new in the last one is looked at when it is
/// acted on.
const ROUNDS: usize = 4;

/// What one look at one runtime found.
#[derive(Debug)]
pub(crate) enum Look {
    Subject(Box<Subject>),
    NotThere,
    Failed(BackendError),
    Ledger(LedgerError),
}

/// A look at one runtime and, where its activity is still open, a question to the agent server inside.
pub(crate) async fn look(
    cx: Context<'_>,
    scene: &Scene,
    id: &RuntimeId,
    record: Option<Record>,
    writes: Writes,
) -> Look {
    let seen = match cx.calls().look(id).await {
        Ok(Sighting::Seen(seen)) => *seen,
        Ok(Sighting::NotThere) => return Look::NotThere,
        Err(error) => return Look::Failed(error),
    };
    match subject(cx, scene, seen, record, writes).await {
        Ok(subject) => Look::Subject(Box::new(subject)),
        Err(error) => Look::Ledger(error),
    }
}

/// Puts together what was seen, the record with it taken in, and the answer from inside.
pub(crate) async fn subject(
    cx: Context<'_>,
    scene: &Scene,
    seen: Observation,
    record: Option<Record>,
    writes: Writes,
) -> Result<Subject, LedgerError> {
    let seen = told(cx, seen);
    let record = match writes {
        Writes::Record if seen.ownership == Ownership::Ours => Some(observe(cx, scene, &seen, record).await?),
        Writes::Record | Writes::Nothing => record,
    };
    let mut subject = alone(seen, record);
    if asks(cx, scene, &subject) {
        ask(cx, &mut subject, writes).await?;
    }
    Ok(subject)
}

/// Takes an observation into the record. Nothing is written when nothing changed.
pub(crate) async fn observe(
    cx: Context<'_>,
    scene: &Scene,
    seen: &Observation,
    record: Option<Record>,
) -> Result<Record, LedgerError> {
    let now = cx.now();
    let arm = |next: &Record| scene.arming(cx, &alone(seen.clone(), Some(next.clone())), now);
    cx.ledger().observe_known(record, seen, arm, now).await
}

/// A subject that was not asked.
pub(crate) fn alone(seen: Observation, record: Option<Record>) -> Subject {
    Subject { id: seen.id.clone(), seen: Some(Box::new(seen)), record: record.map(Box::new), probe: None }
}

/// What of an observation counts under its policy: a signal that the policy does not take must not move the
/// record's clock.
pub(crate) fn told(cx: Context<'_>, mut seen: Observation) -> Observation {
    let provider = cx.rules(&seen.labels).is_none_or(|rules| rules.signals.provider);
    if !provider && matches!(seen.activity, Activity::At(_)) {
        seen.activity = Activity::Unknown;
    }
    seen
}

/// Whether the agent server inside is worth a question: it would be acted on, or nothing is known of it.
fn asks(cx: Context<'_>, scene: &Scene, subject: &Subject) -> bool {
    let Some(seen) = subject.seen.as_deref() else { return false };
    if !can_be_asked(cx, seen) {
        return false;
    }
    match scene.judge(cx, subject.clone(), cx.now()) {
        Verdict::Act(item) => may_ask(item.action),
        Verdict::Keep(kept) => kept.reason == Reason::Unknown,
        Verdict::Nothing => false,
    }
}

fn can_be_asked(cx: Context<'_>, seen: &Observation) -> bool {
    seen.state == State::Running
        && cx.unit.backend.probe.is_some()
        && cx.rules(&seen.labels).is_some_and(|rules| rules.signals.probe)
        && !seen.cannot.iter().any(|cannot| cannot.role == Role::Probe)
}

async fn ask(cx: Context<'_>, subject: &mut Subject, writes: Writes) -> Result<(), LedgerError> {
    let Some(seen) = subject.seen.as_deref() else { return Ok(()) };
    let Some(answer) = cx.calls().probe(seen).await else { return Ok(()) };
    subject.probe = Some(answer);
    if writes == Writes::Record && worth_writing(answer) {
        let told = ProbeSeen { last_active: answer.last_active, busy: answer.busy };
        if let Noted::Record(record) = cx.ledger().probed(&subject.id, &seen.incarnation, told, cx.now()).await? {
            subject.record = Some(record);
        }
    }
    Ok(())
}

fn worth_writing(answer: ProbeAnswer) -> bool {
    answer.last_active.is_some() || matches!(answer.busy, Busy::Until(_))
}

/// A plan of one unit whose acts were looked at closely.
pub(crate) struct Examined {
    pub(crate) unit: UnitSnapshot,
    pub(crate) plan: Plan,
    /// What had its closer look.
    pub(crate) looked: HashSet<RuntimeId>,
    /// What could not be looked at, for the report.
    pub(crate) errors: Vec<String>,
}

/// Plans, looks closer at what the plan would act on, and plans again until nothing new comes up.
/// `looked` had their closer look already.
pub(crate) async fn examine(
    cx: Context<'_>,
    scene: &Scene,
    unit: UnitSnapshot,
    looked: HashSet<RuntimeId>,
    writes: Writes,
) -> Examined {
    let (unit, plan) = planned(cx, unit);
    let mut done = Examined { unit, plan, looked, errors: Vec::new() };
    for _ in 0..ROUNDS {
        let wanted = wanted(cx, &done);
        if wanted.is_empty() || cx.out_of_time().is_some() {
            break;
        }
        closer(cx, scene, &mut done, wanted, writes).await;
        (done.unit, done.plan) = planned(cx, done.unit);
    }
    done
}

/// The plan of one unit, and the unit back.
fn planned(cx: Context<'_>, unit: UnitSnapshot) -> (UnitSnapshot, Plan) {
    let mut snapshot = Snapshot { units: vec![unit] };
    let plan = plan(&snapshot, cx.policy(), cx.now());
    (snapshot.units.swap_remove(0), plan)
}

/// What would be acted on, what might be if its loss were known, and what may tell its activity when asked.
fn wanted(cx: Context<'_>, done: &Examined) -> Vec<RuntimeId> {
    let room = cx.limits().max_items.saturating_sub(done.looked.len());
    let acts = done.plan.items.iter().map(|item| &item.runtime);
    let open = done.plan.kept.iter().filter(|kept| match &kept.reason {
        Reason::NotSaved { lost } => lost.is_empty(),
        Reason::Unknown => {
            let seen = done.unit.subject(&kept.runtime).and_then(|subject| subject.seen.as_deref());
            seen.is_some_and(|seen| can_be_asked(cx, seen))
        }
        _ => false,
    });
    let all = acts.chain(open.map(|kept| &kept.runtime));
    all.filter(|id| !done.looked.contains(*id)).take(room).cloned().collect()
}

async fn closer(cx: Context<'_>, scene: &Scene, done: &mut Examined, wanted: Vec<RuntimeId>, writes: Writes) {
    let of = done.looked.len() + wanted.len();
    let rows: Vec<_> = wanted.into_iter().filter_map(|id| done.unit.subject(&id).cloned()).collect();
    let mut looks = stream::iter(rows)
        .map(|row| async move {
            let record = row.record.as_deref().cloned();
            (look(cx, scene, &row.id, record, writes).await, row)
        })
        .buffer_unordered(cx.concurrency());
    let mut found = HashMap::new();
    while let Some((look, row)) = looks.next().await {
        done.looked.insert(row.id.clone());
        cx.pass.watch.step(Step::Looked { backend: cx.name(), done: done.looked.len(), of });
        let (subject, error) = replaced(look, row);
        done.errors.extend(error);
        found.insert(subject.id.clone(), subject);
    }
    drop(looks);
    let subjects = done.unit.subjects().iter().map(|old| found.remove(&old.id).unwrap_or_else(|| old.clone()));
    let subjects = subjects.collect();
    done.unit.set_subjects(subjects);
}

/// What stands in the row's place after the closer look. A look that failed is an unread one, which keeps.
fn replaced(look: Look, mut row: Subject) -> (Subject, Option<String>) {
    let id = row.id.clone();
    let unread = |mut row: Subject, error: String| {
        row.probe = Some(ProbeAnswer { last_active: None, busy: Busy::Unread });
        (row, Some(format!("{id}: {error}")))
    };
    match look {
        Look::Subject(subject) => {
            let mut subject = *subject;
            subject.record = subject.record.or(row.record);
            (subject, None)
        }
        Look::NotThere => {
            row.seen = None;
            (row, None)
        }
        Look::Failed(error) => unread(row, error.to_string()),
        Look::Ledger(error) => unread(row, error.to_string()),
    }
}
