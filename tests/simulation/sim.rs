//! One run: the world, the auditor, the clock on the wall, and everybody who acts.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use backend::{Bounds, Outcome, Target};
use embedded::Embedded;
use ledger::Ledger;
use lifecycle::{Incarnation, Observation, RuntimeId, Time};
use pass::{
    Gate, Notifier, Pass, Unit, Unwatched,
    notify::{Event, EventKind, NotifyError},
};
use serde_json::Value;
use tokio::{
    sync::Notify,
    task::{JoinSet, LocalSet},
    time::{Instant, sleep, timeout},
};

use super::{
    actors,
    auditor::{Asked, Auditor, TICK, Violation, Wrong, promised, promised_at_rest},
    chance::Chance,
    process::Process,
    provider,
    scenario::{SECOND, STORM, Scenario, Storm, id, start},
    trace::Trace,
    wire,
    world::{Runtime, Verb, World},
};

/// A run. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Sim(Arc<Inner>);

struct Inner {
    seed: u64,
    scenario: Scenario,
    store: Embedded,
    began: Instant,
    state: Mutex<State>,
    /// The faults have ceased.
    calm: AtomicBool,
    calmed: Notify,
    failed: Notify,
    chance: Chance,
    /// Each agent's: it comes back now.
    returns: Vec<Notify>,
}

/// What is true, and what was seen of it.
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) auditor: Auditor,
    pub(crate) trace: Trace,
}

/// What came of a run.
pub(crate) struct Ran {
    pub(crate) violation: Option<Violation>,
    pub(crate) counts: std::collections::BTreeMap<&'static str, u64>,
    pub(crate) trace: Trace,
}

/// Runs one seed. The same seed runs the same, to the last call; a trace that is kept changes nothing.
pub(crate) fn run(seed: u64, kept: bool) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let sim = Sim::new(seed, kept).await;
        tokio::select! {
            biased;
            () = sim.0.failed.notified() => {}
            () = lives(&sim) => {}
        }
        sim.with(|state| Ran {
            violation: state.auditor.violation.clone(),
            counts: std::mem::take(&mut state.auditor.counts),
            trace: std::mem::take(&mut state.trace),
        })
    })
}

/// The storm, the calm after it, and the end.
async fn lives(sim: &Sim) {
    let (mut actors, mut lasting) = (JoinSet::new(), JoinSet::new());
    for (number, kind) in sim.scenario().runtimes.iter().enumerate() {
        let set = if kind.lasting { &mut lasting } else { &mut actors };
        set.spawn_local(actors::agent(sim.clone(), number));
    }
    for number in 0..sim.scenario().passes {
        actors.spawn_local(actors::scheduler(sim.clone(), number));
    }
    actors.spawn_local(actors::person(sim.clone()));
    actors.spawn_local(actors::outsider(sim.clone()));
    lasting.spawn_local(actors::provider_timer(sim.clone()));
    sleep(STORM).await;
    sim.calm_down().await;
    let all_end = async {
        while let Some(ended) = actors.join_next().await {
            ended.unwrap();
        }
    };
    timeout(STORM, all_end).await.expect("every actor ends within an hour of calm");
    let calm_since = sim.now();
    sim.note("-", None, || "the faults have ceased".to_owned());
    let process = Process::new(sim, "pass-last", 0);
    let pass = sim.pass(&process);
    let out_of_order = |State { world, auditor, .. }: &State, now| auditor.out_of_order(world, calm_since, now);
    within(sim, (&process, &pass), promised(sim.scenario()), out_of_order).await;
    let then = sim.now();
    let still_at_rest = |State { world, auditor, .. }: &State, _| auditor.still_at_rest(world, then);
    within(sim, (&process, &pass), promised_at_rest(sim.scenario()), still_at_rest).await;
}

