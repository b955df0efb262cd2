//! Pause, resume, delete: what each answer comes to, and the exact calls.

use std::time::Duration;

use backend::{BackendError, Bounds, ErrorKind, Outcome, Target};
use backend_rest::openhands::Which;
use lifecycle::{Role, State};
use serde_json::json;

use super::{BOTH, Lab, minutes};
use crate::simulators::{
    Reply, Sent,
    openhands::{OpenHands, Trouble},
};

const ONE: &str = "/api/v1/sandboxes/7Kq2sandbox00000000001";
const TALKS: &str = "GET /api/v1/app-conversations/search?sandbox_id__eq=7Kq2sandbox00000000001&include_sub_conversations=true&limit=100";

/// The looks by id, and nothing that wakes, refreshes or starts.
fn look() -> [String; 2] {
    ["GET /api/v1/sandboxes?id=7Kq2sandbox00000000001".to_owned(), TALKS.to_owned()]
}

/// A life in exact calls. What is asked for by id is never asked for from the sandbox itself.
#[tokio::test]
async fn a_life_is_made_of_looks_and_one_act_a_step() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let running = lab.target(&id).await;
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Done(())));
    let around = |act: String| [&look()[..], &[act], &look()].concat();
    assert_eq!(lab.server.calls(), around(format!("POST {ONE}/pause")));
    let paused = lab.target(&id).await;
    assert_eq!((paused.state, &paused.incarnation), (State::Suspended, &running.incarnation));
    assert_eq!(lab.resume(&paused).await, Ok(Outcome::Done(())));
    assert_eq!(lab.server.calls(), around(format!("POST {ONE}/resume")));
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Done(())));
    lab.server.calls();
    assert_eq!(lab.delete(&paused).await, Ok(Outcome::Done(())));
    let delete = format!("DELETE {ONE}?sandbox_id=7Kq2sandbox00000000001");
    assert_eq!(lab.server.calls(), [&look()[..], &[delete], &look()[..1]].concat());
    assert_eq!(lab.look(&id).await, None);
    assert!(lab.server.state().sandboxes.is_empty());
}

#[tokio::test]
async fn a_runtime_s_life_is_made_of_looks_and_one_act_a_step() {
    let lab = Lab::new(Which::Runtime).await;
    let id = lab.running();
    let running = lab.target(&id).await;
    let look = "GET /runtime/rt00000000000001".to_owned();
    let around = |act: &str| [look.clone(), format!("POST /{act}"), look.clone()];
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Done(())));
    assert_eq!(lab.server.calls(), around("pause"));
    assert_eq!(lab.backend.list.list(None).await.unwrap().seen, [], "what is paused is not listed");
    let paused = lab.target(&id).await;
    assert_eq!(paused.state, State::Suspended, "and there by id");
    assert_eq!(lab.resume(&paused).await, Ok(Outcome::Done(())));
    assert_eq!(lab.server.calls(), around("resume"));
    assert_eq!(lab.suspend(&running).await, Ok(Outcome::Done(())));
    lab.server.calls();
    assert_eq!(lab.delete(&paused).await, Ok(Outcome::Done(())));
    assert_eq!(lab.server.calls(), around("stop"));
    assert!(lab.server.state().sandboxes.is_empty());
}

#[tokio::test]
async fn what_runs_starts_or_failed_is_never_deleted() {
    for which in BOTH {
        for status in ["running", "starting", "error"] {
            let lab = Lab::new(which).await;
            let id = lab.add(|sandbox| sandbox.status = status);
            let target = lab.target(&id).await;
            let outcome = lab.delete(&target).await;
            assert!(matches!(outcome, Ok(Outcome::Moved { .. })), "{which:?} {status}: {outcome:?}");
            assert_eq!(lab.acts(), [""; 0], "{status}");
        }
    }
}

/// What starts is on its way: it is neither paused nor started again.
#[tokio::test]
async fn what_starts_is_let_start_and_what_failed_is_paused() {
    for which in BOTH {
        let lab = Lab::new(which).await;
        let starting = lab.add(|sandbox| sandbox.status = "starting");
        let target = lab.target(&starting).await;
        assert!(matches!(lab.suspend(&target).await, Ok(Outcome::Moved { .. })));
        assert_eq!(lab.resume(&target).await, Ok(Outcome::Pending));
        assert_eq!(lab.acts(), [""; 0]);
        let failed = lab.add(|sandbox| sandbox.status = "error");
        let target = lab.target(&failed).await;
        assert_eq!(lab.suspend(&target).await, Ok(Outcome::Done(())));
    }
}

