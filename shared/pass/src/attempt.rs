//! One item of a plan, from pause and budget over the claim and the second look to its end.

use std::sync::Arc;

use ledger::{ClaimRequest, ClaimRule, Claimed, Failure, LedgerError, Lost, Taken};
use lifecycle::{
    Action, Fate, Item, Loss, Observation, Reason, Record, State, Subject, Time, Token, policy::WorkspaceRule,
};

use crate::{
    context::Context,
    examine::{self, Look, Writes},
    scene::{Scene, Verdict, unmoved},
    settle,
    watch::Step,
};

/// What became of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fated {
    pub(crate) fate: Fate,
    pub(crate) detail: Option<Arc<str>>,
    /// Bytes freed, where the backend says so.
    pub(crate) bytes: Option<u64>,
    /// When to try again, where nothing was claimed.
    pub(crate) again: Option<Time>,
}

impl Fated {
    pub(crate) fn new(fate: Fate, detail: impl Into<Arc<str>>) -> Self {
        Self { fate, detail: Some(detail.into()), bytes: None, again: None }
    }

    fn failed(error: &LedgerError) -> Self {
        Self::new(Fate::Failed, error.to_string())
    }
}

/// An item whose runtime was looked at now and is as it says.
pub(crate) struct Ready {
    /// The item, on what is there now.
    pub(crate) item: Item,
    pub(crate) record: Record,
    /// As it was looked at.
    pub(crate) seen: Observation,
}

/// A claim that is ours.
pub(crate) struct Held {
    pub(crate) token: Token,
    /// Calls under it end before this.
    pub(crate) until: Time,
}

/// Looks at an item's runtime, takes the look into its record, and judges it anew.
pub(crate) async fn verify(cx: Context<'_>, scene: &Scene, item: &Item) -> Result<Ready, Fated> {
    let record = cx.ledger().get(&item.runtime).await.map_err(|error| Fated::failed(&error))?;
    let subject = match examine::look(cx, scene, &item.runtime, record, Writes::Record).await {
        Look::Subject(subject) => *subject,
        Look::NotThere => return Err(Fated::new(Fate::Moved, "it is not there any more")),
        Look::Failed(error) => return Err(Fated::new(Fate::Failed, error.to_string())),
        Look::Ledger(error) => return Err(Fated::failed(&error)),
    };
    ready(cx, scene, item, subject)
}

/// The same for a runtime that was looked at a moment ago.
pub(crate) fn ready(cx: Context<'_>, scene: &Scene, item: &Item, subject: Subject) -> Result<Ready, Fated> {
    let (Some(seen), Some(record)) = (subject.seen.as_deref().cloned(), subject.record.as_deref().cloned()) else {
        return Err(Fated::new(Fate::Moved, "it is not there any more"));
    };
    same_record(item, &record)?;
    match scene.judge(cx, subject, cx.now()) {
        Verdict::Act(now) => {
            unmoved(item, &now).map_err(|why| Fated::new(Fate::Moved, why))?;
            Ok(Ready { item: *now, record, seen })
        }
        kept => Err(kept_now(&kept)),
    }
}

/// The registration and the fence are those that the item was planned on.
fn same_record(item: &Item, record: &Record) -> Result<(), Fated> {
    if item.epoch.is_some_and(|epoch| epoch != record.epoch) {
        return Err(Fated::new(Fate::Moved, "it was registered anew since"));
    }
    if item.token.is_some_and(|token| token != record.token) {
        return Err(Fated::new(Fate::Moved, "somebody else has acted on it since"));
    }
    Ok(())
}

/// Why the planner keeps now what it would have acted on. Another run, state or activity is a move; a hold, a
/// claim, a limit is a refusal.
fn kept_now(verdict: &Verdict) -> Fated {
    let Verdict::Keep(kept) = verdict else { return Fated::new(Fate::Moved, "nothing is known of it any more") };
    let fate = match kept.reason {
        Reason::Active
        | Reason::NotYet { .. }
        | Reason::Busy { .. }
        | Reason::Moved
        | Reason::Middle { .. }
        | Reason::NoRule { .. }
        | Reason::Unknown
        | Reason::FirstSeen
        | Reason::Absent { .. }
        | Reason::Gone => Fate::Moved,
        _ => Fate::Refused,
    };
    Fated::new(fate, kept.reason.to_string())
}

/// Does one item, from the pause to its end.
pub(crate) async fn attempt(cx: Context<'_>, scene: &Scene, ready: Ready) -> Fated {
    if let Some(why) = cx.out_of_time() {
        return Fated::new(Fate::Left, why);
    }
    cx.pass.watch.step(Step::Began { item: &ready.item });
    let item = ready.item.clone();
    let fated = match allowed(cx, scene, &item).await {
        Ok(()) => claim_and_act(cx, scene, ready).await.unwrap_or_else(|error| Fated::failed(&error)),
        Err(fated) => fated,
    };
    cx.pass.watch.step(Step::Ended { item: &item, done: fated.fate == Fate::Done });
    fated
}

