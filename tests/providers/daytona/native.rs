//! Daytona's own timers: as they are shown, compared and written.

use std::time::Duration;

use backend::{NativeWanted, Outcome, Target};
use lifecycle::{NativeEffect, NativeObserved, State};

use super::{Lab, minutes};

const HOUR: Duration = Duration::from_hours(1);

impl Lab {
    async fn set(&self, target: &Target, wanted: NativeWanted) -> Outcome<NativeObserved> {
        let native = self.backend.native.as_ref().unwrap();
        native.set_native(target, wanted, minutes(self.hands.now())).await.unwrap()
    }
}

#[tokio::test]
async fn only_what_differs_is_written_and_a_second_time_nothing() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    let wanted = NativeWanted { idle_suspend: Some(HOUR), archive: Some(168 * HOUR), delete: None };
    assert!(matches!(lab.set(&target, wanted).await, Outcome::Done(_)));
    assert_eq!(lab.changes(), ["POST 000000000001/autostop/60"], "7 d and never stand there already");
    assert_eq!(lab.set(&target, wanted).await, Outcome::AlreadyDone);
    assert_eq!(lab.changes(), [""; 0]);
    let changed = NativeWanted { idle_suspend: None, archive: None, delete: Some(9 * HOUR) };
    assert!(matches!(lab.set(&target, changed).await, Outcome::Done(_)));
    assert_eq!(
        lab.changes(),
        ["POST 000000000001/autostop/0", "POST 000000000001/autoarchive/43200", "POST 000000000001/autodelete/540"]
    );
}

/// A drift that somebody made is seen and written back.
#[tokio::test]
async fn a_drift_is_seen_and_written_back() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let wanted = NativeWanted { idle_suspend: Some(HOUR), archive: None, delete: None };
    assert!(matches!(lab.set(&target, wanted).await, Outcome::Done(_)));
    lab.server.state().sandboxes.values_mut().next().unwrap().auto_stop = 50;
    let attainable = lab.backend.native.as_ref().unwrap().attainable(wanted);
    let shown = lab.look(&id).await.unwrap().native.unwrap();
    assert!(attainable.differs_from(&shown));
    let Outcome::Done(stands) = lab.set(&target, wanted).await else { panic!("it was not written") };
    assert!(!attainable.differs_from(&stands));
}

/// The timer of a sandbox that has been stopped for long would go off at once.
#[tokio::test]
async fn a_timer_that_would_delete_at_once_is_not_written() {
    let lab = Lab::new().await;
    let id = lab.stopped();
    lab.hands.advance(3 * HOUR);
    let target = lab.target(&id).await;
    let wanted = NativeWanted { idle_suspend: None, archive: Some(168 * HOUR), delete: Some(2 * HOUR) };
    let refused = lab.set(&target, wanted).await;
    assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
    assert_eq!(lab.changes(), [""; 0]);
    lab.hands.advance(HOUR);
    assert_eq!(lab.state(&id).await, Some(State::Suspended));
    assert!(matches!(lab.set(&target, NativeWanted { delete: Some(9 * HOUR), ..wanted }).await, Outcome::Done(_)));
}

/// A policy that wants a timer of nothing gets a minute, never what Daytona takes a zero for.
#[tokio::test]
async fn a_zero_is_never_written_for_a_time() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let zero = Some(Duration::ZERO);
    assert!(matches!(
        lab.set(&target, NativeWanted { idle_suspend: zero, archive: zero, delete: zero }).await,
        Outcome::Done(_)
    ));
    assert_eq!(
        lab.changes(),
        ["POST 000000000001/autostop/1", "POST 000000000001/autoarchive/1", "POST 000000000001/autodelete/1"]
    );
}

#[tokio::test]
async fn an_ephemeral_one_can_be_made_lasting_and_a_gpu_one_can_not() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.auto_delete = 0);
    let gpu = lab.add(|sandbox| (sandbox.auto_delete, sandbox.gpu) = (0, 1));
    let lasting = NativeWanted { idle_suspend: None, archive: Some(168 * HOUR), delete: None };
    let target = lab.target(&id).await;
    assert!(matches!(lab.set(&target, lasting).await, Outcome::Done(_)));
    assert_eq!(lab.changes(), ["POST 000000000001/autodelete/-1"]);
    assert_eq!(lab.look(&id).await.unwrap().cannot, []);
    let target = lab.target(&gpu).await;
    assert!(matches!(lab.set(&target, lasting).await, Outcome::Refused(_)));
    assert_eq!(lab.changes(), [""; 0]);
}

#[tokio::test]
async fn a_vm_pauses_by_its_own_timer() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.class = "linux-vm");
    let target = lab.target(&id).await;
    let wanted = NativeWanted { idle_suspend: Some(HOUR), archive: Some(168 * HOUR), delete: None };
    assert!(matches!(lab.set(&target, wanted).await, Outcome::Done(_)));
    assert_eq!(lab.changes(), ["POST 000000000001/autopause/60"]);
    lab.hands.advance(HOUR);
    assert_eq!(lab.state(&id).await, Some(State::Suspended));
}

/// What is said beforehand is what the server then does.
#[tokio::test]
async fn the_deadline_that_is_told_is_when_it_happens() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| (sandbox.auto_stop, sandbox.auto_archive) = (60, 120));
    for (effect, before, after) in [
        (NativeEffect::Suspend, State::Running, State::Suspending),
        (NativeEffect::Archive, State::Suspended, State::Archiving),
    ] {
        let deadline = lab.look(&id).await.unwrap().native.unwrap().deadline.unwrap();
        assert_eq!(deadline.effect, effect);
        lab.hands.advance(deadline.at.since(lab.hands.now()).saturating_sub(Duration::from_secs(11)));
        assert_eq!(lab.state(&id).await, Some(before));
        lab.hands.advance(Duration::from_secs(12));
        let now = lab.state(&id).await;
        assert!(now == Some(after) || now == Some(before), "{now:?}");
        lab.hands.advance(Duration::from_secs(30));
        assert_ne!(lab.state(&id).await, Some(before));
    }
}
