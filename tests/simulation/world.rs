//! What is really there: the provider's runtimes, as nobody in the product can see them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use backend::{Outcome, Target};
use lifecycle::{
    Activity, Busy, FileSizes, Incarnation, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation, Ownership,
    RuntimeId, State, Time, policy::HOLD_LABEL,
};

use super::scenario::{Kind, Shows, Whose};

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) runtimes: BTreeMap<RuntimeId, Runtime>,
    /// What a listing would have shown since when, oldest first: listings lag.
    journal: Vec<(Time, RuntimeId, Option<Observation>)>,
    runs: u64,
}

/// Who brought a state about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Whoever else uses the provider.
    Outside,
    /// Its own timer.
    Provider,
    /// Us.
    Us,
}

#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(crate) kind: Kind,
    pub(crate) run: u64,
    pub(crate) state: State,
    pub(crate) by: By,
    pub(crate) state_since: Time,
    pub(crate) running_since: Time,
    /// The truth of its activity, whoever may know it.
    pub(crate) active: Time,
    pub(crate) busy_until: Option<Time>,
    pub(crate) hold_label: bool,
    pub(crate) caches: bool,
    /// Under this id since then.
    pub(crate) born: Time,
    /// The provider says "no such runtime" until then, wrongly.
    pub(crate) denied_until: Option<Time>,
    /// The agent server inside answers nothing until then.
    pub(crate) silent_until: Option<Time>,
}

/// A verb, as it changes the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Suspend,
    Resume,
    Archive,
    Delete,
    Shed,
}

impl Verb {
    const fn middle(self) -> State {
        match self {
            Self::Suspend => State::Suspending,
            Self::Resume => State::Resuming,
            Self::Archive => State::Archiving,
            Self::Delete | Self::Shed => State::Deleting,
        }
    }
}

impl World {
    /// Puts another run under an id.
    pub(crate) fn begin(&mut self, id: &RuntimeId, kind: Kind, now: Time) {
        let born = self.runtimes.get(id).map_or(now, |there| there.born);
        let runtime = Runtime {
            kind,
            run: self.next_run(),
            state: State::Running,
            by: By::Outside,
            state_since: now,
            running_since: now,
            active: now,
            busy_until: None,
            hold_label: false,
            caches: true,
            born,
            denied_until: None,
            silent_until: None,
        };
        self.runtimes.insert(id.clone(), runtime);
        self.changed(id, now);
    }

    fn next_run(&mut self) -> u64 {
        self.runs += 1;
        self.runs
    }

    pub(crate) fn remove(&mut self, id: &RuntimeId, now: Time) {
        self.runtimes.remove(id);
        self.changed(id, now);
    }

    /// Changes a runtime that is there.
    pub(crate) fn change(&mut self, id: &RuntimeId, now: Time, change: impl FnOnce(&mut Runtime)) {
        if let Some(runtime) = self.runtimes.get_mut(id) {
            change(runtime);
            self.changed(id, now);
        }
    }

    fn changed(&mut self, id: &RuntimeId, now: Time) {
        let shown = self.runtimes.get(id).map(|runtime| runtime.observe(id));
        self.journal.push((now, id.clone(), shown));
    }

    /// What a listing that lags shows: the world as it was then.
    pub(crate) fn as_of(&self, then: Time) -> Vec<Observation> {
        let mut rows: BTreeMap<&RuntimeId, &Observation> = BTreeMap::new();
        for (_, id, shown) in self.journal.iter().take_while(|(at, ..)| *at <= then) {
            match shown {
                Some(shown) => drop(rows.insert(id, shown)),
                None => drop(rows.remove(id)),
            }
        }
        rows.into_values().cloned().collect()
    }

