//! A sandbox as Daytona shows it: the fields that are read, and no other.

use std::{collections::BTreeMap, num::NonZeroU32};

use lifecycle::{State, Time};
use serde_json::Value;

use crate::row::{Row, Unread};

/// The longest time until an archive, which is also what Daytona makes of a zero: 30 days, in minutes.
pub(super) const LONGEST_ARCHIVE: NonZeroU32 = NonZeroU32::new(43_200).unwrap();

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) status: Status,
    pub(super) vm: bool,
    pub(super) gpu: bool,
    /// As it is written: it tells a sandbox of the warm pool from what it was before.
    pub(super) created: Option<String>,
    /// The last sign of activity, and the last change of its state.
    pub(super) last_activity: Option<Time>,
    pub(super) timers: Timers,
    /// When it is destroyed, in whatever state it is then.
    pub(super) destroyed_at: Option<Time>,
}

/// Its state, as far as it says what may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It can work.
    Started,
    /// It is there for a while as it is, copied or changed by its owner: work is under way.
    Worked,
    /// Stopped, files kept.
    Stopped,
    /// Frozen with its memory. Only VMs can be.
    Paused,
    /// In object storage.
    Archived,
    /// It failed; its files may be lost.
    Failed,
    /// On its way.
    Going(State),
    /// It is no more, and still shown for a while.
    Destroyed,
}

impl Status {
    /// The state in Furlough's words.
    pub(super) fn state(self) -> State {
        match self {
            Self::Started | Self::Worked => State::Running,
            Self::Stopped | Self::Paused | Self::Failed => State::Suspended,
            Self::Archived => State::Archived,
            Self::Going(state) => state,
            Self::Destroyed => State::Gone,
        }
    }

    /// From what is and what is wanted of it: `state` alone stays as it was for a while after a call. `None`: a
    /// word that this version does not know.
    fn read(state: &str, desired: Option<&str>) -> Option<Self> {
        let is = match state {
            "started" => Self::Started,
            "resizing" | "snapshotting" | "forking" => Self::Worked,
            "stopped" => Self::Stopped,
            "paused" => Self::Paused,
            "archived" => Self::Archived,
            "error" | "build_failed" => Self::Failed,
            "destroyed" => Self::Destroyed,
            "destroying" => Self::Going(State::Deleting),
            "stopping" | "pausing" => Self::Going(State::Suspending),
            "archiving" => Self::Going(State::Archiving),
            "creating" | "restoring" | "starting" | "resuming" | "pending_build" | "building_snapshot"
            | "pulling_snapshot" => Self::Going(State::Resuming),
            _ => return None,
        };
        Some(match (is, desired) {
            (Self::Destroyed | Self::Going(_), _) => is,
            (_, Some("destroyed")) => Self::Going(State::Deleting),
            (Self::Started, Some("stopped" | "paused")) | (Self::Paused, Some("stopped")) => {
                Self::Going(State::Suspending)
            }
            (Self::Stopped | Self::Paused | Self::Archived, Some("started")) => Self::Going(State::Resuming),
            (Self::Stopped | Self::Paused, Some("archived")) => Self::Going(State::Archiving),
            (_, None | Some("started" | "stopped" | "paused" | "archived" | "resized")) => is,
            (_, Some(_)) => return None,
        })
    }
}

/// Its own timers, in minutes. A zero means another thing in each of them, so none of them can hold one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timers {
    /// Stops (pauses, for a VM) after so long without activity; `None`: never, which Daytona writes 0.
    pub(super) idle: Option<NonZeroU32>,
    /// Archives so long after a stop. There is no never.
    pub(super) archive: NonZeroU32,
    /// Deletes after a stop.
    pub(super) delete: Deletion,
}

/// When a stopped sandbox is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Never, which Daytona writes -1.
    Never,
    /// So many minutes after its stop.
    After(NonZeroU32),
    /// At once, as it stops, which Daytona writes 0. Only read, never written.
    AtStop,
}

impl Sandbox {
    pub(super) fn read(value: &Value) -> Result<Self, Unread> {
        let row = Row::of(value)?;
        let id = row.text("id")?;
        Self::fields(row, id).map_err(|Unread(why)| Unread(format!("sandbox `{}`: {why}", shown(id))))
    }

    fn fields(row: Row<'_>, id: &str) -> Result<Self, Unread> {
        let unknown = || Unread("it is in a state that this version does not know".to_owned());
        let status = Status::read(row.text("state")?, row.maybe_text("desiredState")?).ok_or_else(unknown)?;
        let vm = row.maybe_text("sandboxClass")?.is_some_and(|class| class != "container");
        let (stop, pause) = (minutes(row, "autoStopInterval")?, minutes(row, "autoPauseInterval")?);
        Ok(Self {
            id: id.to_owned(),
            name: row.text("name")?.to_owned(),
            labels: row.labels("labels")?,
            status,
            vm,
            gpu: row.maybe_whole("gpu")?.is_some_and(|gpu| gpu > 0),
            created: row.maybe_text("createdAt")?.map(str::to_owned),
            last_activity: row.maybe_time("lastActivityAt")?,
            timers: Timers {
                idle: stop.into_iter().chain(pause).filter_map(NonZeroU32::new).min(),
                archive: minutes(row, "autoArchiveInterval")?.and_then(NonZeroU32::new).unwrap_or(LONGEST_ARCHIVE),
                delete: deletion(row)?,
            },
            destroyed_at: row.maybe_time("autoDestroyAt")?,
        })
    }
}

fn minutes(row: Row<'_>, name: &str) -> Result<Option<u32>, Unread> {
    let whole = |minutes: i64| u32::try_from(minutes).map_err(|_| Unread(format!("`{name}` is out of bounds")));
    row.maybe_whole(name)?.map(whole).transpose()
}

fn deletion(row: Row<'_>) -> Result<Deletion, Unread> {
    const NAME: &str = "autoDeleteInterval";
    let Some(interval) = row.maybe_whole(NAME)?.filter(|interval| *interval >= 0) else { return Ok(Deletion::Never) };
    let interval = u32::try_from(interval).map_err(|_| Unread(format!("`{NAME}` is out of bounds")))?;
    Ok(NonZeroU32::new(interval).map_or(Deletion::AtStop, Deletion::After))
}

/// Enough of an id for people.
fn shown(id: &str) -> String {
    id.chars().filter(char::is_ascii_graphic).take(40).collect()
}
