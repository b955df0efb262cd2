//! Two at once, and what changes between the plan, the claim and the act.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use backend::{
    Backend, BackendError, ErrorKind, Inspectable, Sighting,
    fake::{Fake, RuntimeSpec, Shape},
    faulty::{self, Fault, Script, Verb},
};
use lifecycle::{Fate, RuntimeId, State};
use pass::{Pass, Woken};
use tokio::sync::Notify;

use super::stage::{DAY, HOUR, MINUTE, Stage, count, details, errors, fates};

/// Does something when a runtime is looked at for the nth time, from 0.
struct AtLook {
    inner: Arc<dyn Inspectable>,
    nth: usize,
    looks: Mutex<usize>,
    act: Box<dyn Fn(&RuntimeId) + Send + Sync>,
}

#[async_trait]
impl Inspectable for AtLook {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let nth = {
            let mut looks = self.looks.lock().unwrap();
            *looks += 1;
            *looks - 1
        };
        if nth == self.nth {
            (self.act)(id);
        }
        self.inner.inspect(id).await
    }
}

fn at_look(fake: &Fake, nth: usize, act: impl Fn(&RuntimeId) + Send + Sync + 'static) -> Backend {
    let mut backend = fake.backend();
    backend.inspect = Arc::new(AtLook { inner: backend.inspect, nth, looks: Mutex::default(), act: Box::new(act) });
    backend
}

/// The first look sees at once, and its answer is long on its way: until it is let go.
struct SlowLook {
    inner: Arc<dyn Inspectable>,
    first: AtomicBool,
    seen: Arc<Notify>,
    let_go: Arc<Notify>,
}

#[async_trait]
impl Inspectable for SlowLook {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let sighting = self.inner.inspect(id).await;
        if self.first.swap(false, Ordering::Relaxed) {
            self.seen.notify_one();
            self.let_go.notified().await;
        }
        sighting
    }
}

async fn idle_stage() -> Stage {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    stage
}

/// Two holders whose calls mix as the seed says.
fn two(stage: &Stage, seed: u64) -> [Pass; 2] {
    stage.line.mixes(seed);
    ["pass-1", "pass-2"].map(|owner| stage.pass_over(owner, &stage.line))
}

#[tokio::test]
async fn two_ticks_at_once_are_one_hand() {
    for seed in 1..=20 {
        let stage = idle_stage().await;
        let [one, other] = two(&stage, seed);
        let (one, other) = tokio::join!(one.run(), other.run());
        assert_eq!(stage.effects(), ["a suspended"], "seed {seed}");
        let busy = one.upkeep.busy.len() + other.upkeep.busy.len();
        assert_eq!(busy, 1, "seed {seed}: the other found the backend leased");
    }
}

/// Without the lease (a person applies while a tick runs, or two people do) the claim alone decides.
#[tokio::test]
async fn two_applies_and_a_tick_at_once_are_one_hand() {
    for seed in 1..=40 {
        let stage = idle_stage().await;
        let plan = stage.preview().await;
        let [one, other] = two(&stage, seed);
        let third = stage.pass_over("pass-3", &stage.line);
        let (one, other, third) = tokio::join!(one.apply(&plan), other.apply(&plan), third.run());
        let entries = [one.unwrap().entries, other.unwrap().entries, third.report.entries].concat();
        assert_eq!(stage.effects(), ["a suspended"], "seed {seed}");
        assert_eq!(count(&entries, Fate::Done), 1, "seed {seed}: {:?}", details(&entries));
    }
}