    /// A verb reaches the provider. It looks and acts at one moment: another run or state than the target's is left
    /// alone. What takes a while is under way then, and is ended by [`World::ended`].
    pub(crate) fn reached(&mut self, verb: Verb, target: &Target, takes: Duration, anew: bool, now: Time) -> Outcome {
        let Some(runtime) = self.runtimes.get(&target.id) else { return Outcome::Gone };
        let moved = || Outcome::Moved { incarnation: runtime.incarnation(), state: runtime.state };
        if runtime.kind.whose != Whose::Ours {
            return Outcome::Refused("it is not in the scope".into());
        }
        if runtime.incarnation() != target.incarnation {
            return moved();
        }
        match (verb, runtime.state) {
            (Verb::Suspend, State::Suspended) | (Verb::Archive, State::Archived) | (Verb::Resume, State::Running) => {
                return Outcome::AlreadyDone;
            }
            (Verb::Shed, _) if !runtime.caches => return Outcome::AlreadyDone,
            (verb, state) if verb != Verb::Shed && state == verb.middle() => return Outcome::Pending,
            (_, state) if state != target.state || state.is_middle() => return moved(),
            (Verb::Delete, State::Running) => return Outcome::Refused("suspend it first".into()),
            _ => {}
        }
        if takes.is_zero() || verb == Verb::Shed {
            self.ended(verb, &target.id, anew, now);
            return Outcome::Done(());
        }
        self.change(&target.id, now, |runtime| runtime.enter(verb.middle(), By::Us, now));
        Outcome::Pending
    }

    /// What a verb was about is so.
    pub(crate) fn ended(&mut self, verb: Verb, id: &RuntimeId, anew: bool, now: Time) {
        let run = self.next_run();
        match verb {
            Verb::Delete => self.remove(id, now),
            Verb::Suspend => self.change(id, now, |runtime| runtime.enter(State::Suspended, By::Us, now)),
            Verb::Archive => self.change(id, now, |runtime| runtime.enter(State::Archived, By::Us, now)),
            Verb::Shed => self.change(id, now, |runtime| runtime.caches = false),
            Verb::Resume => self.change(id, now, |runtime| {
                runtime.enter(State::Running, By::Us, now);
                if anew {
                    runtime.run = run;
                }
            }),
        }
    }
}

impl Runtime {
    pub(crate) fn incarnation(&self) -> Incarnation {
        Incarnation::new(format!("run-{}", self.run))
    }

    pub(crate) fn enter(&mut self, state: State, by: By, now: Time) {
        self.state = state;
        self.state_since = now;
        self.by = by;
        if state == State::Running {
            self.running_since = now;
        } else {
            self.busy_until = None;
        }
    }

    /// When the provider suspends it by itself.
    pub(crate) fn native_deadline(&self) -> Option<Time> {
        let after = self.kind.native.filter(|_| self.state == State::Running)?;
        Some(self.active.max(self.state_since).plus(after))
    }

    pub(crate) fn ours(&self) -> bool {
        self.kind.whose == Whose::Ours
    }

    /// A full look.
    pub(crate) fn observe(&self, id: &RuntimeId) -> Observation {
        let shown = self.kind.shows == Shows::Provider;
        let labels = self.hold_label.then(|| (HOLD_LABEL.to_owned(), "until somebody knows better".to_owned()));
        let deadline = self.native_deadline().map(|at| NativeDeadline { at, effect: NativeEffect::Suspend });
        Observation {
            id: id.clone(),
            incarnation: self.incarnation(),
            state: self.state,
            state_since: Some(self.state_since),
            running_since: Some(self.running_since),
            activity: if shown { Activity::At(self.active) } else { Activity::Unknown },
            busy: self.busy_until.filter(|_| shown).map_or(Busy::No, Busy::Until),
            ownership: match self.kind.whose {
                Whose::Ours => Ownership::Ours,
                Whose::Foreign => Ownership::Foreign,
                Whose::Unlabelled => Ownership::Unlabelled,
            },
            labels: Arc::new(labels.into_iter().collect()),
            cannot: Vec::new(),
            loss: Loss::Work(vec!["a file".into()]),
            files: FileSizes { caches: Some(u64::from(self.caches)), ..FileSizes::default() },
            native: self.kind.native.map(|idle| {
                Box::new(NativeObserved { idle_suspend: Some(idle), deadline, ..NativeObserved::default() })
            }),
            sharers: 1,
            about: "simulated".into(),
        }
    }
}
