//! Emptying the trash and removing old saves: what lay there long enough, by the pure decision.

use std::sync::Arc;

use backend::{Outcome, Recoverable, Trashed};
use lifecycle::{
    Time,
    trash::{TrashEntry, due, saves_before},
};

use crate::{
    Pass,
    context::Context,
    outcome::{Emptied, Upkeep},
    scene::Scene,
};

impl Pass {
    /// Removes for ever what lay in the trash of each backend for longer than `trash.keep`, and saves that outlived
    /// `retention.workspace`: what nobody can want back any more. Called after an apply, which is all that some
    /// people ever run; what it has just moved stays, also when a disk is over its budget. Returns what was removed
    /// and what could not be.
    pub async fn empty_expired(&self) -> (Upkeep, Vec<Arc<str>>) {
        let deadline = self.clock.now().plus(self.limits.duration);
        let (mut upkeep, mut errors) = (Upkeep::default(), Vec::new());
        for unit in &self.units {
            let cx = Context { pass: self, unit, deadline };
            match Scene::read(cx).await {
                Ok(scene) => {
                    let scene = Scene { disk: None, ..scene };
                    empty(cx, &scene, &mut upkeep, &mut errors).await;
                }
                Err(error) => errors.push(error.to_string().into()),
            }
        }
        (upkeep, errors)
    }
}

/// One backend's trash and saves. Not while it is paused: what is in the trash can still be taken back.
pub(crate) async fn empty(cx: Context<'_>, scene: &Scene, upkeep: &mut Upkeep, errors: &mut Vec<Arc<str>>) {
    let Some(role) = cx.unit.backend.undo.as_ref().filter(|_| !scene.paused) else { return };
    match cx.calls().within(cx.limits().act_timeout, role.trashed()).await {
        Ok(trashed) => empty_trash(cx, scene, &**role, &trashed, (upkeep, errors)).await,
        Err(error) => return errors.push(format!("the trash could not be read: {error}").into()),
    }
    // Without a limit none is too old, and what killed processes began is still ended.
    let before = saves_before(cx.name(), cx.policy(), cx.now()).unwrap_or(Time::MIN);
    match cx.calls().within(cx.limits().act_timeout, role.forget_saves(before)).await {
        Ok(forgotten) => upkeep.forgotten.extend(forgotten),
        Err(error) => errors.push(format!("old saves could not be removed: {error}").into()),
    }
}

async fn empty_trash(
    cx: Context<'_>,
    scene: &Scene,
    role: &dyn Recoverable,
    trashed: &[Trashed],
    (upkeep, errors): (&mut Upkeep, &mut Vec<Arc<str>>),
) {
    let entries: Vec<_> = trashed
        .iter()
        .map(|trashed| TrashEntry {
            entry: trashed.entry.clone(),
            tier: trashed.tier,
            at: trashed.at,
            bytes: trashed.bytes,
        })
        .collect();
    let disk = scene.disk;
    for due in due(&entries, cx.name(), disk, cx.policy(), cx.now()) {
        if let Some(why) = cx.out_of_time() {
            return errors.push(format!("the trash was not emptied to the end: {why}").into());
        }
        let entry = due.entry.entry;
        match cx.calls().within(cx.limits().act_timeout, role.empty(&entry)).await {
            Ok(Outcome::Done(()) | Outcome::AlreadyDone | Outcome::Gone) => {
                tracing::info!(backend = %cx.name(), reason = ?due.reason, "`{entry}` was removed from the trash");
                let backend = cx.name().clone();
                upkeep.emptied.push(Emptied { backend, entry, bytes: due.entry.bytes });
            }
            Ok(other) => errors.push(format!("`{entry}` could not be removed from the trash: {other:?}").into()),
            Err(error) => errors.push(format!("`{entry}` could not be removed from the trash: {error}").into()),
        }
    }
}
