//! A sandbox as E2B shows it: the fields that are read, and no other.

use std::collections::BTreeMap;

use lifecycle::Time;
use serde_json::Value;

use crate::row::{Row, Unread};

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(super) id: String,
    pub(super) template: String,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) paused: bool,
    /// When its run began; every resume writes it. As it is written.
    pub(super) started: String,
    pub(super) started_at: Time,
    /// When its time is up while it runs; when it was last paused well while it does not.
    pub(super) end_at: Time,
    /// What happens when its time is up. A listing does not tell.
    pub(super) on_timeout: OnTimeout,
}

/// What E2B does when a run's time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnTimeout {
    /// It is not shown here: taken as the worse.
    Unknown,
    /// It is killed, and its files with it.
    Kill,
    /// It is paused.
    Pause,
}

impl Sandbox {
    pub(super) fn read(value: &Value) -> Result<Self, Unread> {
        let row = Row::of(value)?;
        let id = row.text("sandboxID")?;
        Self::fields(row, id).map_err(|Unread(why)| Unread(format!("sandbox `{}`: {why}", shown(id))))
    }

    fn fields(row: Row<'_>, id: &str) -> Result<Self, Unread> {
        let paused = match row.text("state")? {
            "running" => false,
            "paused" => true,
            _ => return Err(Unread("it is in a state that this version does not know".to_owned())),
        };
        Ok(Self {
            id: id.to_owned(),
            template: row.maybe_text("alias")?.map_or_else(|| row.text("templateID"), Ok)?.to_owned(),
            metadata: row.labels("metadata")?,
            paused,
            started: row.text("startedAt")?.to_owned(),
            started_at: row.time("startedAt")?,
            end_at: row.time("endAt")?,
            on_timeout: on_timeout(row)?,
        })
    }
}

fn on_timeout(row: Row<'_>) -> Result<OnTimeout, Unread> {
    let Some(lifecycle) = row.maybe_row("lifecycle")? else { return Ok(OnTimeout::Unknown) };
    match lifecycle.maybe_text("onTimeout")? {
        Some("pause") => Ok(OnTimeout::Pause),
        Some("kill") => Ok(OnTimeout::Kill),
        None => Ok(OnTimeout::Unknown),
        Some(_) => Err(Unread("it does on its timeout what this version does not know".to_owned())),
    }
}

/// Enough of an id for people.
fn shown(id: &str) -> String {
    id.chars().filter(char::is_ascii_graphic).take(40).collect()
}
