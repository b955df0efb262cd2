//! The fake behaves: what a provider does by itself, what takes a while, what is seen from where.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use backend::{
    Backend, BackendError, Bounds, Clock, ErrorKind, NativeWanted, Outcome, Probe, Sighting, Target,
    fake::{Asked, Fake, RuntimeSpec, Shape},
};
use lifecycle::{
    Activity, BackendName, Busy, FileSizes, Loss, NativeDeadline, NativeEffect, NativeObserved, RuntimeId, State, Tier,
    Time, policy::WorkspaceRule,
};

/// A fake and its clock, which stands until it is moved.
struct World {
    fake: Fake,
    now: Arc<AtomicI64>,
}

impl World {
    fn new(shape: Shape) -> Self {
        let now = Arc::new(AtomicI64::new(0));
        let told = now.clone();
        let clock = Clock::new(move || Time::from_millis(told.load(Ordering::SeqCst)));
        Self { fake: Fake::shaped(BackendName::new("fake").unwrap(), clock, shape), now }
    }

    fn now(&self) -> Time {
        Time::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn pass(&self, by: Duration) {
        self.now.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn bounds(&self) -> Bounds {
        Bounds { deadline: self.now().plus(Duration::from_mins(1)) }
    }

    fn target(&self, id: &RuntimeId) -> Target {
        Target::of(&self.fake.look(id).unwrap())
    }

    async fn delete(&self, backend: &Backend, id: &RuntimeId) -> Result<Outcome<backend::Deleted>, BackendError> {
        let delete = backend.delete.as_ref().unwrap();
        delete.delete(&self.target(id), WorkspaceRule::Save, self.bounds()).await
    }

    fn effects(&self) -> Vec<String> {
        self.fake.effects().iter().map(ToString::to_string).collect()
    }
}

fn hours(count: u64) -> Duration {
    Duration::from_hours(count)
}

#[tokio::test]
async fn a_provider_suspends_and_destroys_by_itself_unless_there_is_activity() {
    let world = World::new(Shape::default());
    let native = NativeObserved { idle_suspend: Some(hours(1)), delete: Some(hours(24)), ..NativeObserved::default() };
    let id = world.fake.add(RuntimeSpec::running("a").native(native));
    let deadline = |world: &World| world.fake.look(&id).and_then(|seen| seen.native.unwrap().deadline);

    world.pass(Duration::from_mins(59));
    world.fake.touch(&id);
    let suspends = NativeDeadline { at: world.now().plus(hours(1)), effect: NativeEffect::Suspend };
    assert_eq!(deadline(&world), Some(suspends));

    world.pass(hours(2));
    let destroys = NativeDeadline { at: suspends.at.plus(hours(24)), effect: NativeEffect::Destroy };
    assert_eq!((world.fake.look(&id).unwrap().state, deadline(&world)), (State::Suspended, Some(destroys)));

    world.pass(hours(24));
    assert_eq!(world.fake.look(&id), None);
    assert_eq!(
        world.effects(),
        [
            "1970-01-01T01:59:00Z fake/a (run-1) suspended by the provider itself",
            "1970-01-02T01:59:00Z fake/a (run-1) deleted by the provider itself",
        ]
    );
}

#[tokio::test]
async fn timers_are_set_in_whole_minutes_and_never_sooner_than_wanted() {
    let world = World::new(Shape::default());
    let mutable = NativeObserved { mutable: true, ..NativeObserved::default() };
    let id = world.fake.add(RuntimeSpec::running("a").native(mutable));
    let native = world.fake.backend().native.unwrap();
    let wanted = NativeWanted { idle_suspend: Some(Duration::from_millis(60_001)), ..NativeWanted::default() };
    let set = native.set_native(&world.target(&id), wanted, world.bounds()).await;
    let Ok(Outcome::Done(shown)) = set else { panic!("{set:?}") };
    assert_eq!(shown.idle_suspend, Some(Duration::from_mins(2)));
    let fixed = world.fake.add(RuntimeSpec::running("b"));
    let refused = native.set_native(&world.target(&fixed), wanted, world.bounds()).await;
    assert!(matches!(refused, Ok(Outcome::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn what_takes_a_while_is_pending_and_then_done() {
    let world = World::new(Shape { takes: Duration::from_secs(30), ..Shape::default() });
    let backend = world.fake.backend();
    let id = world.fake.add(RuntimeSpec::suspended("a").unsaved("2 unpushed commits"));
    let target = world.target(&id);
    assert_eq!(world.delete(&backend, &id).await, Ok(Outcome::Pending));
    assert_eq!(world.fake.look(&id).unwrap().state, State::Deleting);
    let again = backend.delete.as_ref().unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await;
    assert_eq!((again, world.effects().len()), (Ok(Outcome::Pending), 0));
    world.pass(Duration::from_secs(30));
    assert_eq!(world.fake.ids(), []);
    assert_eq!(world.effects(), ["1970-01-01T00:00:30Z fake/a (run-1) deleted"]);
}

#[tokio::test]
async fn a_listing_is_cheaper_than_a_look() {
    let world = World::new(Shape::default());
    let id = world.fake.add(RuntimeSpec::running("a").file("notes.md", "1234").shedable(Tier::Caches, "wheel", "12"));
    let backend = world.fake.backend();
    let listed = backend.list.list(None).await.unwrap().seen.remove(0);
    assert_eq!((&listed.loss, listed.files), (&Loss::Unknown, FileSizes::default()));
    let Ok(Sighting::Seen(seen)) = backend.inspect.inspect(&id).await else { panic!("it is there") };
    let sizes = FileSizes { caches: Some(2), dependencies: Some(0), total: Some(6) };
    assert_eq!((&seen.loss, seen.files), (&Loss::Nothing, sizes));
    assert_eq!(world.fake.asked(), Asked { pages: 1, looks: 1, ..Asked::default() });
}

#[tokio::test]
async fn an_agent_server_agrees_is_silent_or_is_not_there() {
    let world = World::new(Shape::default());
    let probe = world.fake.backend().probe.unwrap();
    let works = world.fake.add(RuntimeSpec::running("works"));
    world.pass(hours(1));
    world.fake.work(&works, world.now().plus(hours(2)));
    let told = probe.probe(&world.target(&works), world.bounds()).await;
    let busy = Busy::Until(world.now().plus(hours(2)));
    assert_eq!(told, Ok(Outcome::Done(Probe { last_active: Some(world.now()), busy })));
    let silent = world.fake.add(RuntimeSpec::running("silent").silent());
    let told = probe.probe(&world.target(&silent), world.bounds()).await;
    assert_eq!(told.unwrap_err().kind, ErrorKind::Unreachable);
    let none = world.fake.add(RuntimeSpec::running("none").no_agent_server());
    let told = probe.probe(&world.target(&none), world.bounds()).await;
    assert!(matches!(told, Ok(Outcome::Refused(_))), "{told:?}");
}

#[test]
fn what_happens_behind_the_back_is_no_effect() {
    let world = World::new(Shape::default());
    let id = world.fake.add(RuntimeSpec::running("a"));
    let before = world.target(&id);
    world.fake.freeze(&id);
    assert_eq!(world.fake.look(&id).unwrap().activity, Activity::Frozen);
    world.fake.stop(&id);
    assert_eq!(world.target(&id), Target { state: State::Suspended, ..before.clone() });
    world.fake.restart(&id);
    assert_ne!(world.target(&id).incarnation, before.incarnation);
    world.fake.vanish(&id);
    assert_eq!((world.fake.look(&id), world.fake.effects()), (None, Vec::new()));
}

#[tokio::test]
async fn a_broken_one_fails_until_it_is_mended() {
    let world = World::new(Shape::default());
    let backend = world.fake.backend();
    let error = BackendError::new(ErrorKind::Denied, "the token was refused");
    world.fake.breaks(error.clone());
    assert_eq!(backend.list.list(None).await, Err(error));
    world.fake.mend();
    assert_eq!(backend.list.list(None).await.map(|page| page.seen.len()), Ok(0));
}
