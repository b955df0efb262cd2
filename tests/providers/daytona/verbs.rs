//! Each verb: in which states it is asked at all, and what each answer comes to.

use std::time::Duration;

use backend::{BackendError, ErrorKind, Outcome, Target};
use lifecycle::{RuntimeId, State, policy::WorkspaceRule};
use serde_json::json;

use super::{Lab, minutes};
use crate::simulators::{Reply, Sent};

impl Lab {
    async fn suspend(&self, target: &Target) -> Result<Outcome, BackendError> {
        self.backend.suspend.as_ref().unwrap().suspend(target, minutes(self.hands.now())).await
    }

    async fn archive(&self, target: &Target) -> Result<Outcome, BackendError> {
        self.backend.archive.as_ref().unwrap().archive(target, minutes(self.hands.now())).await
    }

    async fn resume(&self, target: &Target) -> Result<Outcome, BackendError> {
        let resumed = self.backend.suspend.as_ref().unwrap().resume(target, minutes(self.hands.now())).await;
        resumed.map(|outcome| outcome.map(drop))
    }

    async fn delete(&self, target: &Target) -> Result<Outcome, BackendError> {
        let delete = self.backend.delete.as_ref().unwrap();
        delete.delete(target, WorkspaceRule::Discard, minutes(self.hands.now())).await.map(|outcome| outcome.map(drop))
    }

    /// The first of them is in another state behind everybody's back.
    fn becomes(&self, state: &'static str, desired: &'static str) {
        let mut server = self.server.state();
        let sandbox = server.sandboxes.values_mut().next().unwrap();
        (sandbox.state, sandbox.desired) = (state, desired);
    }

    fn settle(&self) {
        self.hands.advance(Duration::from_secs(30));
    }
}

#[tokio::test]
async fn a_sandbox_goes_through_its_whole_life_in_one_look_and_one_act_a_step() {
    let lab = Lab::new().await;
    let id = lab.running();
    let one = "/api/sandbox/00000000-0000-4000-8000-000000000001";
    let running = lab.target(&id).await;
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Pending));
    assert_eq!(lab.server.calls(), [format!("GET {one}"), format!("POST {one}/stop?force=false")]);
    assert_eq!(lab.state(&id).await, Some(State::Suspending));
    lab.settle();
    let stopped = lab.target(&id).await;
    assert_eq!(lab.archive(&stopped).await, Ok(Outcome::Pending));
    assert_eq!(lab.changes(), ["POST 000000000001/archive"]);
    assert_eq!(lab.state(&id).await, Some(State::Archiving));
    lab.settle();
    let archived = lab.target(&id).await;
    assert_eq!(archived.state, State::Archived);
    assert_eq!(lab.resume(&archived).await, Ok(Outcome::Pending));
    assert_eq!(lab.state(&id).await, Some(State::Resuming));
    lab.settle();
    let running = lab.target(&id).await;
    assert_eq!(running.state, State::Running);
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Pending));
    lab.settle();
    let stopped = lab.target(&id).await;
    assert_eq!(lab.delete(&stopped).await, Ok(Outcome::Pending));
    assert_eq!(lab.changes(), ["DELETE 000000000001"]);
    assert_eq!(lab.delete(&stopped).await, Ok(Outcome::Pending), "it is under way");
    assert_eq!(lab.changes(), [""; 0]);
    lab.settle();
    assert_eq!(lab.delete(&stopped).await, Ok(Outcome::Gone));
}

#[tokio::test]
async fn an_archived_one_is_deleted_though_it_goes_on_showing_that_it_is_archived() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| (sandbox.state, sandbox.desired) = ("archived", "archived"));
    let target = lab.target(&id).await;
    assert_eq!(lab.delete(&target).await, Ok(Outcome::Pending));
    assert_eq!(lab.state(&id).await, Some(State::Deleting));
    lab.settle();
    assert_eq!(lab.state(&id).await, None);
}

#[tokio::test]
async fn a_vm_is_paused_and_not_archived() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.class = "linux-vm");
    let target = lab.target(&id).await;
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::Pending));
    assert_eq!(lab.changes(), ["POST 000000000001/pause"]);
    lab.settle();
    let paused = lab.target(&id).await;
    assert_eq!(paused.state, State::Suspended);
    let why = "it is paused, and Daytona archives what is stopped alone";
    assert_eq!(lab.archive(&paused).await, Ok(Outcome::Refused(why.into())));
    assert_eq!(lab.changes(), [""; 0]);
    assert_eq!(lab.resume(&paused).await, Ok(Outcome::Pending));
    lab.settle();
    assert_eq!(lab.state(&id).await, Some(State::Running));
}

#[tokio::test]
async fn what_failed_is_neither_stopped_nor_archived() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| (sandbox.state, sandbox.desired) = ("error", "started"));
    let failed = lab.target(&id).await;
    assert_eq!(failed.state, State::Suspended);
    let why = "it failed: look at it, recover it or delete it";
    assert_eq!(lab.archive(&failed).await, Ok(Outcome::Refused(why.into())));
    assert_eq!(lab.changes(), [""; 0]);
    assert_eq!(lab.delete(&failed).await, Ok(Outcome::Pending));
    assert_eq!(lab.state(&id).await, None, "it is shown no more as soon as that is wanted");
}

