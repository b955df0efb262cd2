//! Verdicts: what is done or not done with a runtime, and why.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

mod sentence;

use crate::{
    Role, Signal, State, Tier, Time,
    policy::{BudgetKind, WorkspaceRule},
};

/// What a pass can do with a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stop it and keep its files.
    Suspend,
    /// Move it to colder storage.
    Archive,
    /// Give notice that it will be deleted.
    Notify,
    /// Delete it.
    Delete,
    /// Shed a tier of its files.
    Shed(Tier),
}

impl Action {
    /// The budget it is counted against; a notice destroys nothing and has none.
    pub const fn budget(self) -> Option<BudgetKind> {
        match self {
            Self::Suspend => Some(BudgetKind::Suspend),
            Self::Archive => Some(BudgetKind::Archive),
            Self::Delete => Some(BudgetKind::Delete),
            Self::Shed(_) => Some(BudgetKind::Shed),
            Self::Notify => None,
        }
    }

    /// The role that it needs.
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::Suspend => Some(Role::Suspend),
            Self::Archive => Some(Role::Archive),
            Self::Delete => Some(Role::Delete),
            Self::Shed(_) => Some(Role::Files),
            Self::Notify => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspend => f.pad("suspend"),
            Self::Archive => f.pad("archive"),
            Self::Notify => f.pad("notify"),
            Self::Delete => f.pad("delete"),
            Self::Shed(tier) => f.pad(&format!("shed {tier}")),
        }
    }
}

/// Why a runtime is acted on, or kept. JSON: `{"code": "idle", …}`; `Display` is the sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reason {
    // Reasons to act.
    /// No activity for longer than the policy's limit.
    Idle {
        /// `idle.after` as it applied.
        #[serde(with = "crate::duration::text")]
        after: Duration,
    },
    /// Never seen active since first seen.
    NeverActive {
        /// `unknown.after`.
        #[serde(with = "crate::duration::text")]
        after: Duration,
    },
    /// It has run for longer than `lifetime.max`.
    Lifetime {
        /// `lifetime.max`.
        #[serde(with = "crate::duration::text")]
        max: Duration,
    },
    /// It has been in this stage for longer than its retention.
    Retention {
        /// The stage.
        stage: State,
        /// Its retention.
        #[serde(with = "crate::duration::text")]
        keep: Duration,
    },
    /// A tier of its files is older than the policy keeps it.
    TierAge {
        /// The policy's limit.
        #[serde(with = "crate::duration::text")]
        after: Duration,
    },
    /// The disk is over budget, and this is the longest idle.
    DiskBudget {
        /// How full the disk is, in percent.
        used: u8,
        /// `disk.budget`.
        budget: u8,
    },

    // Reasons to keep.
    /// Active recently enough.
    Active,
    /// In its stage, not yet for long enough.
    NotYet {
        /// What it waits for.
        action: Action,
    },
    /// Work is under way.
    Busy {
        /// The veto ends then.
        until: Time,
    },
    /// It was asked for its activity and did not answer.
    Unread,
    /// Nothing is known of its activity.
    Unknown,
    /// First seen now; a missing clock counts from here.
    FirstSeen,
    /// A hold.
    Held {
        /// Until then; `None`: until released.
        until: Option<Time>,
    },
    /// A hold that can't be read holds.
    HoldUnreadable,
    /// A refused heartbeat asked for it.
    Wanted,
    /// No `[[policy]]` matches it.
    NoPolicy,
    /// The policy that matches says nothing for its state.
    NoRule {
        /// Its state.
        state: State,
    },
    /// It looks like an agent's runtime, but the backend's scope does not name it.
    Unlabelled,
    /// Somebody else's.
    Foreign,
    /// Its backend or it itself can't do what would come next.
    Lacks {
        /// The role that is missing.
        role: Role,
        /// Why, where it is this runtime's own.
        why: Option<Arc<str>>,
    },
    /// A deletion would lose work that is not saved, and the policy says to save.
    NotSaved {
        /// What would be lost, for people.
        lost: Vec<Arc<str>>,
    },
    /// Notice of the deletion was not delivered long enough ago.
    Notice {
        /// When it was delivered, if it was.
        sent: Option<Time>,
    },
    /// The provider will do it by itself.
    NativeFirst {
        /// When.
        at: Time,
    },
    /// Somebody has a claim on it.
    Claimed {
        /// Until then.
        until: Time,
    },
    /// On its way between two states.
    Middle {
        /// Which.
        state: State,
    },
    /// Another run of the same id than the record's: it must be observed first.
    Moved,
    /// It waits after failed attempts.
    BackingOff {
        /// How many.
        attempts: u32,
    },
    /// Not in this listing; absence once is not evidence.
    Absent {
        /// First missed then.
        since: Option<Time>,
    },
    /// The listing failed or is partial.
    Inventory,
    /// It is no more.
    Gone,
    /// Others take or took the budget of this window, or there is none.
    Budget {
        /// Whose.
        kind: BudgetKind,
        /// How many a window allows.
        limit: u64,
    },
    /// A breaker is open: the pass only reports.
    Breaker {
        /// Which.
        breaker: Breaker,
    },
    /// `furlough pause`.
    Paused,
}

/// What makes a pass only report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breaker {
    /// The inventory shrank too much.
    InventoryDrop,
    /// Too many heartbeat-fed records fell silent.
    Silent,
}

/// What a verdict to act rests on. Its runtime is the target of the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The one clock.
    pub idle_from: Time,
    /// How long ago that was when the plan was made.
    #[serde(with = "crate::duration::text")]
    pub idle: Duration,
    /// The newest known activity. `None`: never seen active.
    pub last_active: Option<Time>,
    /// Where that came from.
    pub source: Option<Signal>,
    /// When it entered its state.
    pub state_since: Option<Time>,
    /// When it last started running.
    pub running_since: Option<Time>,
    /// The policy that matched.
    pub policy: Arc<str>,
    /// What the backend says a deletion would lose.
    pub would_lose: Vec<Arc<str>>,
    /// What the policy says is done about that: saved first, or lost.
    pub workspace: WorkspaceRule,
    /// One line for people: a path, an image.
    pub about: Arc<str>,
}

/// What is done with one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing, for a reason, until then.
    Keep(Reason, Option<Time>),
    /// This, for a reason, on this evidence.
    Act(Action, Reason, Evidence),
}