/// A server that was asked for a pause and could not reach the runtime says that there is no such sandbox.
#[tokio::test]
async fn not_found_is_what_a_look_finds_and_not_what_was_said() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let target = lab.target(&id).await;
    // It did, and could not say so.
    lab.server.state().trouble = Some(Trouble::Deaf);
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::AlreadyDone));
    let paused = lab.target(&id).await;
    assert_eq!(lab.resume(&paused).await, Ok(Outcome::AlreadyDone));
    lab.server.state().trouble = None;

    // It did not.
    lab.server.always("POST", Reply::json(404, json!({"detail": "Not Found"})));
    let outcome = lab.suspend(&target).await;
    let why = format!(
        "OpenHands' answer to `POST {ONE}/pause` is 404: Not Found, and it is there, `running`: it may yet be done"
    );
    assert_eq!(outcome, Ok(Outcome::Unknown(why.into())));
    lab.server.behave();

    // There is none.
    lab.server.on(|asked, server: &mut OpenHands| {
        if asked.uri.ends_with("/pause") {
            server.sandboxes.clear();
        }
        None
    });
    assert_eq!(lab.suspend(&target).await, Ok(Outcome::Gone));
}

/// An outage reads as if all sandboxes were missing. That is no end of any of them.
#[tokio::test]
async fn an_outage_is_no_end_of_anything() {
    for (trouble, listed) in [(Trouble::Down, ErrorKind::Unreachable), (Trouble::DownAndSaid, ErrorKind::Malformed)] {
        let lab = Lab::new(Which::Cloud).await;
        let (running, paused) = (lab.running(), lab.paused());
        let targets = [lab.target(&running).await, lab.target(&paused).await];
        lab.server.state().trouble = Some(trouble);
        for target in &targets {
            let told = lab.backend.inspect.inspect(&target.id).await.unwrap_err();
            assert_eq!(told.kind, listed, "{told}");
            assert!(lab.suspend(target).await.is_err());
            assert!(lab.delete(target).await.is_err());
        }
        assert_eq!(lab.acts(), [""; 0]);
        match lab.backend.list.list(None).await {
            Err(told) => assert_eq!((trouble, told.kind), (Trouble::Down, ErrorKind::Unreachable)),
            Ok(page) => {
                assert_eq!((trouble, page.seen.len(), page.unreadable.len()), (Trouble::DownAndSaid, 0, 2));
                assert!(page.unreadable[0].ends_with("OpenHands could not ask for its state: kept"), "{page:?}");
            }
        }
    }
}

/// What the cleaner took is a row without a runtime: it is listed no more, and by id it is gone.
#[tokio::test]
async fn what_openhands_removed_by_itself_is_gone() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.paused();
    let target = lab.target(&id).await;
    lab.server.state().dead_after = Some(Duration::from_hours(1));
    assert_eq!(lab.backend.list.list(None).await.unwrap().seen, []);
    lab.server.calls();
    assert_eq!(lab.look(&id).await, None);
    assert_eq!(
        lab.server.calls(),
        ["GET /api/v1/sandboxes?id=7Kq2sandbox00000000001", "GET /api/v1/sandboxes/search?limit=1"],
        "the second would have no answer in an outage"
    );
    assert_eq!(lab.delete(&target).await, Ok(Outcome::Gone));
    assert_eq!((lab.acts(), lab.statuses()), (Vec::new(), vec!["stopped"]));
}

/// The path of a deletion says nothing: the query does.
#[tokio::test]
async fn a_deletion_names_its_sandbox_where_the_server_reads_it() {
    let lab = Lab::new(Which::Cloud).await;
    let (one, other) = (lab.paused(), lab.paused());
    let target = lab.target(&other).await;
    assert_eq!(lab.delete(&target).await, Ok(Outcome::Done(())));
    assert!(lab.look(&one).await.is_some() && lab.look(&other).await.is_none());
}

#[tokio::test]
async fn a_deletion_that_openhands_could_not_do_is_looked_at_again() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.paused();
    let target = lab.target(&id).await;
    lab.server.state().trouble = Some(Trouble::Deaf);
    let outcome = lab.delete(&target).await;
    assert!(
        matches!(&outcome, Ok(Outcome::Unknown(why)) if why.contains("503: Could not complete delete")),
        "{outcome:?}"
    );
    assert_eq!(lab.look(&id).await, None, "it was done, and that was not told");
    assert_eq!(lab.delete(&target).await, Ok(Outcome::Gone));
}

/// A server of a version without the route: found out once, and then told of each of its sandboxes.
#[tokio::test]
async fn a_server_without_a_pause_makes_its_sandboxes_lack_it() {
    for which in BOTH {
        let lab = Lab::new(which).await;
        let id = lab.running();
        lab.server.state().no_pause = true;
        let target = lab.target(&id).await;
        assert!(lab.look(&id).await.unwrap().cannot.is_empty());
        let refused = lab.suspend(&target).await;
        assert!(matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("has no pause")), "{refused:?}");
        let seen = lab.look(&id).await.unwrap();
        assert_eq!(seen.cannot.iter().map(|cannot| cannot.role).collect::<Vec<_>>(), [Role::Suspend]);
        lab.server.calls();
        assert_eq!(lab.suspend(&target).await, refused);
        assert_eq!(lab.acts(), [""; 0], "it is not asked for again");
    }
}

