//! The same operations on the production ledger, over the engine in memory.

use ledger::{
    Arming, ClaimRequest, ClaimRule, Completed, Completion, Ended, Failure, Heartbeat, HoldRequest, HoldSet, Ledger,
    LedgerError, Noted, ProbeSeen, Rearmed, Registered,
};
use lifecycle::{
    Action, Activity, Busy, Claim, Incarnation, Observation, Record, RuntimeId, State, Time, Token, record::Hold,
};

use super::{
    observed::{Active, Seen},
    record::{Arm, Held, Rec, Tick},
    table::{Answer, Ask, End, Lost, Op, Rule},
};
use crate::ledger::fixture::{Item, at, number, seen, text};

/// A tick in the ledger's time.
pub(crate) fn time(tick: Tick) -> Time {
    at(i64::from(tick))
}

fn run(run: u8) -> Incarnation {
    Incarnation::new(format!("run-{run}"))
}

fn owner(owner: u8) -> String {
    format!("pass-{owner}")
}

/// The first fence of a record is the millisecond of its beginning.
fn token(token: i32) -> Token {
    u64::try_from(at(0).millis() + i64::from(token)).unwrap()
}

fn arming(arm: Arm) -> Arming {
    let idle_ms = arm.idle.map(|idle| u64::try_from(idle).unwrap() * 1_000);
    Arming { idle_ms, cap_at: arm.cap.map(time), due_at: Some(time(arm.due)) }
}

fn hold(held: Held) -> Hold {
    match held {
        Held::Until(until) => Hold::Until(time(until)),
        Held::Forever => Hold::Forever,
    }
}

/// A record of the model as the ledger reads it.
pub(crate) fn record(rec: &Rec) -> Record {
    Record {
        v: 1,
        epoch: u64::from(rec.epoch),
        incarnation: rec.run.map(run),
        state: rec.state,
        state_since: time(rec.state_since),
        first_seen: time(rec.first_seen),
        idle_from: time(rec.idle_from),
        last_active: rec.last_active.map(time),
        last_source: rec.last_source,
        frozen_since: rec.frozen_since.map(time),
        busy_until: rec.busy_until.map(time),
        running_since: rec.running_since.map(time),
        idle_ms: rec.idle.map(|idle| u64::try_from(idle).unwrap() * 1_000),
        cap_at: rec.cap_at.map(time),
        armed: rec.armed.map(time),
        hold_until: rec.hold.map(hold),
        wanted_at: rec.wanted_at.map(time),
        absent_since: rec.absent_since.map(time),
        attempts: u32::from(rec.attempts),
        shed: rec.shed,
        condemned_at: rec.condemned_at.map(time),
        noticed_at: rec.noticed_at.map(time),
        saved_as_of: rec.saved_as_of.map(time),
        claim: rec.claim.map(|claim| Claim { owner: owner(claim.owner).into(), until: time(claim.until) }),
        token: token(rec.token),
        due_at: rec.due_at.map(time),
    }
}

