//! Everything at once: twelve hands do whatever comes to their mind to one runtime, on a clock that runs on. What
//! each did, and when it began and ended, is written down; afterwards the log is held against the promises.
//!
//! What a hand does comes from the round's number alone; how the hands mix is the machine's choice. A broken promise
//! prints the round and the log, oldest first.

use std::{
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use ledger::{ClaimRule, Claimed, Completed, Ended, Failure, Heartbeat, Ledger, Registered};
use lifecycle::{Incarnation, Record, RuntimeId, State, Time, Token, record::Hold};

use super::ground::{Ground, ended, race};
use crate::ledger::fixture::{at, backend, due, id, idle_claim, seen};

const HANDS: u64 = 12;
const ACTS: u32 = 12;

/// So many times as many rounds as are asked for, at most, until each kind of end came twice.
const PATIENCE: u32 = 50;

/// How long it must be quiet before a hand claims it, in seconds.
const IDLE: i64 = 40;

/// What a hand did, as far as the promises are about it.
#[derive(Debug, Clone, PartialEq)]
enum Did {
    Beat(Heartbeat),
    /// Won a claim; an idle one on what was quiet up to a cutoff.
    Won {
        record: Box<Record>,
        cutoff: Option<Time>,
    },
    Registered(Token),
    /// Ended a claim, into a state.
    Ended {
        token: Token,
        how: Completed,
        into: State,
    },
    /// Anything else, for the trace.
    Other(String),
}

/// One act, with the numbers that the log had when it began and when it ended.
#[derive(Debug, Clone)]
struct Line {
    hand: u64,
    begun: u64,
    over: u64,
    now: Time,
    did: Did,
}

#[derive(Default)]
struct Log {
    clock: AtomicI64,
    next: AtomicU64,
    lines: Mutex<Vec<Line>>,
}

impl Log {
    async fn act(&self, hand: u64, step: i64, act: impl AsyncFnOnce(Time) -> Did) -> Did {
        let now = at(self.clock.fetch_add(step, Ordering::SeqCst));
        let begun = self.next.fetch_add(1, Ordering::SeqCst);
        let did = act(now).await;
        let over = self.next.fetch_add(1, Ordering::SeqCst);
        self.lines.lock().unwrap().push(Line { hand, begun, over, now, did: did.clone() });
        did
    }
}

/// A claim that a hand has won and not ended.
struct Held {
    token: Token,
    back_to: State,
    state: State,
}

struct Hand {
    number: u64,
    dice: u64,
    ledger: Ledger,
    id: RuntimeId,
    log: Arc<Log>,
    held: Option<Held>,
}

impl Hand {
    /// 0 to `sides` − 1, by a linear congruential step (Knuth, MMIX).
    fn dice(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    async fn acts(mut self) {
        for _ in 0..ACTS {
            let step = i64::try_from(self.dice(12)).unwrap();
            match (self.held.is_some(), self.dice(10)) {
                (true, 0..=5) => self.end(step).await,
                // Its holder died.
                (true, 6) => self.held = None,
                (_, 0..=1) => self.beat(step).await,
                (_, 2..=5) => self.claim(step).await,
                (_, 6) => self.wake(step).await,
                (_, 7..=8) => self.take_over(step).await,
                _ => self.rare(step).await,
            }
        }
    }

    async fn beat(&mut self, step: i64) {
        let beat = async |now| Did::Beat(self.ledger.heartbeat(&self.id, None, None, now).await.unwrap());
        self.log.act(self.number, step, beat).await;
    }

    async fn claim(&mut self, step: i64) {
        let record = self.record().await;
        if record.state == State::Running {
            let claim = async |now: Time| {
                let mut request = idle_claim(self.id.encoded(), &record, 0, 0);
                let cutoff = now.minus(std::time::Duration::from_secs(IDLE.unsigned_abs()));
                (request.rule, request.until) = (ClaimRule::Idle { cutoff }, seconds_after(now, 30));
                won(self.ledger.claim(&request, now).await.unwrap(), Some(cutoff))
            };
            let did = self.log.act(self.number, step, claim).await;
            self.holds(&did, State::Running);
        }
    }

    async fn wake(&mut self, step: i64) {
        let wake =
            async |now: Time| won(self.ledger.wake(&self.id, "wake", seconds_after(now, 30), now).await.unwrap(), None);
        let did = self.log.act(self.number, step, wake).await;
        self.holds(&did, State::Suspended);
    }

    async fn take_over(&mut self, step: i64) {
        let record = self.record().await;
        let take = async |now: Time| {
            let until = seconds_after(now, 30);
            won(self.ledger.take_over(&self.id, record.token, "heir", until, now).await.unwrap(), None)
        };
        let did = self.log.act(self.number, step, take).await;
        let back_to = if record.state == State::Resuming { State::Suspended } else { State::Running };
        self.holds(&did, back_to);
    }

    fn holds(&mut self, did: &Did, back_to: State) {
        if let Did::Won { record, .. } = did {
            self.held = Some(Held { token: record.token, back_to, state: record.state });
        }
    }

    async fn end(&mut self, step: i64) {
        let Some(Held { token, back_to, state }) = self.held.take() else { return };
        let abandons = self.dice(3) == 0;
        let end = async |now: Time| {
            let (ledger, id) = (&self.ledger, &self.id);
            let (how, into) = if abandons {
                let failed = Failure::No { due_at: seconds_after(now, 60) };
                (ledger.abandon(id, token, back_to, failed, now).await, back_to)
            } else if state == State::Resuming {
                let run = Ended::Resumed(Incarnation::new("run-1"));
                (ledger.complete(id, token, &ended(run), now).await, State::Running)
            } else {
                (ledger.complete(id, token, &ended(Ended::Suspended), now).await, State::Suspended)
            };
            Did::Ended { token, how: how.unwrap(), into }
        };
        self.log.act(self.number, step, end).await;
    }

    /// A registration, a look, a hold that is released, a re-arm.
    async fn rare(&mut self, step: i64) {
        let kind = self.dice(4);
        let rare = async |now: Time| match kind {
            0 => match self.ledger.register(&self.id, &<_>::default(), due(9_000), now).await.unwrap() {
                Registered::Done(record) => Did::Registered(record.token),
                refused => Did::Other(format!("{refused:?}")),
            },
            1 => match self.ledger.observe(&seen(self.id.encoded()), due(9_000), now).await {
                Ok(record) => Did::Other(format!("saw it running: {}", record.state)),
                Err(error) if error.passes() => Did::Other(error.to_string()),
                Err(error) => panic!("{error}"),
            },
            2 => {
                let hold = ledger::HoldRequest { hold: Hold::Until(seconds_after(now, 5)), why: "mine", by: "me" };
                Did::Other(format!("{:?}", self.ledger.hold(&self.id, &hold, None, now).await.unwrap()))
            }
            _ => {
                let record = self.ledger.get(&self.id).await.unwrap().unwrap();
                Did::Other(format!("{:?}", self.ledger.rearm(&self.id, record.due_at.unwrap(), now).await.unwrap()))
            }
        };
        self.log.act(self.number, step, rare).await;
    }

    async fn record(&self) -> Record {
        self.ledger.get(&self.id).await.unwrap().unwrap()
    }
}

fn seconds_after(now: Time, seconds: u64) -> Time {
    now.plus(std::time::Duration::from_secs(seconds))
}

fn won(claimed: Claimed, cutoff: Option<Time>) -> Did {
    match claimed {
        Claimed::Won(record) => Did::Won { record, cutoff },
        Claimed::Lost(lost) => Did::Other(format!("{lost:?}")),
    }
}

pub(super) async fn everything_at_once_keeps_the_promises(ground: &Ground) {
    let mut all = Vec::new();
    for (round, name) in ground.more_rounds(PATIENCE) {
        let first = ground.runtime(&name).await;
        let log = Arc::new(Log { clock: AtomicI64::new(100), ..Log::default() });
        let hands = (0..HANDS).map(|number| {
            let dice = (u64::from(round) * HANDS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let (ledger, log) = (ground.ledger.clone(), log.clone());
            Hand { number, dice, ledger, id: id(&name), log, held: None }.acts()
        });
        race(round, hands.collect()).await;
        let mut lines = std::mem::take(&mut *log.lines.lock().unwrap());
        lines.sort_by_key(|line| line.begun);
        let after = ground.record(&name).await;
        let indexed = ground.ledger.due(&backend(), Time::MAX, 100_000).await.unwrap();
        let indexed = indexed.ids.contains(&(id(&name), after.due_at.unwrap_or(Time::MAX)));
        let broken = [
            tokens(&lines, &first, &after),
            acknowledged(&lines, &after),
            fenced(&lines),
            forgotten(&lines, &after),
            (!indexed).then(|| "it fell out of the due index".to_owned()),
        ];
        let broken: Vec<_> = broken.into_iter().flatten().collect();
        assert!(broken.is_empty(), "round {round}: {broken:?}\n{}then {after:#?}", trace(&lines));
        all.extend(lines);
        if ground.enough(round) && seen_kinds(&all).iter().all(|(_, times)| *times >= 2) {
            return;
        }
    }
    panic!("in {PATIENCE} times as many rounds as were asked for not everything came to pass: {:?}", seen_kinds(&all));
}

/// Each claim and registration has a token of its own, and together they are all that there ever were.
fn tokens(lines: &[Line], first: &Record, after: &Record) -> Option<String> {
    let mut tokens: Vec<_> = lines.iter().filter_map(|line| fence(&line.did)).collect();
    tokens.sort_unstable();
    let expected: Vec<_> = (first.token + 1..=after.token).collect();
    (tokens != expected).then(|| format!("tokens {tokens:?}, and {expected:?} were expected"))
}

fn fence(did: &Did) -> Option<Token> {
    match did {
        Did::Won { record, .. } => Some(record.token),
        Did::Registered(token) => Some(*token),
        _ => None,
    }
}

/// No claim commits after an acknowledged heartbeat that is newer than its evidence; none is acknowledged under a claim.
fn acknowledged(lines: &[Line], after: &Record) -> Option<String> {
    let beats: Vec<_> = lines.iter().filter(|line| line.did == Did::Beat(Heartbeat::Recorded)).collect();
    let lost = beats.iter().find(|beat| beat.now > after.idle_from && !set_back(lines, beat, u64::MAX));
    if let Some(lost) = lost {
        return Some(format!("hand {}'s heartbeat at {} was acknowledged and lost", lost.hand, lost.now));
    }
    for line in lines {
        let Did::Won { record, cutoff } = &line.did else { continue };
        let newer = beats.iter().find(|beat| {
            let newer = cutoff.is_some_and(|cutoff| beat.now > cutoff);
            newer && beat.over < line.begun && !set_back(lines, beat, line.over)
        });
        if let Some(beat) = newer {
            return Some(format!("{} was claimed after a heartbeat at {}", record.token, beat.now));
        }
        let end = lines.iter().filter(|end| ends(&end.did, record.token)).map(|end| end.begun);
        let end = end.min().unwrap_or(u64::MAX);
        if let Some(beat) = beats.iter().find(|beat| beat.begun > line.over && beat.over < end) {
            return Some(format!("a heartbeat at {} was acknowledged under claim {}", beat.now, record.token));
        }
    }
    None
}

/// Whether between a heartbeat and `until` somebody whose clock was behind let it run anew: that sets the clock to his.
fn set_back(lines: &[Line], beat: &Line, until: u64) -> bool {
    lines.iter().any(|line| ran(&line.did) && line.now < beat.now && line.over > beat.begun && line.begun < until)
}

/// Whether it runs anew since, or may.
fn ran(did: &Did) -> bool {
    match did {
        Did::Ended { how: Completed::Done { .. }, into: State::Running, .. } | Did::Registered(_) => true,
        Did::Other(other) => other.starts_with("saw it running"),
        _ => false,
    }
}

/// Whether this ends the claim of `token`: its holder's own end, or another's fence.
fn ends(did: &Did, token: Token) -> bool {
    match did {
        Did::Ended { token: ended, .. } => *ended == token,
        other => fence(other).is_some_and(|fence| fence > token),
    }
}

/// Who lost the claim to another writes nothing any more.
fn fenced(lines: &[Line]) -> Option<String> {
    lines.iter().find_map(|line| {
        let Did::Ended { token, how: Completed::Done { .. }, .. } = line.did else { return None };
        let newer = lines.iter().find(|other| other.over < line.begun && fence(&other.did) > Some(token))?;
        Some(format!("claim {token} was ended by hand {} after {:?}", line.hand, newer.did))
    })
}

/// A heartbeat that was refused is still asked for, unless it ran since.
fn forgotten(lines: &[Line], after: &Record) -> Option<String> {
    if matches!(after.state, State::Running | State::Resuming) || after.wanted_at.is_some() {
        return None;
    }
    let ran = lines.iter().filter(|line| ran(&line.did));
    let ran = ran.map(|line| line.over).max().unwrap_or(0);
    let refused = |line: &&Line| matches!(line.did, Did::Beat(Heartbeat::NotRunning { .. })) && line.begun > ran;
    let refused = lines.iter().find(refused)?;
    Some(format!("hand {}'s heartbeat at {} was refused and is forgotten", refused.hand, refused.now))
}

/// How often each kind of end came. Which hand comes first is the machine's to say, so that rounds go on until each did.
fn seen_kinds(lines: &[Line]) -> [(&'static str, usize); 7] {
    let count = |kind: fn(&Did) -> bool| lines.iter().filter(|line| kind(&line.did)).count();
    [
        ("recorded", count(|did| *did == Did::Beat(Heartbeat::Recorded))),
        ("refused", count(|did| matches!(did, Did::Beat(Heartbeat::NotRunning { .. })))),
        ("claimed", count(|did| matches!(did, Did::Won { cutoff: Some(_), .. }))),
        ("taken over or woken", count(|did| matches!(did, Did::Won { cutoff: None, .. }))),
        ("ended", count(|did| matches!(did, Did::Ended { how: Completed::Done { .. }, .. }))),
        ("fenced", count(|did| matches!(did, Did::Ended { how: Completed::Fenced, .. }))),
        ("registered", count(|did| matches!(did, Did::Registered(_)))),
    ]
}

fn trace(lines: &[Line]) -> String {
    lines.iter().fold(String::new(), |mut trace, line| {
        let seconds = line.now.since(at(0)).as_secs();
        writeln!(trace, "{:>4}–{:<4} {seconds:>4} s  hand {:>2}: {:?}", line.begun, line.over, line.hand, line.did)
            .unwrap();
        trace
    })
}
