//! Pause, resume, kill: what each answer comes to.

use std::time::Duration;

use backend::{BackendError, ErrorKind, Outcome, Target};
use lifecycle::{Activity, State, policy::WorkspaceRule};
use serde_json::json;

use super::{Lab, minutes};
use crate::simulators::{Reply, Sent, e2b::PauseFault};

impl Lab {
    async fn suspend(&self, target: &Target) -> Result<Outcome, BackendError> {
        self.backend.suspend.as_ref().unwrap().suspend(target, minutes(self.hands.now())).await
    }
}

#[tokio::test]
async fn a_pause_is_a_look_an_act_and_a_look() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::Done(())));
    let one = "/sandboxes/ie2bsandbox000000001";
    assert_eq!(lab.server.calls(), [format!("GET {one}"), format!("POST {one}/pause"), format!("GET {one}")]);
    let paused = lab.look(&id).await.unwrap();
    assert_eq!((paused.state, paused.activity), (State::Suspended, Activity::At(lab.hands.now())));
}

/// What E2B answers is not what it did. `earlier`: it was paused and resumed once before.
#[tokio::test]
async fn a_pause_that_failed_is_never_taken_for_one() {
    for (fault, earlier, told) in [
        (PauseFault::Lost, false, "500: Error pausing sandbox, and now says that there is none"),
        (
            PauseFault::Lost,
            true,
            "500: Error pausing sandbox, and shows what an earlier pause kept: what was done since may be lost",
        ),
        (PauseFault::LostLater, false, "E2B answered that it paused, and now says that there is none"),
        (
            PauseFault::LostLater,
            true,
            "E2B answered that it paused, and shows what an earlier pause kept: what was done since may be lost",
        ),
    ] {
        let lab = Lab::new().await;
        let before = lab.hands.now().minus(Duration::from_mins(30));
        let id = lab.add(|sandbox| {
            if earlier {
                sandbox.paused_earlier(before);
            }
        });
        let target = lab.target(&id).await;
        lab.server.state().pause_fault = Some(fault);
        let outcome = lab.suspend(&target).await;
        assert!(
            matches!(&outcome, Ok(Outcome::Unknown(why)) if why.contains(told)),
            "{fault:?}, {earlier}: {outcome:?}"
        );
        assert_eq!(lab.acts().len(), 1, "and it is not tried again, which would be worse");
    }
}

#[tokio::test]
async fn a_pause_that_was_refused_untouched_is_tried_later() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    lab.server.state().pause_fault = Some(PauseFault::Busy);
    let outcome = lab.suspend(&target).await;
    assert!(matches!(&outcome, Ok(Outcome::Unknown(why)) if why.contains("503")), "{outcome:?}");
    assert_eq!(lab.look(&id).await.unwrap().state, State::Running);
    lab.server.state().pause_fault = None;
    lab.server.state().sandboxes.values_mut().next().unwrap().snapshotting = true;
    let outcome = lab.suspend(&target).await;
    assert!(matches!(&outcome, Ok(Outcome::Unknown(why)) if why.contains("409")), "{outcome:?}");
    lab.server.state().sandboxes.values_mut().next().unwrap().snapshotting = false;
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::Done(())));
}

/// Somebody else paused it between our look and our act.
#[tokio::test]
async fn a_pause_that_came_too_late_is_already_done() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let now = lab.hands.now();
    lab.server.on(move |asked, server| {
        if asked.uri.ends_with("/pause") {
            server.sandboxes.values_mut().next().unwrap().paused_since(now);
        }
        None
    });
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::AlreadyDone));
}

#[tokio::test]
async fn each_refusal_of_a_pause_has_its_own_outcome() {
    let place = "E2B's answer to `POST /sandboxes/ie2bsandbox000000001/pause`";
    let error = |status: u16| Reply::json(status, json!({"code": status, "message": "no"}));
    let failed = |kind: ErrorKind, status: u16| Err(BackendError::new(kind, format!("{place} is {status}: no")));
    let throttled = ErrorKind::Throttled { retry_after: Duration::from_secs(11) };
    for (reply, expected) in [
        (error(401), failed(ErrorKind::Denied, 401)),
        (error(403), failed(ErrorKind::Denied, 403)),
        (error(429).with("Retry-After", 11), failed(throttled, 429)),
        (error(400), Ok(Outcome::Refused(format!("{place} is 400: no").into()))),
        (
            Reply::sending(502, Sent::Text("<html>")),
            Ok(Outcome::Unknown(format!("{place} is 502: 6 bytes that are not E2B's, and it runs: look at it before anything else is done to it").into())),
        ),
    ] {
        let lab = Lab::new().await;
        let target = lab.target(&lab.running()).await;
        lab.server.always("POST", reply);
        assert_eq!(lab.suspend(&target).await, expected);
        assert_eq!(lab.acts().len(), 1);
    }
}

/// A pause that is left alone may lose the sandbox: it is not begun where it can't be waited for, and goes on when
/// nobody waits any more.
#[tokio::test]
async fn a_pause_is_not_begun_without_its_time_and_not_broken_off() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let soon = backend::Bounds { deadline: lab.hands.now().plus(Duration::from_mins(1)) };
    let suspend = lab.backend.suspend.clone().unwrap();
    assert_eq!(suspend.suspend(&target, soon).await.unwrap_err().kind, ErrorKind::Unreachable);
    assert_eq!(lab.server.calls(), [""; 0]);

    let (there, open) = lab.server.hold("POST /sandboxes/ie2bsandbox000000001/pause");
    tokio::select! {
        biased;
        arrived = there => arrived.unwrap(),
        outcome = suspend.suspend(&target, minutes(lab.hands.now())) => panic!("it was not held: {outcome:?}"),
    }
    // The server has time to see that whoever asked is gone, if he were.
    for _ in 0..20 {
        assert_eq!(lab.look(&id).await.unwrap().state, State::Running);
    }
    open.send(()).unwrap();
    for _ in 0..1_000 {
        if lab.look(&id).await.unwrap().state == State::Suspended {
            return;
        }
    }
    panic!("the pause was broken off");
}

#[tokio::test]
async fn a_resume_has_an_end_of_its_own_and_a_full_team_is_no_matter_of_waiting() {
    let lab = Lab::new().await;
    let id = lab.paused();
    let target = lab.target(&id).await;
    let suspend = lab.backend.suspend.clone().unwrap();
    lab.server.state().full = true;
    let refused = suspend.resume(&target, minutes(lab.hands.now())).await;
    assert!(
        matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("maximum number of concurrent")),
        "{refused:?}"
    );
    lab.server.state().full = false;
    lab.hands.advance(Duration::from_mins(1));
    assert!(matches!(suspend.resume(&target, minutes(lab.hands.now())).await, Ok(Outcome::Done(_))));
    let deadline = lab.look(&id).await.unwrap().native.unwrap().deadline.unwrap();
    assert_eq!(deadline.at, lab.hands.now().plus(Duration::from_hours(1)));
}

#[tokio::test]
async fn what_runs_is_never_killed_and_a_kill_is_seen() {
    let lab = Lab::new().await;
    let (running, paused) = (lab.running(), lab.paused());
    let delete = lab.backend.delete.clone().unwrap();
    for id in [&running, &paused] {
        let target = lab.target(id).await;
        let outcome = delete.delete(&target, WorkspaceRule::Discard, minutes(lab.hands.now())).await;
        match target.state {
            State::Running => assert!(matches!(outcome, Ok(Outcome::Moved { .. })), "{outcome:?}"),
            _ => assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}"),
        }
    }
    assert_eq!(lab.server.state().sandboxes.len(), 1);
}