/// Passes, until nothing is wrong. What still is after so long breaks a promise.
async fn within(
    sim: &Sim,
    (process, pass): (&Process, &Pass),
    long: Duration,
    wrong: impl Fn(&State, Time) -> Vec<Wrong>,
) {
    let until = sim.now().plus(long);
    loop {
        sleep(TICK).await;
        actors::tick(sim, process, pass).await;
        let now = sim.now();
        let wrong = sim.with(|state| wrong(state, now));
        if wrong.is_empty() {
            return;
        }
        if now >= until {
            sim.with(|state| state.auditor.too_late(wrong, now));
            return;
        }
    }
}

impl Sim {
    async fn new(seed: u64, kept: bool) -> Self {
        let scenario = Scenario::of(seed);
        let store = embedded::memory().unwrap();
        Ledger::new(store.client(), scenario.options.clone()).create_tables().await.unwrap();
        let mut world = World::default();
        for (number, kind) in scenario.runtimes.iter().enumerate() {
            world.begin(&id(number), *kind, start());
        }
        let trace = Trace { kept, ..Trace::default() };
        let auditor = Auditor::new(&scenario);
        #[expect(clippy::disallowed_methods, reason = "the runtime's own clock, which is paused: simulated time")]
        let began = Instant::now();
        Self(Arc::new(Inner {
            seed,
            returns: scenario.runtimes.iter().map(|_| Notify::new()).collect(),
            scenario,
            store,
            began,
            state: Mutex::new(State { world, auditor, trace }),
            calm: AtomicBool::new(false),
            calmed: Notify::new(),
            failed: Notify::new(),
            chance: Chance::named(seed, "returns"),
        }))
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.seed
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.0.scenario
    }

    pub(crate) fn store(&self) -> &Embedded {
        &self.0.store
    }

    /// The true time.
    pub(crate) fn now(&self) -> Time {
        start().plus(self.0.began.elapsed())
    }

