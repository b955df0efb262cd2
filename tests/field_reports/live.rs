//! Live things that were stopped or deleted.

use std::time::Duration;

use backend::{
    Probe,
    fake::{RuntimeSpec, Saving, Shape},
    faulty::{self, Fault, Script, Verb},
};
use ledger::{Heartbeat, HoldRequest};
use lifecycle::{Busy, Fate, State, Tier, policy::WorkspaceRule, record::Hold};
use pass::Woken;

use super::{idle, suspended};
use crate::pass::stage::{DAY, HOUR, MINUTE, Stage, box_name, count, details, fates, kept, planned};

#[tokio::test]
async fn software_agent_sdk_1769_a_full_idle_period_passes_after_a_start_whatever_the_server_says() {
    let stage = suspended().await;
    assert!(matches!(stage.pass().wake(&stage.id("a")).await, Woken::Running(_)));
    // The server inside still counts from before: fake's probe tells the old activity.
    for _ in 0..3 {
        stage.advance(10 * MINUTE);
        stage.tick().await;
        assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
    }
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 3);
}

#[tokio::test]
async fn software_agent_sdk_1770_one_fresh_signal_of_any_kind_keeps() {
    let stage = idle().await;
    let (now, old) = (stage.now(), stage.now().minus(HOUR));
    let inside = |at| Probe { last_active: Some(at), busy: Busy::No };
    stage.add(RuntimeSpec::running("provider").since(old).active(now).probe(inside(old)));
    stage.add(RuntimeSpec::running("probe").since(old).active(old).probe(inside(now)));
    stage.add(RuntimeSpec::running("none").since(old).active(old).probe(inside(old)));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["none suspend", "a suspend"]);
    assert_eq!(kept(&plan, "provider"), "active recently enough");
    assert_eq!(kept(&plan, "probe"), "active recently enough");
    assert_eq!(stage.heartbeat("a").await, Heartbeat::Recorded);
    assert_eq!(kept(&stage.preview().await, "a"), "active recently enough");
}

#[tokio::test]
async fn software_agent_sdk_1634_an_unread_or_unknown_signal_is_never_idle() {
    let stage = Stage::new().await;
    let old = stage.now().minus(DAY);
    stage.add(RuntimeSpec::running("silent").since(old).active(old).silent());
    stage.add(RuntimeSpec::running("unknown").since(old).unknown().no_agent_server());
    for _ in 0..5 {
        stage.tick().await;
        stage.advance(HOUR);
    }
    let plan = stage.preview().await;
    assert_eq!(kept(&plan, "silent"), "it was asked for its activity and did not answer");
    assert_eq!(kept(&plan, "unknown"), "nothing is known of its activity");
    assert_eq!(stage.effects(), [""; 0]);
}

/// A prompt of hours without an event: busy by its own word, up to 12 h.
#[tokio::test]
async fn software_agent_sdk_2698_a_running_execution_vetoes_up_to_a_bound() {
    let stage = idle().await;
    let far = stage.now().plus(300 * DAY);
    stage.fake.work(&stage.id("a"), far);
    for _ in 0..11 {
        stage.tick().await;
        stage.advance(HOUR);
    }
    assert_eq!(stage.effects(), [""; 0]);
    let lie = Stage::new().await.rules(|rules| rules.signals.provider = false);
    let inside = Probe { last_active: Some(lie.now()), busy: Busy::No };
    lie.add(RuntimeSpec::running("b").probe(inside));
    lie.tick().await;
    let told =
        lie.ledger.heartbeat(&lie.id("b"), None, Some(300 * DAY), lie.now().plus(Duration::from_millis(1))).await;
    assert_eq!(told.unwrap(), Heartbeat::Recorded);
    lie.advance(11 * HOUR + 59 * MINUTE);
    lie.tick().await;
    assert_eq!(lie.effects(), [""; 0]);
    lie.advance(2 * HOUR);
    lie.tick().await;
    assert_eq!(lie.effects(), ["b suspended"], "a claim of work that nobody renews ends");
}

