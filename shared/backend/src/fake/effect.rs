//! What was done to runtimes.

use std::{fmt, sync::Arc};

use lifecycle::{Incarnation, RuntimeId, Tier, Time};

/// One thing that was done to one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// When.
    pub at: Time,
    /// Who did it.
    pub by: By,
    /// To which runtime.
    pub runtime: RuntimeId,
    /// In which run of it, as it was before.
    pub incarnation: Incarnation,
    /// What.
    pub what: What,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Whoever holds the backend.
    Caller,
    /// The provider's own timers.
    Provider,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was stopped.
    Suspended,
    /// It was started.
    Resumed,
    /// It was moved to colder storage.
    Archived,
    /// It was removed, after it was saved if that is so.
    Deleted {
        /// Where.
        saved: Option<Arc<str>>,
    },
    /// A tier of its files was removed.
    Shed(Tier),
    /// An entry of the trash was put back.
    Undone(Arc<str>),
    /// An entry of the trash was removed for ever.
    Emptied(Arc<str>),
    /// The provider's own timers were written.
    SetNative,
    /// A program was run inside.
    Executed(String),
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            By::Caller => "",
            By::Provider => " by the provider itself",
        };
        write!(f, "{} {} ({}) {}{by}", self.at, self.runtime, self.incarnation.as_str(), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended => f.write_str("suspended"),
            Self::Resumed => f.write_str("resumed"),
            Self::Archived => f.write_str("archived"),
            Self::Deleted { saved: None } => f.write_str("deleted"),
            Self::Deleted { saved: Some(place) } => write!(f, "saved as `{place}` and deleted"),
            Self::Shed(tier) => write!(f, "shed of its {tier}"),
            Self::Undone(entry) => write!(f, "taken back from `{entry}`"),
            Self::Emptied(entry) => write!(f, "removed for ever from `{entry}`"),
            Self::SetNative => f.write_str("given other timers"),
            Self::Executed(program) => write!(f, "made to run `{program}`"),
        }
    }
}
