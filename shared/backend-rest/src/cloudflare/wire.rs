//! An instance as Cloudflare shows it, and a state as the Worker does: the fields that are read, and no other.

use lifecycle::Time;
use serde_json::Value;

use crate::row::{Row, Unread};

/// An instance: a Durable Object, and the container that it has, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    /// The Durable Object's, 64 hexadecimal digits.
    pub(super) id: String,
    /// What its application calls it, where Cloudflare knows.
    pub(super) name: Option<String>,
    pub(super) status: Status,
    /// When this container was started, as it is written.
    pub(super) started: Option<String>,
    pub(super) started_at: Option<Time>,
    pub(super) updated: String,
}

/// Whether there is a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It is being started.
    Starting,
    /// It runs.
    Runs,
    /// It is being stopped, by whomever.
    Stopping,
    /// There is none, nor any file of it.
    None,
}

impl Instance {
    pub(super) fn read(value: &Value) -> Result<Self, Unread> {
        let row = Row::of(value)?;
        let id = row.text("id")?;
        if id.len() != 64 || !id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return Err(Unread("`id` is not 64 hexadecimal digits".to_owned()));
        }
        Self::fields(row, id).map_err(|Unread(why)| Unread(format!("sandbox `{}…`: {why}", &id[..12])))
    }

    fn fields(row: Row<'_>, id: &str) -> Result<Self, Unread> {
        let shown = row.maybe_row("status")?.ok_or_else(|| Unread("`status` is missing".to_owned()))?;
        let status = match shown.text("state")? {
            "provisioning" => Status::Starting,
            "running" | "unhealthy" => Status::Runs,
            "stopping" => Status::Stopping,
            "stopped" | "failed" | "inactive" => Status::None,
            "unknown" => return Err(Unread("Cloudflare does not know its state".to_owned())),
            _ => return Err(Unread("it is in a state that this version does not know".to_owned())),
        };
        let started = row.maybe_text("started_at")?;
        if status == Status::Runs && started.is_none() {
            return Err(Unread("`started_at` is missing".to_owned()));
        }
        shown.time("updated_at")?;
        Ok(Self {
            id: id.to_owned(),
            name: row.maybe_text("name")?.filter(|name| !name.is_empty()).map(str::to_owned),
            status,
            started: started.map(str::to_owned),
            started_at: row.maybe_time("started_at")?,
            updated: shown.text("updated_at")?.to_owned(),
        })
    }
}

/// Whether a container ended, by the state that its Durable Object tells.
pub(super) fn ended(state: Option<Row<'_>>) -> Result<bool, Unread> {
    let state = state.ok_or_else(|| Unread("`after` is missing".to_owned()))?;
    match state.text("status")? {
        "stopped" | "stopped_with_code" => Ok(true),
        "running" | "healthy" | "stopping" => Ok(false),
        _ => Err(Unread("`status` is none that this version knows".to_owned())),
    }
}