#[tokio::test]
async fn openhands_13665_the_reason_of_every_suspend_is_recorded_and_readable() {
    let stage = suspended().await;
    let line = &stage.history("a").await[0];
    let reason: serde_json::Value = serde_json::from_str(&line.reason).unwrap();
    assert_eq!(reason, serde_json::json!({ "code": "idle", "after": "30m" }));
    let evidence: serde_json::Value = serde_json::from_str(&line.evidence).unwrap();
    assert_eq!(
        (&evidence["idle"], &evidence["source"], &evidence["policy"]),
        (&"31m".into(), &"probe".into(), &"all".into())
    );
    assert_eq!((line.action.as_str(), line.outcome.as_str(), line.owner.as_str()), ("suspend", "done", "pass-1"));
}

#[tokio::test]
async fn daytona_5154_the_stop_decision_sees_every_acknowledged_heartbeat() {
    let stage = idle().await;
    assert_eq!(stage.heartbeat("a").await, Heartbeat::Recorded);
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0], "acknowledged the moment before");
}

#[tokio::test]
async fn agentenv_165_a_keep_alive_that_loses_is_told_and_brings_it_back() {
    let stage = suspended().await;
    let told = stage.heartbeat("a").await;
    assert_eq!(told, Heartbeat::NotRunning { state: State::Suspended, wanted: stage.now() });
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
}

#[tokio::test]
async fn hermes_agent_73671_cleanup_never_hits_a_newer_incarnation() {
    let stage = idle().await;
    let plan = stage.preview().await;
    stage.fake.restart(&stage.id("a"));
    // The newer run looks as idle as the old one by the provider's clock of activity.
    assert_eq!(stage.apply(&plan).await, ["a suspend: moved"]);
    assert_eq!(stage.effects(), [""; 0]);
    assert_eq!(stage.fake.look(&stage.id("a")).unwrap().state, State::Running);
}

#[tokio::test]
async fn onyx_12714_a_user_who_came_back_while_the_pass_worked_is_kept() {
    let stage = Stage::new().await.limits(|limits| limits.concurrency = 1);
    for name in ["first", "second"] {
        stage.add(RuntimeSpec::running(name));
    }
    stage.tick().await;
    stage.advance(31 * MINUTE);
    // While the first is worked on, the user of the second comes back.
    let (fake, second) = (stage.fake.clone(), stage.id("second"));
    let back = move |call: &faulty::Call| {
        if call.verb == Verb::Suspend {
            fake.touch(&second);
        }
        None
    };
    let outcome = stage.pass_of("pass-1", vec![faulty::around(stage.fake.backend(), back)]).run().await;
    assert_eq!(fates(&outcome.report.entries), ["first suspend: done", "second suspend: moved"]);
    assert_eq!(stage.effects(), ["first suspended"]);
}

#[tokio::test]
async fn github_runner_3589_one_short_list_makes_no_orphans() {
    let stage = idle().await;
    stage.fake.touch(&stage.id("a"));
    stage.advance(30 * MINUTE);
    stage.fake.touch(&stage.id("a"));
    let short = faulty::around(stage.fake.backend(), Script::new().at(Verb::List, 0, Fault::Short(0)));
    let outcome = stage.pass_of("pass-1", vec![short]).run().await;
    assert_eq!(outcome.upkeep.swept, [box_name()]);
    let record = stage.record("a").await;
    assert_eq!((record.state, record.absent_since), (State::Running, None), "it is there by id");
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn github_runner_5085_a_job_assigned_after_the_busy_check_is_seen() {
    let stage = idle().await;
    let plan = stage.preview().await;
    stage.advance(Duration::from_secs(13));
    let until = stage.now().plus(HOUR);
    stage.fake.work(&stage.id("a"), until);
    let told = details(&stage.pass().apply(&plan).await.unwrap().entries);
    assert_eq!(told, [format!("a: moved (work is under way; it vetoes until {until})")]);
    assert_eq!(stage.effects(), [""; 0]);
}

/// What refers to a runtime is looked at under the claim, not when it was marked.
#[tokio::test]
async fn knative_serving_4234_what_holds_it_is_checked_at_the_act() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["a delete"]);
    let old = stage.now().minus(3 * DAY);
    stage.add(RuntimeSpec::archived("a").since(old).label("furlough.hold", "2999-01-01T00:00:00Z"));
    let told = details(&stage.pass().apply(&plan).await.unwrap().entries);
    assert!(told[0].starts_with("a: refused (held until") || told[0].starts_with("a: moved"), "{told:?}");
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn testcontainers_2445_another_sessions_runtime_is_never_touched() {
    let stage = Stage::new().await;
    let old = stage.now().minus(9 * DAY);
    stage.add(RuntimeSpec::running("theirs").foreign().since(old).active(old));
    stage.add(RuntimeSpec::suspended("theirs-too").foreign().since(old));
    for _ in 0..3 {
        stage.tick().await;
        stage.advance(DAY);
    }
    assert_eq!((stage.effects(), stage.indexed().await), (Vec::new(), Vec::new()));
}

