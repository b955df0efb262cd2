//! What Modal must not be believed: keep, report, go on.

use std::time::Duration;

use backend::{BackendError, ErrorKind, Page};
use lifecycle::RuntimeId;
use tonic::{Code, Status};

use super::Lab;
use crate::simulators::{Reply, Sent, Server, cloudflare::Cloudflare, modal::throttled};

impl Lab {
    /// Every page to the end, or the first error.
    async fn pages(&self) -> Result<Vec<Page>, BackendError> {
        let (mut pages, mut token) = (Vec::new(), None);
        loop {
            let page = self.backend.list.list(token.as_ref()).await?;
            token.clone_from(&page.next);
            pages.push(page);
            if token.is_none() {
                return Ok(pages);
            }
        }
    }

    async fn listed(&self) -> Vec<RuntimeId> {
        let pages = self.pages().await.unwrap();
        let mut ids: Vec<_> = pages.into_iter().flat_map(|page| page.seen).map(|seen| seen.id).collect();
        ids.sort();
        ids
    }
}

#[tokio::test]
async fn pages_are_read_to_their_end_each_sandbox_once() {
    for (inclusive, tied) in [(false, false), (true, false), (false, true), (true, true)] {
        let lab = Lab::new().await;
        lab.server.state().page = 3;
        lab.server.state().inclusive = inclusive;
        let mut ids: Vec<_> = (0..17).map(|_| lab.running()).collect();
        if tied {
            // Two and two of one app were made in the same moment.
            for (n, sandbox) in lab.server.state().sandboxes.values_mut().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "a few")]
                let moment = 1_796_000_000.0 + (n / 4) as f64;
                sandbox.created = moment;
            }
        }
        ids.sort();
        assert_eq!(lab.listed().await, ids, "inclusive {inclusive}, tied {tied}");
    }
}

#[tokio::test]
async fn a_listing_that_never_ends_is_an_error() {
    let lab = Lab::new().await;
    for _ in 0..9 {
        lab.running();
    }
    lab.server.state().page = 2;
    lab.server.state().stuck = true;
    let told = lab.pages().await.unwrap_err();
    assert_eq!(told.kind, ErrorKind::Malformed);
    assert!(told.message.contains("the listing would never end"), "{told}");
}

#[tokio::test]
async fn a_refusal_is_an_error_wherever_it_comes() {
    for (status, kind) in [
        (Status::unauthenticated("no"), ErrorKind::Denied),
        (Status::permission_denied("no"), ErrorKind::Denied),
        (Status::unimplemented("no"), ErrorKind::Malformed),
        (Status::unavailable("no"), ErrorKind::Unreachable),
        (throttled(11.0), ErrorKind::Throttled { retry_after: Duration::from_secs(11) }),
    ] {
        for call in ["AuthTokenGet", "AppList", "SandboxListV2"] {
            let lab = Lab::new().await;
            lab.running();
            lab.server.state().always(call, status.clone());
            assert_eq!(lab.pages().await.unwrap_err().kind, kind, "{call}, {status:?}");
        }
        // In the middle of a listing.
        let lab = Lab::new().await;
        (0..9).for_each(|_| drop(lab.running()));
        lab.server.state().page = 2;
        let mut asked = 0;
        let middle = status.clone();
        lab.server.state().on(move |call, _| {
            asked += i32::from(call == "SandboxListV2");
            (asked > 2).then(|| middle.clone())
        });
        assert_eq!(lab.pages().await.unwrap_err().kind, kind, "{status:?}");
    }
    let lab = Lab::new().await;
    lab.server.state().always("AppList", Status::new(Code::Internal, "as-5eed5eed5eed5eed is\nno token"));
    let told = lab.pages().await.unwrap_err();
    assert_eq!(told.message, "Modal's answer to `AppList` is Internal: … is no token");
}

#[tokio::test]
async fn rows_that_can_t_be_read_are_named_and_the_others_are_read() {
    let lab = Lab::new().await;
    let (odd, good) = (lab.add(|sandbox| sandbox.created = 1e300), lab.running());
    let pages = lab.pages().await.unwrap();
    let told: Vec<_> = pages.iter().flat_map(|page| &page.unreadable).map(ToString::to_string).collect();
    assert_eq!(told, [format!("sandbox `{}`: `created_at` is no time: kept", odd.encoded())]);
    assert_eq!(lab.listed().await, [good]);
}

/// A server that speaks no gRPC: HTML, nothing, or a body that breaks off.
#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    for reply in [
        Reply::sending(200, Sent::Text("<html>")),
        Reply::empty(200),
        Reply::empty(502),
        Reply::sending(200, Sent::BreaksOff),
    ] {
        let lab = Lab::new().await;
        let other = Server::start(Cloudflare::default(), || lifecycle::Time::MAX).await;
        other.always("", reply.clone());
        let backend = super::backend(&lab.hands, other.address(), backend_modal::Terminate::AtOnce);
        assert!(backend.list.list(None).await.is_err(), "{reply:?}");
        let id = lab.running();
        assert!(backend.inspect.inspect(&id).await.is_err(), "{reply:?}");
    }
}
