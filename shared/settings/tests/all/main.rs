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

/// The same with its secrets on AWS, as its comments say.
pub(crate) fn example_by_arn() -> String {
    let keys = ["secret", "api_key", "worker_key", "token_id", "token_secret"];
    let lines = EXAMPLE.lines().filter(|line| !keys.iter().any(|key| line.starts_with(&format!("{key}.env"))));
    let arn = |line: &str| keys.iter().any(|key| line.starts_with(&format!("# {key}.arn")));
    lines.map(|line| if arn(line) { &line[2..] } else { line }).collect::<Vec<_>>().join("\n")
}
