//! What `/init` brings: which workspace, under which lease, and what the agent server is told.
//!
//! **Invariants.** An unknown field is refused. A root is an absolute path without `.` and `..`, below a folder that
//! the settings name. An agent server that would answer without a key is not asked for. Nothing of a token or of what
//! the agent server is told can be printed.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path, PathBuf},
};

use lifecycle::RuntimeId;
use serde::Deserialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use workspace::{
    commit::{Head, Lease},
    key::Name,
    manifest::Exclusion,
};

use crate::protocol::Request;

/// The most that a body of `/init` may have, in bytes.
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// What proves to the host that the sidecar speaks for a workspace, under one lease. It can't be printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// From its text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The token itself, for the host alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Whose the sandbox is: two deliveries of the same workspace under the same token are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The workspace.
    pub workspace: Name,
    /// Its token.
    pub token: Token,
}

/// The workspace of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Its name.
    pub name: Name,
    /// Where its trees are, by their names: the same absolute paths as where it was pushed from.
    pub roots: BTreeMap<String, PathBuf>,
    /// What is left out of a push.
    #[serde(default)]
    pub exclude: Vec<Exclusion>,
    /// The most that its trees may have, in bytes.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
}

/// The runtime that the sandbox is, to those who keep its record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// `BACKEND/ID`.
    pub runtime: RuntimeId,
    /// Its token, which names its registration.
    pub token: Token,
    /// Where heartbeats go.
    pub host: String,
}

/// The body of `/init`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// What is pulled, and pushed later.
    pub workspace: Wanted,
    /// What the sidecar proves itself with to the host.
    pub token: Token,
    /// Where the host is asked for signed requests and commits.
    pub host: String,
    /// The right to write.
    pub lease: Lease,
    /// What is pulled. Nothing: the workspace is new.
    #[serde(default)]
    pub head: Option<Head>,
    /// Signed requests for what is pulled: as long as they are good, the host is not asked for them.
    #[serde(default)]
    pub signed: Vec<Request>,
    /// Whose activity is told, and to whom. Nothing: nobody is told.
    #[serde(default)]
    pub activity: Option<Activity>,
    /// What the agent server's own init is told, as it is.
    pub agent: Map<String, Value>,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// What is wrong with a delivery. No value of it is quoted but paths and names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDelivery {
    /// It is no such document. The place is told, the value is not.
    #[error("the body is no delivery: line {line}, column {column}")]
    Form {
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// The lease is of another workspace.
    #[error("the lease is of workspace `{lease}`, and the delivery of `{delivery}`")]
    Lease {
        /// Whose the lease is.
        lease: Name,
        /// What is delivered.
        delivery: Name,
    },
    /// A workspace without trees.
    #[error("the workspace `{0}` has no root: name one")]
    NoRoot(Name),
    /// A root somewhere where none may be.
    #[error("the root `{}` is not plainly below one of the folders that are given to workspaces", .0.display())]
    Root(PathBuf),
    /// Heartbeats that would go nowhere.
    #[error("`activity.host` is no HTTP address")]
    Nowhere,
    /// An agent server that would be open to everybody.
    #[error("`agent.session_api_keys` has to name one key or more, none of them blank")]
    Open,
}

impl Delivery {
    /// Reads a body. `below` are the folders that are given to workspaces.
    pub fn read(body: &[u8], below: &[PathBuf]) -> Result<Self, BadDelivery> {
        // serde's own words can quote a value.
        let form = |error: &serde_json::Error| BadDelivery::Form { line: error.line(), column: error.column() };
        let delivery: Self = serde_json::from_slice(body).map_err(|error| form(&error))?;
        delivery.check(below)?;
        Ok(delivery)
    }

    fn check(&self, below: &[PathBuf]) -> Result<(), BadDelivery> {
        let name = &self.workspace.name;
        if self.lease.workspace != *name {
            return Err(BadDelivery::Lease { lease: self.lease.workspace.clone(), delivery: name.clone() });
        }
        if self.workspace.roots.is_empty() {
            return Err(BadDelivery::NoRoot(name.clone()));
        }
        if let Some(root) = self.workspace.roots.values().find(|root| !is_plainly_below(root, below)) {
            return Err(BadDelivery::Root(root.clone()));
        }
        if self.activity.as_ref().is_some_and(|activity| !is_http(&activity.host)) {
            return Err(BadDelivery::Nowhere);
        }
        if self.session_key().is_none() { Err(BadDelivery::Open) } else { Ok(()) }
    }

