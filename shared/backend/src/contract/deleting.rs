//! Deleting: only what was looked at, only once, never from Running, and nothing besides.

use lifecycle::{Loss, State, Tier, policy::WorkspaceRule};

use super::{
    Checked, Harness, NotApplicable,
    aim::{done, gone, moved, not_done, refused, role},
    check, deletable, holds, made, minute, see, violated,
};
use crate::{Outcome, Sighting, Target};

/// It can't be seen any more, nor is anything left of it.
async fn removed(harness: &dyn Harness, target: &Target) -> Checked {
    let looked = harness.backend().inspect.inspect(&target.id).await;
    check(looked == Ok(Sighting::NotThere), || format!("after a delete, inspect answered {looked:?}"))?;
    let left = harness.content(&target.id).await?;
    check(left.is_none(), || "after a delete, its files are still there".to_owned())
}

pub(super) async fn delete_removes_it_and_nothing_else(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let (neighbour, kept) = made(harness, deletable(&backend)).await?;
    let (target, _) = made(harness, deletable(&backend)).await?;
    let before = see(harness, &neighbour.id).await?;
    let answer = delete.delete(&target, WorkspaceRule::Save, minute(harness)).await;
    done(harness, "delete", answer).await?;
    removed(harness, &target).await?;
    let after = see(harness, &neighbour.id).await?;
    check(before == after, || format!("deleting another one changed it:\n{before:?}\n{after:?}"))?;
    let left = holds(harness, &neighbour.id).await?;
    check(left == kept, || "deleting another one changed its files".to_owned())
}

pub(super) async fn delete_of_a_running_one_is_never_done(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    if backend.rests {
        return Err(NotApplicable::because("its runtimes run nothing of their own").into());
    }
    let (target, content) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    let stale = Target { state: State::Suspended, ..target.clone() };
    for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
        not_done("delete of a running one", &delete.delete(&target, rule, minute(harness)).await)?;
        moved("delete of what was seen suspended", &delete.delete(&stale, rule, minute(harness)).await)?;
    }
    let after = see(harness, &target.id).await?;
    check(before == after, || format!("it should be untouched:\n{before:?}\n{after:?}"))?;
    let left = holds(harness, &target.id).await?;
    check(left == content, || "it should be untouched, but its files changed".to_owned())
}

pub(super) async fn delete_of_what_is_gone_is_gone(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let (target, _) = made(harness, deletable(&backend)).await?;
    harness.vanish(&target.id).await?;
    for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
        gone("delete", &delete.delete(&target, rule, minute(harness)).await)?;
    }
    Ok(())
}

pub(super) async fn delete_after_a_restart_moves_nothing(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let (target, _) = made(harness, deletable(&backend)).await?;
    harness.restart(&target.id).await?;
    let (before, content) = (see(harness, &target.id).await?, holds(harness, &target.id).await?);
    check(before.incarnation != target.incarnation, || "a restart left the incarnation the same".to_owned())?;
    for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
        moved("delete of an earlier incarnation", &delete.delete(&target, rule, minute(harness)).await)?;
    }
    let after = see(harness, &target.id).await?;
    check(before == after, || format!("it should be untouched:\n{before:?}\n{after:?}"))?;
    let left = holds(harness, &target.id).await?;
    check(left == content, || "it should be untouched, but its files changed".to_owned())
}

pub(super) async fn delete_of_a_foreign_runtime_does_nothing(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let id = harness.make_foreign().await?;
    let Ok(Sighting::Seen(before)) = backend.inspect.inspect(&id).await else {
        return Err(NotApplicable::because("another's runtime can't be seen, hence not aimed at").into());
    };
    for state in [before.state, deletable(&backend)] {
        let target = Target { state, ..Target::of(&before) };
        let answer = delete.delete(&target, WorkspaceRule::Discard, minute(harness)).await;
        not_done("delete of another's runtime", &answer)?;
    }
    holds(harness, &id).await.map(drop)
}

