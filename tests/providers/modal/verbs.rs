//! Terminations: only where they were chosen, after a snapshot where that was chosen too, seen to be done.

use std::{sync::Arc, time::Duration};

use backend::{BackendError, Bounds, Deleted, ErrorKind, Outcome, Target};
use backend_modal::Terminate;
use lifecycle::{NativeEffect, Role, policy::WorkspaceRule};
use tonic::{Code, Status};

use super::{super::lab::text, Lab, minutes};
use crate::simulators::modal::throttled;

impl Lab {
    async fn delete(&self, target: &Target, save: WorkspaceRule) -> Result<Outcome<Deleted>, BackendError> {
        self.backend.delete.as_ref().unwrap().delete(target, save, minutes(self.hands.now())).await
    }
}

const DONE: Result<Outcome<Deleted>, BackendError> =
    Ok(Outcome::Done(Deleted { saved: None, undo: None, kept: Vec::new(), bytes: 0 }));

#[tokio::test]
async fn what_its_owner_did_not_choose_can_t_be_called() {
    for (terminate, delete, saves) in
        [(Terminate::Never, false, false), (Terminate::AfterSnapshot, true, true), (Terminate::AtOnce, true, false)]
    {
        let lab = Lab::of(terminate).await;
        let can = lab.backend.capabilities();
        assert_eq!((can.delete, can.saves_first, can.rests), (delete, saves, delete), "{terminate:?}");
        assert!(can.suspend.is_none() && !can.archive && lab.backend.native.is_none(), "{terminate:?}");
    }
}

#[tokio::test]
async fn a_termination_is_a_look_an_act_and_a_look_in_either_generation() {
    let lab = Lab::new().await;
    for (id, generation) in [(lab.running(), ""), (lab.second(), "V2")] {
        let target = lab.target(&id).await;
        assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, DONE);
        let calls = lab.server.calls();
        let [terminate, wait] = ["Terminate", "Wait"].map(|verb| format!("Sandbox{verb}{generation}"));
        assert_eq!(
            calls,
            ["SandboxListV2", &terminate, "SandboxListV2", &wait],
            "what is listed no more, and how it ended"
        );
        assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, Ok(Outcome::Gone));
    }
}

/// Modal shows a sandbox's times in its listings alone: who has not listed it reads them.
#[tokio::test]
async fn one_that_was_never_listed_here_is_found_in_the_listing() {
    let lab = Lab::new().await;
    let id = lab.running();
    for _ in 0..3 {
        lab.running();
    }
    assert!(lab.look(&id).await.is_some());
    let first = lab.server.calls();
    assert!(first.starts_with(&["SandboxWait".to_owned(), "AppList".to_owned()]), "{first:?}");
    assert!(lab.look(&id).await.is_some());
    assert_eq!(lab.server.calls(), ["SandboxListV2"]);
    assert!(lab.look(&lab.id("sb-zzzzzzzzzzzzzzzzzzzzzz")).await.is_none());
    assert_eq!(lab.server.calls(), ["SandboxWait"]);
}

#[tokio::test]
async fn a_termination_is_under_way_until_it_was_seen() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.add(|sandbox| sandbox.slow = Duration::from_secs(20))).await;
    assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, Ok(Outcome::Pending));
    lab.hands.advance(Duration::from_secs(20));
    assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, Ok(Outcome::Gone));
}

/// The files are in an image before the sandbox ends, or it does not end.
#[tokio::test]
async fn a_snapshot_comes_first_or_nothing_is_done() {
    let lab = Lab::of(Terminate::AfterSnapshot).await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let files = lab.server.state().sandboxes[&text(&id)].files.clone();
    for refused in [2, 6] {
        lab.server.state().snapshot_status = refused;
        let outcome = lab.delete(&target, WorkspaceRule::Save).await;
        assert!(matches!(&outcome, Ok(Outcome::Refused(why)) if why.contains("it is kept")), "{outcome:?}");
        assert_eq!(lab.server.acts(), ["SandboxSnapshotFs"]);
    }
    lab.server.state().snapshot_status = 1;
    let Ok(Outcome::Done(Deleted { saved: Some(saved), .. })) = lab.delete(&target, WorkspaceRule::Save).await else {
        panic!("it was not saved and terminated")
    };
    assert_eq!(lab.server.acts(), ["SandboxSnapshotFs", "SandboxTerminate"]);
    let image = saved.strip_prefix("Modal's image `").unwrap().trim_end_matches('`').to_owned();
    assert_eq!(lab.server.state().images[&image], files);

    let worthless = lab.target(&lab.running()).await;
    assert_eq!(lab.delete(&worthless, WorkspaceRule::Discard).await, DONE);
    assert_eq!(lab.server.acts(), ["SandboxTerminate"], "the policy says that nothing of it is to be saved");
}

/// Somebody else ended it between the look and the snapshot: there is nothing left to save, and nothing failed.
#[tokio::test]
async fn what_ended_before_its_snapshot_is_gone() {
    for removed in [false, true] {
        let lab = Lab::of(Terminate::AfterSnapshot).await;
        let id = lab.running();
        let target = lab.target(&id).await;
        let sandbox = text(&id);
        lab.server.state().on(move |call, state| {
            if call == "SandboxSnapshotFs" {
                if removed {
                    state.sandboxes.remove(&sandbox);
                } else if let Some(sandbox) = state.sandboxes.get_mut(&sandbox) {
                    sandbox.status = 3;
                }
            }
            None
        });
        assert_eq!(lab.delete(&target, WorkspaceRule::Save).await, Ok(Outcome::Gone), "removed {removed}");
        assert_eq!(lab.server.acts(), ["SandboxSnapshotFs"]);
    }
}