/// Invariant 1, with the heartbeat at any moment: either it is recorded and nothing is done, or it is told that
/// it lost, and the runtime comes back. No heartbeat that was acknowledged is followed by a suspend.
#[tokio::test]
async fn a_heartbeat_at_any_moment_wins_or_is_told() {
    let (mut recorded, mut refused) = (0, 0);
    for seed in 1..=60 {
        let stage = idle_stage().await;
        let [one, _] = two(&stage, seed);
        let beat = async {
            for _ in 0..seed {
                tokio::task::yield_now().await;
            }
            (stage.heartbeat("a").await, stage.effects())
        };
        let (_, (beat, before)) = tokio::join!(one.run(), beat);
        match beat {
            ledger::Heartbeat::Recorded => {
                recorded += 1;
                assert_eq!(stage.effects(), before, "seed {seed}: nothing is done after an acknowledged heartbeat");
                assert_eq!(stage.state("a").await, State::Running, "seed {seed}");
            }
            ledger::Heartbeat::NotRunning { .. } => {
                refused += 1;
                stage.tick().await;
                assert_eq!(stage.state("a").await, State::Running, "seed {seed}: it is wanted, so it comes back");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(recorded > 0 && refused > 0, "both happen: {recorded} recorded, {refused} refused");
}

/// Invariant 1: between the claim and the act it is looked at again.
#[tokio::test]
async fn activity_between_the_claim_and_the_act_wins() {
    let stage = idle_stage().await;
    let fake = stage.fake.clone();
    // Look 0 is the tick's, look 1 is the one under the claim.
    let backend = at_look(&stage.fake, 1, move |id| fake.touch(id));
    let outcome = stage.pass_of("pass-1", vec![backend]).run().await;
    assert_eq!(details(&outcome.report.entries), ["a: moved (active recently enough)"]);
    assert_eq!(stage.effects(), [""; 0]);
    let record = stage.record("a").await;
    assert_eq!((record.state, record.claim, record.idle_from), (State::Running, None, stage.now()));
}

#[tokio::test]
async fn a_hold_by_label_between_the_claim_and_the_act_wins() {
    let stage = idle_stage().await;
    let (fake, since) = (stage.fake.clone(), stage.now().minus(HOUR));
    let backend = at_look(&stage.fake, 1, move |_| {
        fake.add(RuntimeSpec::running("a").active(since).since(since).label("furlough.hold", "9999-01-01T00:00:00Z"));
    });
    let outcome = stage.pass_of("pass-1", vec![backend]).run().await;
    assert_eq!(count(&outcome.report.entries, Fate::Moved), 1, "{:?}", details(&outcome.report.entries));
    assert_eq!(stage.effects(), [""; 0]);
}

/// Invariant 2: no call is begun that could outlive its claim, and a claim lasts less than four minutes.
#[tokio::test]
async fn nothing_is_begun_that_cant_end_before_the_claim_does() {
    let stage = idle_stage().await;
    let hands = stage.hands.clone();
    let backend = at_look(&stage.fake, 1, move |_| hands.advance(2 * MINUTE));
    let outcome = stage.pass_of("pass-1", vec![backend]).run().await;
    assert_eq!(
        details(&outcome.report.entries),
        ["a: failed (only 1m 30s were left of the claim; an act may take 2m: nothing was begun)"]
    );
    assert_eq!((stage.effects(), stage.fake.asked().verbs), (Vec::new(), 0));
}

#[tokio::test]
async fn a_restart_between_the_claim_and_the_act_wins() {
    let stage = idle_stage().await;
    let fake = stage.fake.clone();
    let backend = at_look(&stage.fake, 1, move |id| fake.restart(id));
    let outcome = stage.pass_of("pass-1", vec![backend]).run().await;
    assert_eq!(count(&outcome.report.entries, Fate::Moved), 1);
    assert_eq!(stage.effects(), [""; 0]);
    assert_eq!(stage.state("a").await, State::Running);
}

/// A heartbeat that loses against the claim is told so, and is not forgotten: the holder gives the claim back.
#[tokio::test]
async fn a_heartbeat_that_loses_against_the_claim_gets_its_runtime_back() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
    let told = stage.heartbeat("a").await;
    assert!(matches!(told, ledger::Heartbeat::NotRunning { state: State::Suspended, .. }), "{told:?}");
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.woken, [stage.id("a")]);
    assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
    let record = stage.record("a").await;
    assert_eq!((record.state, record.wanted_at, record.idle_from), (State::Running, None, stage.now()));
    stage.advance(30 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 2, "a whole idle period passes after a wake");
}

#[tokio::test]
async fn a_wake_is_single_flight() {
    let stage = idle_stage().await;
    stage.tick().await;
    let id = stage.id("a");
    let [one, other] = two(&stage, 7);
    let answers: [Woken; 2] = tokio::join!(one.wake(&id), other.wake(&id)).into();
    assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
    assert!(answers.iter().any(|answer| matches!(answer, Woken::Running(_))), "{answers:?}");
    assert_eq!(stage.pass().wake(&id).await, Woken::AlreadyRunning);
    assert_eq!(stage.pass().wake(&stage.id("nobody")).await, Woken::NotFound);
}

/// It is looked at while it runs, and its record says so too; then a pass claims and suspends it.
#[tokio::test]
async fn a_wake_that_saw_it_running_before_the_claim_looks_again_under_it() {
    let stage = idle_stage().await;
    let (seen, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut backend = stage.fake.backend();
    let first = AtomicBool::new(true);
    backend.inspect = Arc::new(SlowLook { inner: backend.inspect, first, seen: seen.clone(), let_go: let_go.clone() });
    let (person, id) = (stage.pass_of("person", vec![backend]), stage.id("a"));
    let between = async {
        seen.notified().await;
        stage.tick().await;
        let_go.notify_one();
    };
    let (woken, ()) = tokio::join!(person.wake(&id), between);
    assert!(matches!(woken, Woken::Running(_)), "{woken:?}");
    assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
    assert_eq!(stage.state("a").await, State::Running);
}

#[tokio::test]
async fn what_was_stopped_outside_or_never_recorded_can_be_woken_and_what_is_not_ours_cant() {
    let stage = idle_stage().await;
    stage.fake.stop(&stage.id("a"));
    stage.add(RuntimeSpec::suspended("new"));
    stage.add(RuntimeSpec::suspended("theirs").foreign());
    assert!(matches!(stage.pass().wake(&stage.id("a")).await, Woken::Running(_)));
    assert!(matches!(stage.pass().wake(&stage.id("new")).await, Woken::Running(_)));
    assert!(matches!(stage.pass().wake(&stage.id("theirs")).await, Woken::Refused(_)));
    assert_eq!(stage.ledger.get(&stage.id("theirs")).await.unwrap(), None);
    assert_eq!(stage.effects(), ["a resumed", "new resumed"]);
}

#[tokio::test]
async fn a_failed_wake_can_be_tried_again() {
    let stage = idle_stage().await;
    stage.tick().await;
    let refuses = Fault::Before(BackendError::new(ErrorKind::Unreachable, "no capacity"));
    let failing = faulty::around(stage.fake.backend(), Script::new().at(Verb::Resume, 0, refuses));
    let pass = stage.pass_of("pass-1", vec![failing]);
    assert_eq!(pass.wake(&stage.id("a")).await, Woken::Failed("no capacity".to_owned()));
    assert_eq!(stage.state("a").await, State::Suspended);
    assert!(matches!(pass.wake(&stage.id("a")).await, Woken::Running(_)));
}

/// Nobody needs a pass for it: the next call looks what became of the one that had no answer.
#[tokio::test]
async fn a_wake_without_an_answer_is_tried_again_when_its_claim_has_ended() {
    let stage = idle_stage().await;
    stage.tick().await;
    let silent = faulty::around(stage.fake.backend(), Script::new().at(Verb::Resume, 0, Fault::TimesOut));
    let pass = stage.pass_of("pass-1", vec![silent]);
    let id = stage.id("a");
    assert_eq!(pass.wake(&id).await, Woken::Failed("no answer came; a later pass looks".to_owned()));
    let Woken::Claimed { until } = pass.wake(&id).await else { panic!("its claim lasts") };
    stage.advance(until.since(stage.now()));
    assert!(matches!(pass.wake(&id).await, Woken::Running(_)));
    assert_eq!(stage.effects().iter().filter(|effect| **effect == "a resumed").count(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_looked_for_before_anything_is_asked_again() {
    let stage = idle_stage().await;
    let lossy = faulty::around(stage.fake.backend(), Script::new().at(Verb::Suspend, 0, Fault::Lost));
    let outcome = stage.pass_of("pass-1", vec![lossy]).run().await;
    assert_eq!(fates(&outcome.report.entries), ["a suspend: done"]);
    assert_eq!(stage.effects(), ["a suspended"]);
    assert_eq!(stage.state("a").await, State::Suspended);
}

/// Asked, no answer, and nothing to be seen of it yet: the claim stays to its end, then somebody looks.
#[tokio::test]
async fn an_unknown_answer_is_left_to_the_claims_end() {
    let stage = idle_stage().await;
    let silent = faulty::around(stage.fake.backend(), Script::new().always(Verb::Suspend, Fault::TimesOut));
    let outcome = stage.pass_of("pass-1", vec![silent]).run().await;
    assert_eq!(count(&outcome.report.entries, Fate::Unknown), 1);
    assert_eq!(stage.state("a").await, State::Suspending);
    stage.tick().await;
    assert_eq!(stage.state("a").await, State::Suspending, "the call may still be under way");
    stage.advance(5 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.recovered.len(), 1, "{:?}", outcome.upkeep);
    let record = stage.record("a").await;
    assert_eq!((record.state, record.claim.clone(), record.idle_from), (State::Running, None, stage.now()));
    assert_eq!(stage.effects(), [""; 0], "the right to look, never to act on the old evidence");
    stage.advance(31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
}

#[tokio::test]
async fn a_long_act_is_handed_over_and_found_when_it_is_done() {
    let stage = Stage::shaped(Shape { takes: 3 * MINUTE, ..Shape::default() }).await;
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(fates(&outcome.report.entries), ["a suspend: under way"]);
    stage.advance(2 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.recovered[0].how, pass::Recovery::UnderWay { state: State::Suspending });
    stage.advance(2 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.recovered[0].how, pass::Recovery::Finished { state: State::Suspended });
    assert_eq!(stage.effects(), ["a suspended"]);
    assert_eq!(stage.state("a").await, State::Suspended);
}

#[tokio::test]
async fn a_backend_that_asks_to_wait_is_left_alone_until_then() {
    let stage = idle_stage().await;
    stage.add(RuntimeSpec::running("b").active(stage.now().minus(HOUR)).since(stage.now().minus(HOUR)));
    let throttled = Fault::Before(BackendError::new(ErrorKind::Throttled { retry_after: 5 * MINUTE }, "slow down"));
    let backend = faulty::around(stage.fake.backend(), Script::new().at(Verb::Suspend, 0, throttled));
    let mut pass = stage.pass_of("pass-1", vec![backend]);
    pass.limits.concurrency = 1;
    pass.limits.sweep_every = MINUTE;
    let outcome = pass.run().await;
    assert_eq!(count(&outcome.report.entries, Fate::Left), 2, "{:?}", details(&outcome.report.entries));
    assert_eq!(stage.effects(), [""; 0]);
    stage.advance(MINUTE);
    let again = pass.run().await;
    assert_eq!(stage.effects(), [""; 0], "{:?}", errors(&again));
    stage.advance(DAY);
    pass.run().await.report.standing();
    assert_eq!(stage.effects().len(), 2, "afterwards it goes on");
}

#[tokio::test]
async fn a_poisoned_delete_backs_off_alone() {
    let stage = Stage::new().await.rules(|rules| rules.retention.suspended = Some(HOUR));
    stage.add(RuntimeSpec::archived("good").since(stage.now().minus(3 * DAY)));
    stage.add(RuntimeSpec::archived("poisoned").since(stage.now().minus(3 * DAY)));
    let poisoned = stage.id("poisoned");
    let broken = move |call: &faulty::Call| {
        let hit = call.verb == Verb::Delete && call.runtime.as_ref() == Some(&poisoned);
        hit.then(|| Fault::Before(BackendError::new(ErrorKind::Malformed, "it can't be deleted")))
    };
    let pass = stage.pass_of("pass-1", vec![faulty::around(stage.fake.backend(), broken)]);
    let first = pass.run().await;
    assert_eq!(fates(&first.report.entries), ["good delete: done", "poisoned delete: failed"]);
    let mut tries = 1;
    let mut stuck = Vec::new();
    for _ in 0..120 {
        stage.advance(MINUTE);
        let outcome = pass.run().await;
        tries += outcome.report.entries.len();
        stuck = outcome.upkeep.stuck.into_iter().map(|stuck| stuck.attempts).collect();
    }
    assert!((4..=8).contains(&tries), "doubling waits, not every tick: {tries}");
    assert_eq!(stage.effects(), ["good deleted"]);
    let _ = stuck;
    assert!(stage.record("poisoned").await.attempts >= 3);
}
