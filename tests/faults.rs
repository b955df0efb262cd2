//! The fault decorator: what is done, and what the caller is told, are two things.

use std::time::Duration;

use backend::{
    Backend, BackendError, Bounds, Clock, ErrorKind, Outcome, Page, Target,
    fake::{Fake, RuntimeSpec, What},
    faulty::{self, Fault, Script, Seeded, Verb},
};
use lifecycle::{BackendName, RuntimeId, State, Tier, Time, policy::WorkspaceRule};

const NOW: i64 = 1_764_500_000_000;

fn fake() -> (Fake, RuntimeId) {
    let fake = Fake::new(BackendName::new("fake").unwrap(), Clock::fixed(Time::from_millis(NOW)));
    let id = fake.add(RuntimeSpec::running("a").shedable(Tier::Caches, "wheel", "bytes"));
    (fake, id)
}

fn bounds() -> Bounds {
    Bounds { deadline: Time::from_millis(NOW).plus(Duration::from_mins(1)) }
}

fn no_route() -> BackendError {
    BackendError::new(ErrorKind::Unreachable, "no route")
}

async fn suspend(backend: &Backend, fake: &Fake, id: &RuntimeId) -> Result<Outcome, BackendError> {
    let target = Target::of(&fake.look(id).unwrap());
    backend.suspend.as_ref().unwrap().suspend(&target, bounds()).await
}

/// What is told, and what state it is in afterwards.
async fn suspended_under(fault: Fault) -> (Result<Outcome, BackendError>, State) {
    let (fake, id) = fake();
    let backend = faulty::around(fake.backend(), Script::new().at(Verb::Suspend, 0, fault));
    let told = suspend(&backend, &fake, &id).await;
    (told, fake.look(&id).unwrap().state)
}

#[tokio::test]
async fn a_fault_before_the_effect_does_nothing() {
    assert_eq!(suspended_under(Fault::Before(no_route())).await, (Err(no_route()), State::Running));
    let (told, state) = suspended_under(Fault::TimesOut).await;
    assert!(matches!(told, Ok(Outcome::Unknown(_))), "{told:?}");
    assert_eq!(state, State::Running);
}

#[tokio::test]
async fn a_fault_after_the_effect_leaves_it_done() {
    assert_eq!(suspended_under(Fault::After(no_route())).await, (Err(no_route()), State::Suspended));
    let (told, state) = suspended_under(Fault::Lost).await;
    assert!(matches!(told, Ok(Outcome::Unknown(_))), "{told:?}");
    assert_eq!(state, State::Suspended);
}

#[tokio::test]
async fn only_the_named_call_fails() {
    let (fake, id) = fake();
    let script = Script::new().at(Verb::Suspend, 1, Fault::Before(no_route()));
    let backend = faulty::around(fake.backend(), script);
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(suspend(&backend, &fake, &id).await);
    }
    assert_eq!(told, [Ok(Outcome::Done(())), Err(no_route()), Ok(Outcome::AlreadyDone)]);
}

#[tokio::test]
async fn a_listing_is_short_doubled_or_partial_without_an_error() {
    let (fake, a) = fake();
    let b = fake.add(RuntimeSpec::running("b"));
    let script = Script::new()
        .at(Verb::List, 0, Fault::Short(1))
        .at(Verb::List, 1, Fault::Doubled)
        .at(Verb::List, 2, Fault::Partial("one line".into()))
        .at(Verb::List, 3, Fault::Lost);
    let backend = faulty::around(fake.backend(), script);
    let mut pages = Vec::new();
    for _ in 0..5 {
        let ids = |page: Page| {
            let ids: Vec<_> = page.seen.into_iter().map(|seen| seen.id).collect();
            (ids, page.unreadable.len())
        };
        pages.push(backend.list.list(None).await.map(ids).map_err(|error| error.kind));
    }
    let both = || vec![a.clone(), b.clone()];
    assert_eq!(
        pages,
        [
            Ok((vec![a.clone()], 0)),
            Ok(([both(), both()].concat(), 0)),
            Ok((both(), 1)),
            Err(ErrorKind::Unreachable),
            Ok((both(), 0)),
        ]
    );
}

#[tokio::test]
async fn it_has_the_roles_of_the_backend_that_it_stands_before() {
    let (fake, _) = fake();
    let whole = fake.backend();
    assert_eq!(faulty::around(whole.clone(), Script::new()).capabilities(), whole.capabilities());
    let few = faulty::around(fake.builder().deletes().build(), Script::new());
    assert!(few.delete.is_some() && few.suspend.is_none() && few.files.is_none() && few.undo.is_none());
}

