//! Sandboxes, conversations and runtimes as OpenHands shows them: the fields that are read, and no other.

use std::collections::BTreeMap;

use lifecycle::Time;
use serde_json::Value;

use crate::row::{Row, Unread};

/// A sandbox of the app server, or a runtime of the Runtime API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(super) id: String,
    /// By what a scope knows it: the id of its specification, or of its session.
    pub(super) name: String,
    pub(super) status: Status,
    /// When it was made, as it is written, where that is told.
    pub(super) created: Option<String>,
}

/// Its state, in the words of both APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Starting,
    Running,
    Paused,
    /// Something failed in it. It may run all the same.
    Failed,
    /// There is no runtime of it, or it could not be asked for.
    Missing,
}

/// What a conversation tells of its sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) id: String,
    /// It belongs to another one, whose user does not see it.
    pub(super) sub: bool,
    /// Its last change, which is told by the sandbox itself.
    pub(super) updated_at: Time,
    /// Whether its agent works, as far as anybody knows.
    pub(super) works: bool,
    pub(super) tags: BTreeMap<String, String>,
}

impl Sandbox {
    /// A row of the app server.
    pub(super) fn read(value: &Value) -> Result<Self, Unread> {
        let row = Row::of(value)?;
        let id = row.text("id")?;
        let read = || {
            let status = match row.text("status")? {
                "STARTING" => Status::Starting,
                "RUNNING" => Status::Running,
                "PAUSED" => Status::Paused,
                "ERROR" => Status::Failed,
                "MISSING" => Status::Missing,
                "UNKNOWN" => return Err(Unread("OpenHands could not ask for its state".to_owned())),
                _ => return Err(unknown()),
            };
            row.time("created_at")?;
            let created = row.text("created_at")?.to_owned();
            Ok(Self {
                id: id.to_owned(),
                name: row.text("sandbox_spec_id")?.to_owned(),
                status,
                created: Some(created),
            })
        };
        read().map_err(|Unread(why)| Unread(format!("sandbox `{}`: {why}", shown(id))))
    }

    /// A row of the Runtime API.
    pub(super) fn read_runtime(value: &Value) -> Result<Self, Unread> {
        let row = Row::of(value)?;
        let id = row.text("runtime_id")?;
        let read = || {
            let status = match row.text("status")? {
                "starting" => Status::Starting,
                "running" => Status::Running,
                "paused" => Status::Paused,
                "error" => Status::Failed,
                "stopped" => Status::Missing,
                _ => return Err(unknown()),
            };
            Ok(Self { id: id.to_owned(), name: row.text("session_id")?.to_owned(), status, created: None })
        };
        read().map_err(|Unread(why)| Unread(format!("runtime `{}`: {why}", shown(id))))
    }
}

impl Conversation {
    /// The sandbox that it is in, and what it tells of it. An outer error: nobody knows of which.
    pub(super) fn read(value: &Value) -> Result<(String, Result<Self, Unread>), Unread> {
        let row = Row::of(value)?;
        let sandbox = row.text("sandbox_id")?.to_owned();
        Ok((sandbox, Self::fields(row)))
    }

    fn fields(row: Row<'_>) -> Result<Self, Unread> {
        let works = match row.maybe_text("execution_status")? {
            Some("idle" | "paused" | "waiting_for_confirmation" | "finished" | "error" | "stuck" | "deleting") => false,
            // Left out: its agent server could not be asked, or the sandbox does not run.
            Some(_) | None => true,
        };
        Ok(Self {
            id: row.text("id")?.to_owned(),
            sub: row.maybe_text("parent_conversation_id")?.is_some(),
            updated_at: row.time("updated_at")?,
            works,
            tags: row.labels("tags")?,
        })
    }
}

fn unknown() -> Unread {
    Unread("it is in a state that this version does not know".to_owned())
}

/// Enough of an id for people.
pub(super) fn shown(id: &str) -> String {
    id.chars().filter(char::is_ascii_graphic).take(60).collect()
}