/// Pause and budget, just before the claim. The budget is counted first: a claim that is lost has used it up,
/// and two passes together never do more than it allows.
async fn allowed(cx: Context<'_>, scene: &Scene, item: &Item) -> Result<(), Fated> {
    let failed = |error: LedgerError| Fated::failed(&error);
    if cx.ledger().paused(cx.name()).await.map_err(failed)?.is_some() {
        return Err(Fated::new(Fate::Refused, Reason::Paused.to_string()));
    }
    let Some(kind) = item.action.budget() else { return Ok(()) };
    let limit = scene.budget(cx, kind);
    let spent = Fated::new(Fate::Refused, Reason::Budget { kind, limit }.to_string());
    let Some(budget) = cx.policy().budgets.of(kind) else { return Err(spent) };
    let now = cx.now();
    let expires = budget.next_window(now).plus(budget.per).plus(cx.policy().skew);
    let taken = cx.ledger().take_budget(cx.name(), kind, budget.window(now), limit, expires).await.map_err(failed)?;
    match taken {
        Taken::Taken { .. } => Ok(()),
        Taken::Spent { .. } => Err(Fated { again: Some(budget.next_window(now)), ..spent }),
    }
}

async fn claim_and_act(cx: Context<'_>, scene: &Scene, ready: Ready) -> Result<Fated, LedgerError> {
    let now = cx.now();
    let until = cx.claim_until(now);
    let request = request(cx, &ready, until);
    let record = match cx.ledger().claim(&request, now).await? {
        Claimed::Won(record) => record,
        Claimed::Lost(lost) => return Ok(Fated { again: Some(now.plus(cx.limits().backoff)), ..lost_to(&lost) }),
    };
    let held = Held { token: record.token, until: cx.act_until(until) };
    settle::began(cx, &ready, held.token).await?;
    if let Err(moved) = look_again(cx, scene, &ready, &held).await {
        return moved.give_back(cx, &ready, &held).await;
    }
    settle::act(cx, scene, ready, held).await
}

/// Why a claim is given back before anything was done.
pub(crate) struct GiveBack {
    pub(crate) fate: Fate,
    pub(crate) why: String,
    pub(crate) failure: Failure,
}

impl GiveBack {
    fn moved(why: impl Into<String>, due_at: Time) -> Self {
        Self { fate: Fate::Moved, why: why.into(), failure: Failure::No { due_at } }
    }

    fn failed(cx: Context<'_>, ready: &Ready, why: String) -> Self {
        let due_at = cx.now().plus(cx.backoff(ready.record.attempts));
        Self { fate: Fate::Failed, why, failure: Failure::Yes { due_at } }
    }

    async fn give_back(self, cx: Context<'_>, ready: &Ready, held: &Held) -> Result<Fated, LedgerError> {
        settle::abandon(cx, ready, held, self.failure).await?;
        let fated = Fated::new(self.fate, self.why);
        settle::ended(cx, ready, held.token, &fated).await;
        Ok(fated)
    }
}

/// After the claim: the runtime as it is now must still be what the item says, by the same planner, and nobody
/// may have asked for it. The record is read last, nearest to the act.
async fn look_again(cx: Context<'_>, scene: &Scene, ready: &Ready, held: &Held) -> Result<(), GiveBack> {
    let record = Some(ready.record.clone());
    let mut subject = match examine::look(cx, scene, &ready.item.runtime, record, Writes::Nothing).await {
        Look::Subject(subject) => *subject,
        Look::NotThere => return Err(GiveBack::moved("it is not there any more", cx.now())),
        Look::Failed(error) => return Err(GiveBack::failed(cx, ready, error.to_string())),
        Look::Ledger(error) => return Err(GiveBack::failed(cx, ready, error.to_string())),
    };
    subject.record = Some(Box::new(read_again(cx, ready, held).await?));
    let verdict = scene.judge(cx, subject, cx.now());
    let next = verdict.next_check().unwrap_or_else(|| cx.now());
    verdict.still(&ready.item).map_err(|why| GiveBack::moved(why, next))
}

/// The record under the claim, but for the claim itself, which is no reason to keep. A claim that changes no state
/// (files, a notice) refuses no heartbeat: what came since is in it.
async fn read_again(cx: Context<'_>, ready: &Ready, held: &Held) -> Result<Record, GiveBack> {
    match cx.ledger().get(&ready.item.runtime).await {
        Ok(Some(record)) if record.token == held.token && record.wanted_at.is_none() => {
            let (state, due_at) = (ready.record.state, ready.record.due_at);
            Ok(Record { claim: None, state, due_at, ..record })
        }
        Ok(Some(record)) if record.token == held.token => {
            Err(GiveBack { fate: Fate::Refused, ..GiveBack::moved(Reason::Wanted.to_string(), cx.now()) })
        }
        Ok(_) => Err(GiveBack::moved("the claim is no longer ours", cx.now())),
        Err(error) => Err(GiveBack::failed(cx, ready, error.to_string())),
    }
}

