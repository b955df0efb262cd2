//! What OpenHands must not be believed: keep, report, go on. What is shared with Daytona is tried there.

use std::time::Duration;

use backend::{BackendError, ErrorKind, PageToken, Sighting};
use backend_rest::openhands::Which;
use lifecycle::State;
use serde_json::{Value, json};

use super::{BOTH, Lab};
use crate::simulators::{Reply, Sent};

const LIST: &str = "GET /api/v1/sandboxes/search";
const TALKS: &str = "GET /api/v1/app-conversations/search";

fn list(which: Which) -> &'static str {
    if which == Which::Cloud { LIST } else { "GET /list" }
}

#[tokio::test]
async fn what_is_no_listing_is_an_error() {
    let bad = |kind: ErrorKind, reply: Reply| (reply, kind);
    for which in BOTH {
        for (reply, kind) in [
            bad(ErrorKind::Malformed, Reply::sending(200, Sent::Text("<!doctype html><div id=root>"))),
            bad(ErrorKind::Malformed, Reply::empty(200)),
            bad(ErrorKind::Malformed, Reply::json(200, json!([]))),
            bad(ErrorKind::Malformed, Reply::json(200, json!({"items": null, "runtimes": {}}))),
            bad(ErrorKind::Malformed, Reply::json(200, json!({"detail": "Internal Server Error"}))),
            bad(ErrorKind::Malformed, Reply::sending(200, Sent::Endless)),
            bad(ErrorKind::Malformed, Reply::sending(307, Sent::Nothing).with("location", "http://elsewhere/")),
            bad(ErrorKind::Denied, Reply::json(401, json!({"detail": "Unauthorized"}))),
            bad(ErrorKind::Unreachable, Reply::json(500, json!({"detail": "Internal Server Error"}))),
        ] {
            let lab = Lab::new(which).await;
            lab.running();
            lab.server.always(list(which), reply.clone());
            assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, kind, "{which:?} {reply:?}");
            lab.server.behave();
            assert_eq!(lab.backend.list.list(None).await.unwrap().seen.len(), 1, "and the next time it is read again");
        }
        let lab = Lab::new(which).await;
        lab.server.state().left = Some(0);
        let told = lab.backend.list.list(None).await.unwrap_err();
        assert_eq!(told.kind, ErrorKind::Throttled { retry_after: Duration::from_secs(11) });
        assert!(told.message.ends_with("is 429: Too many requests"), "{told}");
    }
}

/// Without its conversations nobody knows when a sandbox was used: then nothing is listed, and nothing is idle.
#[tokio::test]
async fn conversations_that_can_t_be_read_are_an_error_of_the_whole_listing() {
    for (reply, why) in [
        (
            Reply::sending(200, Sent::Text("<html>")),
            "what OpenHands answered with 200 is not JSON (line 1, column 1, 6 bytes)",
        ),
        (Reply::json(200, json!({"items": 7})), "OpenHands' answer can't be read: `items` is not a list"),
        (
            Reply::json(200, json!({"items": [], "next_page_id": 100})),
            "OpenHands' answer can't be read: `next_page_id` is not a text",
        ),
        (
            Reply::json(200, json!({"items": [{"id": "c", "sandbox_id": null}]})),
            "OpenHands' answer can't be read: a conversation of which nobody knows the sandbox: `sandbox_id` is missing",
        ),
        (
            Reply::json(401, json!({"detail": "no"})),
            "OpenHands' answer to `GET /api/v1/app-conversations/search` is 401: no",
        ),
        (
            Reply::json(200, json!({"items": [], "next_page_id": "again"})),
            "OpenHands' answer can't be read: a page of conversations names itself as the next one",
        ),
    ] {
        let lab = Lab::new(Which::Cloud).await;
        let id = lab.running();
        lab.server.always(TALKS, reply);
        assert_eq!(lab.backend.list.list(None).await.unwrap_err().message, why);
        assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().message, why);
    }
}

/// A listing of conversations that grows under its reader never ends by itself.
#[tokio::test]
async fn conversations_without_end_are_an_error() {
    let lab = Lab::new(Which::Cloud).await;
    let mut page = 0;
    lab.server.on(move |asked, _| {
        page += 1;
        asked
            .uri
            .contains("app-conversations")
            .then(|| Reply::json(200, json!({"items": [], "next_page_id": page.to_string()})))
    });
    let (mut token, mut pages) = (None, 0);
    let told = loop {
        match lab.backend.list.list(token.as_ref()).await {
            Ok(page) => (token, pages) = (Some(page.next.unwrap()), pages + 1),
            Err(told) => break told,
        }
    };
    assert_eq!(told.message, "OpenHands' answer can't be read: there are more than 1000 pages of conversations");
    assert_eq!((pages, lab.server.calls().len()), (50, 1_000), "each call has half a minute");
    // By id there is one call.
    let id = lab.running();
    let told = lab.backend.inspect.inspect(&id).await.unwrap_err();
    assert_eq!(
        told.message,
        "OpenHands' answer can't be read: there are more than 20 pages of conversations in one sandbox"
    );
}

