//! The states that a runtime can be in, and the roles that a backend can have.

use serde::{Deserialize, Serialize};

/// The state of a runtime, ours or as a backend shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It can work.
    Running,
    /// A suspend was begun.
    Suspending,
    /// It can't work; what its backend's suspend keeps is kept.
    Suspended,
    /// An archive was begun.
    Archiving,
    /// Moved to colder storage.
    Archived,
    /// A delete was begun.
    Deleting,
    /// A resume was begun.
    Resuming,
    /// It is no more. The record is a tombstone (TTL 30 days).
    Gone,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Suspending,
        Self::Suspended,
        Self::Archiving,
        Self::Archived,
        Self::Deleting,
        Self::Resuming,
        Self::Gone,
    ];

    /// Between two states: a claim holder is on its way, or died on it.
    pub const fn is_middle(self) -> bool {
        matches!(self, Self::Suspending | Self::Archiving | Self::Deleting | Self::Resuming)
    }

    /// The word in records, plans and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Archiving => "archiving",
            Self::Archived => "archived",
            Self::Deleting => "deleting",
            Self::Resuming => "resuming",
            Self::Gone => "gone",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a backend may be able to do, as data for the planner. The pass holds the role itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Lists its runtimes.
    List,
    /// Shows one runtime by id.
    Inspect,
    /// Asks the agent server inside, without leaving traces.
    Probe,
    /// Suspends and resumes.
    Suspend,
    /// Moves to colder storage.
    Archive,
    /// Deletes.
    Delete,
    /// Sheds files by tier.
    Files,
    /// Takes back what was moved to the trash.
    Undo,
}

impl Role {
    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Inspect => "inspect",
            Self::Probe => "probe",
            Self::Suspend => "suspend",
            Self::Archive => "archive",
            Self::Delete => "delete",
            Self::Files => "files",
            Self::Undo => "undo",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is still there after a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Survives {
    /// Nothing.
    Nothing,
    /// Named volumes only.
    Volumes,
    /// The root disk and the volumes, not memory.
    Disk,
    /// Memory, root disk and volumes.
    Memory,
}

/// A tier of files that can be shed, cheapest to rebuild first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Caches of tools.
    Caches,
    /// Git-ignored dependency and build directories.
    Dependencies,
    /// Everything.
    Runtime,
}

impl Tier {
    /// The word in policies and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caches => "caches",
            Self::Dependencies => "dependencies",
            Self::Runtime => "runtime",
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
