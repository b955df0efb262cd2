//! Notices, saved work, files, the trash.

use std::sync::{Arc, Mutex};

use axum::{Router, extract::State as Shared, http::HeaderMap, http::StatusCode, response::Redirect, routing::post};
use backend::fake::{Removal, RuntimeSpec, Saving, Shape};
use ledger::{Save, Saved};
use lifecycle::{
    Disk, PolicyHash, State, Tier,
    policy::{Percent, WorkspaceRule},
};
use pass::{
    Notifier, Webhook,
    notify::{Event, EventKind, NotifyError, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign},
};

use super::stage::{DAY, HOUR, MINUTE, Stage, fates, kept, planned};
use crate::ledger::fixture::committed;

/// One that is due for deletion, where two hours' notice is demanded.
async fn condemned() -> Stage {
    let stage = Stage::new().await.told().rules(|rules| rules.notice_before_delete = Some(2 * HOUR));
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    stage
}

#[tokio::test]
async fn a_deletion_waits_until_its_notice_was_delivered_long_enough_ago() {
    let stage = condemned().await;
    *stage.inbox().down.lock().unwrap() = true;
    let outcome = stage.ticked().await;
    assert_eq!(fates(&outcome.report.entries), ["a notify: failed"]);
    for _ in 0..10 {
        stage.advance(HOUR);
        stage.tick().await;
    }
    assert_eq!(stage.effects(), [""; 0], "no notice, no deletion");
    *stage.inbox().down.lock().unwrap() = false;
    stage.advance(6 * HOUR);
    stage.tick().await;
    assert_eq!(stage.inbox().told(), ["a Notice"]);
    let delete_after = stage.inbox().events.lock().unwrap()[0].delete_after.unwrap();
    assert!(delete_after >= stage.now().plus(2 * HOUR));
    stage.advance(2 * HOUR);
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0]);
    stage.advance(MINUTE);
    assert!(stage.now() >= delete_after, "it keeps what it promised");
    stage.tick().await;
    assert_eq!(stage.effects(), ["a deleted"]);
}

#[tokio::test]
async fn without_a_receiver_nothing_that_needs_a_notice_is_deleted() {
    let mut stage = condemned().await;
    stage.inbox = None;
    for _ in 0..5 {
        stage.advance(DAY);
        stage.tick().await;
    }
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn a_hold_after_the_notice_clears_it() {
    let stage = condemned().await;
    stage.tick().await;
    assert_eq!(stage.inbox().told(), ["a Notice"]);
    let hold = lifecycle::record::Hold::Until(stage.now().plus(3 * HOUR));
    let request = ledger::HoldRequest { hold, why: "mine", by: "me" };
    let answer = stage.ledger.hold(&stage.id("a"), &request, None, stage.now()).await.unwrap();
    assert!(matches!(answer, ledger::HoldSet::Held(_)));
    stage.advance(4 * HOUR);
    stage.tick().await;
    assert_eq!(stage.inbox().told(), ["a Notice", "a Notice"], "a new deletion needs a new notice");
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn what_is_not_saved_is_not_deleted() {
    let stage = Stage::new().await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    let old = stage.now().minus(3 * DAY);
    stage.add(RuntimeSpec::archived("dirty").since(old).unsaved("3 untracked files"));
    stage.add(RuntimeSpec::archived("clean").since(old));
    stage.add(RuntimeSpec::archived("who-knows").since(old).unknown_loss());
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["clean delete"]);
    assert!(kept(&plan, "dirty").contains("3 untracked files"));
    stage.tick().await;
    assert_eq!(stage.effects(), ["clean deleted"]);
}

/// Its work was saved while it ran, by whoever had it, and that was told: then it may go, and the audit says where it is.
#[tokio::test]
async fn what_was_saved_since_it_was_last_active_is_deleted_and_found_again() {
    let stage = Stage::new().await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    committed(&stage.ledger, "ada", 1).await;
    for name in ["kept", "early"] {
        stage.add(RuntimeSpec::running(name).unsaved("3 untracked files"));
    }
    stage.tick().await;
    stage.advance(31 * MINUTE);
    let save = |age| Save { workspace: "ada".parse().unwrap(), generation: 1, age };
    for (name, age) in [("kept", 30 * MINUTE), ("early", 32 * MINUTE)] {
        let told = stage.ledger.saved(&stage.id(name), None, &save(age), stage.now()).await.unwrap();
        assert!(matches!(told, Saved::Noted { .. }), "{told:?}");
    }
    stage.tick().await;
    stage.advance(DAY + HOUR);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 4, "each was suspended and archived");
    stage.advance(DAY + HOUR);
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["kept delete"]);
    assert!(kept(&plan, "early").contains("3 untracked files"), "what was saved is of before its last activity");
    let outcome = stage.ticked().await;
    assert_eq!(fates(&outcome.report.entries), ["kept delete: done"]);
    let place = "workspace ada, generation 1";
    let detail = outcome.report.entries[0].detail.as_deref().unwrap();
    assert!(detail.starts_with(&format!("saved as `{place}`; ")), "{detail}");
    assert_eq!(stage.history("kept").await[0].saved.as_deref(), Some(place));
}

