//! A stage: a fake backend, a ledger in memory, a clock that moves when told, and passes over them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use super::wire::Line;
use async_trait::async_trait;
use backend::{
    Backend, Clock,
    fake::{Fake, RuntimeSpec, Shape},
};
use embedded::Embedded;
use ledger::{AuditLine, Ledger, Options};
use lifecycle::{
    BackendName, Entry, Fate, Plan, Policy, Record, Rules, RuntimeId, SignalSet, State, Time,
    policy::{Breakers, Budget, Budgets, FileRules, Match, Mode, NativeMode, Retention, WorkspaceRule},
};
use pass::{
    Gate, Limits, Notifier, Outcome, Pass, Unit, Unwatched,
    notify::{Event, NotifyError},
};

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// The scenario's beginning, 2026-11-30T12:00:00Z.
pub(crate) fn start() -> Time {
    Time::from_millis(1_796_040_000_000)
}

/// A clock that moves when told. Clones are the same clock.
#[derive(Clone)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(start().millis())))
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::new(move || hands.now())
    }
}

/// A receiver of notices that says yes, or no.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) down: Mutex<bool>,
}

#[async_trait]
impl Notifier for Inbox {
    async fn deliver(&self, event: &Event) -> Result<(), NotifyError> {
        if *self.down.lock().unwrap() {
            return Err(NotifyError::Undelivered { host: "inbox".into(), tries: 3, why: "it is down".into() });
        }
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl Inbox {
    /// What came, as `runtime event`.
    pub(crate) fn told(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events.iter().map(|event| format!("{} {:?}", event.runtime.encoded(), event.event)).collect()
    }
}

pub(crate) struct Stage {
    pub(crate) hands: Hands,
    pub(crate) fake: Fake,
    store: Embedded,
    /// What [`Stage::pass_over`] puts between a pass and the world.
    pub(crate) line: Line,
    pub(crate) ledger: Ledger,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) inbox: Option<Arc<Inbox>>,
}

pub(crate) fn box_name() -> BackendName {
    BackendName::new("box").unwrap()
}

/// Jitter off, so that a scenario can say when something comes due; skew 10 s.
pub(crate) fn options() -> Options {
    Options { coalesce: Duration::ZERO, ..Options::default() }
}

impl Stage {
    /// A plain backend, under [`policy`].
    pub(crate) async fn new() -> Self {
        Self::shaped(Shape::default()).await
    }

    pub(crate) async fn shaped(shape: Shape) -> Self {
        let hands = Hands::new();
        let store = embedded::memory().unwrap();
        let ledger = Ledger::new(store.client(), options());
        ledger.create_tables().await.unwrap();
        let fake = Fake::shaped(box_name(), hands.clock(), shape);
        Self { hands, fake, store, line: Line::default(), ledger, policy: policy(), limits: limits(), inbox: None }
    }

