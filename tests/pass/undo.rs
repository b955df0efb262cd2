//! Taking back what a pass did, where somebody else stands in the way.

use backend::{
    fake::{Removal, RuntimeSpec, Shape},
    faulty::{self, Fault, Script, Verb},
};
use lifecycle::{Signal, Tier, policy::Percent};
use pass::{Undone, Woken};

use super::stage::{HOUR, MINUTE, Stage};

/// A person took it back, nothing sends heartbeats: when it is idle again, no heartbeats fell silent.
#[tokio::test]
async fn what_was_taken_back_has_a_whole_idle_period_and_is_then_no_outage() {
    let shape = Shape { removal: Removal::ToTrash, ..Shape::default() };
    let stage = Stage::shaped(shape).await.rules(|rules| {
        rules.files.caches = Some(HOUR);
        rules.idle_after = Some(3 * HOUR);
    });
    let stage = stage.policy(|policy| policy.breakers.silent = Percent::new(20));
    let since = stage.now();
    stage.add(RuntimeSpec::running("a").active(since).since(since).shedable(Tier::Caches, "c", "x"));
    stage.advance(2 * HOUR);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a shed of its caches"]);
    let (acts, _) = stage.pass().undoable().await.unwrap();
    assert_eq!(stage.pass().undo(&acts[0]).await, Undone::Back);
    let record = stage.record("a").await;
    assert_eq!((record.idle_from, record.last_source), (stage.now(), Some(Signal::Provider)));
    stage.advance(2 * HOUR);
    stage.tick().await;
    assert!(!stage.effects().contains(&"a suspended".to_owned()), "{:?}", stage.effects());
    stage.advance(HOUR + MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.report.backends[0].note.breaker, None);
    assert!(stage.effects().contains(&"a suspended".to_owned()), "{:?}", stage.effects());
}

/// Whoever is refused is told by whom, and when to try again.
#[tokio::test]
async fn an_undo_that_finds_another_at_work_names_it_and_says_when_it_is_over() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
    let pass = stage.pass();
    let (acts, errors) = pass.undoable().await.unwrap();
    assert_eq!((acts.len(), errors.len()), (1, 0));
    assert_eq!(&*acts[0].about, "fake `a`", "the history tells what people know it by");
    let silent = faulty::around(stage.fake.backend(), Script::new().at(Verb::Resume, 0, Fault::TimesOut));
    let waking = stage.pass_of("ben/wake/1f0aa7f2", vec![silent]).wake(&stage.id("a")).await;
    assert!(matches!(waking, Woken::Failed(_)), "{waking:?}");
    let Woken::Claimed { until } = pass.wake(&stage.id("a")).await else { panic!("its claim lasts") };
    let who = "`ben/wake/1f0aa7f2` is at work on it, or failed at it";
    let told = format!("{who}; try again at {until}, when that has ended at the latest");
    assert_eq!(pass.undo(&acts[0]).await, Undone::Refused(told));
    stage.advance(until.since(stage.now()));
    assert_eq!(pass.undo(&acts[0]).await, Undone::Back);
}
