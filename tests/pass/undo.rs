//! Taking back what a pass did, where somebody else stands in the way.

use backend::{
    fake::RuntimeSpec,
    faulty::{self, Fault, Script, Verb},
};
use pass::{Undone, Woken};

use super::stage::{MINUTE, Stage};

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
