//! `[workspaces]`: where they are kept, and how much of them.

use std::{str::FromStr, time::Duration};

use super::{DAY, between};
use crate::{
    Bucket, WorkspaceSettings,
    file::WorkspacesTable,
    log::{Log, Problem, shown},
    read::At,
    scalar::{Count, Text},
};

/// How many generations are kept where nobody says how many.
const KEEP: u32 = 3;
const MAX_KEEP: u32 = 1_000;
const EXPECTED: &str = "`s3://BUCKET` or `s3://BUCKET/PREFIX`";
/// What the names in a key may have.
const PLAIN: &[u8] = b"._~-";

/// Why a text is no store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected {EXPECTED}")]
pub struct NotABucket(&'static str);

pub(super) fn workspaces(table: WorkspacesTable, log: &mut Log<'_>) -> WorkspaceSettings {
    let grace = between(table.grace, DAY, Duration::from_hours(1)..=365 * DAY, log);
    WorkspaceSettings { store: table.store.and_then(|store| bucket(&store, log)), keep: keep(table.keep, log), grace }
}

fn keep(count: Option<At<Count>>, log: &mut Log<'_>) -> u32 {
    let Some(At { value: Count(count), span, path }) = count else { return KEEP };
    if !(1..=MAX_KEEP).contains(&count) {
        let expected = format!("a number from 1 to {MAX_KEEP}");
        let problem = format!("`{count}` is out of bounds; expected {expected}");
        log.error(&path, &span, Problem::new(problem).wanting(expected).having(format!("`{count}`")));
    }
    count
}

fn bucket(store: &At<Text>, log: &mut Log<'_>) -> Option<Bucket> {
    let text = &store.value.0;
    match text.parse::<Bucket>() {
        Ok(bucket) => Some(bucket),
        Err(error) => {
            let problem = Problem::new(format!("{} is no store: {error}", shown(text)));
            log.error(&store.path, &store.span, problem.wanting(EXPECTED));
            None
        }
    }
}

impl FromStr for Bucket {
    type Err = NotABucket;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parsed(text).map_err(NotABucket)
    }
}

fn parsed(text: &str) -> Result<Bucket, &'static str> {
    let address = text.strip_prefix("s3://").ok_or("it does not begin with `s3://`")?;
    let (bucket, prefix) = address.split_once('/').unwrap_or((address, ""));
    let in_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(in_name) {
        return Err("a bucket's name is 3 to 63 of a-z, 0-9, `.` and `-`");
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let plain = |part: &str| {
        let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || PLAIN.contains(&byte));
        is_plain && !["", ".", ".."].contains(&part)
    };
    if prefix.is_empty() {
        return Ok(Bucket { name: bucket.to_owned(), prefix: String::new() });
    }
    if prefix.len() > 512 || !prefix.split('/').all(plain) {
        return Err("a prefix is names of A-Z, a-z, 0-9, `.`, `_`, `~` and `-`, joined by `/`");
    }
    Ok(Bucket { name: bucket.to_owned(), prefix: format!("{prefix}/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_bucket_and_what_stands_before_its_keys() {
        let bucket = |name: &str, prefix: &str| Ok(Bucket { name: name.to_owned(), prefix: prefix.to_owned() });
        for text in ["s3://my-bucket", "s3://my-bucket/"] {
            assert_eq!(parsed(text), bucket("my-bucket", ""));
        }
        for text in ["s3://a.b/team/x", "s3://a.b/team/x/"] {
            assert_eq!(parsed(text), bucket("a.b", "team/x/"));
        }
        for text in [
            "my-bucket",
            "https://my-bucket",
            "s3://",
            "s3:///x",
            "s3://ab",
            "s3://Upper",
            "s3://bucket//x",
            "s3://bucket/../x",
            "s3://bucket/a b",
            "s3://bucket/?versionId=1",
            "file:///tmp",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
