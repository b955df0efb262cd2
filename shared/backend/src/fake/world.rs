//! What a fake holds, and how it moves.

use std::{collections::BTreeMap, sync::Arc};

use lifecycle::{
    Activity, Busy, Cannot, FileSizes, Incarnation, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation,
    Ownership, Role, RuntimeId, State, Survives, Tier, Time, observation::Labels, policy::WorkspaceRule,
    snapshot::Disk,
};

use super::{
    Removal, Resume, RuntimeSpec, Saving, Shape,
    effect::{By, Effect, What},
};
use crate::{BackendError, Deleted, Outcome, Probe, Target, Trashed};

/// Files by tier (`None`: the user's own) and path.
pub type Files = BTreeMap<(Option<Tier>, String), Vec<u8>>;

/// How often a fake was asked, by kind of question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Pages of a listing.
    pub pages: u64,
    /// Looks at one runtime.
    pub looks: u64,
    /// Questions to the agent server inside.
    pub probes: u64,
    /// Verbs, done or not.
    pub verbs: u64,
    /// Times that old saves were to be removed, whether there were any or not.
    pub tidied: u64,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) shape: Shape,
    pub(super) runtimes: BTreeMap<RuntimeId, Runtime>,
    pub(super) trash: BTreeMap<Arc<str>, Buried>,
    /// What was saved of deleted runtimes, and when.
    pub(super) saves: BTreeMap<Arc<str>, Time>,
    pub(super) effects: Vec<Effect>,
    pub(super) asked: Asked,
    pub(super) broken: Option<BackendError>,
    pub(super) disk: Option<Disk>,
    counter: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Runtime {
    pub(super) incarnation: Incarnation,
    pub(super) state: State,
    pub(super) activity: Activity,
    pub(super) busy: Busy,
    pub(super) ephemeral: bool,
    pub(super) unsavable: Option<Arc<str>>,
    pub(super) loss: Loss,
    pub(super) files: Files,
    pub(super) native: Option<NativeObserved>,
    pub(super) inside: Inside,
    ownership: Ownership,
    state_since: Time,
    running_since: Option<Time>,
    labels: Labels,
    about: Arc<str>,
    landing: Option<(Time, Step)>,
}

/// The agent server inside.
#[derive(Debug, Clone)]
pub(super) enum Inside {
    Answers(Probe),
    Silent,
    Absent,
}

impl Inside {
    pub(super) fn probe_mut(&mut self) -> Option<&mut Probe> {
        match self {
            Self::Answers(probe) => Some(probe),
            Self::Silent | Self::Absent => None,
        }
    }
}

/// What lies in the trash.
#[derive(Debug)]
pub(super) struct Buried {
    pub(super) note: Trashed,
    pub(super) what: Remains,
}

#[derive(Debug)]
pub(super) enum Remains {
    Files(Files),
    Runtime(Box<Runtime>),
}

/// A change of state that a verb or a timer brings about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Suspend,
    Resume,
    Archive,
    Delete(WorkspaceRule),
}

impl Step {
    const fn middle(self) -> State {
        match self {
            Self::Suspend => State::Suspending,
            Self::Resume => State::Resuming,
            Self::Archive => State::Archiving,
            Self::Delete(_) => State::Deleting,
        }
    }
}

