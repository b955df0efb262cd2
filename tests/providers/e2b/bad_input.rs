//! What E2B must not be believed: keep, report, go on. What is shared with Daytona is tried there.

use std::time::Duration;

use backend::{BackendError, ErrorKind};
use lifecycle::State;
use serde_json::json;

use super::Lab;
use crate::simulators::{Reply, Sent};

const LIST: &str = "GET /v2/sandboxes";

#[tokio::test]
async fn what_is_no_listing_is_an_error() {
    for (reply, kind) in [
        (Reply::sending(200, Sent::Text("<html>")), ErrorKind::Malformed),
        (Reply::empty(200), ErrorKind::Malformed),
        (Reply::json(200, json!({"code": 500, "message": "Error when getting sandboxes"})), ErrorKind::Malformed),
        (Reply::json(401, json!({"code": 401, "message": "no"})), ErrorKind::Denied),
        (Reply::json(500, json!({"code": 500, "message": "no"})), ErrorKind::Unreachable),
        (Reply::json(200, json!([])).with("X-Next-Token", ""), ErrorKind::Malformed),
    ] {
        let lab = Lab::new().await;
        lab.running();
        lab.server.always(LIST, reply.clone());
        assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, kind, "{reply:?}");
    }
    let lab = Lab::new().await;
    lab.server.state().left = Some(0);
    let told = lab.backend.list.list(None).await.unwrap_err();
    let throttled = ErrorKind::Throttled { retry_after: Duration::from_secs(11) };
    let why = "E2B's answer to `GET /v2/sandboxes` is 429: Rate limit exceeded";
    assert_eq!(told, BackendError::new(throttled, why));
}

#[tokio::test]
async fn rows_that_can_t_be_read_are_named_and_the_others_are_read() {
    let lab = Lab::new().await;
    let (one, other) = (lab.running(), lab.paused());
    let good = |id: &lifecycle::RuntimeId, state: &str| json!({"sandboxID": id.encoded(), "templateID": "base", "state": state, "startedAt": "2026-11-30T09:00:00Z", "endAt": "2026-11-30T09:30:00Z"});
    let mut odd = good(&one, "running");
    odd["endAt"] = json!(1_764_500_000);
    let rows = json!([good(&one, "hibernating"), odd, good(&other, "paused"), good(&other, "paused"), 7]);
    lab.server.always(LIST, Reply::json(200, rows));
    let page = lab.backend.list.list(None).await.unwrap();
    assert_eq!(page.seen.iter().map(|seen| (&seen.id, seen.state)).collect::<Vec<_>>(), [(&other, State::Suspended)]);
    assert_eq!(
        page.unreadable.iter().map(|why| &**why).collect::<Vec<_>>(),
        [
            "sandbox `ie2bsandbox000000001`: it is in a state that this version does not know: kept",
            "sandbox `ie2bsandbox000000001`: `endAt` is not a text: kept",
            "it is no object: kept",
        ]
    );
}

#[tokio::test]
async fn a_clock_that_is_off_ours_makes_all_its_times_useless() {
    let lab = Lab::new().await;
    let id = lab.running();
    lab.server.clock_ahead(-1_800);
    assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().kind, ErrorKind::Malformed);
}

#[tokio::test]
async fn pages_are_read_to_their_end_each_sandbox_once() {
    let lab = Lab::new().await;
    let ids: Vec<_> = (0..250).map(|_| lab.running()).collect();
    assert_eq!(lab.listed(|| {}).await, (ids, 3));
    assert_eq!(lab.server.calls().len(), 3, "a sweep is its pages and nothing more");
}

/// One that is being copied is missing in the listing, and there by id.
#[tokio::test]
async fn what_the_listing_leaves_out_is_there_by_id() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.snapshotting = true);
    assert_eq!(lab.backend.list.list(None).await.unwrap().seen, []);
    assert_eq!(lab.look(&id).await.unwrap().state, State::Running);
}
