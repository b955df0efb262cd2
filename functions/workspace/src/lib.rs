//! The host of workspaces, over HTTP: what a sidecar asks for, and what brings a workspace to one.
//!
//! ```text
//! API Gateway ─► lambda_http ─┐
//! furlough serve ─► axum ─────┴► router
//! host ──── /init, /deinit ─► wake ─► lease, secret key, signed reads ─► the sidecar's /init   (who may: a host)
//! sidecar ─ /lease, /parts, /commit ─► sandbox ─► Commit, Blobs                     (who may: the delivery's token)
//! ```
//!
//! | request | answers |
//! |---|---|
//! | `POST /workspaces/{name}/lease` | 200 until when it is held, or that it is lost |
//! | `POST /workspaces/{name}/parts` | 200 with signed requests, for keys of this workspace and lease alone |
//! | `POST /workspaces/{name}/commit` | 200: done, fenced, or moved |
//! | `POST /workspaces/{name}/init` `{sidecar, init_key, owner, roots, exclude?, limit_bytes?, activity?, agent}` | 200 ready; 202 on its way; 409 held by another; 502 with what the sidecar said, or that it said nothing |
//! | `POST /workspaces/{name}/deinit` `{sidecar, init_key, discard?}` | 200 asleep; 202 on its way; 502 |
//!
//! And to each: 401, 405, 413 over [`MAX_BODY_BYTES`], 422 malformed, 503 where records or store can't be asked.
//!
//! **Invariants.** A sandbox's token is good for one workspace under one lease, and what it has signed is below that
//! workspace's own prefix. A second `/init` by the same owner is the same delivery, so that a lost answer can be asked for
//! again. The agent server's secret key is made once for a workspace, is in the store in cipher alone, and is told to
//! nobody but its sandbox. No token, key or body is logged or quoted.
//!
//! **Must never know**: which store and which ledger it is; whether it runs in a function.

mod answer;
mod app;
pub mod keys;
#[cfg(feature = "lambda")]
pub mod lambda;
mod sandbox;
pub mod secret;
mod wake;

pub use app::{ASKED, App, Iam, MAX_BODY_BYTES, Origin, TOKEN, What, client, router, routes};
