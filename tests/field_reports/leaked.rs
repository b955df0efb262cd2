//! Leaked, stuck, or never reclaimed.

use backend::{
    BackendError, ErrorKind,
    fake::{RuntimeSpec, Shape},
    faulty::{self, Fault, Script, Verb},
};
use ledger::{Heartbeat, HoldRequest};
use lifecycle::{
    Fate, State, Tier,
    policy::{Percent, Prices},
    record::Hold,
};

use super::{idle, suspended};
use crate::pass::stage::{DAY, HOUR, MINUTE, Stage, box_name, count, fates, planned};

#[tokio::test]
async fn suna_4228_idle_hours_and_their_cost_are_the_headline() {
    let stage = Stage::new().await.policy(|policy| {
        let prices = Prices { running: 80_000, suspended: 4_000 };
        policy.prices.insert(box_name(), prices);
    });
    let old = stage.now().minus(10 * HOUR);
    stage.add(RuntimeSpec::running("dead").since(old).active(old));
    stage.add(RuntimeSpec::running("live"));
    let outcome = stage.ticked().await;
    let headline = outcome.report.headline;
    assert_eq!((headline.runtimes, headline.idle), (2, 1));
    assert!((headline.idle_hours - 10.0).abs() < 0.01, "{}", headline.idle_hours);
    assert_eq!((headline.idle_cost_micros, headline.saves.micros_per_hour), (800_000, 76_000));
    assert!(outcome.report.opening()[0].starts_with("10 idle hours; they cost 0.80"), "{:?}", outcome.report.opening());
}

/// Looks and questions of ours at every minute for an hour.
#[tokio::test]
async fn openclaw_48_our_own_looks_are_no_activity() {
    let stage = Stage::new().await.limits(|limits| limits.sweep_every = MINUTE);
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    let before = stage.record("a").await;
    for _ in 0..29 {
        stage.advance(MINUTE);
        stage.tick().await;
        let _ = stage.preview().await;
    }
    let after = stage.record("a").await;
    assert_eq!((after.idle_from, after.last_active), (before.idle_from, before.last_active));
    stage.advance(2 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
}

/// A signal that the policy does not name (an open dashboard, to the provider) does not count.
#[tokio::test]
async fn coder_12012_only_the_signals_that_the_policy_names_count() {
    let stage = Stage::new().await.rules(|rules| {
        rules.signals.provider = false;
        rules.signals.probe = false;
    });
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(MINUTE);
    assert_eq!(stage.heartbeat("a").await, Heartbeat::Recorded);
    for _ in 0..7 {
        stage.advance(10 * MINUTE);
        stage.fake.touch(&stage.id("a"));
        stage.tick().await;
    }
    assert_eq!(stage.effects(), ["a suspended"], "whatever the provider's own clock says");
}

#[tokio::test]
async fn openhands_13082_passive_traffic_neither_resumes_nor_counts() {
    let stage = suspended().await;
    let before = stage.record("a").await;
    for _ in 0..5 {
        stage.advance(HOUR);
        let _ = stage.preview().await;
        stage.tick().await;
    }
    let after = stage.record("a").await;
    assert_eq!((after.state, after.state_since, after.idle_from), (before.state, before.state_since, before.idle_from));
    assert_eq!(stage.effects(), ["a suspended"]);
}

#[tokio::test]
async fn software_agent_sdk_4893_the_state_is_the_providers_at_every_sweep() {
    let stage = idle().await;
    stage.fake.stop(&stage.id("a"));
    stage.advance(HOUR);
    stage.tick().await;
    assert_eq!(stage.state("a").await, State::Suspended, "paused outside: recorded, not RUNNING for ever");
    stage.advance(DAY + MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a archived"], "and it ages from there");
}

#[tokio::test]
async fn e2b_infra_3199_a_record_that_left_the_index_is_found_and_counted() {
    let stage = idle().await;
    let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let update = stage.store().client().update_item().table_name("furlough");
    let update = update.key("pk", key(&format!("runtime/{}", stage.id("a")))).key("sk", key("record"));
    update.update_expression("REMOVE due_at, due_shard").send().await.unwrap();
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0], "nobody looks at it");
    stage.advance(HOUR);
    assert_eq!(stage.ticked().await.report.healed, 1);
    assert_eq!(stage.effects(), ["a suspended"]);
    stage.advance(HOUR);
    assert_eq!(stage.ticked().await.report.healed, 0, "expected: none");
}

#[tokio::test]
async fn e2b_infra_2388_a_crashed_holders_claim_ends() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    let silent = faulty::around(stage.fake.backend(), Script::new().always(Verb::Delete, Fault::TimesOut));
    let outcome = stage.pass_of("crashed", vec![silent]).run().await;
    assert_eq!(fates(&outcome.report.entries), ["a delete: no answer"]);
    assert_eq!(stage.state("a").await, State::Deleting);
    stage.advance(5 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.state("a").await, State::Archived, "given back within the claim's time");
    stage.advance(DAY + HOUR);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a deleted"]);
}

