//! How long a sandbox may idle: written, and never read.

use std::time::Duration;

use backend::{BackendError, NativeWanted, Outcome, Target};
use lifecycle::NativeObserved;
use serde_json::json;

use super::{Lab, at_worker, minutes};
use crate::simulators::Reply;

const HOUR: Duration = Duration::from_hours(1);

impl Lab {
    async fn set(&self, target: &Target, wanted: NativeWanted) -> Result<Outcome<NativeObserved>, BackendError> {
        self.backend.native.as_ref().unwrap().set_native(target, wanted, minutes(self.hands.now())).await
    }
}

fn kept(idle: Duration, archive: Option<Duration>) -> NativeWanted {
    NativeWanted { idle_suspend: Some(idle), archive, delete: None }
}

#[tokio::test]
async fn a_sandbox_does_not_sleep_before_the_policy_would_end_it() {
    let lab = Lab::keeping().await;
    let id = lab.running();
    let target = lab.target(&id).await;
    let wanted = kept(HOUR, Some(2 * HOUR));
    let Ok(Outcome::Done(shown)) = lab.set(&target, wanted).await else { panic!("it was not written") };
    assert!(shown.hidden && shown.mutable && shown.idle_suspend.is_none(), "nothing can be read back: {shown:?}");
    assert_eq!(lab.acts(), [format!("PUT {}", at_worker(&id, "sleep-after"))]);
    assert_eq!(lab.set(&target, wanted).await, Ok(Outcome::AlreadyDone));
    assert_eq!(lab.server.calls(), [""; 0], "this process wrote it");
    lab.hands.advance(2 * HOUR + Duration::from_secs(3_599));
    assert!(lab.look(&id).await.is_some());
    lab.hands.advance(Duration::from_secs(1));
    assert!(lab.look(&id).await.is_none(), "it idles no longer than the policy keeps it");
}

/// Another process wrote it before: the same again begins nothing anew.
#[tokio::test]
async fn the_same_again_does_not_renew_its_time() {
    let lab = Lab::new().await;
    let id = lab.add(|sandbox| sandbox.sleep_after = 3 * HOUR);
    let target = lab.target(&id).await;
    lab.hands.advance(2 * HOUR);
    assert!(matches!(lab.set(&target, kept(HOUR, Some(2 * HOUR))).await, Ok(Outcome::Done(_))));
    lab.hands.advance(HOUR);
    assert!(lab.look(&id).await.is_none());
}

#[tokio::test]
async fn what_has_no_end_by_the_policy_is_refused_and_nothing_is_written() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    for wanted in [NativeWanted::default(), kept(HOUR, None), kept(Duration::ZERO, Some(Duration::ZERO))] {
        let refused = lab.set(&target, wanted).await;
        assert!(matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("keepAlive")), "{refused:?}");
    }
    assert_eq!(lab.acts(), [""; 0], "a zero would end it at once");
}

/// Its container ended while it was asked: it is looked at later, and written anew with the next one.
#[tokio::test]
async fn what_ended_meanwhile_is_left_for_later() {
    let lab = Lab::new().await;
    let target = lab.target(&lab.running()).await;
    lab.server.once("PUT", Reply::json(409, json!({"error": "it does not run"})));
    let wanted = kept(HOUR, Some(HOUR));
    assert_eq!(lab.set(&target, wanted).await, Ok(Outcome::Pending));
    assert!(matches!(lab.set(&target, wanted).await, Ok(Outcome::Done(_))));
}
