//! The host's function, sidecars that ask it over HTTP, and a small agent server below each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "fixtures are tests too: a failing one should panic")]

#[path = "../../../sidecar/tests/all/agent.rs"]
mod agent;
mod lab;
#[cfg(feature = "engines")]
mod real;
mod tokens;
mod whole;
