//! Suspending, resuming, archiving: what survives, and what is never touched.

use lifecycle::{Observation, Role, State, Survives};

use super::{
    Checked, Content, Harness, NotApplicable,
    aim::{already, done, gone, moved, not_done, refused, role},
    check, holds, made, minute, see,
};
use crate::{Sighting, Target};

/// It is as it was: seen the same, and holds the same.
async fn untouched(harness: &dyn Harness, before: &Observation, content: &Content) -> Checked {
    let after = see(harness, &before.id).await?;
    check(*before == after, || format!("nothing should be done, but it changed:\n{before:?}\n{after:?}"))?;
    let left = holds(harness, &before.id).await?;
    check(left == *content, || "nothing should be done, but its files changed".to_owned())
}

pub(super) async fn suspend_and_resume_keep_what_they_say(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, content) = made(harness, State::Running).await?;
    done(harness, "suspend", suspend.suspend(&target, minute(harness)).await).await?;
    let suspended = see(harness, &target.id).await?;
    check(suspended.state == State::Suspended, || format!("after a suspend it is `{}`", suspended.state))?;
    let resumed = suspend.resume(&Target::of(&suspended), minute(harness)).await;
    let said = done(harness, "resume", resumed).await?;
    let running = see(harness, &target.id).await?;
    check(running.state == State::Running, || format!("after a resume it is `{}`", running.state))?;
    check(said.as_ref().is_none_or(|said| *said == running.incarnation), || {
        format!("resume said that the incarnation is {said:?}, but it is {:?}", running.incarnation)
    })?;
    if suspend.survives() >= Survives::Disk {
        let left = holds(harness, &target.id).await?;
        check(left == content, || format!("`{:?}` survives, but the files differ", suspend.survives()))?;
    }
    if running.incarnation == target.incarnation {
        return Ok(());
    }
    let stale = suspend.suspend(&target, minute(harness)).await;
    moved("suspend of the incarnation before the resume", &stale)
}

pub(super) async fn suspend_twice_is_already_done(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, _) = made(harness, State::Running).await?;
    done(harness, "suspend", suspend.suspend(&target, minute(harness)).await).await?;
    let before = see(harness, &target.id).await?;
    already("the second suspend", &suspend.suspend(&target, minute(harness)).await)?;
    already("a suspend of what is seen suspended", &suspend.suspend(&Target::of(&before), minute(harness)).await)?;
    let after = see(harness, &target.id).await?;
    check(before == after, || format!("the second suspend changed it:\n{before:?}\n{after:?}"))
}

pub(super) async fn suspend_of_another_incarnation_moves_nothing(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.restart(&target.id).await?;
    let (before, content) = (see(harness, &target.id).await?, holds(harness, &target.id).await?);
    check(before.incarnation != target.incarnation, || "a restart left the incarnation the same".to_owned())?;
    moved("suspend of an earlier incarnation", &suspend.suspend(&target, minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn suspend_of_another_state_moves_nothing(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, content) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    let stale = Target { state: State::Suspended, ..target };
    moved("suspend of what was seen suspended", &suspend.suspend(&stale, minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn suspend_of_what_is_gone_is_gone(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.vanish(&target.id).await?;
    gone("suspend", &suspend.suspend(&target, minute(harness)).await)
}

pub(super) async fn suspend_is_refused_where_stopping_deletes(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let id = harness.make_ephemeral().await?;
    let (before, content) = (see(harness, &id).await?, holds(harness, &id).await?);
    check(before.cannot.iter().any(|cannot| cannot.role == Role::Suspend && !cannot.why.is_empty()), || {
        format!("stopping it deletes it, but it is not shown to lack the role: {:?}", before.cannot)
    })?;
    refused("suspend", &suspend.suspend(&Target::of(&before), minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn suspend_of_a_foreign_runtime_does_nothing(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    let suspend = role(backend.suspend, "suspend")?;
    let id = harness.make_foreign().await?;
    let Ok(Sighting::Seen(before)) = backend.inspect.inspect(&id).await else {
        return Err(NotApplicable::because("another's runtime can't be seen, hence not aimed at").into());
    };
    let content = holds(harness, &id).await?;
    not_done("suspend of another's runtime", &suspend.suspend(&Target::of(&before), minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn resume_of_a_running_one_is_already_done(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, content) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    already("resume", &suspend.resume(&target, minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn resume_of_what_is_gone_is_gone(harness: &dyn Harness) -> Checked {
    let suspend = role(harness.backend().suspend, "suspend")?;
    let (target, _) = made(harness, State::Suspended).await?;
    harness.vanish(&target.id).await?;
    gone("resume", &suspend.resume(&target, minute(harness)).await)
}

pub(super) async fn archive_keeps_what_it_says(harness: &dyn Harness) -> Checked {
    let archive = role(harness.backend().archive, "archive")?;
    let (target, content) = made(harness, State::Suspended).await?;
    done(harness, "archive", archive.archive(&target, minute(harness)).await).await?;
    let archived = see(harness, &target.id).await?;
    check(archived.state == State::Archived, || format!("after an archive it is `{}`", archived.state))?;
    if archive.archive_survives() >= Survives::Disk {
        let left = holds(harness, &target.id).await?;
        check(left == content, || "the disk survives an archive, but the files differ".to_owned())?;
    }
    already("the second archive", &archive.archive(&target, minute(harness)).await)
}

pub(super) async fn archive_of_a_running_one_is_never_done(harness: &dyn Harness) -> Checked {
    let archive = role(harness.backend().archive, "archive")?;
    let (target, content) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    not_done("archive of a running one", &archive.archive(&target, minute(harness)).await)?;
    untouched(harness, &before, &content).await
}

pub(super) async fn archive_of_what_is_gone_is_gone(harness: &dyn Harness) -> Checked {
    let archive = role(harness.backend().archive, "archive")?;
    let (target, _) = made(harness, State::Suspended).await?;
    harness.vanish(&target.id).await?;
    gone("archive", &archive.archive(&target, minute(harness)).await)
}
