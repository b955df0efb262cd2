//! What a provider must not be believed: keep, report, go on.

use std::time::Duration;

use backend::{BackendError, ErrorKind, Page, PageToken, Sighting};
use lifecycle::{Activity, State};
use serde_json::{Value, json};

use super::{Lab, backend};
use crate::simulators::{Hands, Reply, Sent};

const LIST: &str = "GET /api/sandbox";

impl Lab {
    async fn page(&self, token: Option<&PageToken>) -> Result<Page, BackendError> {
        self.backend.list.list(token).await
    }

    /// The row of `n-0`, changed by the test, in the listing and by id.
    fn row(&self, change: Value) {
        let edit = move |mut row: Value| {
            for (key, value) in change.as_object().unwrap() {
                row[key] = value.clone();
            }
            row
        };
        let now = self.hands.now();
        self.server.on(move |asked, server| {
            use crate::simulators::Provider as _;
            let answer = server.answer(asked, now);
            let Sent::Json(body) = answer.body.clone() else { return None };
            if asked.method != "GET" || answer.status != 200 {
                return None;
            }
            let body = match body["items"].as_array() {
                Some(items) => json!({
                    "items": items.iter().map(|item| if item["name"] == "n-0" { edit(item.clone()) } else { item.clone() }).collect::<Vec<_>>(),
                    "nextCursor": body["nextCursor"],
                }),
                None => edit(body),
            };
            Some(Reply::json(200, body))
        });
    }
}

#[tokio::test]
async fn what_is_no_listing_is_an_error_that_tells_what_to_do() {
    let unreadable = "Daytona's listing can't be read: ";
    let place = "Daytona's answer to `GET /api/sandbox`";
    for (reply, kind, message) in [
        (
            Reply::sending(200, Sent::Text("<html>it works")),
            ErrorKind::Malformed,
            "what Daytona answered with 200 is not JSON (line 1, column 1, 14 bytes)".to_owned(),
        ),
        (
            Reply::empty(200),
            ErrorKind::Malformed,
            "what Daytona answered with 200 is not JSON (line 1, column 0, 0 bytes)".to_owned(),
        ),
        (Reply::json(200, json!([])), ErrorKind::Malformed, format!("{unreadable}it is no object")),
        (Reply::json(200, json!({})), ErrorKind::Malformed, format!("{unreadable}`items` is not a list")),
        (
            Reply::json(200, json!({"statusCode": 500, "error": "Internal", "message": "dtn_5eed"})),
            ErrorKind::Malformed,
            format!("{unreadable}`items` is not a list"),
        ),
        (
            Reply::json(200, json!({"items": [], "nextCursor": 7})),
            ErrorKind::Malformed,
            format!("{unreadable}`nextCursor` is not a text"),
        ),
        (
            Reply::json(401, json!({"message": "your key dtn_5eed is bad"})),
            ErrorKind::Denied,
            format!("{place} is 401: your key … is bad"),
        ),
        (Reply::json(403, json!({"error": "Forbidden"})), ErrorKind::Denied, format!("{place} is 403: Forbidden")),
        (
            Reply::json(429, json!({})).with("Retry-After-authenticated", 3),
            ErrorKind::Throttled { retry_after: Duration::from_secs(3) },
            format!("{place} is 429: 2 bytes that are not Daytona's"),
        ),
        (
            Reply::sending(302, Sent::Nothing).with("location", "http://elsewhere/"),
            ErrorKind::Malformed,
            format!("{place} is 302: 0 bytes that are not Daytona's"),
        ),
        (
            Reply::json(503, json!({"message": "Service is currently under maintenance."})),
            ErrorKind::Unreachable,
            format!("{place} is 503: Service is currently under maintenance."),
        ),
        (
            Reply::sending(200, Sent::Endless),
            ErrorKind::Malformed,
            format!("{place} has more than 16777216 bytes: no more of it was read"),
        ),
    ] {
        let lab = Lab::new().await;
        lab.running();
        lab.server.always(LIST, reply);
        assert_eq!(lab.page(None).await, Err(BackendError::new(kind, message)));
        lab.server.behave();
        assert_eq!(lab.page(None).await.unwrap().seen.len(), 1, "and the next time it is read again");
    }
}

/// An answer that breaks off, or a gateway that fails once, is asked for once more: it is a question.
#[tokio::test]
async fn a_question_that_was_lost_is_asked_once_more() {
    for reply in [Reply::sending(200, Sent::BreaksOff), Reply::sending(502, Sent::Text("<html>bad gateway"))] {
        let lab = Lab::new().await;
        let id = lab.running();
        lab.server.once(LIST, reply.clone());
        assert_eq!(lab.page(None).await.unwrap().seen.len(), 1);
        lab.server.always(LIST, reply);
        assert_eq!(lab.page(None).await.unwrap_err().kind, ErrorKind::Unreachable);
        lab.server.calls();
        assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().kind, ErrorKind::Unreachable);
        assert_eq!(lab.server.calls().len(), 2);
    }
}

