//! The roles of a fake: looking, changing its state, running in it.

use std::time::Duration;

use async_trait::async_trait;
use lifecycle::{
    Activity, Incarnation, Loss, NativeObserved, RuntimeId, State, Survives, policy::WorkspaceRule, snapshot::Disk,
};

use super::{
    By, Effect, Fake, Saving, What,
    world::{Asked, Inside, Step, World},
};
use crate::{
    Archivable, BackendError, Bounds, Command, Deletable, Deleted, ErrorKind, Executable, Inspectable, Listable,
    NativeLifecycle, NativeWanted, Outcome, Output, Page, PageToken, Probe, Probed, Sighting, Suspendable, Target,
};

/// The step in which a fake's own timers count.
const NATIVE_STEP: Duration = Duration::from_mins(1);

impl Fake {
    /// Enters the world to look, settled up to now, unless it is broken.
    pub(super) fn enter<T>(
        &self,
        ask: impl FnOnce(&mut Asked) -> &mut u64,
        look: impl FnOnce(&mut World) -> T,
    ) -> Result<T, BackendError> {
        let now = self.clock.now();
        let mut world = self.world();
        *ask(&mut world.asked) += 1;
        if let Some(error) = &world.broken {
            return Err(error.clone());
        }
        world.settle(now);
        Ok(look(&mut world))
    }

    /// Enters the world for a verb, unless its deadline has passed. `Err` inside is the answer as well: the
    /// reason why nothing was done.
    pub(super) fn verb<T>(
        &self,
        bounds: Bounds,
        act: impl FnOnce(&mut World) -> Result<Outcome<T>, Outcome<T>>,
    ) -> Result<Outcome<T>, BackendError> {
        bounds.left(self.clock.now())?;
        self.enter(|asked| &mut asked.verbs, |world| act(world).unwrap_or_else(|nothing| nothing))
    }
}

/// The answer of a step that has nothing to tell but that it was done.
fn plain(outcome: &Outcome<Deleted>) -> Outcome {
    match outcome {
        Outcome::Done(_) => Outcome::Done(()),
        _ => Outcome::Pending,
    }
}

#[async_trait]
impl Listable for Fake {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        self.enter(
            |asked| &mut asked.pages,
            |world| {
                let size = world.shape.page_size.max(1);
                let after = |id: &RuntimeId| page.is_none_or(|token| id.encoded() > &*token.0);
                let mut rest = world.runtimes.iter().filter(|(id, _)| after(id));
                let seen: Vec<_> = rest.by_ref().take(size).map(|(id, runtime)| runtime.glimpse(id)).collect();
                let last = seen.last().map(|seen| PageToken(seen.id.encoded().into()));
                Page { next: last.filter(|_| rest.next().is_some()), seen, unreadable: Vec::new() }
            },
        )
    }

    async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        self.enter(|asked| &mut asked.pages, |world| world.disk)
    }
}

#[async_trait]
impl Inspectable for Fake {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.enter(
            |asked| &mut asked.looks,
            |world| match world.runtimes.get(id) {
                Some(runtime) => Sighting::Seen(Box::new(runtime.observe(id))),
                None => Sighting::NotThere,
            },
        )
    }
}

#[async_trait]
impl Probed for Fake {
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        bounds.left(self.clock.now())?;
        self.enter(
            |asked| &mut asked.probes,
            |world| {
                let runtime = match world.aim(target) {
                    Ok(runtime) => runtime,
                    Err(nothing) => return Ok(nothing),
                };
                if runtime.state != State::Running {
                    return Ok(runtime.moved());
                }
                match &runtime.inside {
                    Inside::Answers(probe) => Ok(Outcome::Done(probe.clone())),
                    Inside::Absent => Ok(Outcome::Refused("there is no agent server inside".into())),
                    Inside::Silent => {
                        let message = format!("the agent server in `{}` does not answer", target.id);
                        Err(BackendError::new(ErrorKind::Unreachable, message))
                    }
                }
            },
        )?
    }
}

#[async_trait]
impl Suspendable for Fake {
    fn survives(&self) -> Survives {
        self.world().shape.survives
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            match runtime.state {
                State::Suspended => return Err(Outcome::AlreadyDone),
                State::Suspending => return Err(Outcome::Pending),
                state if state != target.state || state != State::Running => return Err(runtime.moved()),
                _ if runtime.ephemeral => return Err(Outcome::Refused("stopping it deletes it".into())),
                _ => {}
            }
            Ok(plain(&world.begin(&target.id, Step::Suspend, now)))
        })
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            match runtime.state {
                State::Running => return Err(Outcome::AlreadyDone),
                State::Resuming => return Err(Outcome::Pending),
                state if state != target.state || state.is_middle() => return Err(runtime.moved()),
                _ => {}
            }
            let begun = world.begin(&target.id, Step::Resume, now);
            let incarnation = world.runtimes.get(&target.id).map(|runtime| runtime.incarnation.clone());
            Ok(match (begun, incarnation) {
                (Outcome::Done(_), Some(incarnation)) => Outcome::Done(incarnation),
                _ => Outcome::Pending,
            })
        })
    }
}