    /// With the rules changed.
    pub(crate) fn rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.policy.rules[0]);
        self
    }

    /// With the policy changed.
    pub(crate) fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// With the limits changed.
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// With a receiver of notices.
    pub(crate) fn told(mut self) -> Self {
        self.inbox = Some(Arc::default());
        self
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        self.inbox.as_ref().unwrap()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.hands.advance(by);
    }

    /// The store itself, to tamper with.
    pub(crate) fn store(&self) -> &Embedded {
        &self.store
    }

    pub(crate) fn now(&self) -> Time {
        self.hands.now()
    }

    pub(crate) fn id(&self, name: &str) -> RuntimeId {
        self.fake.id(name)
    }

    /// Puts a runtime there.
    pub(crate) fn add(&self, spec: RuntimeSpec) -> RuntimeId {
        self.fake.add(spec)
    }

    /// A pass over the fake.
    pub(crate) fn pass(&self) -> Pass {
        self.pass_of("pass-1", vec![self.fake.backend()])
    }

    /// A pass of another holder over other backends.
    pub(crate) fn pass_of(&self, owner: &str, backends: Vec<Backend>) -> Pass {
        Pass {
            ledger: self.ledger.clone(),
            units: backends.into_iter().map(|backend| Unit { backend, gate: Gate::open() }).collect(),
            policy: Arc::new(self.policy.clone()),
            clock: self.hands.clock(),
            owner: owner.to_owned(),
            limits: self.limits.clone(),
            notifier: self.inbox.clone().map(|inbox| inbox as Arc<dyn Notifier>),
            watch: Arc::new(Unwatched),
        }
    }

    /// A pass of another holder whose every call goes over `line`.
    pub(crate) fn pass_over(&self, owner: &str, line: &Line) -> Pass {
        let mut pass = self.pass_of(owner, vec![line.backend(self.fake.backend())]);
        pass.ledger = Ledger::new(line.client(&self.store), options());
        pass
    }

    /// One tick, and nothing went wrong in it.
    pub(crate) async fn tick(&self) {
        let _ = self.ticked().await;
    }

    /// The same, and what it did.
    pub(crate) async fn ticked(&self) -> Outcome {
        let outcome = self.pass().run().await;
        assert_eq!(errors(&outcome), Vec::<String>::new());
        outcome
    }

    pub(crate) async fn preview(&self) -> Plan {
        self.pass().preview().await.unwrap()
    }

    /// Applies a plan: what became of each item, as `name action: fate`.
    pub(crate) async fn apply(&self, plan: &Plan) -> Vec<String> {
        fates(&self.pass().apply(plan).await.unwrap().entries)
    }

    pub(crate) async fn record(&self, name: &str) -> Record {
        self.ledger.get(&self.id(name)).await.unwrap().expect("a record")
    }

    pub(crate) async fn state(&self, name: &str) -> State {
        self.record(name).await.state
    }

    pub(crate) async fn history(&self, name: &str) -> Vec<AuditLine> {
        self.ledger.history(&self.id(name), 100).await.unwrap()
    }

    pub(crate) async fn heartbeat(&self, name: &str) -> ledger::Heartbeat {
        self.ledger.heartbeat(&self.id(name), None, None, self.now()).await.unwrap()
    }

    /// What was done to runtimes, as `name what`.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.fake.effects().iter().map(|effect| format!("{} {}", effect.runtime.encoded(), effect.what)).collect()
    }

    /// What is in the due index and in no end state, at any time.
    pub(crate) async fn indexed(&self) -> Vec<String> {
        let due = self.ledger.due(&box_name(), Time::MAX, 10_000).await.unwrap();
        due.ids.iter().map(|(id, _)| id.encoded().to_owned()).collect()
    }
}

/// What became of each act, as `name action: fate`.
pub(crate) fn fates(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| format!("{} {}: {}", entry.runtime.encoded(), entry.action, entry.fate)).collect()
}

/// The same with the detail.
pub(crate) fn details(entries: &[Entry]) -> Vec<String> {
    let detail = |entry: &Entry| entry.detail.as_deref().unwrap_or("-").to_owned();
    entries.iter().map(|entry| format!("{}: {} ({})", entry.runtime.encoded(), entry.fate, detail(entry))).collect()
}

pub(crate) fn count(entries: &[Entry], fate: Fate) -> usize {
    entries.iter().filter(|entry| entry.fate == fate).count()
}

/// What went wrong, of any backend.
pub(crate) fn errors(outcome: &Outcome) -> Vec<String> {
    outcome.report.backends.iter().flat_map(|backend| backend.errors.iter().map(ToString::to_string)).collect()
}

/// Why `name` is kept by a plan.
pub(crate) fn kept(plan: &Plan, name: &str) -> String {
    let kept = plan.kept.iter().find(|kept| kept.runtime.encoded() == name).expect("it is kept");
    kept.reason.to_string()
}

/// What a plan would do, as `name action`.
pub(crate) fn planned(plan: &Plan) -> Vec<String> {
    plan.items.iter().map(|item| format!("{} {}", item.runtime.encoded(), item.action)).collect()
}

fn limits() -> Limits {
    Limits { sweep_every: HOUR, concurrency: 4, ..Limits::default() }
}

/// Enforces: idle for 30 min is suspended; suspended for a day, deleted. Slack 10 s. Budgets of 100 a window.
pub(crate) fn policy() -> Policy {
    let budget = Some(Budget { max: None, min: 100, per: 10 * MINUTE });
    Policy {
        mode: Mode::Enforce,
        coalesce: Duration::ZERO,
        skew: Duration::from_secs(10),
        trash_keep: 7 * DAY,
        plan_valid: HOUR,
        rules: vec![rules()],
        prices: <_>::default(),
        budgets: Budgets { suspend: budget, archive: budget, delete: budget, shed: budget },
        breakers: Breakers::default(),
    }
}

pub(crate) fn rules() -> Rules {
    Rules {
        name: "all".into(),
        matches: Match::default(),
        idle_after: Some(30 * MINUTE),
        signals: SignalSet::ALL,
        unknown_after: None,
        lifetime_max: None,
        retention: Retention { suspended: Some(DAY), archived: Some(DAY), workspace: None },
        notice_before_delete: None,
        files: FileRules::default(),
        disk_budget: None,
        workspace: WorkspaceRule::Discard,
        native: NativeMode::Off,
        overrides: None,
        windows: Vec::new(),
    }
}