/// One row that can't be read is kept and named, and the others are read.
#[tokio::test]
async fn one_row_that_can_t_be_read_is_named_and_the_others_are_read() {
    let id = "sandbox `00000000-0000-4000-8000-000000000001`";
    for (change, why) in [
        (json!({"state": "hibernated"}), format!("{id}: it is in a state that this version does not know: kept")),
        (json!({"state": "unknown"}), format!("{id}: it is in a state that this version does not know: kept")),
        (json!({"desiredState": "frozen"}), format!("{id}: it is in a state that this version does not know: kept")),
        (json!({"autoStopInterval": "15"}), format!("{id}: `autoStopInterval` is not a whole number: kept")),
        (json!({"lastActivityAt": "soon"}), format!("{id}: `lastActivityAt` is not a time: kept")),
        (
            json!({"lastActivityAt": "2026-11-30T12:00:00Z"}),
            "sandbox `n-0`: its last activity is 7200 s in the future: kept".to_owned(),
        ),
        (json!({"id": 7}), "`id` is not a text: kept".to_owned()),
    ] {
        let lab = Lab::new().await;
        let (bad, good) = (lab.running(), lab.running());
        lab.row(change.clone());
        let page = lab.page(None).await.unwrap();
        let seen: Vec<_> = page.seen.iter().map(|seen| seen.id.clone()).collect();
        assert_eq!((seen, page.unreadable), (vec![good], vec![why.into()]), "{change}");
        assert_eq!(lab.backend.inspect.inspect(&bad).await.unwrap_err().kind, ErrorKind::Malformed, "{change}");
    }
}

/// A class that is new is taken for a VM, which pauses: a refusal is the worst that can come of it.
#[tokio::test]
async fn new_words_in_fields_that_decide_nothing_are_no_fault() {
    let lab = Lab::new().await;
    let id = lab.running();
    lab.row(json!({"backupState": "Teleporting", "sandboxClass": "quantum", "cpu": "two", "newField": {"a": 1}}));
    assert_eq!(lab.state(&id).await, Some(State::Running));
}

#[tokio::test]
async fn a_missing_clock_of_activity_is_unknown_and_never_idle() {
    let lab = Lab::new().await;
    let id = lab.running();
    lab.row(json!({"lastActivityAt": null}));
    assert_eq!(lab.look(&id).await.unwrap().activity, Activity::Unknown);
}

#[tokio::test]
async fn a_clock_that_is_off_ours_makes_all_its_times_useless() {
    for seconds in [7_200, -7_200, 40, -40] {
        let lab = Lab::new().await;
        let id = lab.running();
        lab.server.clock_ahead(seconds);
        let off = seconds.abs();
        let told = lab.page(None).await.unwrap_err();
        let why = format!(
            "the clock of Daytona's answer to `GET /api/sandbox` is {off} s off this machine's, and at most 30 s are \
             allowed: none of it is used"
        );
        assert_eq!(told, BackendError::new(ErrorKind::Malformed, why));
        assert_eq!(lab.backend.inspect.inspect(&id).await.unwrap_err().kind, ErrorKind::Malformed);
        lab.server.clock_ahead(seconds.signum() * 20);
        assert_eq!(lab.state(&id).await, Some(State::Running));
    }
}

#[tokio::test]
async fn pages_are_read_to_their_end_each_sandbox_once() {
    let lab = Lab::new().await;
    let ids: Vec<_> = (0..450).map(|_| lab.running()).collect();
    // One that is there already is used meanwhile: that moves it in any order but that of creation.
    let used = || lab.server.state().sandboxes.values_mut().next().unwrap().last_activity = lab.hands.now();
    assert_eq!(lab.listed(used).await, (ids, 3));
    assert_eq!(lab.server.calls().len(), 3, "a sweep is its pages and nothing more");
}

#[tokio::test]
async fn pages_that_repeat_or_never_end_are_an_error() {
    let page = |next: &str| Reply::json(200, json!({"items": [], "nextCursor": next}));
    let lab = Lab::new().await;
    lab.server.always(LIST, page("again"));
    let first = lab.page(None).await.unwrap().next.unwrap();
    let told = lab.page(Some(&first)).await.unwrap_err();
    assert_eq!(told.message, "a page names itself as the next one, so the listing would never end");
    lab.server.behave();
    lab.server.always(LIST, page("another"));
    // As if so many pages had been read before.
    let told = lab.page(Some(&PageToken("9999 cursor".into()))).await.unwrap_err();
    assert_eq!(told.message, "the listing did not end within 10000 pages");
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_listing_is_an_error_and_no_end() {
    let lab = Lab::new().await;
    for _ in 0..250 {
        lab.running();
    }
    let next = lab.page(None).await.unwrap().next.unwrap();
    lab.server.always(LIST, Reply::json(401, json!({"message": "Invalid credentials"})));
    assert_eq!(lab.page(Some(&next)).await.unwrap_err().kind, ErrorKind::Denied);
}

/// The listing lags, and says so by nothing: what it has is only where to look.
#[tokio::test]
async fn a_listing_that_lags_is_not_what_is_there() {
    let lab = Lab::new().await;
    lab.server.state().lag = Duration::from_mins(1);
    let id = lab.add(|_| {});
    let target = lab.target(&id).await;
    let suspend = lab.backend.suspend.as_ref().unwrap();
    assert!(suspend.suspend(&target, super::minutes(lab.hands.now())).await.is_ok());
    lab.hands.advance(Duration::from_secs(10));
    assert_eq!(lab.page(None).await.unwrap().seen[0].state, State::Running);
    assert_eq!(lab.state(&id).await, Some(State::Suspended));
    lab.hands.advance(Duration::from_mins(2));
    assert_eq!(lab.page(None).await.unwrap().seen[0].state, State::Suspended);
}

#[tokio::test]
async fn an_answer_about_another_sandbox_is_none_about_this_one() {
    let lab = Lab::new().await;
    let (one, other) = (lab.running(), lab.running());
    let other = String::from_utf8(other.provider_id()).unwrap();
    lab.row(json!({"id": other}));
    assert_eq!(lab.backend.inspect.inspect(&one).await, Ok(Sighting::NotThere));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let hands = Hands::at("2026-11-30T10:00:00Z");
    let told = backend(&hands, "http://127.0.0.1:1").list.list(None).await.unwrap_err();
    assert_eq!(told.kind, ErrorKind::Unreachable);
    assert!(told.message.starts_with("Daytona's answer to `GET /api/sandbox` did not come: "), "{told}");
}
