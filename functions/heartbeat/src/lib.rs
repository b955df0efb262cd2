//! Activity in: registrations, heartbeats, and the OpenHands agent server's webhooks, over HTTP.
//!
//! ```text
//! API Gateway ─► lambda_http ─┐
//! furlough serve ─► axum ─────┴► router ─► route, size, credential, body ─► Recent ─► ledger ─► Answer
//! ```
//!
//! | request | who | answers |
//! |---|---|---|
//! | `PUT /runtimes/{backend}/{id}` `{labels?}` | a host | 200 with the runtime's token; 409 while somebody acts on it, or just after it came to rest |
//! | `POST /runtimes/{backend}/{id}/heartbeat` `{busy_for?}` | the runtime, or a host | 200; 404, 409, 410 |
//! | `POST /runtimes/{backend}/{id}/saved` `{workspace, generation, age}` | the runtime, or a host | 200; 404, 409, 410 |
//! | `POST /heartbeats` `{heartbeats: [{runtime, token?, busy_for?}]}` | a host, or a token each | 200 with an answer each |
//! | `POST /hooks/openhands/{backend}/{id}/events/{conversation}`, `…/conversations` | the runtime, or a host | as a heartbeat |
//!
//! And to each: 400 malformed, 401 and 403, 413 over [`MAX_BODY_BYTES`], 503 with Retry-After where the ledger is
//! throttled or does not answer.
//!
//! **Invariants.** What is answered with 200 is recorded, or was covered by what this environment recorded within
//! `coalesce`. A refused sign of activity is told why. Time is stamped on arrival; no sender's clock is believed. A
//! runtime's token is good for that runtime's heartbeats and saves, of that registration, and for nothing else. A save is
//! believed of a generation that the workspace has, and is no activity. Codes are compared in constant time. No token, body or header is logged or quoted.
//!
//! **Must never know**: how a record is stored, what makes a runtime idle, whether it runs in a function.

mod access;
mod answer;
mod app;
pub mod body;
pub mod hook;
pub mod keys;
#[cfg(feature = "lambda")]
pub mod lambda;
mod recent;
pub mod route;
pub mod token;

pub use access::Iam;
pub use answer::Answer;
pub use app::{App, Clock, MAX_BODY_BYTES, Terms, router};
