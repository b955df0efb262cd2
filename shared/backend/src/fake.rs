//! A backend in memory that behaves: states, incarnations, files, a trash, a provider's own timers.
//!
//! ```
//! use backend::{Clock, fake::{Fake, RuntimeSpec}};
//! use lifecycle::{BackendName, Time};
//!
//! let fake = Fake::new(BackendName::new("fake").unwrap(), Clock::fixed(Time::from_millis(0)));
//! let id = fake.add(RuntimeSpec::running("a").file("notes.md", "hello"));
//! fake.restart(&id); // behind the back of whoever holds the backend
//! let backend = fake.backend();
//! assert!(backend.suspend.is_some());
//! assert_eq!(fake.effects(), []);
//! ```
//!
//! Deterministic: the time is the injected clock's, ids come from a counter, maps are sorted. Nothing is
//! mocked by call order; a test compares [`Fake::effects`], what was done and not what was asked.

mod effect;
mod files;
mod roles;
mod spec;
mod world;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lifecycle::{Activity, BackendName, Busy, Observation, RuntimeId, State, Survives, Tier, Time, snapshot::Disk};

pub use self::{
    effect::{By, Effect, What},
    spec::RuntimeSpec,
    world::{Asked, Files},
};
use crate::{Backend, BackendError, Builder, Clock};
use world::World;

/// How a fake differs from the plainest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its runtimes run nothing of their own: no suspended state, a delete takes them from Running.
    pub rests: bool,
    /// Observations a page, at least 1.
    pub page_size: usize,
    /// What a suspend keeps. Under `Nothing` and `Volumes` only files below `volumes/` stay.
    pub survives: Survives,
    /// Whether a resume begins a new incarnation, as it does wherever a process is started anew.
    pub resume: Resume,
    /// How long a suspend, resume, archive or delete is under way; zero: it is done when it answers.
    pub takes: Duration,
    /// What becomes of what is shed and deleted.
    pub removal: Removal,
    /// Whether a delete saves first what would be lost.
    pub saving: Saving,
}

/// What a resume makes of the incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// A process is started: another run.
    NewIncarnation,
    /// Memory comes back: the same run.
    SameIncarnation,
}

/// What becomes of what is shed and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It can be taken back.
    ToTrash,
    /// It is gone at once.
    ForEver,
}

/// What a delete does with work that is kept nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saving {
    /// Saves it, or refuses.
    First,
    /// Deletes it with the rest.
    Never,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rests: false,
            page_size: 1_000,
            survives: Survives::Disk,
            resume: Resume::NewIncarnation,
            takes: Duration::ZERO,
            removal: Removal::ToTrash,
            saving: Saving::Never,
        }
    }
}

/// A backend in memory. Clones are the same backend.
#[derive(Debug, Clone)]
pub struct Fake {
    name: BackendName,
    clock: Clock,
    world: Arc<Mutex<World>>,
}

impl Fake {
    /// An empty one of the plainest shape: suspends to disk, archives, deletes into a trash, does all at once.
    pub fn new(name: BackendName, clock: Clock) -> Self {
        Self::shaped(name, clock, Shape::default())
    }

    /// An empty one of another shape.
    pub fn shaped(name: BackendName, clock: Clock, shape: Shape) -> Self {
        Self { name, clock, world: Arc::new(Mutex::new(World::new(shape))) }
    }

    /// The backend with every role that its shape has: one that rests has no suspend, archive, probe, timers
    /// or execution; one that removes for ever takes nothing back.
    pub fn backend(&self) -> Backend {
        let shape = self.shape();
        let mut builder = self.builder().deletes().sheds();
        if shape.removal == Removal::ToTrash {
            builder = builder.recovers();
        }
        if !shape.rests {
            builder = builder.probes().suspends().archives().sets_native().executes();
        }
        builder.build()
    }

    /// A builder, for a test that chooses the roles.
    pub fn builder(&self) -> Builder<Self> {
        let builder = Backend::builder(self.name.clone(), "fake", Arc::new(self.clone()));
        if self.shape().rests { builder.rests() } else { builder }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.world().shape.clone()
    }

