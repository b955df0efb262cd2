//! What a backend shows of one runtime.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Activity, Busy, Incarnation, Role, RuntimeId, State, Tier, Time};

/// Labels of a runtime, as its backend has them.
pub type Labels = Arc<BTreeMap<String, String>>;

/// Whose a runtime is. Furlough acts on [`Ownership::Ours`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ownership {
    /// The backend's scope names it.
    Ours,
    /// It looks like an agent's runtime, but the scope does not name it: reported, never touched.
    Unlabelled,
    /// Somebody else's.
    Foreign,
}

impl std::fmt::Display for Ownership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ours => "ours",
            Self::Unlabelled => "unlabelled",
            Self::Foreign => "foreign",
        })
    }
}

/// A role that this one runtime lacks although its backend has it, with the reason for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cannot {
    /// The role.
    pub role: Role,
    /// Why, for people: "`--rm` container: stopping it deletes it".
    pub why: Arc<str>,
}

/// What deleting a runtime now would lose for ever, if nothing were saved first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The backend can't tell: taken as something.
    Unknown,
    /// Nothing that is not kept elsewhere.
    Nothing,
    /// These, for people: "3 untracked files", "2 unpushed commits".
    Work(Vec<Arc<str>>),
}

/// Bytes on disk by tier. `None`: not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileSizes {
    /// Caches of tools.
    pub caches: Option<u64>,
    /// Git-ignored dependency and build directories.
    pub dependencies: Option<u64>,
    /// Everything, the two above included.
    pub total: Option<u64>,
}

impl FileSizes {
    /// Bytes of one tier, where they were measured.
    pub const fn of(&self, tier: Tier) -> Option<u64> {
        match tier {
            Tier::Caches => self.caches,
            Tier::Dependencies => self.dependencies,
            Tier::Runtime => self.total,
        }
    }
}

/// What a provider does by itself at a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeEffect {
    /// Stops it and keeps its files.
    Suspend,
    /// Moves it to colder storage.
    Archive,
    /// Removes it, or keeps it without its files.
    Destroy,
}

/// When the provider acts by itself, and what that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeDeadline {
    /// When.
    pub at: Time,
    /// What.
    pub effect: NativeEffect,
}

/// A provider's own settings for a runtime, as it shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeObserved {
    /// It suspends by itself after this long without activity.
    pub idle_suspend: Option<Duration>,
    /// It archives by itself this long after a suspend.
    pub archive: Option<Duration>,
    /// It deletes by itself this long after a suspend.
    pub delete: Option<Duration>,
    /// Whether the settings can be written for a runtime that exists.
    pub mutable: bool,
    /// It has timers and shows none of them: what stands can't be read, so that `None` above says nothing.
    #[serde(default)]
    pub hidden: bool,
    /// What it does next by itself.
    pub deadline: Option<NativeDeadline>,
}

/// What a backend shows of one runtime, at one look.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Observation {
    /// Which runtime.
    pub id: RuntimeId,
    /// Which run of that id.
    pub incarnation: Incarnation,
    /// Its state. A middle state when the provider is on its way by itself.
    pub state: State,
    /// When it entered that state, where the backend knows.
    pub state_since: Option<Time>,
    /// When it last started running, where the backend knows.
    pub running_since: Option<Time>,
    /// The backend's own clock of its activity.
    pub activity: Activity,
    /// Whether work is under way.
    pub busy: Busy,
    /// Whose it is.
    pub ownership: Ownership,
    /// Its labels.
    pub labels: Labels,
    /// Roles that this runtime lacks.
    pub cannot: Vec<Cannot>,
    /// What a deletion would lose.
    pub loss: Loss,
    /// Bytes on disk.
    pub files: FileSizes,
    /// The provider's own settings.
    pub native: Option<Box<NativeObserved>>,
    /// How many conversations use it; above one, all of them must be idle.
    pub sharers: u32,
    /// One line for people: a path, an image.
    pub about: Arc<str>,
}