    pub(crate) fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.0.state.lock().unwrap())
    }

    pub(crate) fn note(&self, who: &str, runtime: Option<&RuntimeId>, what: impl FnOnce() -> String) {
        let now = self.now();
        self.with(|state| state.trace.note(now, who, runtime, what));
    }

    pub(crate) fn count(&self, event: &'static str) {
        self.with(|state| state.auditor.count(event));
    }

    /// Whether something happens that happens so often in a thousand.
    pub(crate) fn chances(&self, event: &'static str, chance: &Chance, often: u64) -> bool {
        let happens = chance.mille(often);
        if happens {
            self.count(event);
        }
        happens
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.0.calm.load(Ordering::Relaxed)
    }

    /// How rough it is now.
    pub(crate) fn storm(&self) -> Storm {
        if self.is_calm() { Storm::NONE } else { self.0.scenario.storm }
    }

    /// Waits so long, or until the faults have ceased. Whether they go on.
    pub(crate) async fn waits(&self, long: Duration) -> bool {
        if !self.is_calm() {
            tokio::select! {
                biased;
                () = self.0.calmed.notified() => {}
                () = sleep(long) => {}
            }
        }
        !self.is_calm()
    }

    /// Ends the run when the auditor has found something.
    pub(crate) fn heed(&self) {
        if self.with(|state| state.auditor.violation.is_some()) {
            self.0.failed.notify_one();
        }
    }

    /// Waits until the agent of a runtime is told to come back just now.
    pub(crate) async fn returns(&self, number: usize) {
        self.0.returns[number].notified().await;
    }

    /// Somebody is at a runtime: just now its agent may come back.
    fn nudge(&self, at: &RuntimeId) {
        if self.0.chance.mille(self.storm().nudge)
            && let Some(number) = (0..self.0.returns.len()).find(|number| id(*number) == *at)
        {
            self.0.returns[number].notify_waiters();
        }
    }

    /// Faults cease, and people put right what they had done for a while: once nothing of it is on its way any more, for
    /// a pause that arrives after an unpause stops acts all the same, which is the safe side.
    async fn calm_down(&self) {
        self.0.calm.store(true, Ordering::Relaxed);
        self.0.calmed.notify_waiters();
        let now = self.now();
        self.with(|state| {
            for id in state.world.runtimes.keys().cloned().collect::<Vec<_>>() {
                state.world.change(&id, now, |runtime| {
                    (runtime.denied_until, runtime.silent_until, runtime.hold_label) = (None, None, false);
                });
            }
        });
        sleep(wire::LATEST).await;
        let process = Process::new(self, "person-last", 0);
        let ledger = self.ledger(&process);
        let _ = ledger.unpause(None, process.now()).await.unwrap();
        let _ = ledger.unpause(Some(&super::scenario::backend()), process.now()).await.unwrap();
    }

    pub(crate) fn ledger(&self, process: &Process) -> Ledger {
        Ledger::new(wire::client(process), self.0.scenario.options.clone())
    }

    /// The production's pass, as `process` runs it.
    pub(crate) fn pass(&self, process: &Process) -> Pass {
        let scenario = self.scenario();
        Pass {
            ledger: self.ledger(process),
            units: vec![Unit { backend: provider::backend(process), gate: Gate::open() }],
            policy: Arc::new(scenario.policy.clone()),
            clock: process.clock(),
            owner: process.owner().to_owned(),
            limits: scenario.limits.clone(),
            notifier: Some(Arc::new(Inbox(process.clone()))),
            watch: Arc::new(Unwatched),
        }
    }

    /// A request to the ledger has its effect.
    pub(crate) fn asked(&self, process: &Process, asked: &Asked, done: bool, answer: &Value) {
        let now = self.now();
        self.with(|State { world, auditor, trace }| {
            auditor.asked((process, asked), (done, answer), world, trace, now);
        });
        self.heed();
        if let Some(id) = asked.runtime().filter(|_| process.owner().starts_with("pass")) {
            self.nudge(&id);
        }
    }

    /// What a listing shows that lags so far behind.
    pub(crate) fn listed(&self, lag: Duration) -> Vec<Observation> {
        let now = self.now();
        self.with(|state| state.world.as_of(now.minus(lag)))
    }

    /// What a look by id shows. Once in a runtime's life the provider may deny it for a short while.
    pub(crate) fn inspected(&self, process: &Process, id: &RuntimeId) -> Option<Observation> {
        let (now, storm) = (self.now(), self.storm());
        let seen = self.with(|state| {
            let there = state.world.runtimes.get_mut(id);
            let denied = there.is_some_and(|there| {
                if there.denied_until.is_none() && process.chance().mille(storm.rows / 8) {
                    there.denied_until = Some(now.plus(process.chance().seconds(1..=120)));
                    state.auditor.count("the provider denies what is there");
                }
                there.denied_until.is_some_and(|until| now < until)
            });
            let there = state.world.runtimes.get(id).filter(|_| !denied);
            state.auditor.looked(process, id, there, now);
            let seen = there.map(|there| there.observe(id));
            state.trace.note(now, process.name(), Some(id), || match &seen {
                Some(seen) => format!("sees {} {:?} {:?}", seen.state, seen.incarnation, seen.activity),
                None => format!("sees nothing{}", if denied { " (wrongly)" } else { "" }),
            });
            seen
        });
        self.nudge(id);
        seen
    }

    pub(crate) fn probed(&self, process: &Process, id: &RuntimeId, unread: bool) {
        let now = self.now();
        self.with(|state| {
            state.auditor.probed(process, id, unread);
            state.trace.note(now, process.name(), Some(id), || format!("asks inside, answered: {}", !unread));
        });
        self.nudge(id);
    }

    /// A verb is asked for.
    pub(crate) fn began(&self, process: &Process, verb: Verb, target: &Target, bounds: Bounds) {
        let now = self.now();
        self.with(|state| {
            state
                .trace
                .note(now, process.name(), Some(&target.id), || format!("begins {verb:?} of {:?}", target.incarnation));
            state.auditor.began(process, verb, &target.id, bounds, now);
        });
        self.heed();
        self.nudge(&target.id);
    }

    /// A verb will have no effect.
    pub(crate) fn ended(&self, process: &Process, id: &RuntimeId) {
        self.with(|state| state.auditor.landed(process, id));
    }

    /// A verb has reached the provider.
    pub(crate) fn reached(&self, process: &Process, verb: Verb, target: &Target) -> Outcome<Incarnation> {
        let (now, scenario) = (self.now(), self.scenario());
        let id = &target.id;
        let outcome = self.with(|state| {
            let before = state.world.runtimes.get(id).cloned();
            let outcome = state.world.reached(verb, target, scenario.takes, scenario.anew, now);
            let after = state.world.runtimes.get(id);
            let begun = before.as_ref().map(|before| before.state) != after.map(|after| after.state);
            state.trace.note(now, process.name(), Some(id), || format!("{verb:?} → {outcome:?}"));
            if let Some(before) =
                before.filter(|_| outcome == Outcome::Done(()) || (begun && outcome == Outcome::Pending))
            {
                state.auditor.effect(process, verb, id, &before, now);
            }
            state.auditor.landed(process, id);
            if begun && outcome == Outcome::Pending {
                self.goes_on(verb, id);
            }
            with_run(outcome, state.world.runtimes.get(id).map(Runtime::incarnation))
        });
        self.heed();
        self.nudge(id);
        outcome
    }

    /// The provider goes on by itself with what was begun, unless something else happens to the runtime.
    fn goes_on(&self, verb: Verb, id: &RuntimeId) {
        let (sim, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            sleep(sim.scenario().takes).await;
            let (now, anew) = (sim.now(), sim.scenario().anew);
            sim.with(|state| {
                let under_way =
                    |there: &Runtime| there.state.is_middle() && now.since(there.state_since) >= sim.scenario().takes;
                if state.world.runtimes.get(&id).is_some_and(under_way) {
                    state.trace.note(now, "provider", Some(&id), || format!("{verb:?} has ended"));
                    state.world.ended(verb, &id, anew, now);
                }
            });
            sim.nudge(&id);
        });
    }
}