#[tokio::test]
async fn a_resume_that_is_refused_is_refused_and_one_that_takes_its_time_is_pending() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.paused();
    let target = lab.target(&id).await;
    lab.server.once("POST", Reply::json(409, json!({"detail": "Sandbox cannot be resumed"})));
    let refused = lab.resume(&target).await;
    assert!(matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("cannot be resumed")), "{refused:?}");
    lab.server.state().resume_takes = Duration::from_secs(19);
    assert_eq!(lab.resume(&target).await, Ok(Outcome::Pending));
    lab.server.calls();
    assert_eq!(lab.resume(&target).await, Ok(Outcome::Pending));
    assert_eq!(lab.acts(), [""; 0]);
    lab.hands.advance(Duration::from_secs(19));
    assert_eq!(lab.resume(&target).await, Ok(Outcome::AlreadyDone));
}

#[tokio::test]
async fn each_answer_to_an_act_has_its_own_outcome() {
    let error = |status: u16| Reply::json(status, json!({"detail": "no"}));
    let said = |place: &str, status: u16| format!("OpenHands' answer to `{place}` is {status}: no");
    let pause = format!("POST {ONE}/pause");
    let failed = |kind, status| Err(BackendError::new(kind, said(&pause, status)));
    for (reply, expected) in [
        (error(401), failed(ErrorKind::Denied, 401)),
        (error(403), failed(ErrorKind::Denied, 403)),
        (
            error(429).with("Retry-After", 11),
            failed(ErrorKind::Throttled { retry_after: Duration::from_secs(11) }, 429),
        ),
        (error(400), Ok(Outcome::Refused(said(&pause, 400).into()))),
        (error(500), Ok(Outcome::Unknown(said(&pause, 500).into()))),
        (error(502), Ok(Outcome::Unknown(said(&pause, 502).into()))),
        // What it says does not matter: it is seen that it runs.
        (Reply::sending(200, Sent::Text("<html>")), Ok(Outcome::Pending)),
        (Reply::json(200, json!({"success": false})), Ok(Outcome::Pending)),
    ] {
        let lab = Lab::new(Which::Cloud).await;
        let target = lab.target(&lab.running()).await;
        lab.server.always("POST", reply.clone());
        assert_eq!(lab.suspend(&target).await, expected, "{reply:?}");
        assert_eq!(lab.acts().len(), 1, "it is asked once: {reply:?}");
    }
    let lab = Lab::new(Which::Cloud).await;
    let target = lab.target(&lab.running()).await;
    lab.server.always("POST", Reply::sending(200, Sent::BreaksOff));
    let broken = lab.suspend(&target).await;
    assert!(matches!(&broken, Ok(Outcome::Unknown(_))), "{broken:?}");
    assert_eq!(lab.acts().len(), 1);
}

/// None is begun that can't be waited for.
#[tokio::test]
async fn no_act_is_begun_without_its_time() {
    for which in BOTH {
        let lab = Lab::new(which).await;
        let (running, paused) = (lab.target(&lab.running()).await, lab.target(&lab.paused()).await);
        let soon = Bounds { deadline: lab.hands.now().plus(Duration::from_secs(50)) };
        let (suspend, delete) = (lab.backend.suspend.clone().unwrap(), lab.backend.delete.clone().unwrap());
        let save = lifecycle::policy::WorkspaceRule::Discard;
        assert_eq!(suspend.suspend(&running, soon).await.unwrap_err().kind, ErrorKind::Unreachable);
        assert_eq!(suspend.resume(&paused, soon).await.unwrap_err().kind, ErrorKind::Unreachable);
        assert_eq!(delete.delete(&paused, save, soon).await.unwrap_err().kind, ErrorKind::Unreachable);
        assert_eq!(lab.server.calls(), [""; 0]);
        assert!(minutes(lab.hands.now()).deadline > soon.deadline);
    }
}

/// A resume makes OpenHands pause what is oldest, busy or not, where no more may run. It is told in the README; we find
/// the one as paused by somebody else.
#[tokio::test]
async fn a_resume_can_pause_another_and_that_is_seen() {
    let lab = Lab::new(Which::Cloud).await;
    let (oldest, paused) = (lab.running(), lab.paused());
    lab.server.state().most_running = Some(1);
    let target = lab.target(&paused).await;
    assert_eq!(lab.resume(&target).await, Ok(Outcome::Done(())));
    assert_eq!(lab.state(&oldest).await, Some(State::Suspended));
}

/// Somebody resumed it, or deleted it, since it was looked at.
#[tokio::test]
async fn what_moved_since_is_left_alone() {
    for which in BOTH {
        let lab = Lab::new(which).await;
        let id = lab.paused();
        let target = lab.target(&id).await;
        lab.server.state().sandboxes.values_mut().for_each(|sandbox| sandbox.status = "running");
        let moved = Ok(Outcome::Moved { incarnation: target.incarnation.clone(), state: State::Running });
        assert_eq!(lab.delete(&target).await, moved);
        let other = Target { incarnation: lifecycle::Incarnation::new("another"), ..target };
        assert!(matches!(lab.suspend(&other).await, Ok(Outcome::Moved { .. })));
        assert_eq!(lab.acts(), [""; 0]);
    }
}