#[async_trait]
impl Archivable for Fake {
    fn archive_survives(&self) -> Survives {
        self.world().shape.survives.min(Survives::Disk)
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            match runtime.state {
                State::Archived => return Err(Outcome::AlreadyDone),
                State::Archiving => return Err(Outcome::Pending),
                state if state != target.state => return Err(runtime.moved()),
                State::Suspended => {}
                state => return Err(Outcome::Refused(format!("it is `{state}`; suspend it first").into())),
            }
            Ok(plain(&world.begin(&target.id, Step::Archive, now)))
        })
    }
}

#[async_trait]
impl Deletable for Fake {
    fn saves_first(&self) -> bool {
        self.world().shape.saving == Saving::First
    }

    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            let (rests, saving) = (world.shape.rests, world.shape.saving);
            let runtime = world.aim(target)?;
            match runtime.state {
                State::Deleting => return Err(Outcome::Pending),
                state if state != target.state => return Err(runtime.moved()),
                State::Running if rests => {}
                State::Suspended | State::Archived => {}
                state => return Err(Outcome::Refused(format!("it is `{state}`; suspend it first").into())),
            }
            if let Some(why) = &runtime.unsavable
                && saving == Saving::First
                && save == WorkspaceRule::Save
                && runtime.loss != Loss::Nothing
            {
                return Err(Outcome::Refused(why.clone()));
            }
            Ok(world.begin(&target.id, Step::Delete(save), now))
        })
    }
}

#[async_trait]
impl NativeLifecycle for Fake {
    fn attainable(&self, wanted: NativeWanted) -> NativeWanted {
        let whole = |timer: Duration| {
            let steps = timer.as_secs().div_ceil(NATIVE_STEP.as_secs()) + u64::from(timer.subsec_nanos() > 0);
            Duration::from_secs(steps.max(1).saturating_mul(NATIVE_STEP.as_secs()))
        };
        NativeWanted {
            idle_suspend: wanted.idle_suspend.map(whole),
            archive: wanted.archive.map(whole),
            delete: wanted.delete.map(whole),
        }
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            let shown = runtime.observe(&target.id).native;
            Ok(shown.map_or_else(no_timers, |native| Outcome::Done(*native)))
        })
    }

    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        let (now, wanted) = (self.clock.now(), self.attainable(wanted));
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            if runtime.state != target.state {
                return Err(runtime.moved());
            }
            let Some(native) = runtime.native.as_mut().filter(|native| native.mutable) else {
                return Err(no_timers());
            };
            if !wanted.differs_from(native) {
                return Err(Outcome::AlreadyDone);
            }
            (native.idle_suspend, native.archive, native.delete) = (wanted.idle_suspend, wanted.archive, wanted.delete);
            let shown = runtime.observe(&target.id).native;
            world.log(target, What::SetNative, now);
            Ok(shown.map_or_else(no_timers, |native| Outcome::Done(*native)))
        })
    }
}

fn no_timers<T>() -> Outcome<T> {
    Outcome::Refused("it has no timers that can be set".into())
}

#[async_trait]
impl Executable for Fake {
    /// Knows `echo WORDS…`, `cat PATH`, `true` and `false`.
    async fn execute(
        &self,
        target: &Target,
        command: &Command,
        bounds: Bounds,
    ) -> Result<Outcome<Output>, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            let runtime = world.aim(target)?;
            if runtime.state != State::Running {
                return Err(runtime.moved());
            }
            runtime.activity = Activity::At(now);
            let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
            let (code, mut stdout) = match words.as_slice() {
                ["echo", words @ ..] => (0, format!("{}\n", words.join(" ")).into_bytes()),
                ["cat", path] => match runtime.files.get(&(None, (*path).to_owned())) {
                    Some(bytes) => (0, bytes.clone()),
                    None => (1, Vec::new()),
                },
                ["true"] => (0, Vec::new()),
                ["false"] => (1, Vec::new()),
                _ => (127, Vec::new()),
            };
            let truncated = stdout.len() > command.output_limit;
            stdout.truncate(command.output_limit);
            let program = words.first().copied().unwrap_or_default().to_owned();
            world.log(target, What::Executed(program), now);
            Ok(Outcome::Done(Output { code, stdout, stderr: Vec::new(), truncated }))
        })
    }
}

impl World {
    pub(super) fn log(&mut self, target: &Target, what: What, at: lifecycle::Time) {
        let (runtime, incarnation) = (target.id.clone(), target.incarnation.clone());
        self.effects.push(Effect { at, by: By::Caller, runtime, incarnation, what });
    }
}
