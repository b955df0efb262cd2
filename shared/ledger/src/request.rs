//! What the ledger is asked for.

use lifecycle::{
    Action, Arming, Incarnation, RuntimeId, State, Tier, Time, Token,
    observation::Labels,
    record::{Epoch, Hold},
};
use serde::{Deserialize, Serialize};

/// The wish to act on a runtime, with all that its evidence rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Which.
    pub id: RuntimeId,
    /// In which state it was looked at.
    pub from: State,
    /// The middle state; the same as `from` for a shed and a notice.
    pub to: State,
    /// In which registration.
    pub epoch: Epoch,
    /// In which run; `None`: the record had none.
    pub incarnation: Option<Incarnation>,
    /// Under which fence; `None`: under any.
    pub token: Option<Token>,
    /// What else must hold at the moment of the write.
    pub rule: ClaimRule,
    /// Who claims it, for people: at most [`crate::MAX_OWNER_BYTES`].
    pub owner: String,
    /// Until when; no call that can't end before is begun under it.
    pub until: Time,
    /// What for.
    pub action: Action,
    /// Why, as JSON.
    pub reason: String,
    /// On what evidence, as JSON.
    pub evidence: String,
}

/// What a claim tests beside state, registration, run, hold, claim, wish and fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimRule {
    /// No activity after the cutoff, not thawed after it, not busy.
    Idle {
        /// The latest `idle_from`.
        cutoff: Time,
    },
    /// Never seen active, first seen and last begun not after the cutoff, not busy.
    NeverActive {
        /// The latest `first_seen` and `idle_from`.
        cutoff: Time,
    },
    /// Running since the cutoff or earlier, however busy.
    Lifetime {
        /// The latest `running_since`.
        cutoff: Time,
    },
    /// In its state since the cutoff or earlier.
    Retention {
        /// The latest `state_since`.
        cutoff: Time,
    },
    /// To be deleted.
    Delete {
        /// The latest `state_since`.
        cutoff: Time,
        /// Notice was delivered then or earlier.
        noticed: Option<Time>,
        /// It was saved then or later, and since its last activity.
        saved: Option<Time>,
        /// It rests: the latest `idle_from`, and not busy, instead of the cutoff.
        resting: Option<Time>,
    },
    /// No activity after the cutoff, not busy: files are shed.
    Shed {
        /// The latest `idle_from`.
        cutoff: Time,
    },
    /// No activity after the cutoff, not busy, and in its state since then unless it runs: notice is given.
    /// Condemns it.
    Notify {
        /// The latest `idle_from`, and `state_since` of what does not run.
        cutoff: Time,
    },
}

/// How a claim ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What was done.
    pub ended: Ended,
    /// When the scan of a complete save began, if something was saved.
    pub saved_as_of: Option<Time>,
    /// When to look next. Not used when it was deleted.
    pub arming: Arming,
}

/// What was done under a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Nothing needed doing in the state that it is in.
    Stayed,
    /// Files of this tier were shed.
    Shed(Tier),
    /// Notice of its deletion was delivered.
    Noticed,
    /// It is suspended.
    Suspended,
    /// It is archived.
    Archived,
    /// It runs again, as this run.
    Resumed(Incarnation),
    /// It is no more.
    Deleted,
}

/// How a claim was given back, and when to look next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nothing failed: it moved, it is wanted, or the time was up.
    No {
        /// When to look next.
        due_at: Time,
    },
    /// The act failed: one more failed attempt.
    Yes {
        /// When to try next.
        due_at: Time,
    },
}

/// What the agent server inside told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSeen {
    /// The newest activity that it proves.
    pub last_active: Option<Time>,
    /// Whether work is under way.
    pub busy: lifecycle::Busy,
}

/// What people want to know of a runtime and no condition tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The labels that it was registered with.
    pub labels: Labels,
    /// What the last claim was for.
    pub action: Option<String>,
    /// Why, as JSON.
    pub reason: Option<String>,
    /// On what evidence, as JSON.
    pub evidence: Option<String>,
    /// Under which fence that was.
    pub claim_token: Option<Token>,
    /// Why it is held.
    pub hold_why: Option<String>,
    /// Who holds it.
    pub hold_by: Option<String>,
    /// Since when.
    pub hold_at: Option<Time>,
    /// Where the newest save of its work is.
    pub saved_in: Option<String>,
}

/// A hold and its story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest<'a> {
    /// For how long.
    pub hold: Hold,
    /// Why, for people.
    pub why: &'a str,
    /// Who, for people.
    pub by: &'a str,
}
