//! The plan: pure, total, and all that an apply may do.

use serde::{Deserialize, Serialize};

use crate::{
    Action, BackendName, Evidence, PolicyHash, Reason, RuntimeId, State, Time,
    policy::MicrosPerHour,
    record::{Epoch, Incarnation, Token},
    snapshot::Listing,
    verdict::Breaker,
};

/// The format of a plan file.
pub const PLAN_VERSION: u32 = 1;

/// What would be done now, why, and what is not touched and why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// What would be done, in order.
    pub items: Vec<Item>,
    /// What would not, sorted by runtime.
    pub kept: Vec<Kept>,
}

/// What a plan opens with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Runtimes of ours.
    pub runtimes: u64,
    /// Those that are idle past their policy's limit.
    pub idle: u64,
    /// Hours for which those have been idle, together.
    pub idle_hours: f64,
    /// What those hours cost, in millionths of a currency unit.
    pub idle_cost_micros: u64,
    /// What the items save per hour.
    pub saves: Saves,
}

/// What one item, or all of them, saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saves {
    /// Millionths of a currency unit per hour.
    pub micros_per_hour: MicrosPerHour,
    /// Bytes of disk, where they were measured.
    pub bytes: u64,
}

/// What a plan says of a backend as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendNote {
    /// Which.
    pub backend: BackendName,
    /// How its listing went.
    pub listing: Listing,
    /// Runtimes of ours, of others, and unlabelled.
    pub ours: u64,
    /// Somebody else's.
    pub foreign: u64,
    /// Look like an agent's, but not in the scope.
    pub unlabelled: u64,
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
}
