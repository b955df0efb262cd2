//! The plan: pure, total, and all that an apply may do.

use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{
    Action, BackendName, Evidence, NativeDeadline, PolicyHash, Reason, RuntimeId, State, Time,
    policy::{MicrosPerHour, WorkspaceRule},
    record::{Epoch, Incarnation, Token},
    snapshot::Listing,
    verdict::Breaker,
};

mod breaker;
pub(crate) mod budget;
mod disk;
mod file;
mod make;
mod order;

pub use file::{PlanError, PlanRefused};
pub use make::plan;

/// The format of a plan file.
pub const PLAN_VERSION: u32 = 1;

/// What would be done now, why, and what is not touched and why not. As a file: [`Plan::to_json`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// When it was made.
    pub made_at: Time,
    /// After this it is refused whole.
    pub expires_at: Time,
    /// The policy that it was made under.
    pub policy: PolicyHash,
    /// Idle hours and what they cost.
    pub headline: Headline,
    /// One a backend.
    pub backends: Vec<BackendNote>,
    /// What would be done, in order: what can be taken back most easily first, then the longest idle, then by id.
    pub items: Vec<Item>,
    /// What would not, sorted by runtime.
    pub kept: Vec<Kept>,
    /// In a file: names all of the above. Elsewhere absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What whoever prints a plan may add for people, so that it can be applied all the same. Nothing reads it.
    #[serde(default, skip_serializing)]
    pub notes: IgnoredAny,
}

/// What a plan opens with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Runtimes of ours.
    pub runtimes: u64,
    /// Those that run, and are idle past their policy's limit, whatever keeps them.
    pub idle: u64,
    /// Hours for which those have been idle, together, to a hundredth.
    pub idle_hours: f64,
    /// What those hours cost, in millionths of a currency unit.
    pub idle_cost_micros: u64,
    /// What the items save per hour.
    pub saves: Saves,
}

/// What one item, or all of them, saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saves {
    /// Millionths of a currency unit per hour.
    pub micros_per_hour: MicrosPerHour,
    /// Bytes of disk, where they were measured.
    pub bytes: u64,
}

impl Saves {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            micros_per_hour: self.micros_per_hour.saturating_add(other.micros_per_hour),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// What a plan says of a backend as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendNote {
    /// Which.
    pub backend: BackendName,
    /// How its listing went.
    pub listing: Listing,
    /// Runtimes of ours that were seen.
    pub ours: u64,
    /// Somebody else's.
    pub foreign: u64,
    /// Look like an agent's, but not in the scope.
    pub unlabelled: u64,
    /// The share of heartbeat-fed running records that are idle past their limit, 0 to 1, to a millionth: what a
    /// pass adds to its trailing mean. `None`: there are none.
    pub silent_share: Option<f64>,
    /// Why it only reports, if it does.
    pub breaker: Option<Breaker>,
    /// Somebody paused it.
    pub paused: bool,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The target: the runtime of the evidence.
    pub runtime: RuntimeId,
    /// What is done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// On what evidence.
    pub evidence: Evidence,
    /// The registration; `None`: there was no record.
    pub epoch: Option<Epoch>,
    /// The run that was looked at.
    pub incarnation: Incarnation,
    /// The record's fence when it was looked at; `None`: there was no record.
    pub token: Option<Token>,
    /// The state that was looked at.
    pub state: State,
    /// What it saves.
    pub saves: Saves,
    /// What the provider will do with it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_deadline: Option<NativeDeadline>,
    /// Its provider has timers that can't be read: that none is told here says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native_hidden: bool,
}

impl Item {
    /// What becomes of work that is kept nowhere else. Only a deletion takes it; `None`: there is none, or it stays.
    pub fn work(&self) -> Option<String> {
        let taken = self.action == Action::Delete && !self.evidence.would_lose.is_empty();
        let fate = match self.evidence.workspace {
            WorkspaceRule::Save => "saved first",
            WorkspaceRule::Discard => "NOT saved",
        };
        taken.then(|| format!("{fate}: {}", self.evidence.would_lose.join(", ")))
    }
}

/// One runtime that is not touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Which.
    pub runtime: RuntimeId,
    /// Why not.
    pub reason: Reason,
    /// When that could first change by time alone; `None`: not by time alone.
    pub next_check: Option<Time>,
    /// What the provider will do with it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_deadline: Option<NativeDeadline>,
    /// Its provider has timers that can't be read: that none is told here says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native_hidden: bool,
}
