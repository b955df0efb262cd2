//! Shedding files by tier, and taking them back.

use std::sync::Arc;

use lifecycle::{State, Tier};

use super::{
    Checked, Content, Harness, NotApplicable,
    aim::{already, done, gone, moved, not_done, refused, role},
    check, holds, made, minute, see, violated,
};
use crate::{Outcome, Recoverable, Shed, Target, Trashed};

const TIERS: [Tier; 2] = [Tier::Caches, Tier::Dependencies];

/// Makes one with files to shed, and sheds `tier`.
async fn shed(harness: &dyn Harness, tier: Tier) -> Checked<(Target, Content, Shed)> {
    let files = role(harness.backend().files, "files")?;
    let (target, content) = made(harness, State::Running).await?;
    check(!content.of(tier).is_empty() && !content.work.is_empty(), || {
        format!("the harness made a runtime without `{tier}` or without work: {content:?}")
    })?;
    let answer = files.shed(&target, tier, minute(harness)).await;
    match done(harness, "shed", answer).await? {
        Some(shed) => Ok((target, content, shed)),
        None => violated("a shed is done when it answers; it is never Pending"),
    }
}

/// Sheds `tier`, where that can be taken back.
async fn shed_to_trash(harness: &dyn Harness, tier: Tier) -> Checked<(Target, Content, Shed, Arc<dyn Recoverable>)> {
    let undo = role(harness.backend().undo, "undo")?;
    let (target, content, shed) = shed(harness, tier).await?;
    check(!shed.undo.is_empty(), || "the backend takes back, but this shed gave no entry".to_owned())?;
    Ok((target, content, shed, undo))
}

async fn entries(undo: &Arc<dyn Recoverable>) -> Checked<Vec<Trashed>> {
    undo.trashed().await.or_else(|error| violated(format!("the trash can't be listed: {error}")))
}

pub(super) async fn shed_of_the_runtime_tier_is_refused(harness: &dyn Harness) -> Checked {
    let files = role(harness.backend().files, "files")?;
    let (target, content) = made(harness, State::Running).await?;
    refused("shed of the runtime tier", &files.shed(&target, Tier::Runtime, minute(harness)).await)?;
    let left = holds(harness, &target.id).await?;
    check(left == content, || "a refused shed changed files".to_owned())
}

pub(super) async fn shed_takes_its_tier_and_nothing_else(harness: &dyn Harness) -> Checked {
    for tier in TIERS {
        let (target, content, shed) = shed(harness, tier).await?;
        let left = holds(harness, &target.id).await?;
        check(left.of(tier).is_empty(), || format!("`{tier}` is still there: {:?}", left.of(tier).keys()))?;
        let mut expected = content.clone();
        match tier {
            Tier::Caches => expected.caches.clear(),
            Tier::Dependencies | Tier::Runtime => expected.dependencies.clear(),
        }
        check(left == expected, || format!("more than `{tier}` was taken:\n{expected:?}\n{left:?}"))?;
        check(shed.bytes > 0, || "bytes were moved, but none are reported".to_owned())?;
        let seen = see(harness, &target.id).await?;
        check(Target::of(&seen) == target, || format!("a shed changed the incarnation or the state: {seen:?}"))?;
    }
    Ok(())
}

pub(super) async fn shed_twice_is_already_done(harness: &dyn Harness) -> Checked {
    let files = role(harness.backend().files, "files")?;
    let (target, ..) = shed(harness, Tier::Caches).await?;
    already("the second shed", &files.shed(&target, Tier::Caches, minute(harness)).await)
}

pub(super) async fn shed_of_another_incarnation_moves_nothing(harness: &dyn Harness) -> Checked {
    let files = role(harness.backend().files, "files")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.restart(&target.id).await?;
    let content = holds(harness, &target.id).await?;
    for tier in TIERS {
        moved("shed of an earlier incarnation", &files.shed(&target, tier, minute(harness)).await)?;
    }
    let left = holds(harness, &target.id).await?;
    check(left == content, || "nothing should be done, but files changed".to_owned())
}