/// What a page needs of the conversations is in the process that began the listing.
#[tokio::test]
async fn a_listing_is_gone_on_with_where_it_was_begun() {
    let lab = Lab::new(Which::Cloud).await;
    for place in ["1 100", "1 talks 100"] {
        let told = lab.backend.list.list(Some(&PageToken(place.into()))).await.unwrap_err();
        let why = "the listing was begun elsewhere, and what its conversations told is not here: begin it anew";
        assert_eq!(told, BackendError::new(ErrorKind::Malformed, why), "{place}");
    }
}

#[tokio::test]
async fn rows_that_can_t_be_read_are_named_and_the_others_are_read() {
    for which in BOTH {
        let lab = Lab::new(which).await;
        lab.running();
        let row = |id: &str, changes: Value| {
            let mut row = match which {
                Which::Cloud => {
                    json!({"id": id, "sandbox_spec_id": "x", "status": "PAUSED", "created_at": "2026-11-30T09:00:00Z"})
                }
                Which::Runtime => json!({"runtime_id": id, "session_id": "7Kq2", "status": "paused"}),
            };
            changes.as_object().unwrap().iter().for_each(|(key, change)| row[key] = change.clone());
            row
        };
        let rows = json!([
            row("a", json!({})),
            row("a", json!({})),
            row("b", json!({"status": "HIBERNATED"})),
            row("c", json!({"status": 3})),
            row("d", json!({"id": 7, "runtime_id": 7})),
            7,
        ]);
        let key = if which == Which::Cloud { "items" } else { "runtimes" };
        lab.server.always(list(which), Reply::json(200, json!({key: rows})));
        let page = lab.backend.list.list(None).await.unwrap();
        assert_eq!(
            page.seen.iter().map(|seen| (seen.id.clone(), seen.state)).collect::<Vec<_>>(),
            [(lab.id("a"), State::Suspended)]
        );
        let mut told: Vec<_> = page.unreadable.iter().map(|why| why.replace("sandbox `", "runtime `")).collect();
        told.sort();
        assert_eq!(
            told.iter().map(|why| why.replace("`runtime_id`", "`id`")).collect::<Vec<_>>(),
            [
                "`id` is not a text: kept",
                "it is no object: kept",
                "runtime `b`: it is in a state that this version does not know: kept",
                "runtime `c`: `status` is not a text: kept",
            ]
        );
    }
}

#[tokio::test]
async fn a_clock_that_is_off_ours_makes_all_its_times_useless() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    lab.server.clock_ahead(-7_200);
    assert_eq!(lab.backend.list.list(None).await.unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().kind, ErrorKind::Malformed);
}

#[tokio::test]
async fn pages_that_repeat_or_never_end_and_refusals_among_them_are_errors() {
    let lab = Lab::new(Which::Cloud).await;
    (0..150).for_each(|_| drop(lab.running()));
    let next = lab.backend.list.list(None).await.unwrap().next.unwrap();
    let denied = Reply::json(401, json!({"detail": "Unauthorized"}));
    lab.server.always(LIST, denied);
    assert_eq!(lab.backend.list.list(Some(&next)).await.unwrap_err().kind, ErrorKind::Denied);
    lab.server.behave();
    lab.server.always(LIST, Reply::json(200, json!({"items": [], "next_page_id": "100"})));
    let told = lab.backend.list.list(Some(&next)).await.unwrap_err();
    assert_eq!(told.message, "a page names itself as the next one, so the listing would never end");
    lab.server.behave();
    lab.server.always(LIST, Reply::json(200, json!({"items": [], "next_page_id": "2"})));
    let told = lab.backend.list.list(Some(&PageToken("9999 1".into()))).await.unwrap_err();
    assert_eq!(told.message, "the listing did not end within 10000 pages");
}

/// Answers that are about something else, or about too much.
#[tokio::test]
async fn an_answer_about_another_sandbox_is_none_about_this_one() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let row =
        json!({"id": "another", "sandbox_spec_id": "x", "status": "PAUSED", "created_at": "2026-11-30T09:00:00Z"});
    lab.server.always("GET /api/v1/sandboxes", Reply::json(200, json!([row.clone()])));
    assert_eq!(lab.backend.inspect.inspect(&id).await, Ok(Sighting::NotThere));
    lab.server.behave();
    for body in [json!([]), json!([row.clone(), row]), json!({"items": []}), Value::Null] {
        let lab = Lab::new(Which::Cloud).await;
        let id = lab.running();
        lab.server.always("GET /api/v1/sandboxes", Reply::json(200, body.clone()));
        let why = "OpenHands' answer can't be read: it is no list of one sandbox";
        let malformed = BackendError::new(ErrorKind::Malformed, why);
        assert_eq!(lab.backend.inspect.inspect(&id).await, Err(malformed), "{body}");
    }
}

/// Each key that may be in an answer is in no message: the session's, ours.
#[tokio::test]
async fn no_key_is_told() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let reply = json!({"detail": format!("the key {} is bad", crate::simulators::openhands::KEY)});
    lab.server.always("GET", Reply::json(403, reply));
    let told = lab.backend.inspect.inspect(&id).await.unwrap_err();
    assert_eq!(told.message, "OpenHands' answer to `GET /api/v1/sandboxes` is 403: the key … is bad");
    lab.server.behave();
    let seen = format!("{:?}", lab.look(&id).await.unwrap());
    assert!(!seen.contains("session-"), "{seen}");
}
