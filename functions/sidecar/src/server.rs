//! One run of the agent server: a child process on a private port, dormant, with a key of its own.
//!
//! **Invariants.** The key that a server is started with is its own, so that code inside it learns nothing that opens
//! another one, or the sidecar. Its home and its temporary files are in a folder that goes with it. The sidecar's own
//! variables are not handed on.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::{mpsc, watch},
};

use crate::{agent::Agent, files::SERVER, keeper::Failed};

/// Which variables of the sidecar's no server sees.
const OURS: [&str; 1] = ["FURLOUGH_INIT_KEY"];

/// What stands for the port in a command.
const PORT: &str = "{port}";

/// How servers are started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The command; `{port}` in it stands for the port.
    pub command: Vec<String>,
    /// Where the folders of servers are made.
    pub scratch: PathBuf,
    /// The paths that are asked.
    pub paths: Paths,
    /// How long one may take until it is dormant.
    pub start_within: Duration,
    /// How long one may take to end before it is killed.
    pub stop_within: Duration,
}

/// What is asked of an agent server.
#[derive(Debug, Clone)]
pub struct Paths {
    /// Answers 200 to a GET once the server is dormant.
    pub health: String,
    /// Takes what the server is told, by a POST.
    pub init: String,
    /// Refuses whoever has no key, once it was told. Empty: that is not checked.
    pub guarded: String,
}

/// A server that was started.
#[derive(Debug)]
pub struct Server {
    /// What is asked over HTTP.
    pub agent: Agent,
    /// Its process, which leads a group.
    pub process: i32,
    /// Whose processes it has, where it has a user of its own.
    pub user: Option<u32>,
    /// Its home and its temporary files.
    pub folder: PathBuf,
    exited: watch::Receiver<bool>,
    signals: mpsc::Sender<Signal>,
}

impl Server {
    /// Starts one, and waits until it is dormant.
    pub async fn start(launch: &Launch, user: Option<u32>) -> Result<Self, Failed> {
        let port = free_port().await.map_err(|error| Failed(format!("no port is free: {error}")))?;
        let id = settings::system::unique();
        let folder = launch.scratch.join(format!("{SERVER}{id}"));
        let key = settings::system::random().map_err(|error| Failed(error.to_string()))?;
        let made = make_folder(&folder, user);
        made.map_err(|error| Failed(format!("could not make `{}`: {error}", folder.display())))?;
        let child = command(launch, port, &folder, &key, user).spawn();
        let program = launch.command.first().map_or("", String::as_str);
        let child = child.map_err(|error| Failed(format!("could not start `{program}`: {error}")))?;
        let process = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let (exit, exited) = watch::channel(false);
        let (signals, asked) = mpsc::channel(1);
        tokio::spawn(watch_over(child, process, asked, exit));
        let agent = Agent::new(port, key, launch.paths.clone())?;
        let server = Self { agent, process, user, folder, exited, signals };
        let dormant = tokio::time::timeout(launch.start_within, server.dormant()).await;
        match dormant {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(server.given_up(error).await),
            Err(_) => {
                let limit = launch.start_within.as_secs();
                Err(server.given_up(Failed(format!("the agent server is not dormant after {limit} s"))).await)
            }
        }
    }

    async fn given_up(self, error: Failed) -> Failed {
        self.end(Duration::ZERO).await;
        _ = fs::remove_dir_all(&self.folder);
        error
    }

    async fn dormant(&self) -> Result<(), Failed> {
        loop {
            if self.agent.is_healthy().await && !self.has_exited() {
                return Ok(());
            }
            if self.has_exited() {
                return Err(Failed("the agent server ended while it started".to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Whether it has exited.
    pub fn has_exited(&self) -> bool {
        *self.exited.borrow()
    }

    /// Waits until it has.
    pub async fn exited(&self) {
        // A sender that is gone has seen the end.
        _ = self.exited.clone().wait_for(|exited| *exited).await;
    }

    /// Asks it to end, and kills it with its group after `within`.
    pub async fn end(&self, within: Duration) {
        if within > Duration::ZERO {
            _ = self.signals.send(Signal::TERM).await;
            if tokio::time::timeout(within, self.exited()).await.is_ok() {
                return;
            }
        }
        _ = self.signals.send(Signal::KILL).await;
        self.exited().await;
    }
}

/// The one who waits for the child also signals it, so that its number is never another one's.
async fn watch_over(mut child: Child, process: i32, mut asked: mpsc::Receiver<Signal>, exit: watch::Sender<bool>) {
    loop {
        tokio::select! {
            _ = child.wait() => break,
            signal = asked.recv() => {
                let signal = signal.unwrap_or(Signal::KILL);
                if let Some(group) = Pid::from_raw(process) {
                    _ = kill_process_group(group, signal);
                }
                if signal == Signal::KILL {
                    _ = child.wait().await;
                    break;
                }
            }
        }
    }
    exit.send_replace(true);
}

async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}

fn make_folder(folder: &Path, user: Option<u32>) -> io::Result<()> {
    for path in [folder.to_owned(), folder.join("home"), folder.join("tmp")] {
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        if user.is_some() {
            chown(&path, user, user)?;
        }
    }
    Ok(())
}

fn command(launch: &Launch, port: u16, folder: &Path, key: &str, user: Option<u32>) -> Command {
    let mut words = launch.command.iter().map(|word| word.replace(PORT, &port.to_string()));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("HOME", folder.join("home")).env("TMPDIR", folder.join("tmp"));
    command.env("OH_DEFERRED_INIT", "1").env("OH_SECRET_KEY", key).env("PORT", port.to_string());
    for ours in OURS {
        command.env_remove(ours);
    }
    command.stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command.current_dir(folder).process_group(0).kill_on_drop(true);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}