impl World {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            runtimes: BTreeMap::new(),
            trash: BTreeMap::new(),
            saves: BTreeMap::new(),
            effects: Vec::new(),
            asked: Asked::default(),
            broken: None,
            disk: None,
            counter: 0,
        }
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(super) fn next_incarnation(&mut self) -> Incarnation {
        Incarnation::new(format!("run-{}", self.count()))
    }

    pub(super) fn put(&mut self, id: RuntimeId, spec: RuntimeSpec, now: Time) {
        let incarnation = self.next_incarnation();
        self.runtimes.insert(id, Runtime::new(spec, incarnation, now));
    }

    pub(super) fn change(&mut self, id: &RuntimeId, change: impl FnOnce(&mut Runtime)) {
        match self.runtimes.get_mut(id) {
            Some(runtime) => change(runtime),
            None => panic!("there is no fake runtime `{id}` to change"),
        }
    }

    /// Lets everything happen that is due by `now`: what was under way, and the provider's own timers.
    pub(super) fn settle(&mut self, now: Time) {
        let ids: Vec<_> = self.runtimes.keys().cloned().collect();
        for id in ids {
            while let Some((at, step, by)) = self.runtimes.get(&id).and_then(Runtime::next).filter(|next| next.0 <= now)
            {
                self.land(&id, step, by, at);
            }
        }
    }

    /// The runtime that a verb is aimed at, or why there is nothing to do to it.
    pub(super) fn aim<T>(&mut self, target: &Target) -> Result<&mut Runtime, Outcome<T>> {
        let Some(runtime) = self.runtimes.get_mut(&target.id) else { return Err(Outcome::Gone) };
        if runtime.ownership != Ownership::Ours {
            return Err(Outcome::Refused(format!("`{}` is not in the scope of this backend", target.id).into()));
        }
        if runtime.incarnation != target.incarnation {
            return Err(runtime.moved());
        }
        Ok(runtime)
    }

    /// Begins a step. Done at once unless the shape says that it takes a while.
    pub(super) fn begin(&mut self, id: &RuntimeId, step: Step, now: Time) -> Outcome<Deleted> {
        let at = now.plus(self.shape.takes);
        if at <= now {
            return Outcome::Done(self.land(id, step, By::Caller, now));
        }
        self.change(id, |runtime| {
            runtime.enter(step.middle(), now);
            runtime.landing = Some((at, step));
        });
        Outcome::Pending
    }

    fn land(&mut self, id: &RuntimeId, step: Step, by: By, at: Time) -> Deleted {
        if let Step::Delete(save) = step {
            return self.remove(id, save, by, at);
        }
        let survives = self.shape.survives;
        let anew = matches!(step, Step::Resume) && self.shape.resume == Resume::NewIncarnation;
        let next = anew.then(|| self.next_incarnation());
        let Some(runtime) = self.runtimes.get_mut(id) else { return Deleted::default() };
        let before = runtime.incarnation.clone();
        let (state, what) = match step {
            Step::Suspend => (State::Suspended, What::Suspended),
            Step::Resume => (State::Running, What::Resumed),
            Step::Archive | Step::Delete(_) => (State::Archived, What::Archived),
        };
        runtime.enter(state, at);
        if state == State::Suspended {
            runtime.lose(survives);
        }
        if let Some(next) = next {
            runtime.incarnation = next;
        }
        self.effects.push(Effect { at, by, runtime: id.clone(), incarnation: before, what });
        Deleted::default()
    }

    fn remove(&mut self, id: &RuntimeId, save: WorkspaceRule, by: By, at: Time) -> Deleted {
        let Some(mut runtime) = self.runtimes.remove(id) else { return Deleted::default() };
        runtime.landing = None;
        let must_save = self.shape.saving == Saving::First && save == WorkspaceRule::Save && by == By::Caller;
        let saved: Option<Arc<str>> =
            (must_save && runtime.loss != Loss::Nothing).then(|| format!("saved/{}", self.count()).into());
        self.saves.extend(saved.clone().map(|place| (place, at)));
        let bytes = runtime.bytes(|_| true);
        let effect = What::Deleted { saved: saved.clone() };
        let incarnation = runtime.incarnation.clone();
        self.effects.push(Effect { at, by, runtime: id.clone(), incarnation, what: effect });
        let undo = (by == By::Caller)
            .then(|| self.bury(id, Tier::Runtime, Remains::Runtime(Box::new(runtime)), bytes, at))
            .flatten();
        Deleted { saved, undo, kept: Vec::new(), bytes }
    }

    pub(super) fn forget_saves(&mut self, before: Time) -> Vec<Arc<str>> {
        self.saves.extract_if(.., |_, at| *at < before).map(|(place, _)| place).collect()
    }

    /// Puts what was removed into the trash, where the shape has one.
    pub(super) fn bury(&mut self, id: &RuntimeId, tier: Tier, what: Remains, bytes: u64, at: Time) -> Option<Arc<str>> {
        if self.shape.removal == Removal::ForEver {
            return None;
        }
        let entry: Arc<str> = format!("trash/{:06}", self.count()).into();
        let note = Trashed { entry: entry.clone(), runtime: id.clone(), tier, at, origin: id.encoded().into(), bytes };
        self.trash.insert(entry.clone(), Buried { note, what });
        Some(entry)
    }
}

