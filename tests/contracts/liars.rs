//! Backends that break the contract, one sentence each: a fake with one lie.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use backend::{
    Archivable, Backend, BackendError, Bounds, Command, Deletable, Deleted, Executable, FileReclaimable, Inspectable,
    Listable, NativeLifecycle, NativeWanted, Outcome, Output, Page, PageToken, Probe, Probed, Recoverable, Shed,
    Sighting, Suspendable, Target, Trashed,
    contract::{Can, Content, Harness},
    fake::Fake,
};
use lifecycle::{
    Incarnation, NativeObserved, Observation, Ownership, RuntimeId, State, Survives, Tier, Time, policy::WorkspaceRule,
};

use super::fake_harness::FakeHarness;

/// What the backend does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    DownIsEmpty,
    DownIsNotThere,
    DownIsGone,
    ListsTwice,
    ListsTheFirstPageOnly,
    RemembersWhatVanished,
    AllIsOurs,
    LooksCountAsActivity,
    SuspendIsDoneTwice,
    SuspendIgnoresTheTarget,
    SuspendRefusesNothing,
    ResumeLosesFiles,
    DeleteIgnoresTheTarget,
    DeleteOfGoneIsDone,
    DeletesTheForeign,
    DeleteSavesNothing,
    DeleteTakesANeighbour,
    ShedTakesWork,
    ShedsTheRuntime,
    UndoOverwrites,
    EmptyKeeps,
    DeadlinesAreIgnored,
    LateIsUnknown,
}

/// A harness whose backend lies.
pub(super) struct Liar {
    honest: FakeHarness,
    lying: Arc<Lying>,
}

struct Lying {
    fake: Fake,
    lie: Lie,
    remembered: Mutex<BTreeMap<RuntimeId, Observation>>,
}

impl Liar {
    pub(super) fn new(honest: FakeHarness, lie: Lie) -> Self {
        let lying = Arc::new(Lying { fake: honest.fake.clone(), lie, remembered: Mutex::default() });
        Self { honest, lying }
    }
}

fn with_roles(name: lifecycle::BackendName, lying: Arc<Lying>) -> Backend {
    let builder = Backend::builder(name, "liar", lying).probes().suspends().archives().deletes();
    builder.sheds().recovers().sets_native().executes().build()
}

impl Lying {
    fn is(&self, lie: Lie) -> bool {
        self.lie == lie
    }

    fn honest(&self) -> Backend {
        self.fake.backend()
    }

    /// The target as the runtime is now, whatever was looked at.
    fn current(&self, target: &Target) -> Target {
        self.fake.look(&target.id).map_or_else(|| target.clone(), |seen| Target::of(&seen))
    }

    /// The runtime that the harness made just before this one.
    fn made_before(&self, id: &RuntimeId) -> Option<RuntimeId> {
        let number: u32 = id.encoded().strip_prefix("runtime-")?.parse().ok()?;
        let before = self.fake.id(&format!("runtime-{}", number.checked_sub(1)?));
        self.fake.look(&before).map(|seen| seen.id)
    }

    fn bounds(&self, bounds: Bounds) -> Bounds {
        let ignored = Bounds { deadline: Time::MAX };
        if self.is(Lie::DeadlinesAreIgnored) { ignored } else { bounds }
    }

    fn shown(&self, seen: Observation) -> Observation {
        if self.is(Lie::AllIsOurs) { Observation { ownership: Ownership::Ours, ..seen } } else { seen }
    }

    fn late<T>(&self, answer: Result<Outcome<T>, BackendError>) -> Result<Outcome<T>, BackendError> {
        match answer {
            Err(error) if self.is(Lie::LateIsUnknown) && error.message.contains("deadline") => {
                Ok(Outcome::Unknown("too late".into()))
            }
            other => other,
        }
    }

    fn down<T>(&self, answer: Result<Outcome<T>, BackendError>) -> Result<Outcome<T>, BackendError> {
        match answer {
            Err(error) if self.is(Lie::DownIsGone) && error.message.contains("does not answer") => Ok(Outcome::Gone),
            other => self.late(other),
        }
    }
}

#[async_trait]
impl Listable for Lying {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let mut page = match self.honest().list.list(page).await {
            Err(_) if self.is(Lie::DownIsEmpty) => Page { seen: Vec::new(), unreadable: Vec::new(), next: None },
            other => other?,
        };
        page.seen = page.seen.into_iter().map(|seen| self.shown(seen)).collect();
        if self.is(Lie::ListsTwice) {
            page.seen.extend(page.seen.clone());
        }
        if self.is(Lie::ListsTheFirstPageOnly) {
            page.seen.truncate(3);
        }
        Ok(page)
    }
}

#[async_trait]
impl Inspectable for Lying {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        if self.is(Lie::LooksCountAsActivity) && self.fake.look(id).is_some() {
            self.fake.touch(id);
        }
        let looked = match self.honest().inspect.inspect(id).await {
            Err(_) if self.is(Lie::DownIsNotThere) => Sighting::NotThere,
            other => other?,
        };
        let mut remembered = self.remembered.lock().unwrap();
        match looked {
            Sighting::Seen(seen) => {
                let seen = self.shown(*seen);
                remembered.insert(id.clone(), seen.clone());
                Ok(Sighting::Seen(Box::new(seen)))
            }
            Sighting::NotThere => Ok(match remembered.get(id).filter(|_| self.is(Lie::RemembersWhatVanished)) {
                Some(seen) => Sighting::Seen(Box::new(seen.clone())),
                None => Sighting::NotThere,
            }),
        }
    }
}

#[async_trait]
impl Probed for Lying {
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        self.down(self.fake.probe(target, self.bounds(bounds)).await)
    }
}

