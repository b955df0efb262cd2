//! The hands of the contract's suite for the fake.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use backend::{
    Backend, BackendError, Clock, ErrorKind,
    contract::{Can, Content, Harness, NotApplicable},
    fake::{Fake, RuntimeSpec, Shape},
};
use lifecycle::{BackendName, NativeObserved, RuntimeId, State, Tier, Time};

const CACHE: &str = ".cache/pip/wheel";
const DEPENDENCY: &str = "node_modules/left-pad/index.js";

/// A fake, and a clock that it is given.
pub(super) struct FakeHarness {
    pub(super) fake: Fake,
    now: Arc<AtomicI64>,
    made: AtomicU32,
}

impl FakeHarness {
    pub(super) fn new(shape: Shape) -> Self {
        let now = Arc::new(AtomicI64::new(1_764_500_000_000));
        let told = now.clone();
        let clock = Clock::new(move || Time::from_millis(told.load(Ordering::SeqCst)));
        let fake = Fake::shaped(BackendName::new("fake").unwrap(), clock, shape);
        Self { fake, now, made: AtomicU32::new(0) }
    }

    fn spec(&self, state: State) -> RuntimeSpec {
        let name = format!("runtime-{}", self.made.fetch_add(1, Ordering::SeqCst));
        let spec = match state {
            State::Suspended => RuntimeSpec::suspended(&name),
            _ => RuntimeSpec::running(&name),
        };
        spec.file("notes.md", "what the agent found out")
            .file("volumes/data", "kept")
            .shedable(Tier::Caches, CACHE, "a wheel")
            .shedable(Tier::Dependencies, DEPENDENCY, "module.exports")
            .native(NativeObserved { mutable: true, ..NativeObserved::default() })
    }

    /// The same one, whose engine is down.
    pub(super) fn down(&self) -> Fake {
        let down = Fake::shaped(self.fake.backend().name, Clock::fixed(self.now()), self.fake.shape());
        down.breaks(BackendError::new(ErrorKind::Unreachable, "the engine does not answer"));
        down
    }

    fn pass(&self, by: Duration) {
        self.now.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Harness for FakeHarness {
    fn backend(&self) -> Backend {
        self.fake.backend()
    }

    fn now(&self) -> Time {
        Time::from_millis(self.now.load(Ordering::SeqCst))
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        if state == State::Suspended && self.fake.shape().rests {
            return Err(NotApplicable::because("its runtimes have no suspended state"));
        }
        Ok(self.fake.add(self.spec(state)))
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let Some(files) = self.fake.files(id) else { return Ok(None) };
        let mut content = Content::default();
        for ((tier, path), bytes) in files {
            let tree = match tier {
                None | Some(Tier::Runtime) => &mut content.work,
                Some(Tier::Caches) => &mut content.caches,
                Some(Tier::Dependencies) => &mut content.dependencies,
            };
            tree.insert(path, bytes);
        }
        Ok(Some(content))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.fake.vanish(id);
        Ok(())
    }

    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        self.fake.restart(id);
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(self.down().backend())
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.pass(by);
        Ok(())
    }

    async fn settle(&self) {
        self.pass(self.fake.shape().takes);
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        Ok(self.fake.add(self.spec(State::Running).foreign()))
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Ok(self.fake.add(self.spec(State::Running).unlabelled()))
    }

    async fn make_ephemeral(&self) -> Can<RuntimeId> {
        Ok(self.fake.add(self.spec(State::Running).ephemeral()))
    }

    async fn make_unsaved(&self) -> Can<RuntimeId> {
        let state = if self.fake.shape().rests { State::Running } else { State::Suspended };
        Ok(self.fake.add(self.spec(state).unsaved("2 unpushed commits")))
    }

    async fn occupy(&self, id: &RuntimeId, tier: Tier) -> Can<()> {
        match tier {
            Tier::Caches => self.fake.rebuild(id, tier, CACHE, "a newer wheel"),
            Tier::Dependencies => self.fake.rebuild(id, tier, DEPENDENCY, "newer exports"),
            Tier::Runtime => {
                let name = String::from_utf8(id.provider_id()).unwrap();
                self.fake.add(RuntimeSpec::running(&name).file("notes.md", "somebody else's"));
            }
        }
        Ok(())
    }
}