impl Runtime {
    fn new(spec: RuntimeSpec, incarnation: Incarnation, now: Time) -> Self {
        let since = spec.since.unwrap_or(now);
        let activity = spec.activity.unwrap_or(Activity::At(since));
        let last_active = match activity {
            Activity::At(at) => Some(at),
            Activity::Unknown | Activity::Frozen => None,
        };
        Self {
            incarnation,
            state: spec.state,
            activity,
            busy: spec.busy,
            ephemeral: spec.ephemeral,
            unsavable: spec.unsavable,
            loss: spec.loss,
            files: spec.files,
            native: spec.native,
            inside: spec.inside.unwrap_or(Inside::Answers(Probe { last_active, busy: spec.busy })),
            ownership: spec.ownership,
            state_since: since,
            running_since: (spec.state == State::Running).then_some(since),
            labels: Arc::new(spec.labels),
            about: format!("fake `{}`", spec.name).into(),
            landing: None,
        }
    }

    /// It stands in `state` from then on.
    pub(super) fn enter(&mut self, state: State, at: Time) {
        self.landing = None;
        self.state = state;
        self.state_since = at;
        if state == State::Running {
            self.running_since = Some(at);
        } else {
            self.busy = Busy::No;
        }
    }

    pub(super) fn moved<T>(&self) -> Outcome<T> {
        Outcome::Moved { incarnation: self.incarnation.clone(), state: self.state }
    }

    pub(super) fn bytes(&self, of: impl Fn(Option<Tier>) -> bool) -> u64 {
        let sizes = self.files.iter().filter(|((tier, _), _)| of(*tier)).map(|(_, bytes)| bytes.len());
        sizes.fold(0, |sum, size| sum.saturating_add(u64::try_from(size).unwrap_or(u64::MAX)))
    }

    fn lose(&mut self, survives: Survives) {
        if matches!(survives, Survives::Nothing | Survives::Volumes) {
            self.files.retain(|(_, path), _| survives == Survives::Volumes && path.starts_with("volumes/"));
        }
    }

    /// What happens to it next by itself: the end of what is under way, else the provider's timer.
    fn next(&self) -> Option<(Time, Step, By)> {
        if let Some((at, step)) = self.landing {
            return Some((at, step, By::Caller));
        }
        let deadline = self.deadline()?;
        let step = match deadline.effect {
            NativeEffect::Suspend => Step::Suspend,
            NativeEffect::Archive => Step::Archive,
            NativeEffect::Destroy => Step::Delete(WorkspaceRule::Discard),
        };
        Some((deadline.at, step, By::Provider))
    }

    fn deadline(&self) -> Option<NativeDeadline> {
        let native = self.native?;
        let (after, from, effect) = match self.state {
            State::Running => (native.idle_suspend, self.idle_since(), NativeEffect::Suspend),
            State::Suspended if native.archive.is_some() => (native.archive, self.state_since, NativeEffect::Archive),
            State::Suspended | State::Archived => (native.delete, self.state_since, NativeEffect::Destroy),
            _ => return None,
        };
        Some(NativeDeadline { at: from.plus(after?), effect })
    }

    fn idle_since(&self) -> Time {
        match self.activity {
            Activity::At(at) => at.max(self.state_since),
            Activity::Unknown | Activity::Frozen => self.state_since,
        }
    }

    /// A full look.
    pub(super) fn observe(&self, id: &RuntimeId) -> Observation {
        let ephemeral = Cannot { role: Role::Suspend, why: "stopping it deletes it".into() };
        let native = self.native.map(|native| Box::new(NativeObserved { deadline: self.deadline(), ..native }));
        Observation {
            id: id.clone(),
            incarnation: self.incarnation.clone(),
            state: self.state,
            state_since: Some(self.state_since),
            running_since: self.running_since,
            activity: self.activity,
            busy: self.busy,
            ownership: self.ownership,
            labels: self.labels.clone(),
            cannot: self.ephemeral.then_some(ephemeral).into_iter().collect(),
            loss: self.loss.clone(),
            files: FileSizes {
                caches: Some(self.bytes(|tier| tier == Some(Tier::Caches))),
                dependencies: Some(self.bytes(|tier| tier == Some(Tier::Dependencies))),
                total: Some(self.bytes(|_| true)),
            },
            native,
            sharers: 1,
            about: self.about.clone(),
        }
    }

    /// A look as a listing gives it: what is dear to find out is left to a full look.
    pub(super) fn glimpse(&self, id: &RuntimeId) -> Observation {
        Observation { loss: Loss::Unknown, files: FileSizes::default(), ..self.observe(id) }
    }
}
