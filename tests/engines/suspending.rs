//! Stopping and starting real processes.

use std::{sync::Arc, time::Duration};

use backend::{Bounds, Outcome, Suspendable};
use lifecycle::{Role, State, Survives};

use super::lab::{Lab, POLITE, STUBBORN, Spec};

async fn role(lab: &Lab) -> Arc<dyn Suspendable> {
    lab.backend().await.suspend.unwrap()
}

#[tokio::test]
async fn a_polite_sandbox_ends_by_itself_and_a_stubborn_one_is_killed_after_the_grace() {
    let lab = Lab::new("polite").await;
    let suspend = role(&lab).await;
    for (command, code) in [(POLITE, 143), (STUBBORN, 137)] {
        let container = lab.start(Spec::of(command)).await;
        let target = lab.target(&container).await;
        assert_eq!(suspend.suspend(&target, lab.minute()).await, Ok(Outcome::Done(())), "{command:?}");
        assert_eq!(
            (lab.status(&container).await, lab.told(&container, "ExitCode").await),
            ("exited".to_owned(), code.into())
        );
        let seen = lab.see(&container).await;
        assert_eq!((seen.state, &seen.incarnation), (State::Suspended, &target.incarnation));
    }
}

#[tokio::test]
async fn a_paused_sandbox_is_stopped() {
    let lab = Lab::new("paused").await;
    let container = lab.start(Spec::of(POLITE)).await;
    lab.pause(&container).await;
    let target = lab.target(&container).await;
    assert_eq!(target.state, State::Running);
    assert_eq!(role(&lab).await.suspend(&target, lab.minute()).await, Ok(Outcome::Done(())));
    assert_eq!(
        (lab.status(&container).await, lab.told(&container, "ExitCode").await),
        ("exited".to_owned(), 143.into())
    );
}

#[tokio::test]
async fn resuming_a_paused_sandbox_goes_on_in_the_same_run() {
    let lab = Lab::new("unpause").await;
    let container = lab.start(Spec::of(POLITE)).await;
    lab.pause(&container).await;
    let target = lab.target(&container).await;
    let resumed = role(&lab).await.resume(&target, lab.minute()).await;
    assert_eq!(resumed, Ok(Outcome::Done(target.incarnation)));
    assert_eq!(lab.status(&container).await, "running");
}

#[tokio::test]
async fn a_container_that_a_stop_would_delete_is_not_suspended() {
    let lab = Lab::new("rm").await;
    let container = lab.start(Spec { auto_remove: true, ..Spec::of(POLITE) }).await;
    let seen = lab.see(&container).await;
    assert_eq!(seen.cannot.iter().map(|cannot| cannot.role).collect::<Vec<_>>(), [Role::Suspend, Role::Delete]);
    let target = lab.target(&container).await;
    let outcome = role(&lab).await.suspend(&target, lab.minute()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("--rm")), "{outcome:?}");
    assert_eq!(lab.status(&container).await, "running");
}

#[tokio::test]
async fn what_was_written_survives_a_suspend_and_a_resume() {
    let lab = Lab::new("survives").await;
    let runs = "echo run >> /root.log; trap 'exit 143' TERM; while :; do sleep 1 & wait $!; done";
    let container = lab.start(Spec::of(&["sh", "-c", runs])).await;
    lab.until("it has written", async || lab.api.file(&container, "/root.log").await == "run\n").await;
    let suspend = role(&lab).await;
    assert_eq!(suspend.survives(), Survives::Disk);
    let first = lab.target(&container).await;
    assert_eq!(suspend.suspend(&first, lab.minute()).await, Ok(Outcome::Done(())));
    let stopped = lab.target(&container).await;
    let Ok(Outcome::Done(second)) = suspend.resume(&stopped, lab.minute()).await else { panic!("not resumed") };
    assert_ne!(second, first.incarnation, "each start is another run");
    assert_eq!(second, lab.see(&container).await.incarnation);
    lab.until("it has written again", async || lab.api.file(&container, "/root.log").await == "run\nrun\n").await;
}

