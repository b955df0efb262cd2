//! What a configuration says, checked and typed.

use std::{collections::BTreeMap, fmt, num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use lifecycle::{BackendName, Policy, policy::Pattern};

use crate::{Fault, SecretSource};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What is decided by.
    pub policy: Policy,
    /// Where runtimes are; each name once.
    pub backends: Vec<BackendSettings>,
    /// Who is told. There whenever a policy gives notice.
    pub notify: Option<Notify>,
    /// The limits of a pass.
    pub pass: PassLimits,
    /// Where workspaces are kept, and how much of them.
    pub workspaces: WorkspaceSettings,
    /// Where it comes from.
    pub source: Source,
    /// What its author may not mean: at most [`MAX_FAULTS`](crate::MAX_FAULTS).
    pub warnings: Vec<Fault>,
}

/// Where a configuration comes from. `Display` is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Handed to [`parse`](crate::parse), under this name.
    Text(String),
    /// The built-in example policy in report mode, with what was found on this machine.
    BuiltIn {
        /// The configuration as text, to start one's own from.
        text: String,
        /// What was looked for and whether it was found, one sentence each.
        found: Vec<String>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Text(name) => write!(f, "`{name}`"),
            Self::BuiltIn { found, .. } => {
                write!(f, "no configuration: the built-in example policy, in report mode; {}", found.join("; "))
            }
        }
    }
}

/// One `[[backend]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendSettings {
    /// Its name.
    pub name: BackendName,
    /// At most so many calls.
    pub rate: Rate,
    /// What it is.
    pub kind: Kind,
}

/// What a backend is, with the keys of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Git worktrees.
    Worktree(Worktree),
    /// Containers.
    Docker(Docker),
    /// Sandboxes at Daytona.
    Daytona(Provider),
    /// Sandboxes at E2B.
    E2b(Provider),
    /// Sandboxes at OpenHands.
    OpenHands(OpenHandsApi, Provider),
    /// Sandboxes at Cloudflare.
    Cloudflare(Cloudflare),
    /// Sandboxes at Modal.
    Modal(Modal),
}

/// Which of OpenHands' APIs is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHandsApi {
    /// The app server's, which knows sandboxes and their conversations.
    Cloud,
    /// The Runtime API below it.
    Runtime,
}

impl Kind {
    /// Whether its provider can suspend, archive or delete by timers of its own.
    pub const fn has_timers(&self) -> bool {
        match self {
            Self::Worktree(_) | Self::Docker(_) | Self::OpenHands(..) | Self::Modal(_) => false,
            Self::Daytona(_) | Self::E2b(_) | Self::Cloudflare(_) => true,
        }
    }

    /// The word of the configuration.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Worktree(_) => "worktree",
            Self::Docker(_) => "docker",
            Self::Daytona(_) => "daytona",
            Self::E2b(_) => "e2b",
            Self::OpenHands(..) => "openhands",
            Self::Cloudflare(_) => "cloudflare",
            Self::Modal(_) => "modal",
        }
    }
}

/// Git worktrees: a root, or repositories, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worktree {
    /// A folder as OpenHands makes it: `ROOT/CONVERSATION/REPOSITORY`. Absolute after [`load`](crate::load).
    pub root: Option<PathBuf>,
    /// OpenHands' folder of conversations.
    pub conversations: Option<PathBuf>,
    /// Repositories whose worktrees are managed too; each name and path once.
    pub repositories: Vec<Repository>,
    /// A copied worktree is as old as its files say, not as new as the copy.
    pub trust_times: bool,
}

/// A repository whose worktrees are managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Its name in ids.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// A Docker engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Docker {
    /// `unix:///PATH` of the engine.
    pub host: String,
    /// Which containers are ours.
    pub scope: Scope,
    /// OpenHands' own containers are ours too.
    pub openhands: bool,
    /// A stop waits this long before it kills; at least a second.
    pub stop_grace: Duration,
}

/// An account at a provider of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its API: `https://`, or `http://` on this machine.
    pub url: String,
    /// Where its key is.
    pub key: SecretSource,
    /// Which sandboxes are ours.
    pub scope: Scope,
}

/// A container application at Cloudflare, and the Worker that ends its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloudflare {
    /// The account at its API.
    pub provider: Provider,
    /// The account's id.
    pub account: String,
    /// The application's id.
    pub application: String,
    /// The companion Worker: `https://`, or `http://` on this machine.
    pub worker: String,
    /// Where the Worker's key is.
    pub worker_key: SecretSource,
    /// What is idle for long enough is destroyed from running.
    pub destroy_running: bool,
}

/// An environment at Modal. Its provider's key is the token's secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modal {
    /// The account at its API.
    pub provider: Provider,
    /// Where the token's id is.
    pub token_id: SecretSource,
    /// The environment.
    pub environment: String,
    /// Whether what is idle for long enough is terminated from running.
    pub terminate_running: TerminateRunning,
}

/// Whether a running sandbox is terminated, and what of its files is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminateRunning {
    /// It never is.
    Never,
    /// After a snapshot of its files.
    Snapshot,
    /// Without one.
    Discard,
}

/// Which runtimes are ours: those that have all the labels and whose name begins with one of the names, where
/// there are any of the one or the other. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Labels that must all be there, with values that match.
    pub labels: BTreeMap<String, Pattern>,
    /// Beginnings of names. None is empty.
    pub names: Vec<String>,
}

impl Scope {
    /// Whether nothing is ours by it.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.names.is_empty()
    }
}

/// So many calls in each span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub calls: NonZeroU32,
    /// In how long: a second, a minute or an hour.
    pub per: Duration,
}

impl Rate {
    /// So many a second; at least one.
    pub const fn per_second(calls: u32) -> Self {
        let calls = match NonZeroU32::new(calls) {
            Some(calls) => calls,
            None => NonZeroU32::MIN,
        };
        Self { calls, per: Duration::from_secs(1) }
    }

    /// How far apart calls are at this rate.
    pub fn interval(self) -> Duration {
        self.per / self.calls.get()
    }
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Where the events go.
    pub url: Webhook,
    /// What they are signed with. `None`: not signed.
    pub secret: Option<SecretSource>,
}

/// The address of a webhook. It is often its own password, so that only its host is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub(crate) url: Arc<str>,
    pub(crate) host: Arc<str>,
}

impl Webhook {
    /// The whole address, for the call alone.
    pub fn reveal(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.host)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({self})")
    }
}

/// The limits of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassLimits {
    /// `furlough run` makes a pass this often. Default 1 minute.
    pub every: Duration,
    /// Everything is listed and looked at this often. Default 15 minutes.
    pub sweep_every: Duration,
    /// After this long the rest is left to the next pass. Default 5 minutes.
    pub deadline: Duration,
    /// So many runtimes are acted on at once, 1 to 256. Default 8.
    pub concurrency: NonZeroU32,
}

/// Where workspaces are kept, and how much of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// The bucket; `None`: the data folder.
    pub store: Option<Bucket>,
    /// How many generations of each, at least 1.
    pub keep: u32,
    /// How long what is no longer referred to stays.
    pub grace: Duration,
}

/// A part of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// What stands before every key: empty, or ended by a slash.
    pub prefix: String,
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.name, self.prefix)
    }
}