    /// The first key that the agent server will take, if all of them are keys.
    pub fn session_key(&self) -> Option<&str> {
        let keys = self.agent.get("session_api_keys")?.as_array()?;
        let good = |key: &Value| key.as_str().is_some_and(|key| !key.trim().is_empty());
        keys.first().filter(|_| keys.iter().all(good))?.as_str()
    }

    /// Whose it is.
    pub fn whose(&self) -> Whose {
        Whose { workspace: self.workspace.name.clone(), token: self.token.clone() }
    }
}

/// Whether requests can be sent there.
pub(crate) fn is_http(host: &str) -> bool {
    host.starts_with("https://") || host.starts_with("http://")
}

fn is_plainly_below(root: &Path, below: &[PathBuf]) -> bool {
    let plain = root.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // `/a/./b` and `/a//b` have the components of `/a/b`, and another text.
    let as_written = root.components().collect::<PathBuf>().as_os_str() == root.as_os_str();
    plain && as_written && root.is_absolute() && below.iter().any(|folder| root.starts_with(folder) && root != folder)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn body() -> Value {
        json!({
            "workspace": { "name": "w", "roots": { "project": "/workspace/project" } },
            "token": "hush", "host": "https://host.example",
            "lease": { "workspace": "w", "owner": "sandbox", "token": 7, "until_ms": 1 },
            "activity": { "runtime": "docker/a", "token": "hush three", "host": "https://host.example" },
            "agent": { "session_api_keys": ["s3cret"], "secret_key": "hush too" },
        })
    }

    fn read(body: &Value) -> Result<Delivery, BadDelivery> {
        Delivery::read(&serde_json::to_vec(body).unwrap(), &[PathBuf::from("/workspace")])
    }

    fn refused(path: &str, value: Value) -> BadDelivery {
        let mut body = body();
        *body.pointer_mut(path).unwrap() = value;
        read(&body).unwrap_err()
    }

    #[test]
    fn a_delivery_is_read_and_can_t_be_printed() {
        let delivery = read(&body()).unwrap();
        assert_eq!(delivery.whose(), Whose { workspace: Name::new("w").unwrap(), token: Token::new("hush") });
        assert_eq!(delivery.session_key(), Some("s3cret"));
        let shown = format!("{delivery:?} {:?} {:?}", delivery.whose(), delivery.activity);
        assert!(!shown.contains("hush") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn what_is_not_plainly_meant_is_refused() {
        for root in ["/", "/workspace", "/etc", "workspace/a", "/workspace/../etc", "/workspace/a/./b", "/workspaces/a"]
        {
            assert_eq!(refused("/workspace/roots/project", json!(root)), BadDelivery::Root(root.into()), "{root}");
        }
        assert_eq!(refused("/workspace/roots", json!({})), BadDelivery::NoRoot(Name::new("w").unwrap()));
        for keys in [json!([]), json!([""]), json!(["a", " "]), json!("a"), json!(null), json!([1])] {
            assert_eq!(refused("/agent/session_api_keys", keys.clone()), BadDelivery::Open, "{keys}");
        }
        let other = refused("/lease/workspace", json!("v"));
        assert_eq!(other.to_string(), "the lease is of workspace `v`, and the delivery of `w`");
        assert_eq!(refused("/activity/host", json!("file:///etc")), BadDelivery::Nowhere);
        assert!(matches!(refused("/activity/runtime", json!("docker")), BadDelivery::Form { .. }));
        let mut unknown = body();
        unknown["workspace"]["root"] = json!("hush");
        let said = read(&unknown).unwrap_err();
        assert!(matches!(said, BadDelivery::Form { .. }) && !said.to_string().contains("hush"), "{said}");
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Delivery::read(&body, &[PathBuf::from("/workspace")]);
        }

        #[test]
        fn no_root_is_outside_what_is_given(parts in proptest::collection::vec("[a-z.]{0,3}", 0..6)) {
            let root = PathBuf::from(format!("/{}", parts.join("/")));
            if is_plainly_below(&root, &[PathBuf::from("/a")]) {
                prop_assert!(root.starts_with("/a/") && !parts.iter().any(|part| part == ".."));
            }
        }
    }
}