pub(super) async fn shed_of_what_is_gone_is_gone(harness: &dyn Harness) -> Checked {
    let files = role(harness.backend().files, "files")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.vanish(&target.id).await?;
    gone("shed", &files.shed(&target, Tier::Caches, minute(harness)).await)
}

pub(super) async fn undo_of_a_shed_restores_the_same_bytes(harness: &dyn Harness) -> Checked {
    for tier in TIERS {
        let (target, content, shed, undo) = shed_to_trash(harness, tier).await?;
        for entry in &shed.undo {
            match undo.undo(entry).await {
                Ok(Outcome::Done(note)) if note.runtime == target.id && note.tier == tier => {}
                other => return violated(format!("undo of `{entry}` should be done, but answered {other:?}")),
            }
        }
        let back = holds(harness, &target.id).await?;
        check(back == content, || format!("`{tier}` came back otherwise:\n{content:?}\n{back:?}"))?;
    }
    Ok(())
}

pub(super) async fn undo_of_a_shed_refuses_when_something_new_stands_there(harness: &dyn Harness) -> Checked {
    for tier in TIERS {
        let (target, _, shed, undo) = shed_to_trash(harness, tier).await?;
        harness.occupy(&target.id, tier).await?;
        let before = holds(harness, &target.id).await?;
        let mut refusals = 0;
        for entry in &shed.undo {
            match undo.undo(entry).await {
                Ok(Outcome::Refused(_)) => refusals += 1,
                Ok(Outcome::Done(_)) => {}
                other => return violated(format!("undo of `{entry}` answered {other:?}")),
            }
        }
        check(refusals > 0, || "something new stands there, but no undo was refused".to_owned())?;
        let after = holds(harness, &target.id).await?;
        let kept = before.of(tier).iter().all(|(path, bytes)| after.of(tier).get(path) == Some(bytes));
        check(kept, || format!("an undo wrote over something new:\n{before:?}\n{after:?}"))?;
        let left = entries(&undo).await?;
        let still = shed.undo.iter().filter(|entry| left.iter().any(|left| left.entry == **entry)).count();
        check(still == refusals, || format!("{refusals} undos were refused, but {still} entries are left"))?;
    }
    Ok(())
}

pub(super) async fn undo_twice_is_not_done_twice(harness: &dyn Harness) -> Checked {
    let (target, content, shed, undo) = shed_to_trash(harness, Tier::Caches).await?;
    for entry in &shed.undo {
        done(harness, "undo", undo.undo(entry).await).await?;
        not_done("the second undo", &undo.undo(entry).await)?;
    }
    let back = holds(harness, &target.id).await?;
    check(back == content, || "the second undo changed files".to_owned())
}

pub(super) async fn the_trash_lists_what_was_shed(harness: &dyn Harness) -> Checked {
    let (target, _, shed, undo) = shed_to_trash(harness, Tier::Dependencies).await?;
    let listed: Vec<_> = entries(&undo).await?;
    for entry in &shed.undo {
        let Some(note) = listed.iter().find(|note| note.entry == *entry) else {
            return violated(format!("the trash does not list `{entry}`"));
        };
        let names_it = note.runtime == target.id && note.tier == Tier::Dependencies && !note.origin.is_empty();
        check(names_it, || format!("the trash lists it as something else: {note:?}"))?;
    }
    let newest_first = listed.windows(2).all(|pair| pair[0].at >= pair[1].at);
    check(newest_first, || "the trash is not listed newest first".to_owned())
}

pub(super) async fn emptying_removes_for_ever(harness: &dyn Harness) -> Checked {
    let (target, _, shed, undo) = shed_to_trash(harness, Tier::Caches).await?;
    let before = holds(harness, &target.id).await?;
    let Some(entry) = shed.undo.first() else { return Err(NotApplicable::because("nothing to empty").into()) };
    done(harness, "empty", undo.empty(entry).await).await?;
    let left = entries(&undo).await?;
    check(left.iter().all(|left| left.entry != *entry), || format!("`{entry}` is still listed"))?;
    gone("undo of an emptied entry", &undo.undo(entry).await)?;
    not_done("the second empty", &undo.empty(entry).await)?;
    let after = holds(harness, &target.id).await?;
    check(before == after, || "emptying the trash changed the runtime".to_owned())
}
