//! What is on this machine, where there is no configuration.

use std::path::{Path, PathBuf};

use crate::{
    BUILT_IN, SettingsError,
    system::{self, Variable},
};

/// Where OpenHands puts worktrees by itself (agent-server 1.58.2, `conversation_worktree_root`).
pub(crate) const WORKTREE_ROOT: &str = "/tmp/conversation-worktrees";
/// Where an engine listens by itself.
pub(crate) const DOCKER_SOCKET: &str = "/var/run/docker.sock";

/// A configuration that fits this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Detected {
    /// The built-in policy and a `[[backend]]` for each thing found.
    pub(crate) text: String,
    /// One sentence for each thing looked for.
    pub(crate) found: Vec<String>,
}

impl Detected {
    fn append(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.push_str(&text.to_string());
    }
}

/// Where to look.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) worktree_root: Option<PathBuf>,
    pub(crate) conversations: Option<PathBuf>,
    pub(crate) docker_host: Option<String>,
    pub(crate) docker_socket: PathBuf,
}

pub(crate) fn on_this_machine() -> Result<Detected, SettingsError> {
    Ok(look(&Places {
        worktree_root: system::env_path(Variable::WorktreeRoot),
        conversations: system::env_path(Variable::Conversations),
        docker_host: system::env(Variable::DockerHost)?,
        docker_socket: DOCKER_SOCKET.into(),
    }))
}

/// Looks at `places`.
pub(crate) fn look(places: &Places) -> Detected {
    let mut detected = Detected { text: BUILT_IN.to_owned(), found: Vec::new() };
    worktrees(places, &mut detected);
    engine(places, &mut detected);
    detected
}

fn worktrees(places: &Places, detected: &mut Detected) {
    let root = places.worktree_root.as_deref().unwrap_or(Path::new(WORKTREE_ROOT));
    let shown = root.display();
    if !root.is_dir() {
        detected.found.push(format!("no OpenHands worktrees at `{shown}`"));
        return;
    }
    let Some(quoted) = absolute(root) else {
        detected.found.push(format!("OpenHands worktrees at `{shown}` are left out: the path is not UTF-8 text"));
        return;
    };
    detected.append(format_args!("\n[[backend]]\nname = \"worktrees\"\nkind = \"worktree\"\nroot = {quoted}\n"));
    let conversations = places.conversations.as_deref().filter(|path| path.is_dir()).and_then(absolute);
    if let Some(quoted) = conversations {
        detected.append(format_args!("conversations = {quoted}\n"));
    }
    detected.found.push(format!("OpenHands worktrees at `{shown}`"));
}

fn engine(places: &Places, detected: &mut Detected) {
    let host = match &places.docker_host {
        Some(host) if host.starts_with("unix://") => host.clone(),
        Some(_) => {
            detected.found.push("DOCKER_HOST is left out: only `unix://` sockets are read".to_owned());
            return;
        }
        None if places.docker_socket.exists() => format!("unix://{}", places.docker_socket.display()),
        None => {
            detected.found.push(format!("no Docker engine at `{}`", places.docker_socket.display()));
            return;
        }
    };
    let quoted = quoted(&host);
    detected.append(format_args!(
        "\n[[backend]]\nname = \"docker\"\nkind = \"docker\"\nhost = {quoted}\nopenhands = true\n"
    ));
    detected.found.push(format!("a Docker engine at `{host}`, of which OpenHands' containers are ours"));
}

/// The absolute path as TOML text; `None` where it is not UTF-8.
fn absolute(path: &Path) -> Option<String> {
    std::path::absolute(path).ok()?.to_str().map(quoted)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
