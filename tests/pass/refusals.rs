//! What an apply refuses, by name; and what no pass touches.

use backend::fake::{RuntimeSpec, Shape};
use ledger::{HoldRequest, HoldSet};
use lifecycle::{Fate, Plan, PlanRefused, policy::Mode, record::Hold};
use pass::PassError;

use super::stage::{DAY, HOUR, MINUTE, Stage, box_name, count, details, kept, planned};

/// A stage with one idle runtime, known to the ledger, and the plan that suspends it.
async fn planned_stage() -> (Stage, Plan) {
    let stage = Stage::new().await.policy(|policy| policy.mode = Mode::Report);
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["a suspend"]);
    stage.advance(MINUTE);
    (stage, plan)
}

async fn refused(stage: &Stage, plan: &Plan) -> String {
    let report = stage.pass().apply(plan).await.unwrap();
    assert_eq!(stage.effects(), [""; 0], "nothing was done");
    let told = details(&report.entries);
    assert_eq!(told.len(), 1);
    told[0].clone()
}

#[tokio::test]
async fn what_the_plan_lists_is_done() {
    let (stage, plan) = planned_stage().await;
    assert_eq!(stage.apply(&plan).await, ["a suspend: done"]);
    assert_eq!(stage.effects(), ["a suspended"]);
}

#[tokio::test]
async fn a_heartbeat_since_the_plan_wins() {
    let (stage, plan) = planned_stage().await;
    assert_eq!(stage.heartbeat("a").await, ledger::Heartbeat::Recorded);
    stage.advance(MINUTE);
    assert_eq!(refused(&stage, &plan).await, "a: moved (active recently enough)");
}

#[tokio::test]
async fn activity_since_the_plan_wins_even_when_it_is_idle_again() {
    let (stage, plan) = planned_stage().await;
    stage.fake.touch(&stage.id("a"));
    stage.advance(31 * MINUTE);
    let told = refused(&stage, &plan).await;
    assert!(told.starts_with("a: moved (it was active since: idle from "), "{told}");
}

#[tokio::test]
async fn a_hold_since_the_plan_wins() {
    let (stage, plan) = planned_stage().await;
    let hold = HoldRequest { hold: Hold::Forever, why: "mine", by: "me" };
    let answer = stage.ledger.hold(&stage.id("a"), &hold, None, stage.now()).await.unwrap();
    assert!(matches!(answer, HoldSet::Held(_)));
    assert_eq!(refused(&stage, &plan).await, "a: refused (held until it is released)");
}

#[tokio::test]
async fn another_run_of_the_same_id_is_refused() {
    let (stage, plan) = planned_stage().await;
    stage.fake.restart(&stage.id("a"));
    assert_eq!(refused(&stage, &plan).await, "a: moved (active recently enough)");
}

#[tokio::test]
async fn another_state_is_refused() {
    let (stage, plan) = planned_stage().await;
    stage.fake.stop(&stage.id("a"));
    let told = refused(&stage, &plan).await;
    assert!(told.starts_with("a: moved (not long enough in its stage"), "{told}");
}

#[tokio::test]
async fn what_is_not_there_any_more_is_refused() {
    let (stage, plan) = planned_stage().await;
    stage.fake.vanish(&stage.id("a"));
    assert_eq!(refused(&stage, &plan).await, "a: moved (it is not there any more)");
}

#[tokio::test]
async fn what_became_somebody_elses_is_refused() {
    let (stage, plan) = planned_stage().await;
    stage.add(RuntimeSpec::running("a").foreign().active(stage.now().minus(DAY)));
    assert_eq!(refused(&stage, &plan).await, "a: refused (somebody else's)");
}

#[tokio::test]
async fn a_registration_since_the_plan_is_refused() {
    let (stage, plan) = planned_stage().await;
    let labels = <_>::default();
    let registered = stage.ledger.register(&stage.id("a"), &labels, <_>::default(), stage.now()).await.unwrap();
    assert!(matches!(registered, ledger::Registered::Done(_)));
    assert_eq!(refused(&stage, &plan).await, "a: moved (it was registered anew since)");
}

