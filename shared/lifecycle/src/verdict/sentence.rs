//! Reasons as sentences for people.

use std::{fmt, sync::Arc};

use super::{Breaker, Evidence, Reason};
use crate::{Role, Time, duration::Human};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle { after } => write!(f, "idle for longer than the limit of {}", Human(*after)),
            Self::NeverActive { after } => write!(f, "never seen active in {} since it was first seen", Human(*after)),
            Self::Lifetime { max } => write!(f, "running for longer than the lifetime of {}", Human(*max)),
            Self::Retention { stage, keep } => write!(f, "{stage} for longer than the retention of {}", Human(*keep)),
            Self::TierAge { after } => {
                write!(f, "idle for longer than the {} that these files are kept", Human(*after))
            }
            Self::DiskBudget { used, budget } => {
                write!(f, "the disk is {used}% full, over the budget of {budget}%, and this is among the longest idle")
            }
            keep => keep.fmt_kept(f),
        }
    }
}

impl Reason {
    fn fmt_kept(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active recently enough"),
            Self::NotYet { action } => write!(f, "not long enough in its stage to {action}"),
            Self::Busy { until } => write!(f, "work is under way; it vetoes until {until}"),
            Self::Unread => f.write_str("it was asked for its activity and did not answer"),
            Self::Unknown => f.write_str("nothing is known of its activity"),
            Self::FirstSeen => f.write_str("first seen now; what it does not tell counts from here"),
            Self::Held { until: Some(until) } => write!(f, "held until {until}"),
            Self::Held { until: None } => f.write_str("held until it is released"),
            Self::HoldUnreadable => f.write_str("it carries a hold that can't be read, which holds"),
            Self::Wanted => f.write_str("somebody asked for it and is to have it back"),
            Self::NoPolicy => f.write_str("no policy matches it"),
            Self::NoRule { state } => write!(f, "its policy has no rule for what is {state}"),
            Self::Unlabelled => f.write_str("the backend's scope does not name it; reported only"),
            Self::Foreign => f.write_str("somebody else's"),
            Self::Lacks { role, why } => fmt_lacks(f, *role, why.as_ref()),
            Self::NotSaved { lost } if lost.is_empty() => {
                f.write_str("what a deletion would lose is not known, and nothing is saved")
            }
            Self::NotSaved { lost } => write!(f, "a deletion would lose what is not saved: {}", lost.join(", ")),
            Self::Notice { sent: Some(sent) } => {
                write!(f, "notice of its deletion was given at {sent}, not long enough ago")
            }
            Self::Notice { sent: None } => f.write_str("notice of its deletion is not given yet"),
            Self::NativeFirst { at } => write!(f, "the provider will do it by itself at {at}"),
            other => other.fmt_circumstance(f),
        }
    }

    fn fmt_circumstance(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claimed { until } => write!(f, "somebody is at work on it, until {until} at the latest"),
            Self::Middle { state } => write!(f, "on its way: {state}"),
            Self::Moved => f.write_str("another run of the same id than the recorded one; it must be observed first"),
            Self::BackingOff { attempts: 1 } => f.write_str("waits after a failed attempt"),
            Self::BackingOff { attempts } => write!(f, "waits after {attempts} failed attempts"),
            Self::Absent { since: Some(since) } => write!(f, "missing from the listing since {since}"),
            Self::Absent { since: None } => f.write_str("missing from this listing, once"),
            Self::Inventory => f.write_str("the listing failed or is partial, so that its absence means nothing"),
            Self::Gone => f.write_str("it is no more"),
            Self::Budget { kind, limit: 0 } => write!(f, "there is no budget for {kind}"),
            Self::Budget { kind, limit } => {
                write!(f, "the budget of {limit} for {kind} in this window is taken by others")
            }
            Self::Breaker { breaker } => write!(f, "only reported: {breaker}"),
            _ => f.write_str("paused"),
        }
    }

    /// Its `code` in JSON.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Idle { .. } => "idle",
            Self::NeverActive { .. } => "never_active",
            Self::Lifetime { .. } => "lifetime",
            Self::Retention { .. } => "retention",
            Self::TierAge { .. } => "tier_age",
            Self::DiskBudget { .. } => "disk_budget",
            Self::Active => "active",
            Self::NotYet { .. } => "not_yet",
            Self::Busy { .. } => "busy",
            Self::Unread => "unread",
            Self::Unknown => "unknown",
            Self::FirstSeen => "first_seen",
            Self::Held { .. } => "held",
            Self::HoldUnreadable => "hold_unreadable",
            Self::Wanted => "wanted",
            Self::NoPolicy => "no_policy",
            Self::NoRule { .. } => "no_rule",
            Self::Unlabelled => "unlabelled",
            Self::Foreign => "foreign",
            Self::Lacks { .. } => "lacks",
            Self::NotSaved { .. } => "not_saved",
            Self::Notice { .. } => "notice",
            Self::NativeFirst { .. } => "native_first",
            Self::Claimed { .. } => "claimed",
            Self::Middle { .. } => "middle",
            Self::Moved => "moved",
            Self::BackingOff { .. } => "backing_off",
            Self::Absent { .. } => "absent",
            Self::Inventory => "inventory",
            Self::Gone => "gone",
            Self::Budget { .. } => "budget",
            Self::Breaker { .. } => "breaker",
            Self::Paused => "paused",
        }
    }

    /// The sentence with the evidence's figures: "idle for 3d 2h, over the limit of 30m".
    pub fn with(&self, evidence: &Evidence, now: Time) -> String {
        let age = |since: Option<Time>| Human(since.map(|since| now.since(since)).unwrap_or_default());
        match self {
            Self::Idle { after } => format!("idle for {}, over the limit of {}", Human(evidence.idle), Human(*after)),
            Self::Lifetime { max } => {
                format!("running for {}, over the lifetime of {}", age(evidence.running_since), Human(*max))
            }
            Self::Retention { stage, keep } => {
                format!("{stage} for {}, over the retention of {}", age(evidence.state_since), Human(*keep))
            }
            Self::TierAge { after } => {
                format!("idle for {}, and these files are kept for {}", Human(evidence.idle), Human(*after))
            }
            Self::DiskBudget { used, budget } => {
                format!("idle for {}, and the disk is {used}% full, over the budget of {budget}%", Human(evidence.idle))
            }
            other => other.to_string(),
        }
    }
}

fn fmt_lacks(f: &mut fmt::Formatter<'_>, role: Role, why: Option<&Arc<str>>) -> fmt::Result {
    match why {
        Some(why) => write!(f, "can't {role}: {why}"),
        None => write!(f, "its backend can't {role}"),
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InventoryDrop => "the inventory shrank by more than the breaker allows",
            Self::Silent => "more heartbeats fell silent at once than the breaker allows",
        })
    }
}
