//! The end of a run: told, put off, never brought forward.

use std::time::Duration;

use backend::{NativeWanted, Outcome, Target};
use lifecycle::{NativeEffect, NativeObserved};

use super::{Lab, minutes};

const HOUR: Duration = Duration::from_hours(1);

impl Lab {
    async fn set(&self, target: &Target, idle: Option<Duration>) -> Outcome<NativeObserved> {
        let native = self.backend.native.as_ref().unwrap();
        let wanted = NativeWanted { idle_suspend: idle, ..NativeWanted::default() };
        native.set_native(target, wanted, minutes(self.hands.now())).await.unwrap()
    }
}

#[tokio::test]
async fn the_end_of_a_run_is_put_off_and_never_brought_forward() {
    let lab = Lab::new().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    for shorter in [None, Some(Duration::ZERO), Some(HOUR / 2), Some(HOUR)] {
        assert_eq!(lab.set(&target, shorter).await, Outcome::AlreadyDone, "{shorter:?}");
    }
    assert_eq!(lab.acts(), [""; 0], "a zero would kill it at once");
    let Outcome::Done(stands) = lab.set(&target, Some(2 * HOUR)).await else { panic!("it was not put off") };
    assert_eq!(stands.deadline.unwrap().at, lab.hands.now().plus(2 * HOUR));
    assert_eq!(lab.acts().len(), 1);
    lab.hands.advance(HOUR + HOUR / 2);
    assert!(lab.look(&id).await.is_some(), "past its old end");
}

#[tokio::test]
async fn what_the_plan_shortens_is_said() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    let refused = lab.set(&target, Some(48 * HOUR)).await;
    assert!(
        matches!(&refused, Outcome::Refused(why) if why.contains("the latest that its plan allows")),
        "{refused:?}"
    );
}

/// A sandbox that is killed at the end of its run is told to be, with its time; what happens then can't be changed.
#[tokio::test]
async fn what_the_end_of_a_run_does_is_told_and_can_t_be_written() {
    let lab = Lab::new().await;
    for (auto_pause, effect) in [(false, NativeEffect::Destroy), (true, NativeEffect::Suspend)] {
        let id = lab.add(|sandbox| sandbox.auto_pause = auto_pause);
        let native = lab.look(&id).await.unwrap().native.unwrap();
        assert!(!native.mutable);
        let deadline = native.deadline.unwrap();
        assert_eq!((deadline.at, deadline.effect), (lab.hands.now().plus(HOUR), effect));
    }
    lab.hands.advance(HOUR);
    let states: Vec<_> = lab.backend.list.list(None).await.unwrap().seen.iter().map(|seen| seen.state).collect();
    assert_eq!(states, [lifecycle::State::Suspended], "the one was killed, the other paused");
}