#[tokio::test]
async fn a_backend_that_saves_first_saves_or_refuses() {
    let shape = Shape { rests: true, saving: Saving::First, ..Shape::default() };
    let stage = Stage::shaped(shape).await.rules(|rules| rules.workspace = WorkspaceRule::Save);
    let old = stage.now().minus(3 * DAY);
    stage.add(RuntimeSpec::running("dirty").active(old).since(old).unsaved("2 unpushed commits"));
    stage.add(RuntimeSpec::running("locked").active(old).since(old).unsaved("2 commits").unsavable("it is locked"));
    let outcome = stage.ticked().await;
    assert_eq!(fates(&outcome.report.entries), ["dirty delete: done", "locked delete: refused"]);
    let detail = outcome.report.entries[0].detail.clone().unwrap();
    assert!(detail.contains("saved as") && detail.contains("furlough undo"), "{detail}");
    let line = &stage.history("dirty").await[0];
    assert!(line.saved.is_some() && !line.undo.is_empty(), "{line:?}");
    assert_eq!(stage.state("locked").await, State::Running);
}

#[tokio::test]
async fn files_are_shed_by_age_the_cheapest_first() {
    let stage = Stage::new().await.rules(|rules| {
        rules.idle_after = None;
        rules.files.caches = Some(HOUR);
        rules.files.dependencies = Some(DAY);
    });
    let spec = RuntimeSpec::running("a").shedable(Tier::Caches, "cache", "12345");
    stage.add(spec.shedable(Tier::Dependencies, "node_modules/x", "1234567").file("work", "mine"));
    stage.tick().await;
    stage.advance(HOUR + MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(stage.effects(), ["a shed of its caches"]);
    assert_eq!(outcome.report.saved().bytes, 5);
    stage.advance(DAY);
    stage.tick().await;
    assert_eq!(stage.effects(), ["a shed of its caches", "a shed of its dependencies"]);
    let left: Vec<_> = stage.fake.files(&stage.id("a")).unwrap().into_keys().collect();
    assert_eq!(left, [(None, "work".to_owned())]);
    stage.advance(DAY);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 2, "there is nothing more to shed");
}

#[tokio::test]
async fn a_disk_over_its_budget_sheds_the_longest_idle_until_it_is_under() {
    let stage = Stage::shaped(Shape { rests: true, ..Shape::default() }).await.rules(|rules| {
        rules.disk_budget = Percent::new(80);
        rules.retention.suspended = None;
    });
    for (name, hours) in [("old", 3), ("older", 5), ("oldest", 9), ("fresh", 0)] {
        let active = stage.now().minus(HOUR * hours);
        stage.add(RuntimeSpec::running(name).active(active).since(active).shedable(
            Tier::Caches,
            "cache",
            vec![0; 100],
        ));
    }
    stage.fake.set_disk(Some(Disk { total: 1_000, used: 950 }));
    let plan = stage.preview().await;
    assert_eq!(planned(&plan), ["oldest shed caches", "older shed caches"], "950 - 200 is under 800");
    stage.tick().await;
    let effects = stage.effects();
    assert_eq!(effects[..2], ["oldest shed of its caches", "older shed of its caches"]);
    let freed = effects[2..].iter().all(|effect| effect.contains("removed for ever"));
    assert!(effects.len() == 4 && freed, "a move to the trash frees nothing by itself: {effects:?}");
    stage.fake.set_disk(Some(Disk { total: 1_000, used: 750 }));
    stage.advance(HOUR);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 4, "under the budget nothing more is shed");
}

