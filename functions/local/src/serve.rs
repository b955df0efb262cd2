//! What `furlough serve` opens: the routes of heartbeats and workspaces and, where they are asked for, the stores.
//!
//! **Invariants.** It listens on this machine alone, unless told otherwise; the stores, which ask for no credential,
//! never do otherwise. A browser on this machine can't be talked into asking either of them: a name other than this
//! machine's own in `Host` is refused, and the stores need a header that no page can send elsewhere unasked.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, HOST},
        uri::Authority,
    },
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::post,
};
use embedded::Embedded;
use heartbeat::{App, router};
use tokio::net::TcpListener;

use crate::answer::Fault;

pub(crate) mod keys;
mod objects;
pub(crate) mod workspaces;

/// The largest request that DynamoDB takes.
const MAX_STORE_BYTES: usize = 16 * 1024 * 1024;

/// Whether only this machine can reach `address`.
pub(crate) fn is_local(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

/// Takes an address, before anything else is begun.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Fault> {
    let failed = |error: std::io::Error| Fault::failed("listen", format!("can't listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Answers activity, and what is asked of workspaces, on `listener` until `stop`; what is under way then is answered
/// first.
pub(crate) async fn activity(
    listener: TcpListener,
    app: Arc<App>,
    workspaces: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let local = listener.local_addr().is_ok_and(is_local);
    let routes = router(app).merge(workspaces);
    let routes = if local { routes.layer(middleware::from_fn(ours)) } else { routes };
    axum::serve(listener, routes).with_graceful_shutdown(stop).await
}

/// Answers DynamoDB's API on `listener` until `stop`.
pub(crate) async fn stores(
    listener: TcpListener,
    store: Embedded,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/", post(dynamodb))
        .layer(DefaultBodyLimit::max(MAX_STORE_BYTES))
        .layer(middleware::from_fn(ours))
        .with_state(store);
    axum::serve(listener, routes).with_graceful_shutdown(stop).await
}

async fn dynamodb(State(store): State<Embedded>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(target) = headers.get("x-amz-target").and_then(|target| target.to_str().ok()) else {
        return (StatusCode::BAD_REQUEST, "`X-Amz-Target` is missing: this is DynamoDB's API").into_response();
    };
    let (status, told) = store.answer(target, &body);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(CONTENT_TYPE, "application/x-amz-json-1.0")];
    (status, kind, Body::from(told)).into_response()
}

/// Refuses a request that means another machine: a page whose name was pointed here after it was loaded sends its own.
async fn ours(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(names_this_machine) {
        return next.run(request).await;
    }
    (StatusCode::MISDIRECTED_REQUEST, "this is served to 127.0.0.1, [::1] and localhost").into_response()
}

fn names_this_machine(host: &str) -> bool {
    // An authority may name a user too; a `Host` may not.
    let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_are_ours() {
        for ours in ["localhost", "LocalHost:7788", "127.0.0.1:1", "127.0.0.9", "[::1]:80", "[::1]"] {
            assert!(names_this_machine(ours), "{ours}");
        }
        for other in [
            "",
            "example.com",
            "localhost.example.com",
            "10.0.0.1",
            "127.0.0.1.nip.io",
            "a@localhost/..",
            "a@localhost",
            "::1",
        ] {
            assert!(!names_this_machine(other), "{other}");
        }
    }
}
