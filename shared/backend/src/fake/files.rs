//! The roles of a fake that shed files and take them back.

use std::sync::Arc;

use async_trait::async_trait;
use lifecycle::{Tier, Time};

use super::{
    By, Effect, Fake, What,
    world::{Buried, Files, Remains, World},
};
use crate::{BackendError, Bounds, FileReclaimable, Outcome, Recoverable, Shed, Target, Trashed};

#[async_trait]
impl FileReclaimable for Fake {
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        let now = self.clock.now();
        self.verb(bounds, |world| {
            if tier == Tier::Runtime {
                return Err(Outcome::Refused("the runtime tier is everything: that is a delete".into()));
            }
            let runtime = world.aim(target)?;
            if runtime.state != target.state {
                return Err(runtime.moved());
            }
            let bytes = runtime.bytes(|of| of == Some(tier));
            let (going, staying): (Files, Files) =
                std::mem::take(&mut runtime.files).into_iter().partition(|((of, _), _)| *of == Some(tier));
            runtime.files = staying;
            if going.is_empty() {
                return Err(Outcome::AlreadyDone);
            }
            world.log(target, What::Shed(tier), now);
            let undo = world.bury(&target.id, tier, Remains::Files(going), bytes, now).into_iter().collect();
            Ok(Outcome::Done(Shed { undo, bytes }))
        })
    }
}

#[async_trait]
impl Recoverable for Fake {
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError> {
        self.enter(
            |asked| &mut asked.pages,
            |world| world.trash.values().rev().map(|buried| buried.note.clone()).collect(),
        )
    }

    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError> {
        let now = self.clock.now();
        self.enter(
            |asked| &mut asked.verbs,
            |world| {
                let Some(buried) = world.trash.get(entry) else { return Outcome::Gone };
                if let Some(why) = world.in_the_way(buried) {
                    return Outcome::Refused(why);
                }
                let Some((entry, buried)) = world.trash.remove_entry(entry) else { return Outcome::Gone };
                world.put_back(&buried.note, buried.what);
                world.log_entry(&buried.note, What::Undone(entry), now);
                Outcome::Done(buried.note)
            },
        )
    }

    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError> {
        let now = self.clock.now();
        self.enter(
            |asked| &mut asked.verbs,
            |world| match world.trash.remove_entry(entry) {
                None => Outcome::Gone,
                Some((entry, buried)) => {
                    world.log_entry(&buried.note, What::Emptied(entry), now);
                    Outcome::Done(())
                }
            },
        )
    }

    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError> {
        self.enter(|asked| &mut asked.tidied, |world| world.forget_saves(before))
    }
}

impl World {
    /// Why an entry can't be put back where it came from.
    fn in_the_way(&self, buried: &Buried) -> Option<Arc<str>> {
        let id = &buried.note.runtime;
        match (&buried.what, self.runtimes.get(id)) {
            (Remains::Runtime(_), None) => None,
            (Remains::Runtime(_), Some(_)) => Some(format!("another runtime `{id}` stands there").into()),
            (Remains::Files(_), None) => Some(format!("the runtime `{id}` that it came from is no more").into()),
            (Remains::Files(files), Some(runtime)) => files
                .keys()
                .find(|place| runtime.files.contains_key(*place))
                .map(|(_, path)| format!("something new stands at `{path}`").into()),
        }
    }

    fn put_back(&mut self, note: &Trashed, what: Remains) {
        match what {
            Remains::Runtime(runtime) => drop(self.runtimes.insert(note.runtime.clone(), *runtime)),
            Remains::Files(files) => self.change(&note.runtime, |runtime| runtime.files.extend(files)),
        }
    }

    fn log_entry(&mut self, note: &Trashed, what: What, at: lifecycle::Time) {
        let there = self.runtimes.get(&note.runtime).map(|runtime| runtime.incarnation.clone());
        let incarnation = there.unwrap_or_else(|| lifecycle::Incarnation::new("none"));
        self.effects.push(Effect { at, by: By::Caller, runtime: note.runtime.clone(), incarnation, what });
    }
}