#[tokio::test]
async fn a_stop_that_was_begun_ends_although_nobody_waits_for_it() {
    let lab = Lab::new("dropped").await;
    let out = lab.host_folder();
    let heard = "trap 'touch /out/heard' TERM; touch /out/ready; while :; do sleep 1 & wait $!; done";
    let spec = Spec { binds: vec![format!("{}:/out", out.display())], ..Spec::of(&["sh", "-c", heard]) };
    let container = lab.start(spec).await;
    lab.until("it listens", async || out.join("ready").exists()).await;
    let target = lab.target(&container).await;
    let (suspend, bounds, aimed) = (role(&lab).await, lab.minute(), target.clone());
    let stop = tokio::spawn(async move { suspend.suspend(&aimed, bounds).await });
    lab.until("it was told to end", async || out.join("heard").exists()).await;
    stop.abort();
    assert!(stop.await.unwrap_err().is_cancelled());
    lab.exited(&container).await;
    assert_eq!(lab.told(&container, "ExitCode").await, 137);
    assert_eq!(role(&lab).await.suspend(&target, lab.minute()).await, Ok(Outcome::AlreadyDone), "the next pass");
}

#[tokio::test]
async fn two_suspends_at_once_stop_it_once() {
    let lab = Lab::new("twice").await;
    let container = lab.start(Spec::of(POLITE)).await;
    let target = lab.target(&container).await;
    let suspend = role(&lab).await;
    let (one, other) = futures::join!(suspend.suspend(&target, lab.minute()), suspend.suspend(&target, lab.minute()));
    for outcome in [&one, &other] {
        // Podman shows that a stop is under way: whoever looks then is told so, and does nothing.
        let told = match outcome {
            Ok(Outcome::Done(()) | Outcome::AlreadyDone) => true,
            Ok(Outcome::Moved { incarnation, state }) => {
                *incarnation == target.incarnation && *state == State::Suspending
            }
            _ => false,
        };
        assert!(told, "{outcome:?}");
    }
    assert!([&one, &other].contains(&&Ok(Outcome::Done(()))), "somebody stopped it: {one:?} {other:?}");
    assert_eq!(lab.status(&container).await, "exited");
}

#[tokio::test]
async fn a_container_started_anew_since_the_look_is_not_stopped() {
    let lab = Lab::new("anew").await;
    let container = lab.start(Spec::of(POLITE)).await;
    let stale = lab.target(&container).await;
    lab.stop(&container).await;
    lab.restart(&container).await;
    let fresh = lab.target(&container).await;
    let moved = Outcome::Moved { incarnation: fresh.incarnation, state: State::Running };
    assert_eq!(role(&lab).await.suspend(&stale, lab.minute()).await, Ok(moved));
    assert_eq!(lab.status(&container).await, "running");
}

#[tokio::test]
async fn a_deadline_too_near_for_the_grace_stops_nothing() {
    let lab = Lab::new("late").await;
    let container = lab.start(Spec::of(POLITE)).await;
    let target = lab.target(&container).await;
    let near = Bounds { deadline: lab.now().plus(Duration::from_secs(10)) };
    role(&lab).await.suspend(&target, near).await.unwrap_err();
    assert_eq!(lab.status(&container).await, "running");
}

#[tokio::test]
async fn a_container_that_restarts_always_is_stopped_all_the_same() {
    let lab = Lab::new("always").await;
    let container = lab.start(Spec { restart: "always", ..Spec::of(POLITE) }).await;
    let seen = lab.see(&container).await;
    assert!(seen.about.ends_with("restart=always)"), "{}", seen.about);
    let target = lab.target(&container).await;
    assert_eq!(role(&lab).await.suspend(&target, lab.minute()).await, Ok(Outcome::Done(())));
    assert_eq!(lab.status(&container).await, "exited");
}