/// One open stream, no requests, for twice the limit.
#[tokio::test]
async fn sablier_576_an_open_stream_without_requests_is_activity() {
    let stage = idle().await;
    for _ in 0..6 {
        // Whoever keeps the stream says so at long intervals: busy, without a new activity.
        let beat = stage.ledger.heartbeat(&stage.id("a"), None, Some(20 * MINUTE), stage.now()).await.unwrap();
        assert!(matches!(beat, Heartbeat::Recorded | Heartbeat::Coalesced), "{beat:?}");
        stage.advance(10 * MINUTE);
        stage.tick().await;
    }
    assert_eq!(stage.effects(), [""; 0]);
}

/// `sleep 900` in a session without a client: nothing but the server inside knows.
#[tokio::test]
async fn background_agents_1263_headless_work_is_kept() {
    let stage = idle().await;
    let old = stage.now().minus(HOUR);
    let inside = Probe { last_active: Some(old), busy: Busy::Until(stage.now().plus(15 * MINUTE)) };
    stage.add(RuntimeSpec::running("a").since(old).active(old).probe(inside));
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0]);
    assert!(kept(&stage.preview().await, "a").starts_with("work is under way"));
}

/// The clock that the pass reads is the one that heartbeats write, through the public interfaces of both.
#[tokio::test]
async fn agentfield_1046_heartbeats_move_the_clock_that_the_pass_reads() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("beats").unknown().no_agent_server());
    stage.add(RuntimeSpec::running("stops").unknown().no_agent_server());
    stage.tick().await;
    for minutes in 1..=12 {
        stage.advance(10 * MINUTE);
        assert_eq!(stage.heartbeat("beats").await, Heartbeat::Recorded);
        if minutes <= 6 {
            assert_eq!(stage.heartbeat("stops").await, Heartbeat::Recorded);
        }
        stage.tick().await;
    }
    assert_eq!(stage.effects(), ["stops suspended"]);
}

