//! A sidecar over loopback, with a small agent server below it and a store in a folder beside it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "fixtures are tests too: a failing one should panic")]

mod activity;
mod agent;
mod lab;
mod life;
mod through;
mod users;