pub(super) async fn two_deletes_at_once_do_it_once(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let (target, _) = made(harness, deletable(&backend)).await?;
    let again = || delete.delete(&target, WorkspaceRule::Save, minute(harness));
    let answers: [_; 2] = tokio::join!(again(), again()).into();
    let did = answers.iter().filter(|answer| matches!(answer, Ok(Outcome::Done(_)))).count();
    let begun = answers.iter().filter(|answer| matches!(answer, Ok(Outcome::Pending))).count();
    let late = answers.iter().filter(|answer| matches!(answer, Ok(Outcome::AlreadyDone | Outcome::Gone))).count();
    let once = did == 1 && begun + late == 1 || did == 0 && begun == 2;
    check(once, || format!("one should be Done, the other AlreadyDone, Gone or Pending: {answers:?}"))?;
    if begun > 0 {
        harness.settle().await;
    }
    removed(harness, &target).await
}

pub(super) async fn delete_saves_first_what_would_be_lost(harness: &dyn Harness) -> Checked {
    let delete = role(harness.backend().delete, "delete")?;
    if !delete.saves_first() {
        return Err(NotApplicable::because("its delete saves nothing").into());
    }
    let id = harness.make_unsaved().await?;
    let seen = see(harness, &id).await?;
    check(seen.loss != Loss::Nothing, || "a deletion would lose work, but is said to lose nothing".to_owned())?;
    let target = Target::of(&seen);
    match delete.delete(&target, WorkspaceRule::Save, minute(harness)).await {
        Ok(Outcome::Done(deleted)) if deleted.saved.is_some() => removed(harness, &target).await,
        Ok(Outcome::Pending) => {
            harness.settle().await;
            removed(harness, &target).await
        }
        Ok(Outcome::Refused(_)) => holds(harness, &id).await.map(drop),
        other => violated(format!("work should be saved first, or the delete refused, but it answered {other:?}")),
    }
}

/// Deletes one that can be taken back; gives what it was, what it held and its entry.
async fn deleted(harness: &dyn Harness) -> Checked<(Target, super::Content, std::sync::Arc<str>)> {
    let backend = harness.backend();
    let delete = role(backend.delete.clone(), "delete")?;
    let undo = role(backend.undo.clone(), "undo")?;
    let (target, content) = made(harness, deletable(&backend)).await?;
    let answer = delete.delete(&target, WorkspaceRule::Save, minute(harness)).await;
    let entry = if let Some(deleted) = done(harness, "delete", answer).await? {
        deleted.undo
    } else {
        let trashed = undo.trashed().await.or_else(|error| violated(error.to_string()))?;
        let entry = trashed.into_iter().find(|entry| entry.runtime == target.id && entry.tier == Tier::Runtime);
        entry.map(|entry| entry.entry)
    };
    let entry = entry.ok_or_else(|| NotApplicable::because("its deletions can't be taken back"))?;
    Ok((target, content, entry))
}

pub(super) async fn undo_of_a_delete_brings_it_back(harness: &dyn Harness) -> Checked {
    let undo = role(harness.backend().undo, "undo")?;
    let (target, content, entry) = deleted(harness).await?;
    match undo.undo(&entry).await {
        Ok(Outcome::Done(note)) if note.runtime == target.id && note.tier == Tier::Runtime => {}
        other => return violated(format!("undo should be done, but answered {other:?}")),
    }
    see(harness, &target.id).await?;
    let back = holds(harness, &target.id).await?;
    check(back == content, || format!("it came back with other files:\n{content:?}\n{back:?}"))
}

pub(super) async fn undo_of_a_delete_refuses_when_something_new_stands_there(harness: &dyn Harness) -> Checked {
    let undo = role(harness.backend().undo, "undo")?;
    let (target, _, entry) = deleted(harness).await?;
    harness.occupy(&target.id, Tier::Runtime).await?;
    let before = harness.content(&target.id).await?;
    refused("undo", &undo.undo(&entry).await)?;
    let after = harness.content(&target.id).await?;
    check(before == after, || "a refused undo changed what stands there".to_owned())?;
    let trashed = undo.trashed().await.or_else(|error| violated(error.to_string()))?;
    check(trashed.iter().any(|left| left.entry == entry), || "a refused undo lost the entry".to_owned())
}