/// The same as the store has it, without its key.
pub(crate) fn item(rec: &Rec, shard: &str) -> Item {
    let millis = |tick: Tick| number(time(tick).millis());
    let times = [
        ("ss", Some(rec.state_since)),
        ("fs", Some(rec.first_seen)),
        ("if", Some(rec.idle_from)),
        ("la", rec.last_active),
        ("fz", rec.frozen_since),
        ("bu", rec.busy_until),
        ("rs", rec.running_since),
        ("ca", rec.cap_at),
        ("ar", rec.armed),
        ("wa", rec.wanted_at),
        ("ab", rec.absent_since),
        ("cd", rec.condemned_at),
        ("no", rec.noticed_at),
        ("sv", rec.saved_as_of),
        ("cu", rec.claim.map(|claim| claim.until)),
        ("due_at", rec.due_at),
    ];
    let others = [
        ("v", Some(number(1))),
        ("ep", Some(number(rec.epoch))),
        ("tk", Some(number(token(rec.token)))),
        ("st", Some(text(rec.state.as_str()))),
        ("ic", rec.run.map(|of| text(run(of).as_str()))),
        ("ls", rec.last_source.map(|source| text(source.as_str()))),
        ("sh", rec.shed.map(|tier| text(tier.as_str()))),
        ("im", rec.idle.map(|idle| number(i64::from(idle) * 1_000))),
        ("at", (rec.attempts > 0).then(|| number(rec.attempts))),
        ("hu", rec.hold.map(|hold| if let Held::Until(until) = hold { millis(until) } else { text("forever") })),
        ("co", rec.claim.map(|claim| text(&owner(claim.owner)))),
        ("due_shard", rec.due_at.map(|_| text(shard))),
    ];
    let times = times.into_iter().filter_map(|(name, tick)| Some((name, millis(tick?))));
    let others = others.into_iter().filter_map(|(name, value)| Some((name, value?)));
    times.chain(others).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Does one operation on the ledger, and says in the model's words what came of it.
pub(crate) async fn apply(ledger: &Ledger, id: &RuntimeId, op: &Op, now: Tick) -> Result<Said, LedgerError> {
    let clock = time(now);
    Ok(match *op {
        Op::Register { arm } => {
            match ledger.register(id, &std::collections::BTreeMap::new().into(), arming(arm), clock).await? {
                Registered::Done(_) => Said::Answer(Answer::Written),
                Registered::Claimed { until } => Said::ClaimedUntil(until),
                Registered::Overtaken { until } => Said::Overtaken(until),
            }
        }
        Op::Beat { epoch, busy } => {
            let busy = (busy > 0).then(|| std::time::Duration::from_secs(u64::try_from(busy).unwrap()));
            beat(&ledger.heartbeat(id, epoch.map(u64::from), busy, clock).await?)
        }
        Op::Observe { seen, arm } => {
            ledger.observe(&observation(id, &seen), arming(arm), clock).await?;
            Said::Answer(Answer::Written)
        }
        Op::Probed { run: of, active, busy } => {
            let busy = busy.map_or(Busy::No, |until| Busy::Until(time(until)));
            let told = ProbeSeen { last_active: active.map(time), busy };
            match ledger.probed(id, &run(of), told, clock).await? {
                Noted::Record(_) => Said::Answer(Answer::Written),
                Noted::Lost(lost) => Said::Lost(lost),
            }
        }
        Op::Claim { ask, rule } => claimed(ledger.claim(&request(id, &ask, rule), clock).await?),
        Op::TakeOver { token: seen, owner: by, until } => {
            claimed(ledger.take_over(id, token(seen), &owner(by), time(until), clock).await?)
        }
        Op::Wake { owner: by, until } => claimed(ledger.wake(id, &owner(by), time(until), clock).await?),
        Op::Complete { token: of, end, saved, arm } => {
            let done = Completion { ended: ended(end), saved_as_of: saved.map(time), arming: arming(arm) };
            completed(ledger.complete(id, token(of), &done, clock).await?)
        }
        Op::HandOver { token: of, look_again } => {
            completed(ledger.hand_over(id, token(of), time(look_again), clock).await?)
        }
        Op::Abandon { token: of, back_to, failed, due } => {
            let due_at = time(due);
            let failure = if failed { Failure::Yes { due_at } } else { Failure::No { due_at } };
            completed(ledger.abandon(id, token(of), back_to, failure, clock).await?)
        }
        Op::Absent { token: of, state, idle_from } => {
            let read = Rec { token: of, state, idle_from, ..Rec::unseen(0) };
            yes(ledger.absent(id, &record(&read), clock).await?)
        }
        Op::Gone { token: of, since } => completed(ledger.gone(id, token(of), time(since), clock).await?),
        Op::Noticed { token: of } => yes(ledger.noticed(id, token(of), clock).await?),
        Op::Rearm { seen_due, horizon } => match ledger.rearm(id, time(seen_due), time(horizon)).await? {
            Rearmed::Until(due) => Said::DueAt(due),
            Rearmed::Look(_) => Said::Answer(Answer::Look),
        },
        Op::Reschedule { token: of, seen_due, arm } => {
            yes(ledger.reschedule(id, token(of), seen_due.map(time), arming(arm), clock).await?)
        }
        Op::Hold { hold: held } => {
            let asked = HoldRequest { hold: hold(held), why: "", by: "" };
            match ledger.hold(id, &asked, None, clock).await? {
                HoldSet::Held(_) => Said::Answer(Answer::Written),
                HoldSet::Gone => Said::Answer(Answer::Gone),
            }
        }
        Op::Release => yes(ledger.release(id, clock).await?),
    })
}

/// An answer in the ledger's own times, fences and runs, where it has any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Answer(Answer),
    Lost(ledger::Lost),
    ClaimedUntil(Time),
    Overtaken(Time),
    NotRunning(State, Time),
    DueAt(Time),
}

/// What the model says, as the ledger would.
pub(crate) fn expected(answer: Answer) -> Said {
    match answer {
        Answer::Lost(lost) => Said::Lost(lost_to(lost)),
        Answer::ClaimedUntil(until) => Said::ClaimedUntil(time(until)),
        Answer::Overtaken(until) => Said::Overtaken(time(until)),
        Answer::NotRunning(state, wanted) => Said::NotRunning(state, time(wanted)),
        Answer::DueAt(due) => Said::DueAt(time(due)),
        other => Said::Answer(other),
    }
}