    /// The id that a runtime of this name has.
    ///
    /// # Panics
    /// When no runtime can have that name.
    pub fn id(&self, name: &str) -> RuntimeId {
        match RuntimeId::new(&self.name, name.as_bytes()) {
            Ok(id) => id,
            Err(error) => panic!("a fake runtime can't be named `{name}`: {error}"),
        }
    }

    /// Puts a runtime there, in the place of one of the same name.
    pub fn add(&self, spec: RuntimeSpec) -> RuntimeId {
        let id = self.id(&spec.name);
        let now = self.clock.now();
        self.world().put(id.clone(), spec, now);
        id
    }

    /// Activity, now, as the provider and the agent server inside see it.
    pub fn touch(&self, id: &RuntimeId) {
        let now = self.clock.now();
        self.change(id, |runtime| {
            runtime.activity = Activity::At(now);
            if let Some(probe) = runtime.inside.probe_mut() {
                probe.last_active = Some(now);
            }
        });
    }

    /// Work under way until then, as the provider and the agent server inside see it.
    pub fn work(&self, id: &RuntimeId, until: Time) {
        self.touch(id);
        self.change(id, |runtime| {
            runtime.busy = Busy::Until(until);
            if let Some(probe) = runtime.inside.probe_mut() {
                probe.busy = Busy::Until(until);
            }
        });
    }

    /// Writes a file inside.
    pub fn write(&self, id: &RuntimeId, path: &str, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.change(id, |runtime| drop(runtime.files.insert((None, path.to_owned()), bytes)));
    }

    /// Writes a file inside that can be made again.
    pub fn rebuild(&self, id: &RuntimeId, tier: Tier, path: &str, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.change(id, |runtime| drop(runtime.files.insert((Some(tier), path.to_owned()), bytes)));
    }

    /// Freezes it, as `docker pause` does.
    pub fn freeze(&self, id: &RuntimeId) {
        self.change(id, |runtime| runtime.activity = Activity::Frozen);
    }

    /// Somebody else starts it anew: another incarnation, running.
    pub fn restart(&self, id: &RuntimeId) {
        let now = self.clock.now();
        let mut world = self.world();
        let incarnation = world.next_incarnation();
        world.change(id, |runtime| {
            runtime.incarnation = incarnation;
            runtime.enter(State::Running, now);
        });
    }

    /// Somebody else stops it.
    pub fn stop(&self, id: &RuntimeId) {
        let now = self.clock.now();
        self.change(id, |runtime| runtime.enter(State::Suspended, now));
    }

    /// Somebody else removes it.
    pub fn vanish(&self, id: &RuntimeId) {
        self.world().runtimes.remove(id);
    }

    /// From now on every call fails so.
    pub fn breaks(&self, error: BackendError) {
        self.world().broken = Some(error);
    }

    /// Every call works again.
    pub fn mend(&self) {
        self.world().broken = None;
    }

    /// The filesystem that its runtimes lie on.
    pub fn set_disk(&self, disk: Option<Disk>) {
        self.world().disk = disk;
    }

    /// What is there now, seen behind the backend's back; `None`: nothing.
    pub fn look(&self, id: &RuntimeId) -> Option<Observation> {
        let now = self.clock.now();
        let mut world = self.world();
        world.settle(now);
        world.runtimes.get(id).map(|runtime| runtime.observe(id))
    }

    /// The files of a runtime, seen behind the backend's back; `None`: no such runtime.
    pub fn files(&self, id: &RuntimeId) -> Option<Files> {
        let now = self.clock.now();
        let mut world = self.world();
        world.settle(now);
        world.runtimes.get(id).map(|runtime| runtime.files.clone())
    }

    /// Every runtime that is there, sorted.
    pub fn ids(&self) -> Vec<RuntimeId> {
        let now = self.clock.now();
        let mut world = self.world();
        world.settle(now);
        world.runtimes.keys().cloned().collect()
    }

    /// What was done to runtimes, through the backend and by its own timers, oldest first. Being asked is no
    /// effect, nor is what the methods above do behind the backend's back.
    pub fn effects(&self) -> Vec<Effect> {
        self.world().effects.clone()
    }

    /// How often it was asked.
    pub fn asked(&self) -> Asked {
        self.world().asked
    }

    fn change(&self, id: &RuntimeId, change: impl FnOnce(&mut world::Runtime)) {
        self.world().change(id, change);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