#[tokio::test]
async fn the_trash_is_emptied_after_its_time_and_not_while_paused() {
    let stage = Stage::shaped(Shape { removal: Removal::ToTrash, ..Shape::default() }).await;
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)));
    stage.tick().await;
    assert_eq!(stage.effects(), ["a deleted"]);
    stage.advance(6 * DAY);
    assert_eq!(stage.ticked().await.upkeep.emptied, []);
    stage.ledger.pause(None, "wait", "me", stage.now()).await.unwrap();
    stage.advance(2 * DAY);
    assert_eq!(stage.ticked().await.upkeep.emptied, []);
    stage.ledger.unpause(None, stage.now()).await.unwrap();
    stage.advance(HOUR);
    assert_eq!(stage.ticked().await.upkeep.emptied.len(), 1);
    assert_eq!(stage.fake.effects().len(), 2, "deleted, and later removed for ever");
}

/// Also without `retention.workspace`: what killed processes left of saves is ended there.
#[tokio::test]
async fn each_whole_pass_asks_for_what_was_only_begun_to_be_removed() {
    let stage = Stage::shaped(Shape { removal: Removal::ToTrash, ..Shape::default() }).await;
    for passes in 1..=3 {
        stage.tick().await;
        assert_eq!(stage.fake.asked().tidied, passes);
        stage.advance(HOUR);
    }
    stage.ledger.pause(None, "wait", "me", stage.now()).await.unwrap();
    stage.tick().await;
    assert_eq!(stage.fake.asked().tidied, 3, "not while it is paused");
}

#[tokio::test]
async fn what_nobody_can_want_back_any_more_goes_also_where_passes_only_report() {
    let shape = Shape { removal: Removal::ToTrash, saving: Saving::First, ..Shape::default() };
    let stage = Stage::shaped(shape).await.rules(|rules| {
        rules.workspace = WorkspaceRule::Save;
        rules.retention.workspace = Some(30 * DAY);
    });
    stage.add(RuntimeSpec::archived("a").since(stage.now().minus(3 * DAY)).unsaved("notes"));
    stage.tick().await;
    assert_eq!(stage.effects().len(), 1, "{:?}", stage.effects());
    let expired = async || {
        let (upkeep, errors) = stage.pass().empty_expired().await;
        assert_eq!(errors, [""; 0].map(Into::into));
        (upkeep.emptied.len(), upkeep.forgotten.len())
    };
    // A full disk takes nothing that was only just moved.
    stage.fake.set_disk(Some(Disk { total: 1_000, used: 1_000 }));
    assert_eq!(expired().await, (0, 0));
    stage.advance(8 * DAY);
    assert_eq!(expired().await, (1, 0));
    stage.advance(23 * DAY);
    stage.ledger.pause(None, "wait", "me", stage.now()).await.unwrap();
    assert_eq!(expired().await, (0, 0), "paused");
    stage.ledger.unpause(None, stage.now()).await.unwrap();
    assert_eq!(expired().await, (0, 1));
    assert_eq!(expired().await, (0, 0));
}