#[tokio::test]
async fn a_paused_backend_is_refused_until_it_is_unpaused() {
    let (stage, plan) = planned_stage().await;
    stage.ledger.pause(Some(&box_name()), "looking into it", "me", stage.now()).await.unwrap();
    assert_eq!(refused(&stage, &plan).await, "a: refused (paused)");
    assert!(stage.ledger.unpause(Some(&box_name()), stage.now()).await.unwrap());
    assert_eq!(stage.apply(&plan).await, ["a suspend: done"]);
}

#[tokio::test]
async fn the_switch_of_all_backends_stops_each() {
    let (stage, plan) = planned_stage().await;
    stage.ledger.pause(None, "looking into it", "me", stage.now()).await.unwrap();
    assert_eq!(refused(&stage, &plan).await, "a: refused (paused)");
}

/// Pulls the switch as soon as something was done.
struct PullsTheSwitch(ledger::Ledger, lifecycle::Time);

#[async_trait::async_trait]
impl pass::Notifier for PullsTheSwitch {
    async fn deliver(&self, _: &pass::notify::Event) -> Result<(), pass::notify::NotifyError> {
        self.0.pause(None, "that was not meant", "me", self.1).await.unwrap();
        Ok(())
    }
}

#[tokio::test]
async fn the_switch_stops_a_pass_that_is_at_work() {
    let stage = Stage::new().await.policy(|policy| policy.budgets.suspend.as_mut().unwrap().min = 10);
    for name in ["a", "b", "c"] {
        stage.add(RuntimeSpec::running(name));
    }
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let mut pass = stage.pass();
    pass.limits.concurrency = 1;
    pass.notifier = Some(std::sync::Arc::new(PullsTheSwitch(stage.ledger.clone(), stage.now())));
    let _ = pass.run().await;
    assert_eq!(stage.effects(), ["a suspended"], "each claim asks again");
}

#[tokio::test]
async fn work_under_way_is_refused() {
    let (stage, plan) = planned_stage().await;
    let id = stage.id("a");
    let busy = stage.ledger.heartbeat(&id, None, Some(HOUR), stage.now()).await.unwrap();
    assert_eq!(busy, ledger::Heartbeat::Recorded);
    let told = refused(&stage, &plan).await;
    assert!(told.starts_with("a: moved (work is under way"), "{told}");
}

#[tokio::test]
async fn what_somebody_else_has_claimed_is_refused() {
    let (stage, plan) = planned_stage().await;
    let record = stage.record("a").await;
    let request = ledger::ClaimRequest {
        id: stage.id("a"),
        from: record.state,
        to: record.state,
        epoch: record.epoch,
        incarnation: record.incarnation.clone(),
        token: None,
        rule: ledger::ClaimRule::Shed { cutoff: record.idle_from },
        owner: "pass-2".to_owned(),
        until: stage.now().plus(MINUTE),
        action: lifecycle::Action::Shed(lifecycle::Tier::Caches),
        reason: "{}".to_owned(),
        evidence: "{}".to_owned(),
    };
    assert!(matches!(stage.ledger.claim(&request, stage.now()).await.unwrap(), ledger::Claimed::Won(_)));
    let told = refused(&stage, &plan).await;
    assert_eq!(told, "a: moved (somebody else has acted on it since)");
}

#[tokio::test]
async fn a_spent_budget_is_refused_and_two_passes_share_it() {
    let stage = Stage::new().await.policy(|policy| policy.budgets.suspend.as_mut().unwrap().min = 2);
    for name in ["a", "b", "c"] {
        stage.add(RuntimeSpec::running(name));
    }
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["a suspend", "b suspend"]);
    assert_eq!(kept(&plan, "c"), "the budget of 2 for suspend in this window is taken by others");
    stage.line.mixes(3);
    let [one, other] = ["pass-1", "pass-2"].map(|owner| stage.pass_over(owner, &stage.line));
    let (one, other) = tokio::join!(one.apply(&plan), other.apply(&plan));
    let entries = [one.unwrap().entries, other.unwrap().entries].concat();
    assert_eq!(stage.effects().len(), count(&entries, Fate::Done), "{:?}", details(&entries));
    stage.tick().await;
    assert!(stage.effects().len() <= 2, "two a window, whoever asks: {:?}", stage.effects());
}

