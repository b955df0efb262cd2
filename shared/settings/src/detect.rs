//! What is on this machine, where there is no configuration.

use std::path::Path;

use crate::{BUILT_IN, load::Machine};

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

/// Looks at what there is on `machine`.
pub(crate) fn look(machine: &Machine) -> Detected {
    let mut detected = Detected { text: BUILT_IN.to_owned(), found: Vec::new() };
    worktrees(machine, &mut detected);
    engine(machine, &mut detected);
    detected
}

fn worktrees(machine: &Machine, detected: &mut Detected) {
    let root = machine.worktree_root.as_path();
    let shown = root.display();
    if !root.is_dir() {
        detected.found.push(format!("no OpenHands worktrees at `{shown}`"));
        return;
    }
    let Some(quoted) = absolute(root) else {
        detected.found.push(format!("OpenHands worktrees at `{shown}` are left out: the path is not plain text"));
        return;
    };
    detected.append(format_args!("\n[[backend]]\nname = \"worktrees\"\nkind = \"worktree\"\nroot = {quoted}\n"));
    let conversations = machine.conversations.as_deref().filter(|path| path.is_dir()).and_then(absolute);
    if let Some(quoted) = conversations {
        detected.append(format_args!("conversations = {quoted}\n"));
    }
    detected.found.push(format!("OpenHands worktrees at `{shown}`"));
}

fn engine(machine: &Machine, detected: &mut Detected) {
    let host = match &machine.docker_host {
        Some(host) if host.starts_with("unix://") => host.clone(),
        Some(_) => {
            detected.found.push("DOCKER_HOST is left out: only `unix://` sockets are read".to_owned());
            return;
        }
        None if machine.docker_socket.exists() => format!("unix://{}", machine.docker_socket.display()),
        None => {
            detected.found.push(format!("no Docker engine at `{}`", machine.docker_socket.display()));
            return;
        }
    };
    let quoted = quoted(&host);
    detected.append(format_args!(
        "\n[[backend]]\nname = \"docker\"\nkind = \"docker\"\nhost = {quoted}\nopenhands = true\n"
    ));
    detected.found.push(format!("a Docker engine at `{host}`, of which OpenHands' containers are ours"));
}

/// The absolute path as TOML text; `None` where a configuration can't have it.
fn absolute(path: &Path) -> Option<String> {
    std::path::absolute(path).ok()?.to_str().filter(|path| !path.contains(char::is_control)).map(quoted)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