#[tokio::test]
async fn github_runner_4724_not_found_on_delete_is_success() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    let (fake, id) = (stage.fake.clone(), stage.id("a"));
    let races = move |call: &faulty::Call| {
        if call.verb == Verb::Delete {
            fake.vanish(&id);
        }
        None
    };
    let outcome = stage.pass_of("pass-1", vec![faulty::around(stage.fake.backend(), races)]).run().await;
    assert_eq!(fates(&outcome.report.entries), ["a delete: gone"]);
    assert_eq!(stage.state("a").await, State::Gone);
    assert_eq!(stage.indexed().await, [""; 0]);
}

#[tokio::test]
async fn hetzner_53_a_crash_between_create_and_record_is_found_by_label() {
    let stage = Stage::new().await;
    let old = stage.now().minus(DAY);
    stage.add(RuntimeSpec::running("created-then-crashed").since(old).active(old).label("managed-by", "furlough"));
    stage.tick().await;
    assert_eq!(stage.effects(), ["created-then-crashed suspended"]);
}

/// No timestamp at all: from first seen, never from "now" at each pass.
#[tokio::test]
async fn knative_serving_4021_a_missing_clock_falls_back_to_first_seen() {
    let stage = Stage::new().await.rules(|rules| rules.unknown_after = Some(3 * HOUR));
    stage.add(RuntimeSpec::running("a").unknown().no_agent_server());
    for _ in 0..3 {
        stage.tick().await;
        stage.advance(HOUR);
    }
    assert_eq!(stage.effects(), [""; 0]);
    stage.advance(HOUR);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
}

#[tokio::test]
async fn verifiers_2406_a_leak_without_a_local_record_is_reclaimed() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::suspended("leaked").since(stage.now().minus(2 * DAY)));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["leaked archive"]);
    assert_eq!(stage.apply(&plan).await, ["leaked archive: done"]);
}

#[tokio::test]
async fn proliferate_1264_paused_ones_age_and_holds_end() {
    let stage = suspended().await;
    let until = stage.now().plus(2 * DAY);
    let hold = HoldRequest { hold: Hold::Until(until), why: "a look", by: "me" };
    let _ = stage.ledger.hold(&stage.id("a"), &hold, None, stage.now()).await.unwrap();
    stage.advance(DAY + HOUR);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
    stage.advance(DAY);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended", "a archived"]);
    stage.advance(DAY + HOUR);
    stage.tick().await;
    assert_eq!(stage.effects().last().unwrap(), "a deleted");
}

#[tokio::test]
async fn software_agent_sdk_5196_idle_ones_converge_to_none_and_bytes_are_told() {
    let stage = Stage::shaped(Shape { rests: true, ..Shape::default() }).await.rules(|rules| {
        rules.files.caches = Some(HOUR);
        rules.disk_budget = Percent::new(80);
    });
    for number in 0..8 {
        stage.add(
            RuntimeSpec::running(&format!("w{number}")).shedable(Tier::Caches, "cache", vec![0; 100]).file("x", "1"),
        );
    }
    stage.tick().await;
    stage.advance(HOUR + MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!((count(&outcome.report.entries, Fate::Done), outcome.report.saved().bytes), (8, 800));
    let mut passes = 0;
    while !stage.fake.ids().is_empty() {
        stage.advance(HOUR);
        stage.tick().await;
        passes += 1;
        assert!(passes < 40, "{:?}", stage.effects());
    }
}

#[tokio::test]
async fn openhands_16874_a_failed_resume_is_retried() {
    let stage = suspended().await;
    let down = Fault::Before(BackendError::new(ErrorKind::Unreachable, "no capacity"));
    assert!(matches!(stage.heartbeat("a").await, Heartbeat::NotRunning { .. }));
    let failing = faulty::around(stage.fake.backend(), Script::new().at(Verb::Resume, 0, down));
    let _ = stage.pass_of("pass-1", vec![failing]).run().await;
    assert_eq!(stage.state("a").await, State::Suspended);
    stage.advance(2 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended", "a resumed"], "by a pass, without another request");
}

/// Destroyed, and there again: a new life is looked at later like any other, and not fought.
#[tokio::test]
async fn sandbox_sdk_415_what_came_back_after_a_delete_lives_anew() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    stage.tick().await;
    assert_eq!(stage.state("a").await, State::Gone);
    stage.advance(HOUR);
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    assert_eq!(stage.state("a").await, State::Running);
    assert_eq!(stage.effects(), ["a deleted"], "no loop");
    stage.advance(31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a deleted", "a suspended"]);
}

#[tokio::test]
async fn automation_503_a_directory_that_the_scope_does_not_name_is_not_deleted_by_age() {
    let stage = Stage::shaped(Shape { rests: true, ..Shape::default() }).await;
    let old = stage.now().minus(100 * DAY);
    for number in 0..5 {
        stage.add(RuntimeSpec::running(&format!("d{number}")).unlabelled().since(old).active(old));
    }
    let outcome = stage.ticked().await;
    assert_eq!((stage.effects(), outcome.report.kept["unlabelled"]), (Vec::new(), 5));
}
