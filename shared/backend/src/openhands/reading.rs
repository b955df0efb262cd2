//! Reads the server's answers. Whatever is not exactly as measured on 1.58.2 is [`Malformed`].

use std::{fmt, time::Duration};

use lifecycle::{Time, activity::MAX_BUSY};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

/// The farthest that a local time without its zone can be behind UTC: it is read as if it were, so that
/// nothing is taken to be older than it is.
const FARTHEST_WEST: Duration = Duration::from_hours(12);
/// A process that runs longer than this tells nonsense.
const MAX_UPTIME: f64 = 100.0 * 366.0 * 86_400.0;

/// An answer that can't be read, with the reason for people. Never more of the body than one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed(String);

impl Malformed {
    pub(super) fn because(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.200}", self.0)
    }
}

/// `GET /server_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerInfo {
    pub(super) uptime: Duration,
    pub(super) idle: Duration,
}

impl ServerInfo {
    /// Whether no event came since the process started: both clocks began then, and each is cut to seconds.
    pub(super) fn untouched(self) -> bool {
        self.idle + Duration::from_secs(1) >= self.uptime
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) id: String,
    /// Running, or in a state that this version does not know: that one counts as work, and is bounded as work is.
    pub(super) working: bool,
    pub(super) updated_at: Time,
}

/// A bash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) id: String,
    pub(super) begun: Time,
    /// The server ends it then.
    pub(super) timeout: Duration,
}

/// `GET /api/init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InitState {
    Dormant,
    Initializing,
    Ready,
}

pub(super) fn server_info(body: &[u8]) -> Result<ServerInfo, Malformed> {
    #[derive(Deserialize)]
    struct Raw {
        uptime: f64,
        idle_time: f64,
    }
    let raw: Raw = json(body)?;
    let uptime = seconds("uptime", raw.uptime)?;
    let idle = seconds("idle_time", raw.idle_time)?;
    if idle > uptime + Duration::from_secs(1) {
        return Err(Malformed(format!("idle_time `{}` is longer than uptime `{}`", raw.idle_time, raw.uptime)));
    }
    Ok(ServerInfo { uptime, idle })
}

pub(super) fn init(body: &[u8]) -> Result<InitState, Malformed> {
    #[derive(Deserialize)]
    struct Raw {
        state: InitState,
    }
    json::<Raw>(body).map(|raw| raw.state)
}

pub(super) fn conversations(body: &[u8]) -> Result<Listed<Conversation>, Malformed> {
    #[derive(Deserialize)]
    struct Raw {
        id: String,
        execution_status: String,
        updated_at: String,
    }
    listed(body, |raw: Raw| {
        const RESTING: [&str; 7] =
            ["idle", "paused", "waiting_for_confirmation", "finished", "error", "stuck", "deleting"];
        let working = !RESTING.contains(&raw.execution_status.as_str());
        Ok(Conversation { id: plain_id(raw.id)?, working, updated_at: time(&raw.updated_at)? })
    })
}

pub(super) fn commands(body: &[u8]) -> Result<Listed<Command>, Malformed> {
    #[derive(Deserialize)]
    struct Raw {
        id: String,
        kind: String,
        timestamp: String,
        timeout: Option<f64>,
    }
    listed(body, |raw: Raw| {
        if raw.kind != "BashCommand" {
            return Err(Malformed(format!("a `{}` among the commands", raw.kind)));
        }
        // Zero, negative and absent are no bound that we could believe.
        let timeout = raw
            .timeout
            .filter(|timeout| *timeout > 0.0)
            .map_or(MAX_BUSY, |timeout| Duration::try_from_secs_f64(timeout).unwrap_or(MAX_BUSY).min(MAX_BUSY));
        Ok(Command { id: plain_id(raw.id)?, begun: time(&raw.timestamp)?, timeout })
    })
}

/// When the command of this id ended, from the newest of its outputs.
pub(super) fn ended(body: &[u8], id: &str) -> Result<Option<Time>, Malformed> {
    #[derive(Deserialize)]
    struct Raw {
        kind: String,
        command_id: String,
        timestamp: String,
        #[serde(deserialize_with = "present")]
        exit_code: Option<i64>,
    }
    let outputs = listed(body, |raw: Raw| {
        let same = |a: &str, b: &str| a.bytes().filter(|c| *c != b'-').eq(b.bytes().filter(|c| *c != b'-'));
        if raw.kind != "BashOutput" || !same(&raw.command_id, id) {
            return Err(Malformed(format!("a `{}` of another command among the outputs", raw.kind)));
        }
        Ok((raw.exit_code.is_some(), time(&raw.timestamp)?))
    })?;
    Ok(outputs.items.into_iter().find(|(ended, _)| *ended).map(|(_, at)| at))
}

fn listed<R: DeserializeOwned, T>(
    body: &[u8],
    read: impl FnMut(R) -> Result<T, Malformed>,
) -> Result<Listed<T>, Malformed> {
    #[derive(Deserialize)]
    struct Raw<R> {
        items: Vec<R>,
        #[serde(deserialize_with = "present")]
        next_page_id: Option<String>,
    }
    let raw: Raw<R> = json(body)?;
    if raw.items.is_empty() && raw.next_page_id.is_some() {
        return Err(Malformed("an empty page with another one behind it".to_owned()));
    }
    Ok(Listed { items: raw.items.into_iter().map(read).collect::<Result<_, _>>()?, next: raw.next_page_id })
}

/// An optional value whose key has to be there: a listing cut short must not look like its end.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Malformed> {
    // serde would read a list as a struct, by the order of its fields.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(Malformed::because("it is a list, not an object"));
    }
    serde_json::from_slice(body).map_err(|error| Malformed(error.to_string()))
}

fn seconds(name: &str, value: f64) -> Result<Duration, Malformed> {
    let fit = (0.0..=MAX_UPTIME).contains(&value);
    let duration = fit.then(|| Duration::try_from_secs_f64(value).ok()).flatten();
    duration.ok_or_else(|| Malformed(format!("{name} is `{value}` seconds; it can be 0 to {MAX_UPTIME}")))
}

/// UTC as 1.58.2 writes it; a local time of an unknown zone, as older ones do, at its latest.
fn time(text: &str) -> Result<Time, Malformed> {
    if let Ok(time) = text.parse::<Time>() {
        return Ok(time);
    }
    let local = format!("{text}Z").parse::<Time>();
    local.map(|time| time.plus(FARTHEST_WEST)).map_err(|_| Malformed(format!("`{text}` is no time")))
}

/// An id that stands in a URL.
fn plain_id(id: String) -> Result<String, Malformed> {
    let plain = (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if plain { Ok(id) } else { Err(Malformed(format!("`{id}` is no id"))) }
}

#[cfg(test)]
mod tests;