/// What a receiver was sent, and what it answers to each.
#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Receiver {
    /// Listens on this machine; answers as told, then 200.
    async fn listening(answers: &[u16]) -> (Self, String) {
        let receiver = Self::default();
        *receiver.answers.lock().unwrap() = answers.to_vec();
        let app = Router::new()
            .route("/hook", post(Self::take))
            .route("/elsewhere", post(|| async { Redirect::temporary("/hook") }))
            .with_state(receiver.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (receiver, url)
    }

    #[expect(clippy::unused_async, reason = "a handler is async")]
    async fn take(Shared(receiver): Shared<Self>, headers: HeaderMap, body: String) -> StatusCode {
        receiver.got.lock().unwrap().push((headers, body));
        let mut answers = receiver.answers.lock().unwrap();
        let answer = if answers.is_empty() { 200 } else { answers.remove(0) };
        StatusCode::from_u16(answer).unwrap()
    }

    fn got(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

fn event(stage: &Stage) -> Event {
    Event {
        id: "box/a/notice/1".to_owned(),
        event: EventKind::Notice,
        runtime: stage.id("a"),
        backend: super::stage::box_name(),
        action: Some(lifecycle::Action::Delete),
        reason: Some(lifecycle::Reason::Retention { stage: State::Archived, keep: DAY }),
        about: "an image".to_owned(),
        delete_after: Some(stage.now()),
        policy: PolicyHash::from_text("0123456789abcdef"),
        at: stage.now(),
    }
}

fn webhook(stage: &Stage, url: &str) -> Webhook {
    Webhook::new(url, Some(b"secret"), stage.hands.clock()).unwrap().waiting(std::time::Duration::from_millis(1))
}

#[tokio::test]
async fn a_webhook_is_signed_and_tried_again_with_bounds() {
    let stage = Stage::new().await;
    let (receiver, url) = Receiver::listening(&[500, 503]).await;
    let hook = webhook(&stage, &format!("{url}/hook"));
    assert_eq!(hook.deliver(&event(&stage)).await, Ok(()));
    let got = receiver.got.lock().unwrap().clone();
    assert_eq!(got.len(), 3);
    for (headers, body) in &got {
        let timestamp = headers[TIMESTAMP_HEADER].to_str().unwrap();
        assert_eq!(headers[SIGNATURE_HEADER].to_str().unwrap(), format!("sha256={}", sign(b"secret", timestamp, body)));
        assert_eq!(timestamp.parse::<i64>().unwrap(), stage.now().millis() / 1000);
    }
    let body: serde_json::Value = serde_json::from_str(&got[0].1).unwrap();
    assert_eq!(
        body,
        serde_json::json!({
            "id": "box/a/notice/1", "event": "notice", "runtime": "box/a", "backend": "box", "action": "delete",
            "reason": { "code": "retention", "stage": "archived", "keep": "1d" }, "about": "an image",
            "delete_after": "2026-11-30T12:00:00Z", "policy": "0123456789abcdef", "at": "2026-11-30T12:00:00Z",
        })
    );
}

#[tokio::test]
async fn a_webhook_gives_up_where_another_try_is_useless_or_too_many() {
    let stage = Stage::new().await;
    let (receiver, url) = Receiver::listening(&[500, 500, 500]).await;
    let hook = webhook(&stage, &format!("{url}/hook?token=s3cret"));
    let failed = hook.deliver(&event(&stage)).await.unwrap_err().to_string();
    assert_eq!(failed, "the receiver at `127.0.0.1` did not take it in 3 tries: it answered 500");
    assert!(hook.deliver(&event(&stage)).await.is_err());
    assert_eq!(receiver.got(), 3, "one that is down is not asked again at once");
    stage.advance(MINUTE);
    assert_eq!(hook.deliver(&event(&stage)).await, Ok(()));
    let (receiver, url) = Receiver::listening(&[403]).await;
    let refused = webhook(&stage, &format!("{url}/hook")).deliver(&event(&stage)).await.unwrap_err();
    assert_eq!((receiver.got(), &refused), (1, &NotifyError::Refused { host: "127.0.0.1".into(), status: 403 }));
    let moved = webhook(&stage, &format!("{url}/elsewhere")).deliver(&event(&stage)).await.unwrap_err();
    assert_eq!(moved, NotifyError::Refused { host: "127.0.0.1".into(), status: 307 });
    assert_eq!(receiver.got(), 1, "a redirect is not followed");
}
