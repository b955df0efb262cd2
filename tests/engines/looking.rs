//! Looking at containers in every state that an engine can show.

use std::collections::BTreeMap;

use backend::Outcome;
use futures::future::join_all;
use lifecycle::{Activity, Busy, Loss, Ownership, State, Time};

use super::lab::{Kind, Lab, POLITE, STUBBORN, Spec};

#[tokio::test]
async fn a_listing_has_containers_of_every_state_and_only_its_own_are_ours() {
    let lab = Lab::new("states").await;
    let created = lab.create(Spec::of(POLITE)).await;
    let running = lab.start(Spec::of(POLITE)).await;
    let paused = lab.start(Spec::of(POLITE)).await;
    lab.pause(&paused).await;
    let exited = lab.start(Spec::of(&["sleep", "0.2"])).await;
    lab.exited(&exited).await;
    let foreign = lab.start(Spec { foreign: true, ..Spec::of(POLITE) }).await;

    let page = lab.backend().await.list.list(None).await.unwrap();
    assert_eq!(page.unreadable, Vec::new());
    let seen: BTreeMap<_, _> = page.seen.iter().map(|seen| (seen.id.clone(), seen)).collect();
    let stamp =
        async |container: &str, key: &str| lab.told(container, key).await.as_str().unwrap().parse::<Time>().unwrap();
    let started = stamp(&running, "StartedAt").await;
    let finished = stamp(&exited, "FinishedAt").await;
    let shown = |container: &str| {
        let seen = seen[&lab.id(container)];
        (seen.ownership, seen.state, seen.state_since, seen.activity)
    };
    assert_eq!(shown(&running), (Ownership::Ours, State::Running, Some(started), Activity::Unknown));
    assert_eq!(shown(&exited), (Ownership::Ours, State::Suspended, Some(finished), Activity::At(finished)));
    let frozen = stamp(&paused, "StartedAt").await;
    assert_eq!(shown(&paused), (Ownership::Ours, State::Running, Some(frozen), Activity::Frozen));
    let (ownership, state, since, activity) = shown(&created);
    assert_eq!((ownership, state, activity), (Ownership::Ours, State::Suspended, Activity::At(since.unwrap())));
    assert!(since.unwrap() > Time::from_millis(0), "never started is not 2,000 years idle");
    assert_eq!(seen[&lab.id(&foreign)].ownership, Ownership::Foreign);
}

#[tokio::test]
async fn containers_that_vanish_during_a_listing_are_left_out() {
    let lab = Lab::new("vanishing").await;
    let stay = lab.create(Spec::of(POLITE)).await;
    let mut leave = Vec::new();
    for _ in 0..20 {
        leave.push(lab.create(Spec::of(POLITE)).await);
    }
    let backend = lab.backend().await;
    let removals = join_all(leave.iter().map(|container| lab.remove(container)));
    let listings = async {
        let mut pages = Vec::new();
        for _ in 0..20 {
            pages.push(backend.list.list(None).await.unwrap());
        }
        pages
    };
    let (_, pages) = futures::join!(removals, listings);
    for page in pages {
        assert_eq!(page.unreadable, Vec::new());
        assert!(page.seen.iter().any(|seen| seen.id == lab.id(&stay)));
    }
}

#[tokio::test]
async fn a_container_whose_start_failed_stays_created_and_can_be_deleted() {
    let lab = Lab::new("created").await;
    let container = lab.create(Spec::of(&["/no/such/program"])).await;
    let start = format!("/containers/{container}/start");
    let (status, _) = lab.api.call(reqwest::Method::POST, &start, None).await;
    assert!(status >= 400, "{status}");
    let seen = lab.see(&container).await;
    assert_eq!((seen.state, seen.running_since), (State::Suspended, None));
    let backend = lab.backend().await;
    let target = lab.target(&container).await;
    let resumed = backend.suspend.unwrap().resume(&target, lab.minute()).await.unwrap();
    assert!(matches!(resumed, Outcome::Unknown(_)), "{resumed:?}");
    let target = lab.target(&container).await;
    let rule = lifecycle::policy::WorkspaceRule::Discard;
    let deleted = backend.delete.unwrap().delete(&target, rule, lab.minute()).await.unwrap();
    assert!(matches!(deleted, Outcome::Done(_)), "{deleted:?}");
    assert_eq!(lab.status(&container).await, "gone");
}

#[tokio::test]
async fn a_command_that_somebody_runs_in_it_is_seen_as_work_until_it_ends() {
    let lab = Lab::new("exec").await;
    let container = lab.start(Spec::of(STUBBORN)).await;
    let idle = lab.see(&container).await;
    assert_eq!(idle.busy, Busy::No);
    lab.api.exec(&container, &["sh", "-c", "mkfifo /tmp/go && read line < /tmp/go"]).await;
    let works = |busy: Busy| matches!(busy, Busy::Until(_));
    lab.until("the command is seen", async || works(lab.see(&container).await.busy)).await;
    if lab.kind == Kind::Docker {
        // The engine tells of a second's events when that second is over; until then the veto counts from each look.
        let again = async || lab.see(&container).await.busy;
        lab.until("its beginning is told", async || again().await == again().await).await;
    }
    let first = lab.see(&container).await.busy;
    let listed = lab.backend().await.list.list(None).await.unwrap();
    let listed = listed.seen.iter().find(|seen| seen.id == idle.id).unwrap();
    assert!(works(listed.busy), "{listed:?}");
    if lab.kind == Kind::Docker {
        assert_eq!(listed.busy, first, "it counts from when it began, not from each look");
    }
    if lab.kind == Kind::Podman {
        return; // 4.3 says for five minutes after its end that a detached command runs: the safe side.
    }
    lab.api.exec(&container, &["sh", "-c", "until test -p /tmp/go; do :; done; echo > /tmp/go"]).await;
    lab.until("the command has ended", async || lab.see(&container).await.busy == Busy::No).await;
}

#[tokio::test]
async fn what_was_written_is_measured_by_a_look_and_not_by_a_listing() {
    let lab = Lab::new("sizes").await;
    let container = lab.start(Spec::of(&["sh", "-c", "head -c 3000000 /dev/zero > /big"])).await;
    lab.exited(&container).await;
    let page = lab.backend().await.list.list(None).await.unwrap();
    let listed = page.seen.iter().find(|seen| seen.id == lab.id(&container)).unwrap();
    assert_eq!((&listed.loss, listed.files.total), (&Loss::Unknown, None));
    let seen = lab.see(&container).await;
    let total = seen.files.total.unwrap();
    assert!((3_000_000..3_100_000).contains(&total), "{total}");
    assert!(
        matches!(&seen.loss, Loss::Work(work) if &*work[0] == "3.0 MB written in the container"),
        "{:?}",
        seen.loss
    );
}

#[tokio::test]
async fn a_container_between_two_runs_is_never_idle() {
    let lab = Lab::new("restarting").await;
    let container = lab.start(Spec { restart: "always", ..Spec::of(&["false"]) }).await;
    if lab.kind == Kind::Podman {
        return; // It has no such status: it starts the next run at once.
    }
    lab.until("it is between two runs", async || {
        let seen = lab.see(&container).await;
        assert_eq!((seen.state, seen.activity, seen.busy), (State::Running, Activity::Unknown, Busy::No));
        lab.status(&container).await == "restarting"
    })
    .await;
}