/// Calls every verb once, under a fault that is always before the effect, and then without one.
#[tokio::test]
async fn every_verb_can_fail_and_then_does_nothing() {
    let (fake, id) = fake();
    let script = Verb::ALL.into_iter().fold(Script::new(), |script, verb| {
        let error = BackendError::new(ErrorKind::Malformed, format!("{verb:?}"));
        script.at(verb, 0, Fault::Before(error))
    });
    let backend = faulty::around(fake.backend(), script);
    let told = call_everything(&backend, &Target::of(&fake.look(&id).unwrap())).await;
    let named: Vec<_> = told.into_iter().map(|told| told.unwrap_err().message).collect();
    assert_eq!(named, Verb::ALL.map(|verb| format!("{verb:?}")));
    assert_eq!(fake.effects(), []);
}

async fn call_everything(backend: &Backend, target: &Target) -> Vec<Result<(), BackendError>> {
    let (native, execute) = (backend.native.as_ref().unwrap(), backend.execute.as_ref().unwrap());
    let (suspend, undo) = (backend.suspend.as_ref().unwrap(), backend.undo.as_ref().unwrap());
    let command = backend::Command { argv: vec!["true".to_owned()], cwd: None, output_limit: 1 };
    vec![
        backend.list.list(None).await.map(drop),
        backend.list.disk().await.map(drop),
        backend.inspect.inspect(&target.id).await.map(drop),
        backend.probe.as_ref().unwrap().probe(target, bounds()).await.map(drop),
        suspend.suspend(target, bounds()).await.map(drop),
        suspend.resume(target, bounds()).await.map(drop),
        backend.archive.as_ref().unwrap().archive(target, bounds()).await.map(drop),
        backend.delete.as_ref().unwrap().delete(target, WorkspaceRule::Save, bounds()).await.map(drop),
        backend.files.as_ref().unwrap().shed(target, Tier::Caches, bounds()).await.map(drop),
        undo.trashed().await.map(drop),
        undo.undo("trash/1").await.map(drop),
        undo.empty("trash/1").await.map(drop),
        native.native(target, bounds()).await.map(drop),
        native.set_native(target, backend::NativeWanted::default(), bounds()).await.map(drop),
        execute.execute(target, &command, bounds()).await.map(drop),
    ]
}

/// Two runs under one seed: what was told, and what was done.
async fn under_seed(seed: u64) -> (Vec<String>, Vec<String>) {
    let (fake, id) = fake();
    let backend = faulty::around(fake.backend(), Seeded { seed, per_mille: 300 });
    let mut told = Vec::new();
    for _ in 0..40 {
        told.push(format!("{:?}", suspend(&backend, &fake, &id).await));
        let target = Target::of(&fake.look(&id).unwrap());
        told.push(format!("{:?}", backend.suspend.as_ref().unwrap().resume(&target, bounds()).await));
    }
    (told, fake.effects().iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn a_seed_can_be_replayed() {
    assert_eq!(under_seed(7).await, under_seed(7).await);
    assert_ne!(under_seed(7).await, under_seed(8).await);
}

#[tokio::test]
async fn a_seed_fails_about_as_many_calls_as_it_says() {
    let (fake, _) = fake();
    for (per_mille, expected) in [(0, 0..=0), (300, 250..=350), (1_000, 1_000..=1_000)] {
        let backend = faulty::around(fake.backend(), Seeded { seed: 42, per_mille });
        let id = fake.id("nobody");
        let mut failed = 0;
        for _ in 0..1_000 {
            failed += u32::from(backend.inspect.inspect(&id).await.is_err());
        }
        assert!(expected.contains(&failed), "{failed} of 1000 failed, {per_mille} were asked for");
    }
}

#[tokio::test]
async fn an_effect_is_logged_once_whatever_was_told() {
    let (fake, id) = fake();
    let backend = faulty::around(fake.backend(), Script::new().always(Verb::Suspend, Fault::Lost));
    for _ in 0..3 {
        let _ = suspend(&backend, &fake, &id).await;
    }
    let effects: Vec<_> = fake.effects().into_iter().map(|effect| (effect.runtime, effect.what)).collect();
    assert_eq!(effects, [(id, What::Suspended)]);
}