/// One function applies holds and selectors: every act asks it.
#[tokio::test]
async fn cloud_nuke_245_a_hold_holds_against_every_act() {
    let stage = Stage::new().await.told().rules(|rules| {
        rules.notice_before_delete = Some(HOUR);
        rules.files.caches = Some(HOUR);
    });
    let old = stage.now().minus(3 * DAY);
    stage.add(RuntimeSpec::running("suspend").since(old).active(old));
    stage.add(RuntimeSpec::running("shed").ephemeral().since(old).active(old).shedable(Tier::Caches, "c", "1"));
    stage.add(RuntimeSpec::suspended("archive").since(old));
    stage.add(RuntimeSpec::archived("notify").since(old));
    let free = stage.preview().await;
    assert_eq!(planned(&free).len(), 4, "without a hold each is acted on: {:?}", planned(&free));
    for name in ["suspend", "shed", "archive", "notify"] {
        let hold = HoldRequest { hold: Hold::Unreadable, why: "mine", by: "me" };
        let seen = stage.fake.look(&stage.id(name));
        let _ = stage.ledger.hold(&stage.id(name), &hold, seen.as_ref(), stage.now()).await.unwrap();
    }
    for _ in 0..5 {
        stage.tick().await;
        stage.advance(DAY);
    }
    assert_eq!((stage.effects(), stage.inbox().told()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn gitpod_1270_what_could_not_be_saved_is_tried_again_and_never_lost() {
    let shape = Shape { rests: true, saving: Saving::First, ..Shape::default() };
    let stage = Stage::shaped(shape).await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    let old = stage.now().minus(9 * DAY);
    stage.add(RuntimeSpec::running("a").since(old).active(old).unsaved("a commit").unsavable("no space left"));
    let mut tries = 0;
    for _ in 0..48 {
        tries += count(&stage.ticked().await.report.entries, Fate::Refused);
        stage.advance(HOUR);
    }
    assert!(tries >= 1, "it is tried");
    assert_eq!(stage.effects(), [""; 0]);
    stage.add(RuntimeSpec::running("a").since(old).active(old).unsaved("a commit"));
    for _ in 0..72 {
        stage.tick().await;
        stage.advance(HOUR);
    }
    assert_eq!(stage.effects().len(), 1, "saved as something and deleted: {:?}", stage.effects());
    assert!(stage.effects()[0].starts_with("a saved as"), "{:?}", stage.effects());
}

#[tokio::test]
async fn e2b_1104_files_survive_two_cycles_of_suspend_and_resume() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a").file("canary", "sings"));
    stage.tick().await;
    for cycle in 1..=2 {
        stage.advance(31 * MINUTE);
        stage.tick().await;
        assert_eq!(stage.fake.look(&stage.id("a")).unwrap().state, State::Suspended, "confirmed by the provider");
        assert!(matches!(stage.pass().wake(&stage.id("a")).await, Woken::Running(_)));
        let files = stage.fake.files(&stage.id("a")).unwrap();
        assert_eq!(files[&(None, "canary".to_owned())], b"sings", "cycle {cycle}");
    }
    assert_eq!(stage.effects().len(), 4);
}

#[tokio::test]
async fn openhands_14878_nothing_is_deleted_whose_files_were_not_saved() {
    let stage = Stage::new().await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    stage.add(RuntimeSpec::running("a").unknown_loss());
    for _ in 0..10 {
        stage.tick().await;
        stage.advance(DAY);
    }
    assert_eq!(stage.effects(), ["a suspended", "a archived"]);
    assert!(kept(&stage.preview().await, "a").contains("not known"), "{}", kept(&stage.preview().await, "a"));
}

#[tokio::test]
async fn deer_flow_4443_a_runtime_that_was_just_created_is_not_an_orphan() {
    let stage = Stage::new().await.rules(|rules| rules.unknown_after = Some(HOUR));
    stage.add(RuntimeSpec::running("new").unknown().no_agent_server());
    stage.tick().await;
    stage.advance(59 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0]);
}

/// The database knows some, the provider runs more: the sweep is from the provider's list, of ours only.
#[tokio::test]
async fn opengeni_241_untagged_boxes_are_reported_and_unrecorded_ones_of_ours_are_found() {
    let stage = Stage::new().await;
    let old = stage.now().minus(DAY);
    stage.add(RuntimeSpec::running("ours-unknown-to-the-database").since(old).active(old));
    stage.add(RuntimeSpec::running("untagged").unlabelled().since(old).active(old));
    let outcome = stage.ticked().await;
    assert_eq!(stage.effects(), ["ours-unknown-to-the-database suspended"]);
    let note = &outcome.report.backends[0].note;
    assert_eq!((note.ours, note.unlabelled), (1, 1));
    assert_eq!(outcome.report.kept["unlabelled"], 1);
}

#[tokio::test]
async fn claude_code_74719_what_can_be_neither_kept_nor_saved_is_refused_by_name() {
    let shape = Shape { rests: true, saving: Saving::First, ..Shape::default() };
    let stage = Stage::shaped(shape).await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    let old = stage.now().minus(9 * DAY);
    stage.add(
        RuntimeSpec::running("tree").since(old).active(old).unsaved("3 untracked files").unsavable("read-only disk"),
    );
    let outcome = stage.ticked().await;
    let told = details(&outcome.report.entries);
    assert!(told[0].starts_with("tree: refused (") && told[0].contains("read-only disk"), "{told:?}");
    assert_eq!(stage.effects(), [""; 0]);
}

/// A slow worker wakes with a plan that is still valid, after others have acted and the user came back.
#[tokio::test]
async fn aws_us_east_1_2025_a_slow_worker_cannot_apply_an_old_plan() {
    let stage = idle().await;
    let old_plan = stage.preview().await;
    stage.tick().await;
    assert!(matches!(stage.pass().wake(&stage.id("a")).await, Woken::Running(_)));
    stage.advance(40 * MINUTE);
    // Idle again by every signal: only that it was acted on since tells.
    let slow = stage.pass_of("slow", vec![stage.fake.backend()]);
    let told = details(&slow.apply(&old_plan).await.unwrap().entries);
    assert_eq!(told, ["a: moved (somebody else has acted on it since)"]);
    assert_eq!(stage.effects(), ["a suspended", "a resumed"]);
}