/// A look before an act has its own end, however long each of its answers may take.
#[tokio::test]
async fn a_look_that_takes_too_long_is_no_act() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    lab.server.state().silent = true;
    tokio::time::pause();
    #[expect(clippy::disallowed_methods, reason = "the paused clock of this test")]
    let begun = tokio::time::Instant::now();
    let told = lab.delete(&target, WorkspaceRule::Discard).await.unwrap_err();
    assert_eq!(told.kind, ErrorKind::Unreachable);
    assert!(begun.elapsed() <= Duration::from_secs(16), "{:?}", begun.elapsed());
    assert_eq!(lab.server.acts(), [""; 0]);
}

/// From outside no snapshot of the second generation can be taken: it can't be deleted, and says why beforehand.
#[tokio::test]
async fn what_can_t_be_saved_is_not_terminated() {
    let lab = Lab::of(Terminate::AfterSnapshot).await;
    let id = lab.second();
    let cannot = lab.look(&id).await.unwrap().cannot;
    assert_eq!(cannot.iter().map(|cannot| cannot.role).collect::<Vec<_>>(), [Role::Delete]);
    let target = lab.target(&id).await;
    let refused: Arc<str> = cannot[0].why.clone();
    assert_eq!(lab.delete(&target, WorkspaceRule::Save).await, Ok(Outcome::Refused(refused)));
    assert_eq!(lab.server.acts(), [""; 0]);
}

/// A lost answer is asked for again by the same key: it is one termination.
#[tokio::test]
async fn a_lost_termination_is_asked_for_again_by_its_key() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    let mut left = 2;
    lab.server.state().on(move |call, _| {
        let lost = call == "SandboxTerminate" && left > 0;
        left -= i32::from(lost);
        lost.then(|| Status::unavailable("try again"))
    });
    lab.server.state().keys.clear();
    assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, DONE);
    let keys = lab.server.state().keys.clone();
    let mut terminated: Vec<_> =
        keys.iter().filter(|(call, _)| call == "SandboxTerminate").map(|(_, key)| key).collect();
    assert_eq!(terminated.len(), 3);
    terminated.dedup();
    assert!(terminated.len() == 1 && !terminated[0].is_empty(), "{keys:?}");
}

#[tokio::test]
async fn each_refusal_has_its_own_outcome() {
    let said = |code: Code| format!("Modal's answer to `SandboxTerminate` is {code:?}: no");
    let failed = |kind: ErrorKind, code: Code| Err(BackendError::new(kind, said(code)));
    for (code, expected, times) in [
        (Code::Unauthenticated, failed(ErrorKind::Denied, Code::Unauthenticated), 1),
        (Code::PermissionDenied, failed(ErrorKind::Denied, Code::PermissionDenied), 1),
        (Code::NotFound, Ok(Outcome::Gone), 1),
        (Code::Unimplemented, Ok(Outcome::Refused(said(Code::Unimplemented).into())), 1),
        (Code::FailedPrecondition, Ok(Outcome::Refused(said(Code::FailedPrecondition).into())), 1),
        (Code::DataLoss, Ok(Outcome::Unknown(said(Code::DataLoss).into())), 1),
        (Code::Internal, Ok(Outcome::Unknown(said(Code::Internal).into())), 4),
        (Code::Unavailable, Ok(Outcome::Unknown(said(Code::Unavailable).into())), 4),
    ] {
        let lab = Lab::new().await;
        let target = lab.target(&lab.running()).await;
        lab.server.state().always("SandboxTerminate", Status::new(code, "no"));
        assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await, expected, "{code:?}");
        assert_eq!(lab.server.acts().len(), times, "{code:?}");
    }
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    lab.server.state().always("SandboxTerminate", throttled(7.0));
    let kind = ErrorKind::Throttled { retry_after: Duration::from_secs(7) };
    assert_eq!(lab.delete(&target, WorkspaceRule::Discard).await.unwrap_err().kind, kind);
    assert_eq!(lab.server.acts().len(), 1, "it asks to be left alone");
}

#[tokio::test]
async fn a_termination_is_not_begun_without_its_time() {
    for (terminate, seconds) in [(Terminate::AtOnce, 49), (Terminate::AfterSnapshot, 109)] {
        let lab = Lab::of(terminate).await;
        let target = lab.target(&lab.running()).await;
        let soon = Bounds { deadline: lab.hands.now().plus(Duration::from_secs(seconds)) };
        let late = lab.backend.delete.as_ref().unwrap().delete(&target, WorkspaceRule::Save, soon).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Unreachable);
        assert_eq!(lab.server.calls(), [""; 0]);
    }
}

/// How long one lives was settled when it was made: it is told, with what it does, and there is nothing to write.
#[tokio::test]
async fn when_modal_ends_it_is_told_and_can_t_be_written() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.timeout = Duration::from_hours(2));
    let native = lab.look(&id).await.unwrap().native.unwrap();
    let deadline = native.deadline.unwrap();
    assert_eq!((native.mutable, deadline.effect), (false, NativeEffect::Destroy));
    lab.hands.advance(deadline.at.since(lab.hands.now()).saturating_add(Duration::from_millis(1)));
    assert!(lab.look(&id).await.is_none());
}