#[tokio::test]
async fn a_plan_that_expired_or_is_of_another_policy_is_refused_whole() {
    let (mut stage, plan) = planned_stage().await;
    stage.policy.rules[0].idle_after = Some(HOUR);
    let error = stage.pass().apply(&plan).await.unwrap_err();
    assert!(matches!(error, PassError::Refused(PlanRefused::OtherPolicy { .. })), "{error}");
    stage.policy.rules[0].idle_after = Some(30 * MINUTE);
    stage.advance(HOUR);
    let error = stage.pass().apply(&plan).await.unwrap_err();
    assert!(matches!(error, PassError::Refused(PlanRefused::Expired { .. })), "{error}");
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn a_plan_of_a_backend_that_is_not_configured_is_refused_whole() {
    let (stage, plan) = planned_stage().await;
    let error = stage.pass_of("pass-1", Vec::new()).apply(&plan).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan names backend `box`, which is not configured; make a new one with `furlough plan`"
    );
}

#[tokio::test]
async fn a_preview_leaves_no_trace() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a").active(stage.now().minus(HOUR)).since(stage.now().minus(2 * HOUR)));
    stage.add(RuntimeSpec::suspended("b").since(stage.now().minus(3 * DAY)));
    let before = stage.fake.look(&stage.id("a"));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["a suspend", "b archive"]);
    assert_eq!(stage.effects(), [""; 0]);
    assert_eq!(stage.fake.look(&stage.id("a")), before);
    assert_eq!(stage.ledger.get(&stage.id("a")).await.unwrap(), None);
    assert_eq!(stage.ledger.unit(&box_name()).await.unwrap(), ledger::Unit::default());
}

#[tokio::test]
async fn report_mode_acts_on_nothing_and_looks_once_a_period() {
    let stage = Stage::new().await.policy(|policy| policy.mode = Mode::Report);
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(
        details(&outcome.report.entries),
        ["a: left to the next pass (the mode is report; `furlough apply` does it, or mode = \"enforce\")"]
    );
    let looks = stage.fake.asked().looks;
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.fake.asked().looks, looks, "not again at each tick");
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn what_is_not_ours_is_counted_and_left_alone() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("foreign").foreign().active(stage.now().minus(DAY)));
    stage.add(RuntimeSpec::running("unlabelled").unlabelled().active(stage.now().minus(DAY)));
    let outcome = stage.ticked().await;
    let note = &outcome.report.backends[0].note;
    assert_eq!((note.ours, note.foreign, note.unlabelled), (0, 1, 1));
    assert_eq!(stage.effects(), [""; 0]);
    assert_eq!(stage.indexed().await, [""; 0], "no record is made of what is not ours");
}

#[tokio::test]
async fn a_runtime_that_lacks_the_role_is_kept_with_the_reason() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a").ephemeral().active(stage.now().minus(HOUR)).since(stage.now().minus(2 * HOUR)));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), [""; 0]);
    assert!(kept(&plan, "a").contains("stopping it deletes it"), "{}", kept(&plan, "a"));
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn what_rests_is_deleted_from_running_with_the_whole_condition() {
    let stage = Stage::shaped(Shape { rests: true, ..Shape::default() }).await;
    stage.add(RuntimeSpec::running("tree"));
    stage.tick().await;
    stage.advance(DAY + 30 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0], "idle.after + retention.suspended have not passed with their slack");
    stage.advance(MINUTE);
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["tree delete"]);
    assert_eq!(stage.heartbeat("tree").await, ledger::Heartbeat::Recorded);
    assert_eq!(stage.apply(&plan).await, ["tree delete: moved"]);
    stage.advance(DAY + 31 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), ["tree deleted"]);
}
