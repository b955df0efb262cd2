//! Killed between any two calls: what fresh passes make of it. To die after a call, before its answer is read, is
//! to die before the next one.

use backend::fake::{RuntimeSpec, Shape};
use lifecycle::{State, Tier};
use pass::Woken;

use super::stage::{DAY, HOUR, MINUTE, Stage};

/// A pass that dies after the effect of the call that has `nth` before it. Whether it came to its end before.
async fn survived(stage: &Stage, nth: usize) -> bool {
    let line = stage.line.clone();
    line.dies(nth);
    let pass = stage.pass_over("doomed", &line);
    let ended = line.run(pass.run()).await;
    ended.is_some()
}

/// No middle state, no claim, and everything that is not gone is in the index.
async fn assert_in_order(stage: &Stage, case: &str) {
    let page = stage.ledger.records(&super::stage::box_name(), None).await.unwrap();
    assert!(page.unreadable.is_empty(), "{case}");
    let indexed = stage.indexed().await;
    for (id, record) in page.records {
        assert!(!record.state.is_middle(), "{case}: {id} is {}", record.state);
        assert_eq!(record.claim, None, "{case}: {id}");
        let there = indexed.contains(&id.encoded().to_owned());
        assert_eq!(there, record.state != State::Gone, "{case}: {id} is {}", record.state);
    }
}

/// A dead pass has its backend for at most 2 min (the lease) and its runtime for less than 4 min (the claim);
/// what is absent then is looked at again 5 min later. This many passes, 3 min apart, and everything is in order.
const PASSES: usize = 4;

async fn fresh_passes(stage: &Stage) {
    for _ in 0..PASSES {
        stage.advance(3 * MINUTE);
        stage.tick().await;
    }
}

/// For every call of the scenario's pass: it dies there, fresh passes put it in order, and in all nothing was done,
/// or `expected` once. A pass that does not die does it.
async fn at_every_call<F>(prepare: impl Fn() -> F, expected: &[&str])
where
    F: Future<Output = Stage>,
{
    for nth in 0.. {
        let stage = prepare().await;
        let survived = survived(&stage, nth).await;
        let case = format!("died at the last of {:?}", stage.line.calls());
        assert!(nth < 100, "the scenario ends: {case}");
        if survived {
            assert_eq!(stage.effects(), expected, "{case}");
            return;
        }
        fresh_passes(&stage).await;
        assert_in_order(&stage, &case).await;
        let effects = stage.effects();
        assert!(effects.is_empty() || effects == expected, "{case}: {effects:?}");
        let history = stage.history("a").await;
        assert!(effects.is_empty() || !history.is_empty(), "{case}: done without a line in the audit");
    }
}

#[tokio::test]
async fn a_suspend_is_finished_or_given_back_and_never_done_twice() {
    let prepare = || async {
        let stage = Stage::new().await;
        stage.add(RuntimeSpec::running("a"));
        stage.tick().await;
        stage.advance(31 * MINUTE);
        stage
    };
    // Given back, a whole idle period passes first: then nothing is done within these few minutes.
    at_every_call(prepare, &["a suspended"]).await;
}

#[tokio::test]
async fn a_suspend_comes_in_the_end_wherever_a_pass_died() {
    let prepare = || async {
        let stage = Stage::new().await;
        stage.add(RuntimeSpec::running("a"));
        stage.tick().await;
        stage.advance(31 * MINUTE);
        stage
    };
    for nth in (0..).step_by(5) {
        let stage = prepare().await;
        if survived(&stage, nth).await {
            return;
        }
        for _ in 0..3 {
            stage.advance(32 * MINUTE);
            stage.tick().await;
        }
        assert_eq!(stage.effects(), ["a suspended"], "died after call {nth}");
    }
}

#[tokio::test]
async fn a_delete_is_finished_or_given_back_and_never_done_twice() {
    let prepare = || async {
        let stage = Stage::new().await;
        stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
        stage
    };
    at_every_call(prepare, &["a deleted"]).await;
}

#[tokio::test]
async fn a_worktrees_delete_is_finished_or_given_back_and_never_done_twice() {
    let prepare = || async {
        let stage = Stage::shaped(Shape { rests: true, ..Shape::default() }).await;
        stage.add(RuntimeSpec::running("a").active(stage.now().minus(3 * DAY)).since(stage.now().minus(3 * DAY)));
        stage
    };
    at_every_call(prepare, &["a deleted"]).await;
}

#[tokio::test]
async fn a_shed_is_finished_or_given_back() {
    let prepare = || async {
        let stage = Stage::new().await.rules(|rules| {
            rules.files.caches = Some(HOUR);
            rules.idle_after = None;
        });
        let old = stage.now().minus(DAY);
        stage.add(RuntimeSpec::running("a").active(old).since(old).shedable(Tier::Caches, "cache", "12345"));
        stage
    };
    at_every_call(prepare, &["a shed of its caches"]).await;
}

#[tokio::test]
async fn a_notice_is_given_again_or_not_at_all_and_nothing_is_deleted_before_it() {
    let prepare = || async {
        let stage = Stage::new().await.told().rules(|rules| rules.notice_before_delete = Some(2 * HOUR));
        stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
        stage
    };
    at_every_call(prepare, &[]).await;
}

#[tokio::test]
async fn a_wake_that_died_is_finished_or_can_be_tried_again() {
    for nth in 0.. {
        let stage = Stage::new().await;
        stage.add(RuntimeSpec::running("a"));
        stage.tick().await;
        stage.advance(31 * MINUTE);
        stage.tick().await;
        stage.line.dies(nth);
        let pass = stage.pass_over("doomed", &stage.line);
        let id = stage.id("a");
        let survived = Box::pin(stage.line.run(pass.wake(&id))).await.is_some();
        let case = format!("died at the last of {:?}", stage.line.calls());
        if survived {
            assert!(nth >= 4, "{case}");
            return;
        }
        fresh_passes(&stage).await;
        assert_in_order(&stage, &case).await;
        if stage.state("a").await == State::Suspended {
            assert!(matches!(stage.pass().wake(&id).await, Woken::Running(_)), "{case}");
        }
        assert_eq!(stage.state("a").await, State::Running, "{case}");
        assert_eq!(stage.effects(), ["a suspended", "a resumed"], "{case}");
    }
}