fn lost_to(lost: &Lost) -> Fated {
    match lost {
        Lost::Gone => Fated::new(Fate::Gone, "it is no more"),
        Lost::NoRecord => Fated::new(Fate::Moved, "its record is gone"),
        Lost::State { state } => Fated::new(Fate::Moved, format!("its record says {state}")),
        Lost::Superseded { .. } => Fated::new(Fate::Moved, "somebody else has acted on it since"),
        Lost::Moved { .. } => Fated::new(Fate::Moved, "another run of it is there"),
        Lost::Active { idle_from } => Fated::new(Fate::Moved, format!("it was active since: idle from {idle_from}")),
        Lost::Since { since } => {
            let since = since.map_or("that is not known".to_owned(), |since| format!("only since {since}"));
            Fated::new(Fate::Moved, format!("it has not been so for long enough: {since}"))
        }
        Lost::Busy { until } => Fated::new(Fate::Moved, Reason::Busy { until: *until }.to_string()),
        Lost::Claimed { until } => Fated::new(Fate::Refused, Reason::Claimed { until: *until }.to_string()),
        Lost::Held => Fated::new(Fate::Refused, "it is held"),
        Lost::Wanted => Fated::new(Fate::Refused, Reason::Wanted.to_string()),
        Lost::NotNoticed => Fated::new(Fate::Refused, Reason::Notice { sent: None }.to_string()),
        Lost::NotSaved => Fated::new(Fate::Refused, Reason::NotSaved { lost: Vec::new() }.to_string()),
    }
}

fn request(cx: Context<'_>, ready: &Ready, until: Time) -> ClaimRequest {
    let Ready { item, record, seen } = ready;
    ClaimRequest {
        id: item.runtime.clone(),
        from: record.state,
        to: middle(item.action, record.state),
        epoch: record.epoch,
        incarnation: record.incarnation.clone(),
        token: Some(record.token),
        rule: rule(cx, item, seen),
        owner: cx.pass.owner.clone(),
        until,
        action: item.action,
        reason: json(&item.reason),
        evidence: json(&item.evidence),
    }
}

/// The state that a claim for `action` puts the record in.
const fn middle(action: Action, from: State) -> State {
    match action {
        Action::Suspend => State::Suspending,
        Action::Archive => State::Archiving,
        Action::Delete => State::Deleting,
        Action::Shed(_) | Action::Notify => from,
    }
}

/// What the claim tests: that nothing is newer than the evidence. The cutoff is the evidence itself, not a time
/// computed from now: what moved since, however little, loses the claim.
fn rule(cx: Context<'_>, item: &Item, seen: &Observation) -> ClaimRule {
    let evidence = &item.evidence;
    let stage = evidence.state_since.unwrap_or(evidence.idle_from);
    match (item.action, &item.reason) {
        (Action::Suspend, Reason::NeverActive { .. }) => ClaimRule::NeverActive { cutoff: evidence.idle_from },
        (Action::Suspend, Reason::Lifetime { .. }) => {
            ClaimRule::Lifetime { cutoff: evidence.running_since.unwrap_or(evidence.idle_from) }
        }
        (Action::Suspend, _) => ClaimRule::Idle { cutoff: evidence.idle_from },
        (Action::Archive, _) => ClaimRule::Retention { cutoff: stage },
        (Action::Shed(_), _) => ClaimRule::Shed { cutoff: evidence.idle_from },
        (Action::Notify, _) => ClaimRule::Notify { cutoff: evidence.idle_from.max(stage) },
        (Action::Delete, _) => {
            let rests = cx.unit.backend.rests;
            let before = cx.rules(&seen.labels).and_then(|rules| rules.notice_before_delete);
            let keeps = saving(cx, seen) == WorkspaceRule::Save && seen.loss != Loss::Nothing;
            let must_be_saved = keeps && !cx.unit.backend.capabilities().saves_first;
            ClaimRule::Delete {
                cutoff: stage,
                noticed: before.map(|before| cx.now().minus(before)),
                saved: must_be_saved.then_some(evidence.idle_from),
                resting: rests.then_some(evidence.idle_from),
            }
        }
    }
}

/// What a delete does with work that is kept nowhere else, by the policy that matches.
pub(crate) fn saving(cx: Context<'_>, seen: &Observation) -> WorkspaceRule {
    cx.rules(&seen.labels).map_or(WorkspaceRule::Save, |rules| rules.workspace)
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
