//! Destruction: only where it was chosen, by the Worker, confirmed by the listing; and what each answer comes to.

use std::time::Duration;

use backend::{BackendError, Bounds, Deleted, ErrorKind, Outcome, Target};
use lifecycle::{RuntimeId, State, policy::WorkspaceRule};
use serde_json::json;

use super::{Lab, at_worker, minutes};
use crate::simulators::{Reply, Sent, cloudflare::Fault};

impl Lab {
    async fn destroy(&self, target: &Target) -> Result<Outcome<Deleted>, BackendError> {
        let delete = self.backend.delete.as_ref().unwrap();
        delete.delete(target, WorkspaceRule::Discard, minutes(self.hands.now())).await
    }

    /// One that runs, as it is now.
    async fn aimed(&self) -> (RuntimeId, Target) {
        let id = self.running();
        let target = self.target(&id).await;
        (id, target)
    }
}

/// Sleep wipes files, so that there is no suspend; without its owner's word there is no deletion either.
#[tokio::test]
async fn what_its_owner_did_not_choose_can_t_be_called() {
    let (keeping, new) = (Lab::keeping().await, Lab::new().await);
    let roles =
        |lab: &Lab| (lab.backend.suspend.is_some(), lab.backend.archive.is_some(), lab.backend.delete.is_some());
    assert_eq!((roles(&keeping), keeping.backend.rests), ((false, false, false), false));
    assert_eq!((roles(&new), new.backend.rests), ((false, false, true), true));
}

#[tokio::test]
async fn a_destruction_is_a_look_an_act_and_a_look() {
    let lab = Lab::new().await;
    let (id, target) = lab.aimed().await;
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Done(Deleted::default())));
    let calls = lab.server.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls[0].starts_with("GET /client/v4/") && calls[2] == calls[0], "{calls:?}");
    assert_eq!(calls[1], format!("POST {}", at_worker(&id, "destroy")));
    assert!(lab.look(&id).await.is_none(), "though Cloudflare shows for ever that it was there");
}

/// What the Worker answers is what was asked for; what counts is the listing, which is late.
#[tokio::test]
async fn a_destruction_is_under_way_until_the_listing_knows() {
    let lab = Lab::new().await;
    lab.server.state().lag = Duration::from_secs(8);
    let (id, target) = lab.aimed().await;
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Pending));
    assert_eq!(lab.state(&id).await, Some(State::Running));
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Pending), "the Worker says that it does not run any more");
    lab.hands.advance(Duration::from_secs(8));
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Gone));
}

/// It went to sleep between our look and our call: nothing is started only to be destroyed.
#[tokio::test]
async fn what_sleeps_already_is_not_woken_to_be_destroyed() {
    let lab = Lab::new().await;
    let (_, target) = lab.aimed().await;
    let now = lab.hands.now();
    lab.server.on(move |asked, server| {
        if asked.uri.ends_with("/destroy") {
            server.sandboxes.values_mut().next().unwrap().sleep(now);
        }
        None
    });
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::AlreadyDone));
}

#[tokio::test]
async fn a_container_that_lives_on_or_stops_by_itself_is_not_done() {
    let lab = Lab::new().await;
    let (_, target) = lab.aimed().await;
    lab.server.state().fault = Some(Fault::Lives);
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Pending));
    lab.server.state().sandboxes.values_mut().next().unwrap().state = "stopping";
    lab.server.calls();
    assert_eq!(lab.destroy(&target).await, Ok(Outcome::Pending));
    assert_eq!(lab.acts(), [""; 0], "Cloudflare is at it already");
}

#[tokio::test]
async fn each_answer_of_the_worker_has_its_own_outcome() {
    let error = |status: u16| Reply::json(status, json!({"error": "no"}));
    let failed = |kind: ErrorKind, why: &str| Err(BackendError::new(kind, why));
    let unknown = |why: &str| Ok(Outcome::Unknown(why.into()));
    let at = |status: u16| format!("the companion Worker's answer to `POST PLACE` is {status}: no");
    let throttled = ErrorKind::Throttled { retry_after: Duration::from_secs(7) };
    let unread = |why: &str| unknown(&format!("the companion Worker's answer can't be read: {why}"));
    for (reply, expected) in [
        (error(401), failed(ErrorKind::Denied, &at(401))),
        (error(429).with("Retry-After", 7), failed(throttled, &at(429))),
        (error(400), Ok(Outcome::Refused(at(400).into()))),
        (error(404), Ok(Outcome::Refused(at(404).into()))),
        (error(502), unknown(&at(502))),
        (
            Reply::sending(200, Sent::Text("<html>")),
            unknown("what the companion Worker answered with 200 is not JSON (line 1, column 1, 6 bytes)"),
        ),
        (
            Reply::empty(200),
            unknown("what the companion Worker answered with 200 is not JSON (line 1, column 0, 0 bytes)"),
        ),
        (Reply::json(200, json!({"error": "no"})), unread("`after` is missing")),
        (Reply::json(200, json!({"after": {"status": "paused"}})), unread("`status` is none that this version knows")),
        (Reply::json(200, json!({"after": {"status": 7}})), unread("`status` is not a text")),
        (Reply::json(200, json!([])), unread("it is no object")),
    ] {
        let lab = Lab::new().await;
        let (id, target) = lab.aimed().await;
        lab.server.always("POST /worker", reply);
        let place = at_worker(&id, "destroy");
        let told = |text: &str| text.replace(&place, "PLACE");
        let outcome = match lab.destroy(&target).await {
            Ok(Outcome::Unknown(why)) => unknown(&told(&why)),
            Ok(Outcome::Refused(why)) => Ok(Outcome::Refused(told(&why).into())),
            Err(error) => failed(error.kind, &told(&error.message)),
            other => other,
        };
        assert_eq!(outcome, expected);
        assert_eq!(lab.acts().len(), 1, "asked once, whatever came");
        assert!(lab.look(&id).await.is_some());
    }
}

#[tokio::test]
async fn a_destruction_whose_answer_was_lost_is_not_known() {
    let lab = Lab::new().await;
    let (_, target) = lab.aimed().await;
    lab.server.always("POST /worker", Reply::sending(200, Sent::BreaksOff));
    let outcome = lab.destroy(&target).await;
    assert!(matches!(&outcome, Ok(Outcome::Unknown(_))), "{outcome:?}");
    lab.server.behave();
    lab.server.state().fault = Some(Fault::Throws);
    let outcome = lab.destroy(&target).await;
    assert!(matches!(&outcome, Ok(Outcome::Unknown(why)) if why.contains("Internal error")), "{outcome:?}");
}

#[tokio::test]
async fn a_destruction_is_not_begun_without_its_time() {
    let lab = Lab::new().await;
    let (_, target) = lab.aimed().await;
    let soon = Bounds { deadline: lab.hands.now().plus(Duration::from_secs(49)) };
    let delete = lab.backend.delete.clone().unwrap();
    let late = delete.delete(&target, WorkspaceRule::Discard, soon).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Unreachable);
    assert_eq!(lab.server.calls(), [""; 0]);
}