#[tokio::test]
async fn a_restart_between_the_look_and_the_delete_moves_nothing() {
    let lab = Lab::new().await;
    let id = lab.stopped();
    let stopped = lab.target(&id).await;
    for (state, seen) in [("started", State::Running), ("starting", State::Resuming)] {
        lab.becomes(state, "started");
        assert_eq!(
            lab.delete(&stopped).await,
            Ok(Outcome::Moved { incarnation: stopped.incarnation.clone(), state: seen })
        );
        assert_eq!(lab.changes(), [""; 0]);
    }
}

/// A name may be another's by now: only the id names a sandbox.
#[tokio::test]
async fn a_sandbox_that_is_found_by_its_name_alone_is_not_there() {
    let lab = Lab::new().await;
    let id = lab.running();
    let named = RuntimeId::new(id.backend(), b"n-0").unwrap();
    assert_eq!(lab.state(&named).await, None);
}

/// What each answer to an act comes to. `seen`: what a look finds then.
#[tokio::test]
async fn each_answer_to_a_stop_has_its_own_outcome() {
    let error = |status: u16, message: &str| {
        Reply::json(status, json!({"statusCode": status, "error": "E", "message": message}))
    };
    let place = "Daytona's answer to `POST /api/sandbox/00000000-0000-4000-8000-000000000001/stop`";
    let denied = |status: u16| {
        let message = format!("{place} is {status}: no");
        Err(BackendError::new(ErrorKind::Denied, message))
    };
    let throttled = |seconds: u64, message: &str| {
        let kind = ErrorKind::Throttled { retry_after: Duration::from_secs(seconds) };
        Err(BackendError::new(kind, format!("{place} is {message}")))
    };
    let unknown = |message: &str| Ok(Outcome::Unknown(message.into()));
    let (gone, refused) = (Ok(Outcome::Gone), |why: &str| Ok(Outcome::Refused(format!("{place} is {why}").into())));
    for (reply, expected) in [
        (error(401, "no"), denied(401)),
        (error(403, "no"), denied(403)),
        (error(404, "Sandbox with ID or name x not found"), gone),
        (error(422, "not supported"), refused("422: not supported")),
        (error(400, "bad"), refused("400: bad")),
        (
            error(409, "Sandbox state change in progress"),
            unknown(&format!("{place} is 409: Sandbox state change in progress")),
        ),
        (error(429, "many").with("Retry-After-sandbox-lifecycle", 7), throttled(7, "429: many")),
        (error(503, "later").with("Retry-After", 9), throttled(9, "503: later")),
        (
            error(500, "An unexpected error occurred."),
            unknown(&format!("{place} is 500: An unexpected error occurred.")),
        ),
        (
            Reply::sending(502, Sent::Text("<html>")),
            unknown(&format!("{place} is 502: 6 bytes that are not Daytona's")),
        ),
        (Reply::empty(200), unknown("what Daytona answered with 200 is not JSON (line 1, column 0, 0 bytes)")),
        (Reply::json(200, json!({"error": "x"})), unknown("Daytona's answer can't be read: `id` is missing")),
        (Reply::sending(200, Sent::BreaksOff), unknown(&format!("{place} did not come: "))),
    ] {
        let lab = Lab::new().await;
        let id = lab.running();
        let target = lab.target(&id).await;
        lab.server.always("POST", reply.clone());
        let answer = lab.suspend(&target).await;
        let prefix = matches!((&answer, &expected), (Ok(Outcome::Unknown(had)), Ok(Outcome::Unknown(want))) if had.starts_with(&**want));
        assert!(answer == expected || prefix, "{reply:?}:\n{answer:?}\n{expected:?}");
        assert_eq!(lab.changes().len(), 1, "an act is asked once");
    }
}

/// Somebody else did it between our look and our act, which is refused then.
#[tokio::test]
async fn an_act_that_came_too_late_is_told_by_what_is_there() {
    for (state, desired, expected) in
        [("stopped", "stopped", Outcome::AlreadyDone), ("stopping", "stopped", Outcome::Pending)]
    {
        let lab = Lab::new().await;
        let id = lab.running();
        let target = lab.target(&id).await;
        lab.server.on(move |asked, server| {
            if asked.method == "POST" {
                let sandbox = server.sandboxes.values_mut().next().unwrap();
                (sandbox.state, sandbox.desired) = (state, desired);
            }
            None
        });
        assert_eq!(lab.suspend(&target).await, Ok(expected));
    }
}

#[tokio::test]
async fn a_key_that_may_not_delete_is_told_once_and_a_limit_is_waited_for() {
    let lab = Lab::new().await;
    let id = lab.stopped();
    let target = lab.target(&id).await;
    lab.server.state().read_only = true;
    assert_eq!(lab.delete(&target).await.unwrap_err().kind, ErrorKind::Denied);
    lab.server.state().read_only = false;
    lab.server.state().lifecycle_left = Some(0);
    let wait = ErrorKind::Throttled { retry_after: Duration::from_secs(42) };
    assert_eq!(lab.delete(&target).await.unwrap_err().kind, wait);
    assert_eq!(lab.state(&id).await, Some(State::Suspended));
}
