//! What Cloudflare must not be believed: keep, report, go on. What is shared with Daytona is tried there.

use std::time::Duration;

use backend::{BackendError, ErrorKind};
use lifecycle::State;
use serde_json::{Value, json};

use super::Lab;
use crate::simulators::{
    Reply, Sent,
    cloudflare::{ACCOUNT, APPLICATION},
};

const LIST: &str = "GET /client/v4/accounts/0123456789abcdef0123456789abcdef/containers/applications/11111111-2222-4333-8444-555555555555/instances-v2";

fn page(rows: &Value, next: Option<&str>) -> Reply {
    Reply::json(200, json!({"success": true, "errors": [], "result": rows, "result_info": {"next_page_token": next}}))
}

#[tokio::test]
async fn what_is_no_listing_is_an_error() {
    assert!(LIST.contains(ACCOUNT) && LIST.contains(APPLICATION));
    let said = |status: u16| Reply::json(status, json!({"success": false, "errors": [{"code": 1, "message": "no"}]}));
    for (reply, kind) in [
        (Reply::sending(200, Sent::Text("<html>")), ErrorKind::Malformed),
        (Reply::empty(200), ErrorKind::Malformed),
        (said(200), ErrorKind::Malformed),
        (Reply::json(200, json!([])), ErrorKind::Malformed),
        (Reply::json(200, json!({"success": "true", "result": []})), ErrorKind::Malformed),
        (Reply::json(200, json!({"success": true, "result": null})), ErrorKind::Malformed),
        (Reply::json(200, json!({"success": true, "result": [], "result_info": 7})), ErrorKind::Malformed),
        (Reply::sending(200, Sent::Endless), ErrorKind::Malformed),
        (Reply::sending(200, Sent::BreaksOff), ErrorKind::Unreachable),
        (said(401), ErrorKind::Denied),
        (said(403), ErrorKind::Denied),
        (said(404), ErrorKind::Malformed),
        (said(500), ErrorKind::Unreachable),
        (said(429).with("Retry-After", 11), ErrorKind::Throttled { retry_after: Duration::from_secs(11) }),
    ] {
        let lab = Lab::new().await;
        lab.running();
        lab.server.always(LIST, reply.clone());
        assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, kind, "{reply:?}");
    }
    let lab = Lab::new().await;
    lab.server.always(LIST, said(403));
    let told = lab.backend.list.list(None).await.unwrap_err();
    let why = format!("Cloudflare's answer to `{LIST}` is 403: no");
    assert_eq!(told, BackendError::new(ErrorKind::Denied, why));
}

#[tokio::test]
async fn rows_that_can_t_be_read_are_named_and_the_others_are_read() {
    let lab = Lab::new().await;
    let (one, other) = (lab.running(), lab.running());
    let row = |id: &lifecycle::RuntimeId, state: &str| json!({"id": id.encoded(), "name": "agent-1", "status": {"state": state, "updated_at": "2026-11-30T09:00:00Z"}, "started_at": "2026-11-30T09:00:00Z"});
    let mut odd = row(&one, "running");
    odd["started_at"] = json!("1764500000");
    let rows = json!([row(&one, "hibernating"), odd, row(&other, "running"), row(&other, "running"), 7]);
    lab.server.always(LIST, page(&rows, None));
    let page = lab.backend.list.list(None).await.unwrap();
    assert_eq!(page.seen.iter().map(|seen| (&seen.id, seen.state)).collect::<Vec<_>>(), [(&other, State::Running)]);
    assert_eq!(
        page.unreadable.iter().map(|why| &**why).collect::<Vec<_>>(),
        [
            "sandbox `000000000000…`: it is in a state that this version does not know: kept",
            "sandbox `000000000000…`: `started_at` is not a time: kept",
            "it is no object: kept",
        ]
    );
}

#[tokio::test]
async fn pages_end_and_a_refusal_in_the_middle_is_no_end() {
    let lab = Lab::new().await;
    lab.server.always(LIST, page(&json!([]), Some("again")));
    let first = lab.backend.list.list(None).await.unwrap().next.unwrap();
    let repeated = lab.backend.list.list(Some(&first)).await.unwrap_err();
    assert_eq!(repeated.message, "a page names itself as the next one, so the listing would never end");
    lab.server.behave();
    let ids: Vec<_> = (0..2_100).map(|_| lab.running()).collect();
    lab.server.calls();
    assert_eq!(lab.listed(|| {}).await, (ids, 3));
    assert_eq!(lab.server.calls().len(), 3, "a sweep is its pages and nothing more");
    let second = lab.backend.list.list(None).await.unwrap().next.unwrap();
    lab.server.always(LIST, Reply::json(401, json!({"success": false, "errors": []})));
    assert_eq!(lab.backend.list.list(Some(&second)).await.unwrap_err().kind, ErrorKind::Denied);
}

#[tokio::test]
async fn a_clock_that_is_two_hours_off_makes_all_its_times_useless() {
    let lab = Lab::new().await;
    let id = lab.running();
    for ahead in [-7_200, 7_200] {
        lab.server.clock_ahead(ahead);
        assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, ErrorKind::Malformed);
        assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().kind, ErrorKind::Malformed);
    }
}

/// The listing is asked for what is active, in which an unhealthy one is not: by its id it is there.
#[tokio::test]
async fn what_the_listing_leaves_out_is_there_by_id() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.state = "unhealthy");
    let asleep = lab.running();
    let now = lab.hands.now();
    lab.server.state().sandboxes.get_mut(asleep.encoded()).unwrap().sleep(now);
    assert_eq!(lab.backend.list.list(None).await.unwrap().seen, []);
    assert_eq!(lab.look(&id).await.unwrap().state, State::Running);
    assert!(lab.look(&asleep).await.is_none(), "it has neither a container nor files");
}
