//! An engine that goes down and comes back, by the command that `.ci/engine` gives.

use backend::{ErrorKind, Outcome};
use lifecycle::State;

use super::lab::{Kind, Lab, POLITE, Spec, environment};

async fn engine(verb: &str) {
    let Some(control) = environment("FURLOUGH_TEST_CONTROL") else {
        panic!("FURLOUGH_TEST_CONTROL is not set: run this through `.ci/engine`");
    };
    let status = tokio::process::Command::new(control).arg(verb).status().await.unwrap();
    assert!(status.success(), "{verb}: {status}");
}

#[tokio::test]
async fn an_engine_that_goes_down_is_an_error_and_what_was_suspended_stays_down_when_it_is_back() {
    let lab = Lab::alone("outage").await;
    let always = || Spec { restart: "always", ..Spec::of(POLITE) };
    let (ours, theirs) = (lab.start(always()).await, lab.start(always()).await);
    let backend = lab.backend().await;
    let target = lab.target(&ours).await;
    let suspended = backend.suspend.as_ref().unwrap().suspend(&target, lab.minute()).await;
    assert_eq!(suspended, Ok(Outcome::Done(())));
    lab.stop(&theirs).await;

    engine("stop").await;
    let listed = backend.list.list(None).await.map_err(|error| error.kind);
    assert_eq!(listed, Err(ErrorKind::Unreachable), "an outage looked like an empty inventory");
    let looked = backend.inspect.inspect(&target.id).await.map_err(|error| error.kind);
    assert_eq!(looked, Err(ErrorKind::Unreachable), "an outage looked like an absence");
    engine("start").await;

    if lab.kind == Kind::Docker {
        lab.until("the engine has restarted the other one", async || lab.status(&theirs).await == "running").await;
    }
    let seen = lab.see(&ours).await;
    assert_eq!((seen.state, seen.incarnation), (State::Suspended, target.incarnation));
}
