//! The keys of `furlough serve`: made at its first start, for their owner alone, and kept beside the records.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::json;
use settings::system;

use crate::answer::Fault;

/// The document of keys in the data folder.
const KEYS: &str = "keys.json";

/// The document of workspaces' keys in the data folder.
const WORKSPACE_KEYS: &str = "workspace-keys.json";

/// The host's token in the data folder.
const HOST_TOKEN: &str = "host-token";

/// Where the keys and the host's token are.
pub(crate) struct Places {
    /// The document, which is read again when it changes.
    pub(crate) keys: PathBuf,
    /// The document of workspaces' keys, which is read again too. What agent servers have sealed opens with it alone.
    pub(crate) workspace_keys: PathBuf,
    /// What hosts send.
    pub(crate) host_token: PathBuf,
}

/// Makes what is missing. What is there stays: a token that a runtime has goes on being good.
pub(crate) fn prepare(data: &Path) -> Result<Places, Fault> {
    let places =
        Places { keys: data.join(KEYS), workspace_keys: data.join(WORKSPACE_KEYS), host_token: data.join(HOST_TOKEN) };
    if !places.keys.exists() {
        activity(&places)?;
    }
    if !places.workspace_keys.exists() {
        workspaces(&places)?;
    }
    Ok(places)
}

fn activity(places: &Places) -> Result<(), Fault> {
    let token = system::random().map_err(|error| Fault::failed("machine", error))?;
    let key = system::random().map_err(|error| Fault::failed("machine", error))?;
    let digest = heartbeat::keys::digest(&token);
    let document = json!({
        "runtime_keys": [key],
        "hosts": [{ "name": "this machine", "token_sha256": digest, "backends": ["*"] }],
    });
    // The token first: without its document it is good for nothing, and is made anew.
    write(&places.host_token, &token)?;
    write(&places.keys, &format!("{document:#}\n"))
}

/// The host is the same as of heartbeats.
fn workspaces(places: &Places) -> Result<(), Fault> {
    let (path, failed) = (&places.host_token, |why: &dyn std::fmt::Display| {
        let problem = format!("can't read `{}`: {why}", places.host_token.display());
        Fault::failed("data_folder", problem)
    });
    let token = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let key = system::random().map_err(|error| Fault::failed("machine", error))?;
    let digest = heartbeat::keys::digest(token.trim());
    let host = json!({ "name": "this machine", "token_sha256": digest });
    let document = json!({ "workspace_keys": [key], "hosts": [host] });
    write(&places.workspace_keys, &format!("{document:#}\n"))
}

/// Whole or not at all, and never readable by others.
fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::failed("data_folder", format!("can't write `{}`: {error}", path.display()));
    let draft = path.with_extension("new");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
    file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all())).map_err(failed)?;
    fs::rename(&draft, path).map_err(failed)
}
