//! What is read of the Engine API's answers: these fields and no other.
//!
//! A container's environment holds its secrets, so nothing here but [`Keyed`] has a field for it, and states
//! are text, since an engine may know one that we don't.

use std::{collections::BTreeMap, fmt};

use lifecycle::Time;
use serde::{Deserialize, Deserializer};

/// One row of a listing.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Summary {
    pub(crate) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) names: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) image: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// A row, or one whose shape is not a row's: that one is reported, and the others are used.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Row {
    Read(Summary),
    Unread(serde_json::Value),
}

/// One container.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Inspected {
    pub(crate) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) created: String,
    pub(crate) state: State,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) host_config: HostConfig,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) config: Config,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) mounts: Vec<Mount>,
    #[serde(default, deserialize_with = "or_default", rename = "ExecIDs")]
    pub(crate) execs: Vec<String>,
    /// When the last of `execs` began, where the engine still knows; not a field of the answer.
    #[serde(skip)]
    pub(crate) execs_begun: Option<Time>,
    #[serde(default)]
    pub(crate) size_rw: Option<i64>,
    #[serde(default)]
    pub(crate) size_root_fs: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) network_settings: Network,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct State {
    pub(crate) status: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) started_at: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) finished_at: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct HostConfig {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) auto_remove: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) restart_policy: RestartPolicy,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) network_mode: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RestartPolicy {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Config {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) image: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) labels: BTreeMap<String, String>,
    /// `--port` of the command line, of which nothing else is kept: it can hold secrets too.
    #[serde(default, rename = "Cmd", deserialize_with = "port")]
    pub(crate) agent_port: Option<u16>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Mount {
    #[serde(default, deserialize_with = "or_default", rename = "Type")]
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) source: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) destination: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Network {
    /// "8000/tcp" → where the host publishes it.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) ports: BTreeMap<String, Option<Vec<Published>>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Published {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) host_ip: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) host_port: String,
}

/// A command that somebody started in a container.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Exec {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) running: bool,
}

/// One event of the engine. What was run is in it too, and is not read: it can hold secrets.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Event {
    time: i64,
    #[serde(default, deserialize_with = "or_default", rename = "Actor")]
    actor: Actor,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Actor {
    #[serde(default, deserialize_with = "or_default")]
    attributes: Attributes,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Attributes {
    #[serde(default, rename = "execID")]
    exec: Option<String>,
}

impl Event {
    /// When it was, in whole seconds.
    pub(crate) fn at(&self) -> Time {
        Time::from_millis(self.time.saturating_mul(1_000))
    }

    /// The command that it is about, by its id.
    pub(crate) fn exec(&self) -> Option<&String> {
        self.actor.attributes.exec.as_ref()
    }
}

/// A container's session key, read when it is needed and dropped after the call.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Keyed {
    pub(crate) config: KeyedConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct KeyedConfig {
    #[serde(default, rename = "Env")]
    pub(crate) key: SessionKey,
}

/// `OH_SESSION_API_KEYS_0` of an environment, and nothing else of it. Shows itself to nobody.
#[derive(Default)]
pub(crate) struct SessionKey(pub(crate) Option<String>);

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "SessionKey(…)" } else { "SessionKey(none)" })
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let environment = Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default();
        let key = environment.iter().find_map(|line| line.strip_prefix("OH_SESSION_API_KEYS_0="));
        Ok(Self(key.filter(|key| !key.is_empty()).map(str::to_owned)))
    }
}

/// The number after `--port`, or `--port=` it.
fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let words = Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default();
    let after = words.windows(2).find(|pair| pair[0] == "--port").map(|pair| pair[1].as_str());
    let joined = words.iter().find_map(|word| word.strip_prefix("--port="));
    Ok(after.or(joined).and_then(|port| port.parse().ok()).filter(|port| *port > 0))
}

/// `null` is what an engine writes for an empty list or map.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_key_is_found_and_never_shown() {
        let body = r#"{"Config": {"Env": ["A=1", "OH_SESSION_API_KEYS_0=hush", "B=2"]}}"#;
        let keyed: Keyed = serde_json::from_str(body).unwrap();
        assert_eq!(keyed.config.key.0.as_deref(), Some("hush"));
        assert_eq!(format!("{:?}", keyed.config.key), "SessionKey(…)");
    }

    #[test]
    fn no_environment_and_a_blank_key_are_no_key() {
        for body in
            [r#"{"Config": {}}"#, r#"{"Config": {"Env": null}}"#, r#"{"Config": {"Env": ["OH_SESSION_API_KEYS_0="]}}"#]
        {
            let keyed: Keyed = serde_json::from_str(body).unwrap();
            assert_eq!(keyed.config.key.0, None, "{body}");
        }
    }
}
