//! Whole lives.

use std::time::Duration;

use backend::fake::RuntimeSpec;
use lifecycle::State;

use super::stage::{DAY, HOUR, MINUTE, Stage, planned};

/// Observed, idle, suspended, kept for its retention, announced, archived, deleted, and no more in the index.
#[tokio::test]
async fn a_runtime_goes_from_running_to_gone_stage_by_stage() {
    let stage = Stage::new().await.told().rules(|rules| rules.notice_before_delete = Some(2 * HOUR));
    stage.add(RuntimeSpec::running("a"));

    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0], "active just now");
    stage.advance(31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
    assert_eq!(stage.state("a").await, State::Suspended);

    stage.advance(DAY);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"], "not for longer than its retention");
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended", "a archived"]);

    stage.advance(DAY + MINUTE);
    stage.tick().await;
    assert_eq!(stage.inbox().told(), ["a Done", "a Done", "a Notice"]);
    stage.advance(2 * HOUR);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 2, "notice was given, but not long enough ago");
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended", "a archived", "a deleted"]);
    assert_eq!(stage.state("a").await, State::Gone);
    assert_eq!(stage.indexed().await, [""; 0]);
    let lines = stage.history("a").await;
    let told: Vec<_> = lines.iter().map(|line| format!("{}: {}", line.action, line.outcome)).collect();
    assert_eq!(told.len(), 4, "{told:?}");
}

/// The same through plan and apply, in report mode, without a single tick.
#[tokio::test]
async fn plan_and_apply_do_what_a_tick_does() {
    let stage = Stage::new().await.policy(|policy| policy.mode = lifecycle::policy::Mode::Report);
    stage.add(RuntimeSpec::running("a").active(stage.now().minus(HOUR)).since(stage.now().minus(2 * HOUR)));
    stage.add(RuntimeSpec::running("b"));

    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["a suspend"]);
    assert_eq!(stage.indexed().await, [""; 0], "a plan writes nothing");
    assert_eq!(stage.apply(&plan).await, ["a suspend: done"]);
    assert_eq!(stage.effects(), ["a suspended"]);
    assert_eq!(stage.state("a").await, State::Suspended);
    assert_eq!(stage.apply(&plan).await, ["a suspend: moved"], "a second time it is no longer what was planned");
    assert_eq!(stage.effects(), ["a suspended"]);
}

/// A tick an hour, and budgets far below what is due at once.
#[tokio::test]
async fn many_idle_runtimes_converge_to_none() {
    let stage = Stage::new().await.policy(|policy| {
        policy.budgets.suspend.as_mut().unwrap().min = 3;
        policy.budgets.delete.as_mut().unwrap().min = 2;
    });
    for number in 0..10 {
        stage.add(RuntimeSpec::running(&format!("r{number}")));
    }
    for _ in 0..(3 * 24) {
        stage.advance(HOUR + Duration::from_secs(1));
        stage.tick().await;
    }
    assert_eq!(stage.fake.ids(), []);
    assert_eq!(stage.effects().len(), 30, "each was suspended, archived and deleted once");
    assert_eq!(stage.indexed().await, [""; 0]);
}
