//! Whole passes on threads of their own, over a fake backend: each round has a backend, and so a lease, of its own.

use std::sync::Arc;

use backend::fake::{Fake, RuntimeSpec, What};
use futures::{FutureExt as _, future::BoxFuture};
use ledger::{Heartbeat, Ledger};
use lifecycle::{BackendName, Plan, RuntimeId, State};
use pass::{Gate, Limits, Pass, Unit, Unwatched, Woken};

use super::ground::{Ground, race};
use crate::pass::stage::{Hands, MINUTE, policy};

/// A runtime that has been idle for longer than the policy allows, and a plan that says so.
struct Scene {
    ledger: Ledger,
    hands: Hands,
    fake: Fake,
    id: RuntimeId,
    plan: Plan,
}

/// What one contender came to.
#[derive(Debug)]
enum Came {
    Passed,
    Beat(Heartbeat),
    Woken(Woken),
}

impl Scene {
    async fn new(ground: &Ground, name: &str) -> Self {
        let hands = Hands::new();
        let fake = Fake::new(BackendName::new(name).unwrap(), hands.clock());
        let id = fake.add(RuntimeSpec::running("a"));
        pass(&ground.ledger, &hands, &fake, "pass-0").run().await.report.standing();
        hands.advance(31 * MINUTE);
        let plan = pass(&ground.ledger, &hands, &fake, "pass-0").preview().await.unwrap();
        assert_eq!(plan.items.len(), 1);
        Self { ledger: ground.ledger.clone(), hands, fake, id, plan }
    }

    fn pass(&self, owner: &str) -> Pass {
        pass(&self.ledger, &self.hands, &self.fake, owner)
    }

    fn ticks(&self) -> BoxFuture<'static, Came> {
        let pass = self.pass("pass-1");
        on_a_thread(async move || {
            pass.run().await.report.standing();
            Came::Passed
        })
    }

    fn applies(&self) -> BoxFuture<'static, Came> {
        let (pass, plan) = (self.pass("pass-2"), self.plan.clone());
        on_a_thread(async move || {
            pass.apply(&plan).await.unwrap().standing();
            Came::Passed
        })
    }

    fn beats(&self, reads: u32) -> BoxFuture<'static, Came> {
        let (ledger, id, now) = (self.ledger.clone(), self.id.clone(), self.hands.now());
        async move {
            dawdle(&ledger, &id, reads).await;
            Came::Beat(ledger.heartbeat(&id, None, None, now).await.unwrap())
        }
        .boxed()
    }

    fn wakes(&self, reads: u32) -> BoxFuture<'static, Came> {
        let (pass, id) = (self.pass("wake"), self.id.clone());
        on_a_thread(async move || {
            dawdle(&pass.ledger, &id, reads).await;
            Came::Woken(pass.wake(&id).await)
        })
    }

    /// What was done to it, of which each second one must undo the first.
    fn effects(&self) -> Vec<What> {
        let effects: Vec<_> = self.fake.effects().into_iter().map(|effect| effect.what).collect();
        for (n, what) in effects.iter().enumerate() {
            assert_eq!(*what, if n % 2 == 0 { What::Suspended } else { What::Resumed }, "one hand: {effects:?}");
        }
        effects
    }

    /// Two passes later: where it is, by the record, without a claim, and by the backend.
    async fn settled(&self) -> State {
        for _ in 0..2 {
            self.hands.advance(5 * MINUTE);
            self.pass("pass-3").run().await.report.standing();
        }
        let record = self.ledger.get(&self.id).await.unwrap().unwrap();
        assert_eq!((record.claim.as_ref(), record.wanted_at), (None, None), "{record:?}");
        assert_eq!(self.fake.look(&self.id).unwrap().state, record.state);
        record.state
    }
}

fn pass(ledger: &Ledger, hands: &Hands, fake: &Fake, owner: &str) -> Pass {
    Pass {
        ledger: ledger.clone(),
        units: vec![Unit { backend: fake.backend(), gate: Gate::open() }],
        policy: Arc::new(policy()),
        clock: hands.clock(),
        owner: owner.to_owned(),
        limits: Limits::default(),
        notifier: None,
        watch: Arc::new(Unwatched),
    }
}

/// A pass keeps to one thread, so each gets one of its own.
fn on_a_thread(work: impl AsyncFnOnce() -> Came + Send + 'static) -> BoxFuture<'static, Came> {
    async move {
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || runtime.block_on(work())).await.unwrap()
    }
    .boxed()
}

/// Lets the others go ahead by some requests, so that it comes at another of theirs in each round.
async fn dawdle(ledger: &Ledger, id: &RuntimeId, reads: u32) {
    for _ in 0..reads {
        ledger.get(id).await.unwrap();
    }
}

pub(super) async fn nothing_is_suspended_after_an_acknowledged_sign_of_life(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let scene = Scene::new(ground, &name).await;
        let came = race(round, vec![scene.ticks(), scene.applies(), scene.beats(round % 20)]).await;
        let beat = came.iter().find_map(|came| match came {
            Came::Beat(beat) => Some(beat),
            _ => None,
        });
        match beat.unwrap() {
            Heartbeat::Recorded => assert_eq!(scene.effects(), [], "round {round}"),
            Heartbeat::NotRunning { .. } => {}
            other => panic!("round {round}: {other:?}"),
        }
        assert_eq!(scene.settled().await, State::Running, "round {round}: {came:?}, {:?}", scene.effects());
        assert!(scene.effects().len() <= 2, "round {round}: a whole idle period passes after a wake");
    }
}

pub(super) async fn a_wake_beside_passes_ends_in_one_state(ground: &Ground) {
    for (round, name) in ground.rounds() {
        let scene = Scene::new(ground, &name).await;
        let contenders = vec![scene.ticks(), scene.applies(), scene.wakes(round % 30), scene.wakes(round % 7)];
        let came = race(round, contenders).await;
        let woken = came.iter().any(|came| matches!(came, Came::Woken(Woken::Running(_))));
        assert!(!woken || scene.effects().contains(&What::Resumed), "round {round}: {came:?}");
        assert_eq!(came.iter().filter(|came| matches!(came, Came::Passed)).count(), 2);
        let last = scene.effects().last().cloned();
        let expected = if last == Some(What::Suspended) { State::Suspended } else { State::Running };
        assert_eq!(scene.settled().await, expected, "round {round}: {came:?}");
    }
}
