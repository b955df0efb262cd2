//! Configurations as people write them: right ones, wrong ones, doubtful ones, and any text at all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "fixtures are tests too: a failing one should panic")]

mod any_text;
mod examples;
mod faults;
mod safe_side;
mod schema;
mod values;

/// The configuration that has every key.
pub(crate) const EXAMPLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/furlough.example.toml"));