#[async_trait]
impl Suspendable for Lying {
    fn survives(&self) -> Survives {
        self.fake.survives()
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let aimed = if self.is(Lie::SuspendIgnoresTheTarget) { self.current(target) } else { target.clone() };
        let answer = self.fake.suspend(&aimed, self.bounds(bounds)).await;
        match answer {
            Ok(Outcome::AlreadyDone) if self.is(Lie::SuspendIsDoneTwice) => Ok(Outcome::Done(())),
            Ok(Outcome::Refused(_)) if self.is(Lie::SuspendRefusesNothing) => {
                self.fake.stop(&target.id);
                Ok(Outcome::Done(()))
            }
            other => self.down(other),
        }
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let answer = self.fake.resume(target, self.bounds(bounds)).await;
        if self.is(Lie::ResumeLosesFiles) && matches!(answer, Ok(Outcome::Done(_))) {
            self.fake.write(&target.id, "notes.md", "");
        }
        self.down(answer)
    }
}

#[async_trait]
impl Archivable for Lying {
    fn archive_survives(&self) -> Survives {
        self.fake.archive_survives()
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.down(self.fake.archive(target, self.bounds(bounds)).await)
    }
}

#[async_trait]
impl Deletable for Lying {
    fn saves_first(&self) -> bool {
        self.fake.saves_first()
    }

    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let save = if self.is(Lie::DeleteSavesNothing) { WorkspaceRule::Discard } else { save };
        let mut answer = self.fake.delete(target, save, self.bounds(bounds)).await;
        if self.is(Lie::DeleteIgnoresTheTarget) && matches!(answer, Ok(Outcome::Moved { .. })) {
            self.fake.stop(&target.id);
            answer = self.fake.delete(&self.current(target), save, self.bounds(bounds)).await;
        }
        if self.is(Lie::DeleteTakesANeighbour)
            && matches!(answer, Ok(Outcome::Done(_)))
            && let Some(before) = self.made_before(&target.id)
        {
            self.fake.vanish(&before);
        }
        match answer {
            Ok(Outcome::Gone) if self.is(Lie::DeleteOfGoneIsDone) => Ok(Outcome::Done(Deleted::default())),
            Ok(Outcome::Refused(_)) if self.is(Lie::DeletesTheForeign) => {
                self.fake.vanish(&target.id);
                Ok(Outcome::Done(Deleted::default()))
            }
            other => self.down(other),
        }
    }
}

#[async_trait]
impl FileReclaimable for Lying {
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        let tier = if self.is(Lie::ShedsTheRuntime) && tier == Tier::Runtime { Tier::Dependencies } else { tier };
        let answer = self.fake.shed(target, tier, self.bounds(bounds)).await;
        if self.is(Lie::ShedTakesWork) && matches!(answer, Ok(Outcome::Done(_))) {
            self.fake.write(&target.id, "notes.md", "");
        }
        self.down(answer)
    }
}

#[async_trait]
impl Recoverable for Lying {
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError> {
        self.fake.trashed().await
    }

    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError> {
        let Some(note) = self.fake.trashed().await?.into_iter().find(|note| &*note.entry == entry) else {
            return self.fake.undo(entry).await;
        };
        match self.fake.undo(entry).await? {
            Outcome::Refused(_) if self.is(Lie::UndoOverwrites) => {
                if note.tier == Tier::Runtime {
                    self.fake.vanish(&note.runtime);
                    return self.fake.undo(entry).await;
                }
                for ((tier, path), _) in self.fake.files(&note.runtime).unwrap() {
                    if tier == Some(note.tier) {
                        self.fake.rebuild(&note.runtime, note.tier, &path, "the old bytes");
                    }
                }
                Ok(Outcome::Done(note))
            }
            other => Ok(other),
        }
    }

    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError> {
        if self.is(Lie::EmptyKeeps) { Ok(Outcome::Done(())) } else { self.fake.empty(entry).await }
    }

    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError> {
        self.fake.forget_saves(before).await
    }
}

#[async_trait]
impl NativeLifecycle for Lying {
    fn attainable(&self, wanted: NativeWanted) -> NativeWanted {
        self.fake.attainable(wanted)
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        self.down(self.fake.native(target, self.bounds(bounds)).await)
    }

    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        self.down(self.fake.set_native(target, wanted, self.bounds(bounds)).await)
    }
}

#[async_trait]
impl Executable for Lying {
    async fn execute(
        &self,
        target: &Target,
        command: &Command,
        bounds: Bounds,
    ) -> Result<Outcome<Output>, BackendError> {
        self.down(self.fake.execute(target, command, self.bounds(bounds)).await)
    }
}

#[async_trait]
impl Harness for Liar {
    fn backend(&self) -> Backend {
        with_roles(self.honest.backend().name, self.lying.clone())
    }

    fn now(&self) -> Time {
        self.honest.now()
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        self.honest.make(state).await
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        self.honest.content(id).await
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.honest.vanish(id).await
    }

    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        self.honest.restart(id).await
    }

    async fn broken(&self) -> Can<Backend> {
        let fake = self.honest.down();
        let lying = Arc::new(Lying { fake, lie: self.lying.lie, remembered: Mutex::default() });
        Ok(with_roles(self.honest.backend().name, lying))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.honest.advance(by).await
    }

    async fn settle(&self) {
        self.honest.settle().await;
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        self.honest.make_foreign().await
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        self.honest.make_unlabelled().await
    }

    async fn make_ephemeral(&self) -> Can<RuntimeId> {
        self.honest.make_ephemeral().await
    }

    async fn make_unsaved(&self) -> Can<RuntimeId> {
        self.honest.make_unsaved().await
    }

    async fn occupy(&self, id: &RuntimeId, tier: Tier) -> Can<()> {
        self.honest.occupy(id, tier).await
    }
}
