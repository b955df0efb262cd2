//! What goes inside a runtime, and what holds for every verb.

use std::time::Duration;

use lifecycle::{Observation, State, Tier, policy::WorkspaceRule};

use super::{
    Checked, Harness, NotApplicable,
    aim::{already, done, failed, gone, moved, role},
    check, deletable, holds, made, minute, see, violated,
};
use crate::{Backend, BackendError, Bounds, Command, ErrorKind, NativeWanted, Outcome, Target};

fn command(argv: &[&str], output_limit: usize) -> Command {
    Command { argv: argv.iter().map(|word| (*word).to_owned()).collect(), cwd: None, output_limit }
}

pub(super) async fn probe_is_aimed(harness: &dyn Harness) -> Checked {
    let probe = role(harness.backend().probe, "probe")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.restart(&target.id).await?;
    moved("probe of an earlier incarnation", &probe.probe(&target, minute(harness)).await)?;
    harness.vanish(&target.id).await?;
    gone("probe", &probe.probe(&target, minute(harness)).await)
}

pub(super) async fn native_timers_stand_as_they_were_set(harness: &dyn Harness) -> Checked {
    let native = role(harness.backend().native, "native")?;
    let (target, _) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    let wanted = NativeWanted {
        idle_suspend: Some(Duration::from_secs(4_242)),
        archive: None,
        delete: Some(Duration::from_hours(48)),
    };
    let attainable = native.attainable(wanted);
    let sooner =
        |got: Option<Duration>, wanted: Option<Duration>| got.is_some_and(|got| wanted.is_none_or(|w| got < w));
    let too_soon = sooner(attainable.idle_suspend, wanted.idle_suspend) || sooner(attainable.delete, wanted.delete);
    check(!too_soon, || format!("{attainable:?} is sooner than wanted"))?;
    done(harness, "set_native", native.set_native(&target, wanted, minute(harness)).await).await?;
    match native.native(&target, minute(harness)).await {
        Ok(Outcome::Done(shown)) if !attainable.differs_from(&shown) => {}
        other => return violated(format!("{attainable:?} was set, but it shows {other:?}")),
    }
    already("the second set_native", &native.set_native(&target, wanted, minute(harness)).await)?;
    let after = see(harness, &target.id).await?;
    let same = Observation { native: before.native.clone(), ..after.clone() } == before;
    check(same, || format!("setting timers changed more than timers:\n{before:?}\n{after:?}"))
}

pub(super) async fn execute_is_bounded_in_output(harness: &dyn Harness) -> Checked {
    let execute = role(harness.backend().execute, "execute")?;
    let (target, _) = made(harness, State::Running).await?;
    let whole = execute.execute(&target, &command(&["echo", "furlough"], 4_096), minute(harness)).await;
    let whole = done(harness, "execute", whole).await?;
    check(whole.as_ref().is_some_and(|out| out.stdout == b"furlough\n" && out.code == 0 && !out.truncated), || {
        format!("`echo furlough` gave {whole:?}")
    })?;
    let cut = execute.execute(&target, &command(&["echo", "furlough"], 4), minute(harness)).await;
    let cut = done(harness, "execute", cut).await?;
    check(cut.as_ref().is_some_and(|out| out.stdout == b"furl" && out.truncated), || {
        format!("at most 4 bytes were asked for, but it gave {cut:?}")
    })?;
    let failing = execute.execute(&target, &command(&["false"], 0), minute(harness)).await;
    let failing = done(harness, "execute", failing).await?;
    check(failing.as_ref().is_some_and(|out| out.code == 1), || format!("`false` gave {failing:?}"))
}

pub(super) async fn execute_is_aimed(harness: &dyn Harness) -> Checked {
    let execute = role(harness.backend().execute, "execute")?;
    let (target, _) = made(harness, State::Running).await?;
    harness.restart(&target.id).await?;
    let truth = command(&["true"], 0);
    moved("execute in an earlier incarnation", &execute.execute(&target, &truth, minute(harness)).await)?;
    harness.vanish(&target.id).await?;
    gone("execute", &execute.execute(&target, &truth, minute(harness)).await)
}

/// What a verb answered, without what it would have brought.
struct Answered(&'static str, Result<Outcome, BackendError>);

/// Calls every verb that the backend has on `target`.
async fn every_verb(backend: &Backend, target: &Target, bounds: Bounds) -> Vec<Answered> {
    fn bare<T>(answer: Result<Outcome<T>, BackendError>) -> Result<Outcome, BackendError> {
        answer.map(|outcome| outcome.map(drop))
    }
    let mut answers = Vec::new();
    if let Some(role) = &backend.probe {
        answers.push(Answered("probe", bare(role.probe(target, bounds).await)));
    }
    if let Some(role) = &backend.suspend {
        answers.push(Answered("suspend", bare(role.suspend(target, bounds).await)));
        answers.push(Answered("resume", bare(role.resume(target, bounds).await)));
    }
    if let Some(role) = &backend.archive {
        answers.push(Answered("archive", bare(role.archive(target, bounds).await)));
    }
    if let Some(role) = &backend.files {
        answers.push(Answered("shed", bare(role.shed(target, Tier::Caches, bounds).await)));
    }
    if let Some(role) = &backend.native {
        let wanted = NativeWanted { idle_suspend: Some(Duration::from_hours(7)), ..NativeWanted::default() };
        answers.push(Answered("set_native", bare(role.set_native(target, wanted, bounds).await)));
    }
    if let Some(role) = &backend.execute {
        answers.push(Answered("execute", bare(role.execute(target, &command(&["true"], 0), bounds).await)));
    }
    if let Some(role) = &backend.delete {
        answers.push(Answered("delete", bare(role.delete(target, WorkspaceRule::Discard, bounds).await)));
    }
    answers
}

/// The states that the suite's runtimes can be made in.
fn states(backend: &Backend) -> Vec<State> {
    let mut states = vec![State::Running];
    states.extend((deletable(backend) == State::Suspended && backend.suspend.is_some()).then_some(State::Suspended));
    states
}

pub(super) async fn a_passed_deadline_begins_nothing(harness: &dyn Harness) -> Checked {
    let backend = harness.backend();
    for state in states(&backend) {
        let (target, content) = made(harness, state).await?;
        let before = see(harness, &target.id).await?;
        for deadline in [harness.now(), harness.now().minus(Duration::from_mins(1))] {
            let answers = every_verb(&backend, &target, Bounds { deadline }).await;
            if answers.is_empty() {
                return Err(NotApplicable::because("the backend has no verb with a deadline").into());
            }
            for Answered(verb, answer) in answers {
                let late = matches!(&answer, Err(error) if error.kind == ErrorKind::Unreachable);
                check(late, || format!("the deadline of {verb} had passed, but it answered {answer:?}"))?;
            }
        }
        let after = see(harness, &target.id).await?;
        check(before == after, || format!("the deadline had passed, but it changed:\n{before:?}\n{after:?}"))?;
        let left = holds(harness, &target.id).await?;
        check(left == content, || "the deadline had passed, but its files changed".to_owned())?;
    }
    Ok(())
}

pub(super) async fn a_broken_backend_is_an_error_from_every_verb(harness: &dyn Harness) -> Checked {
    let broken = harness.broken().await?;
    for state in states(&harness.backend()) {
        let (target, _) = made(harness, state).await?;
        for Answered(verb, answer) in every_verb(&broken, &target, minute(harness)).await {
            failed(verb, &answer)?;
        }
    }
    Ok(())
}