fn with_run(outcome: Outcome, run: Option<Incarnation>) -> Outcome<Incarnation> {
    match outcome {
        Outcome::Done(()) => Outcome::Done(run.unwrap_or_else(|| Incarnation::new("none"))),
        Outcome::AlreadyDone => Outcome::AlreadyDone,
        Outcome::Gone => Outcome::Gone,
        Outcome::Moved { incarnation, state } => Outcome::Moved { incarnation, state },
        Outcome::Refused(why) => Outcome::Refused(why),
        Outcome::Pending => Outcome::Pending,
        Outcome::Unknown(why) => Outcome::Unknown(why),
    }
}

/// Who is told: in a storm not always.
struct Inbox(Process);

#[async_trait]
impl Notifier for Inbox {
    async fn deliver(&self, event: &Event) -> Result<(), NotifyError> {
        let (process, id) = (&self.0, &event.runtime);
        process.way(Some(id), || "before a notice".to_owned()).await;
        let down = || NotifyError::Undelivered { host: "inbox".into(), tries: 3, why: "a planted fault".into() };
        let fault = process.fault(process.sim().storm().provider, SECOND);
        if fault.is_some_and(|fault| fault != super::process::Fault::After) {
            return Err(down());
        }
        if event.event == EventKind::Notice {
            let now = process.sim().now();
            process.sim().with(|state| state.auditor.noticed(id, now));
            process.sim().note(process.name(), Some(id), || "gives notice of its deletion".to_owned());
        }
        process.way(Some(id), || "after a notice".to_owned()).await;
        if fault.is_some() { Err(down()) } else { Ok(()) }
    }
}