fn lost_to(lost: Lost) -> ledger::Lost {
    match lost {
        Lost::NoRecord => ledger::Lost::NoRecord,
        Lost::Gone => ledger::Lost::Gone,
        Lost::State(state) => ledger::Lost::State { state },
        Lost::Superseded(now) => ledger::Lost::Superseded { token: token(now) },
        Lost::Moved(now) => ledger::Lost::Moved { incarnation: now.map(run) },
        Lost::Claimed(until) => ledger::Lost::Claimed { until: time(until) },
        Lost::Held => ledger::Lost::Held,
        Lost::Wanted => ledger::Lost::Wanted,
        Lost::Active(idle_from) => ledger::Lost::Active { idle_from: time(idle_from) },
        Lost::Since(since) => ledger::Lost::Since { since: since.map(time) },
        Lost::Busy(until) => ledger::Lost::Busy { until: time(until) },
        Lost::NotNoticed => ledger::Lost::NotNoticed,
        Lost::NotSaved => ledger::Lost::NotSaved,
    }
}

fn beat(said: &Heartbeat) -> Said {
    Said::Answer(match *said {
        Heartbeat::Recorded => Answer::Recorded,
        Heartbeat::Coalesced => Answer::Coalesced,
        Heartbeat::Unknown => Answer::Unknown,
        Heartbeat::Gone => Answer::Gone,
        Heartbeat::Superseded { epoch } => Answer::Superseded(u8::try_from(epoch).unwrap()),
        Heartbeat::NotRunning { state, wanted } => return Said::NotRunning(state, wanted),
    })
}

fn claimed(said: ledger::Claimed) -> Said {
    match said {
        ledger::Claimed::Won(_) => Said::Answer(Answer::Written),
        ledger::Claimed::Lost(lost) => Said::Lost(lost),
    }
}

fn completed(said: Completed) -> Said {
    Said::Answer(match said {
        Completed::Done { wanted } => Answer::Done { wanted },
        Completed::Fenced => Answer::Fenced,
    })
}

fn yes(said: bool) -> Said {
    Said::Answer(if said { Answer::Yes } else { Answer::No })
}

fn ended(end: End) -> Ended {
    match end {
        End::Stayed => Ended::Stayed,
        End::Shed(tier) => Ended::Shed(tier),
        End::Noticed => Ended::Noticed,
        End::Suspended => Ended::Suspended,
        End::Archived => Ended::Archived,
        End::Resumed(of) => Ended::Resumed(run(of)),
        End::Deleted => Ended::Deleted,
    }
}

fn request(id: &RuntimeId, ask: &Ask, rule: Rule) -> ClaimRequest {
    ClaimRequest {
        id: id.clone(),
        from: ask.from,
        to: ask.to,
        epoch: u64::from(ask.epoch),
        incarnation: ask.run.map(run),
        token: ask.token.map(token),
        rule: ruled(rule),
        owner: owner(ask.owner),
        until: time(ask.until),
        action: Action::Suspend,
        reason: String::new(),
        evidence: String::new(),
    }
}

fn ruled(rule: Rule) -> ClaimRule {
    match rule {
        Rule::Idle { cutoff } => ClaimRule::Idle { cutoff: time(cutoff) },
        Rule::NeverActive { cutoff } => ClaimRule::NeverActive { cutoff: time(cutoff) },
        Rule::Lifetime { cutoff } => ClaimRule::Lifetime { cutoff: time(cutoff) },
        Rule::Retention { cutoff } => ClaimRule::Retention { cutoff: time(cutoff) },
        Rule::Shed { cutoff } => ClaimRule::Shed { cutoff: time(cutoff) },
        Rule::Notify { cutoff } => ClaimRule::Notify { cutoff: time(cutoff) },
        Rule::Delete { cutoff, noticed, saved, resting } => ClaimRule::Delete {
            cutoff: time(cutoff),
            noticed: noticed.map(time),
            saved: saved.map(time),
            resting: resting.map(time),
        },
    }
}

fn observation(id: &RuntimeId, shown: &Seen) -> Observation {
    Observation {
        id: id.clone(),
        incarnation: run(shown.run),
        state: shown.state,
        state_since: shown.state_since.map(time),
        running_since: shown.running_since.map(time),
        activity: match shown.active {
            Active::Unknown => Activity::Unknown,
            Active::Frozen => Activity::Frozen,
            Active::At(at) => Activity::At(time(at)),
        },
        busy: shown.busy_until.map_or(Busy::No, |until| Busy::Until(time(until))),
        ..seen("a")
    }
}
