//! Deleting real containers, and what stays.

use std::sync::Arc;

use backend::{Deletable, Deleted, Outcome};
use lifecycle::{State, policy::WorkspaceRule};

use super::lab::{Lab, POLITE, Spec};

async fn role(lab: &Lab) -> Arc<dyn Deletable> {
    lab.backend().await.delete.unwrap()
}

async fn stopped(lab: &Lab, spec: Spec) -> String {
    let container = lab.start(spec).await;
    lab.stop(&container).await;
    container
}

#[tokio::test]
async fn what_is_gone_already_is_a_success() {
    let lab = Lab::new("gone").await;
    let container = stopped(&lab, Spec::of(POLITE)).await;
    let target = lab.target(&container).await;
    lab.remove(&container).await;
    assert_eq!(role(&lab).await.delete(&target, WorkspaceRule::Discard, lab.minute()).await, Ok(Outcome::Gone));
}

#[tokio::test]
async fn of_many_deletes_at_once_exactly_one_did_it() {
    let lab = Lab::new("race").await;
    let delete = role(&lab).await;
    for _ in 0..6 {
        let container = stopped(&lab, Spec::of(POLITE)).await;
        let target = lab.target(&container).await;
        let once = || delete.delete(&target, WorkspaceRule::Discard, lab.minute());
        let outcomes = futures::future::join_all([once(), once(), once(), once()]).await;
        let done = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Outcome::Done(_)))).count();
        let late = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Outcome::Gone | Outcome::Pending))).count();
        assert_eq!((done, late), (1, 3), "{outcomes:?}");
        assert_eq!(lab.status(&container).await, "gone");
    }
}

#[tokio::test]
async fn a_container_started_between_the_decision_and_the_delete_is_not_deleted() {
    let lab = Lab::new("restarted").await;
    let container = stopped(&lab, Spec::of(POLITE)).await;
    let target = lab.target(&container).await;
    lab.restart(&container).await;
    let fresh = lab.target(&container).await;
    let moved = Outcome::Moved { incarnation: fresh.incarnation, state: State::Running };
    assert_eq!(role(&lab).await.delete(&target, WorkspaceRule::Discard, lab.minute()).await, Ok(moved));
    lab.stop(&container).await;
    let again = role(&lab).await.delete(&target, WorkspaceRule::Discard, lab.minute()).await;
    assert!(matches!(again, Ok(Outcome::Moved { state: State::Suspended, .. })), "a run lay between: {again:?}");
    assert_eq!(lab.status(&container).await, "exited");
}

#[tokio::test]
async fn starts_that_race_with_deletes_never_lose_a_running_container() {
    let lab = Lab::new("start-race").await;
    let delete = role(&lab).await;
    for _ in 0..6 {
        let container = stopped(&lab, Spec::of(POLITE)).await;
        let target = lab.target(&container).await;
        let start = format!("/containers/{container}/start");
        let (deleted, (started, _)) = futures::join!(
            delete.delete(&target, WorkspaceRule::Discard, lab.minute()),
            lab.api.call(reqwest::Method::POST, &start, None)
        );
        match deleted {
            Ok(Outcome::Done(_) | Outcome::Gone) => {
                assert!(started >= 400, "one whose start was answered with {started} was deleted");
            }
            Ok(Outcome::Moved { .. } | Outcome::Unknown(_) | Outcome::Pending) => {
                assert_eq!(lab.status(&container).await, "running");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_named_volume_stays_and_is_reported_and_an_anonymous_one_goes() {
    let lab = Lab::new("volumes").await;
    let named = lab.name("furlough-work-");
    let host = lab.host_folder();
    let spec = Spec {
        volumes: vec!["/scratch"],
        binds: vec![format!("{named}:/work"), format!("{}:/host", host.display())],
        ..Spec::of(POLITE)
    };
    let container = stopped(&lab, spec).await;
    let found = lab.api.look(&container).await.unwrap();
    let scratch = found["Mounts"].as_array().unwrap().iter().find(|mount| mount["Destination"] == "/scratch").unwrap();
    let anonymous = scratch["Name"].as_str().unwrap().to_owned();
    let target = lab.target(&container).await;
    let delete = role(&lab).await;
    let refused = delete.delete(&target, WorkspaceRule::Save, lab.minute()).await.unwrap();
    let lost = format!("anonymous volume `{}` at `/scratch`", &anonymous[..12]);
    assert!(matches!(&refused, Outcome::Refused(why) if why.contains(&lost)), "{refused:?}");

    let Ok(Outcome::Done(deleted)) = delete.delete(&target, WorkspaceRule::Discard, lab.minute()).await else {
        panic!("not deleted")
    };
    let mut kept: Vec<_> = deleted.kept.iter().map(ToString::to_string).collect();
    kept.sort();
    let expected = [format!("bind mount of `{}` at `/host`", host.display()), format!("volume `{named}` at `/work`")];
    assert_eq!((kept.as_slice(), deleted.saved, deleted.undo), (expected.as_slice(), None, None));
    let volume = async |name: &str| lab.api.call(reqwest::Method::GET, &format!("/volumes/{name}"), None).await.0;
    assert_eq!((volume(&anonymous).await, volume(&named).await), (404, 200), "its own is gone, the named one stays");
    lab.api.delete(&format!("/volumes/{named}")).await;
}

#[tokio::test]
async fn work_in_the_container_is_kept_unless_it_may_be_lost() {
    let lab = Lab::new("unsaved").await;
    let container = lab.start(Spec::of(&["sh", "-c", "head -c 3000000 /dev/zero > /big"])).await;
    lab.exited(&container).await;
    let target = lab.target(&container).await;
    let delete = role(&lab).await;
    let refused = delete.delete(&target, WorkspaceRule::Save, lab.minute()).await.unwrap();
    let lost = "3.0 MB written in the container";
    assert!(matches!(&refused, Outcome::Refused(why) if why.contains(lost)), "{refused:?}");
    assert_eq!(lab.status(&container).await, "exited");
    let bytes = lab.see(&container).await.files.total.unwrap();
    let done = Outcome::Done(Deleted { bytes, ..Deleted::default() });
    assert_eq!(delete.delete(&target, WorkspaceRule::Discard, lab.minute()).await, Ok(done));
    assert_eq!(lab.status(&container).await, "gone");
}
