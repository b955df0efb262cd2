//! The protocol as one table: what each operation demands and what it writes.
//!
//! `#word` is an attribute ([`crate::attribute`]), `:word` a value. Every write of a runtime's record also
//! demands [`FORMAT`]. The rows are data, so that a model of the protocol is checked from the same text that
//! runs.

use crate::request::ClaimRule;

/// One operation on a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) operation: &'static str,
    pub(crate) condition: &'a str,
    pub(crate) update: &'a str,
}

/// The format that this Furlough writes. Another is never written over: an older one is upgraded first.
pub(crate) const FORMAT: &str = "#v = :v";

/// No live claim. `:expired` is now less the clocks' skew, since the holder's clock may be behind ours.
pub(crate) const UNCLAIMED: &str = "(attribute_not_exists(#claim_until) OR #claim_until <= :expired)";

/// No live hold. Anything but a time that is past holds: "forever", a value of another type, 0.
pub(crate) const UNHELD: &str = "(attribute_not_exists(#hold_until) OR #hold_until BETWEEN :one AND :now)";

/// No work is under way. A value of another type is busy.
const NOT_BUSY: &str = "(attribute_not_exists(#busy_until) OR #busy_until BETWEEN :one AND :now)";

/// No refused heartbeat asked for it.
const UNWANTED: &str = "attribute_not_exists(#wanted_at)";

/// No activity after the cutoff.
const QUIET: &str = "#idle_from <= :cutoff AND (attribute_not_exists(#frozen_since) OR #frozen_since <= :cutoff)";

/// Puts a record where there is none.
pub(crate) const CREATE: &str = "attribute_not_exists(#pk)";

/// A new life of an id, over nothing, a tombstone or what rests. Never the token of an earlier one.
///
/// It tells that the runtime ran when it was sent, which may be long before it arrives: that it came to rest or ended
/// since, by whichever clock, is newer.
pub(crate) const REGISTER: Row<'static> = Row {
    operation: "register",
    condition: "(attribute_not_exists(#pk) OR (#v = :v AND #state <> :running AND #state_since <= :expired AND \
                #idle_from <= :now AND \
                (attribute_not_exists(#claim_until) OR #claim_until <= :expired)))",
    update: "SET #v = :v, #epoch = if_not_exists(#epoch, :zero) + :one, \
             #token = if_not_exists(#token, :now) + :one, #state = :running, #state_since = :now, \
             #first_seen = if_not_exists(#first_seen, :now), #idle_from = :now, #running_since = :now, \
             #last_active = :now, #last_source = :heartbeat, #armed = :now, \
             #due_shard = :due_shard, #due_at = :due_at \
             REMOVE #claim_owner, #claim_until, #wanted_at, #absent_since, #attempts, #shed, #condemned_at, \
             #noticed_at, #busy_until, #frozen_since, #expires_at",
};

/// The same over what runs by its record. Since when it runs stays: only a look tells of another run, and nothing that
/// is sent to us makes a lifetime longer.
pub(crate) const REGISTER_RUNNING: Row<'static> = Row {
    operation: "register",
    condition: "#v = :v AND #state = :running AND #idle_from <= :now AND \
                (attribute_not_exists(#claim_until) OR #claim_until <= :expired)",
    update: "SET #epoch = #epoch + :one, #token = #token + :one, #idle_from = :now, \
             #running_since = if_not_exists(#running_since, #state_since), \
             #last_active = :now, #last_source = :heartbeat, #armed = :now, \
             #due_shard = :due_shard, #due_at = :due_at \
             REMOVE #claim_owner, #claim_until, #wanted_at, #absent_since, #attempts, #shed, #condemned_at, \
             #noticed_at, #busy_until, #frozen_since",
};

/// The same where it was heard of by a clock that is ahead of the sender's: that, and what it told of work, stands.
pub(crate) const REGISTER_BEHIND: Row<'static> = Row {
    operation: "register",
    condition: "#v = :v AND #state = :running AND #idle_from BETWEEN :now AND :ahead AND \
                (attribute_not_exists(#claim_until) OR #claim_until <= :expired)",
    update: "SET #epoch = #epoch + :one, #token = #token + :one, \
             #running_since = if_not_exists(#running_since, #state_since), \
             #last_active = #idle_from, #last_source = :heartbeat, #armed = #idle_from, \
             #due_shard = :due_shard, #due_at = :due_at \
             REMOVE #claim_owner, #claim_until, #wanted_at, #absent_since, #attempts, #shed, #condemned_at, \
             #noticed_at, #frozen_since",
};

/// An observation or a probe moves a record forward from what it was read as.
pub(crate) const FORWARD: &str = "#token = :token AND #epoch = :epoch AND #state = :state AND #idle_from = :idle_from";

/// Nobody has said meanwhile that work is under way, or for longer. A busy heartbeat can leave the clock as it is,
/// so the clock alone does not tell of it.
pub(crate) const SAME_BUSY: [&str; 2] = ["attribute_not_exists(#busy_until)", "(NOT #busy_until > :known_busy)"];

/// Nobody has asked for it meanwhile: asking makes it due now, which must not be put off.
pub(crate) const SAME_WANTED: [&str; 2] = ["attribute_not_exists(#wanted_at)", "(NOT #wanted_at > :known_wanted)"];

/// What an observation or a probe can change, and the value of each.
pub(crate) const FORWARDED: [(&str, &str); 19] = [
    ("incarnation", "new_incarnation"),
    ("state", "new_state"),
    ("state_since", "new_state_since"),
    ("idle_from", "new_idle_from"),
    ("last_active", "new_last_active"),
    ("last_source", "new_last_source"),
    ("frozen_since", "new_frozen_since"),
    ("busy_until", "new_busy_until"),
    ("running_since", "new_running_since"),
    ("idle_ms", "new_idle_ms"),
    ("cap_at", "new_cap_at"),
    ("armed", "new_armed"),
    ("wanted_at", "new_wanted_at"),
    ("absent_since", "new_absent_since"),
    ("attempts", "new_attempts"),
    ("shed", "new_shed"),
    ("condemned_at", "new_condemned_at"),
    ("noticed_at", "new_noticed_at"),
    ("due_at", "new_due_at"),
];

/// A sign of activity. 1 unit: it touches no attribute of the due index.
pub(crate) const HEARTBEAT: Row<'static> = Row {
    operation: "heartbeat",
    condition: "#state = :running AND #idle_from < :now",
    update: "SET #idle_from = :now, #last_active = :now, #last_source = :heartbeat \
             REMOVE #condemned_at, #noticed_at, #shed, #absent_since, #frozen_since",
};

/// The same, with work under way for longer than is known.
pub(crate) const HEARTBEAT_BUSY: Row<'static> = Row {
    operation: "heartbeat",
    condition: "#state = :running AND #idle_from < :now AND \
                (attribute_not_exists(#busy_until) OR #busy_until < :busy_until)",
    update: "SET #idle_from = :now, #last_active = :now, #last_source = :heartbeat, #busy_until = :busy_until \
             REMOVE #condemned_at, #noticed_at, #shed, #absent_since, #frozen_since",
};

/// Work under way, where the clock says as much already.
pub(crate) const BUSY: Row<'static> = Row {
    operation: "heartbeat",
    condition: "#state = :running AND (attribute_not_exists(#busy_until) OR #busy_until < :busy_until)",
    update: "SET #busy_until = :busy_until",
};

/// What was done until then is kept. 1 unit: it touches no attribute of the due index. It can come under a claim too:
/// what was saved is true whoever acts.
pub(crate) const SAVED: Row<'static> = Row {
    operation: "saved",
    condition: "#state <> :gone AND (attribute_not_exists(#saved_as_of) OR #saved_as_of < :saved_as_of)",
    update: "SET #saved_as_of = :saved_as_of",
};

/// A refused heartbeat asks for the runtime, once per `coalesce`.
pub(crate) const WANT: Row<'static> = Row {
    operation: "heartbeat",
    condition: "#state = :state AND (attribute_not_exists(#wanted_at) OR #wanted_at <= :coalesced)",
    update: "SET #wanted_at = :now, #due_shard = :due_shard, #due_at = :now",
};

/// What a sign of activity adds when it says in which registration it was made.
pub(crate) const SAME_EPOCH: &str = "#epoch = :epoch";

/// What a sign of activity adds that comes with a mark of its own, such as the newest event of a delivery: the same
/// one again, repeated or late, is none.
pub(crate) const ONCE: &str = "(attribute_not_exists(#mark) OR #mark <> :mark)";

/// What it writes beside its row.
pub(crate) const MARKED: &str = ", #mark = :mark";

/// Due again after what was heard since it was armed, without a read and without a policy.
pub(crate) const REARM: Row<'static> = Row {
    operation: "re-arm",
    condition: "#state = :running AND #due_at = :seen_due AND #idle_from > #armed AND \
                attribute_exists(#idle_ms) AND (attribute_not_exists(#cap_at) OR #cap_at > :horizon) AND \
                attribute_not_exists(#claim_until)",
    update: "SET #due_at = #idle_from + #idle_ms, #armed = #idle_from",
};

/// Due again at a computed time.
pub(crate) const RESCHEDULE: Row<'static> = Row {
    operation: "reschedule",
    condition: "#token = :token AND #state <> :gone",
    update: "SET #due_shard = :due_shard, #due_at = :due_at, #armed = #idle_from",
};

/// What a re-schedule adds when it says which due time it saw.
pub(crate) const SEEN_DUE: &str = "#due_at = :seen_due";

/// The right to act on what is not gone. It stays in the due index, so that a dead holder's claim is found. 3 units.
pub(crate) const CLAIM: Row<'static> = Row {
    operation: "claim",
    condition: "#state = :from AND #state <> :gone AND #epoch = :epoch",
    update: "SET #state = :to, #claim_owner = :owner, #claim_until = :until, #token = #token + :one, \
             #due_shard = :due_shard, #due_at = :due_at",
};

/// The same for a notice, which condemns.
pub(crate) const CLAIM_NOTICE: Row<'static> = Row {
    operation: "claim",
    condition: CLAIM.condition,
    update: "SET #state = :to, #claim_owner = :owner, #claim_until = :until, #token = #token + :one, \
             #due_shard = :due_shard, #due_at = :due_at, #condemned_at = if_not_exists(#condemned_at, :now)",
};

/// What a claim demands of every runtime, whatever its rule.
pub(crate) const CLAIMABLE: [&str; 3] = [UNHELD, UNCLAIMED, UNWANTED];

/// The run that was looked at.
pub(crate) const SAME_RUN: &str = "#incarnation = :incarnation";

/// No run was ever observed.
pub(crate) const NO_RUN: &str = "attribute_not_exists(#incarnation)";

/// The fence that was seen.
pub(crate) const SAME_TOKEN: &str = "#token = :token";

/// The right to look at what an expired claim left, and then to finish or abandon it.
pub(crate) const TAKE_OVER: Row<'static> = Row {
    operation: "take over",
    condition: "#token = :token AND #claim_until <= :expired",
    update: "SET #claim_owner = :owner, #claim_until = :until, #token = #token + :one, \
             #due_shard = :due_shard, #due_at = :due_at",
};

/// The right to resume. Single flight.
pub(crate) const WAKE: Row<'static> = Row {
    operation: "wake",
    condition: "(#state = :suspended OR #state = :archived)",
    update: "SET #state = :resuming, #claim_owner = :owner, #claim_until = :until, #token = #token + :one, \
             #due_shard = :due_shard, #due_at = :due_at REMOVE #condemned_at, #noticed_at",
};

/// What every write under a claim demands: the fence, and that the claim was not ended yet.
pub(crate) const OWN: &str = "#token = :token AND attribute_exists(#claim_until)";

/// The end of a claim in the state that it is in.
pub(crate) const STAYED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_not_exists(#wanted_at)",
    update: "SET #due_shard = :due_shard, #due_at = :due_at, #armed = #idle_from \
             REMOVE #claim_owner, #claim_until, #attempts",
};

/// The same when a heartbeat was refused meanwhile: due at once, to be woken. Its notice, if it was one, is void.
pub(crate) const STAYED_WANTED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_exists(#wanted_at)",
    update: "SET #due_shard = :due_shard, #due_at = :now, #armed = #idle_from \
             REMOVE #claim_owner, #claim_until, #attempts",
};

/// The end of a shed.
pub(crate) const SHED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_not_exists(#wanted_at)",
    update: "SET #shed = :shed, #due_shard = :due_shard, #due_at = :due_at, #armed = #idle_from \
             REMOVE #claim_owner, #claim_until, #attempts",
};

/// The same when a heartbeat was refused meanwhile: due at once, to be woken.
pub(crate) const SHED_WANTED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_exists(#wanted_at)",
    update: "SET #shed = :shed, #due_shard = :due_shard, #due_at = :now, #armed = #idle_from \
             REMOVE #claim_owner, #claim_until, #attempts",
};

/// The end of a notice that was delivered and that nothing has cleared since.
pub(crate) const NOTIFIED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_exists(#condemned_at) AND \
                attribute_not_exists(#wanted_at)",
    update: "SET #noticed_at = :now, #due_shard = :due_shard, #due_at = :due_at, #armed = #idle_from \
             REMOVE #claim_owner, #claim_until, #attempts",
};

/// The end of a suspend or an archive that nobody asked to undo meanwhile.
pub(crate) const SETTLED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_not_exists(#wanted_at)",
    update: "SET #state = :to, #state_since = :now, #due_shard = :due_shard, #due_at = :due_at, \
             #armed = #idle_from REMOVE #claim_owner, #claim_until, #attempts, #busy_until, #frozen_since",
};

/// The same when a heartbeat was refused meanwhile: due at once, to be woken.
pub(crate) const SETTLED_WANTED: Row<'static> = Row {
    operation: "complete",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_exists(#wanted_at)",
    update: "SET #state = :to, #state_since = :now, #due_shard = :due_shard, #due_at = :now, \
             #armed = #idle_from REMOVE #claim_owner, #claim_until, #attempts, #busy_until, #frozen_since",
};

/// The end of a wake: an entry to running.
pub(crate) const RESUMED: Row<'static> = Row {
    operation: "complete",
    condition: OWN,
    update: "SET #state = :running, #state_since = :now, #running_since = :now, #idle_from = :now, \
             #incarnation = :incarnation, #armed = :now, #due_shard = :due_shard, #due_at = :due_at \
             REMOVE #claim_owner, #claim_until, #attempts, #wanted_at, #absent_since, #shed, #condemned_at, \
             #noticed_at, #busy_until, #frozen_since",
};

/// The end of a deletion: a tombstone, out of the index.
pub(crate) const DELETED: Row<'static> = Row { operation: "complete", condition: OWN, update: TOMBSTONE };

/// Leaves nothing that could come due, be claimed or be held.
const TOMBSTONE: &str = "SET #state = :gone, #state_since = :now, #expires_at = :expires_at \
     REMOVE #claim_owner, #claim_until, #attempts, #wanted_at, #condemned_at, #noticed_at, #busy_until, \
     #frozen_since, #hold_until, #due_shard, #due_at, #armed, #idle_ms, #cap_at, #absent_since";

/// A long act goes on without its holder: the claim ends now, and is due when it is time to look. It is free when no
/// clock says that it has not ended: a registration that was sent before it is not taken for one of after it.
pub(crate) const HAND_OVER: Row<'static> = Row {
    operation: "hand over",
    condition: OWN,
    update: "SET #claim_until = :now, #due_shard = :due_shard, #due_at = :due_at",
};

/// Back to a state that it had left: back to running is an entry to running.
pub(crate) const ABANDON_TO_RUNNING: Row<'static> = Row {
    operation: "abandon",
    condition: "#token = :token AND attribute_exists(#claim_until) AND #state <> :to",
    update: "SET #state = :to, #idle_from = :now, #armed = :now, #due_shard = :due_shard, #due_at = :due_at \
             REMOVE #claim_owner, #claim_until, #wanted_at",
};

/// Back to rest, or out of a claim that changed no state: nothing was active, so the clock stays.
pub(crate) const ABANDON: Row<'static> = Row {
    operation: "abandon",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_not_exists(#wanted_at)",
    update: "SET #state = :to, #due_shard = :due_shard, #due_at = :due_at REMOVE #claim_owner, #claim_until",
};

/// The same after a failure. Wanted or not, the next attempt waits; a further heartbeat makes it due at once.
pub(crate) const ABANDON_FAILED: Row<'static> = Row {
    operation: "abandon",
    condition: OWN,
    update: "SET #state = :to, #due_shard = :due_shard, #due_at = :due_at, \
             #attempts = if_not_exists(#attempts, :zero) + :one REMOVE #claim_owner, #claim_until",
};

/// The same when a heartbeat was refused meanwhile: due at once, to be woken.
pub(crate) const ABANDON_WANTED: Row<'static> = Row {
    operation: "abandon",
    condition: "#token = :token AND attribute_exists(#claim_until) AND attribute_exists(#wanted_at)",
    update: "SET #state = :to, #due_shard = :due_shard, #due_at = :now REMOVE #claim_owner, #claim_until",
};

/// First sighting of an absence, of what is as it was read.
pub(crate) const ABSENT: Row<'static> = Row {
    operation: "absent",
    condition: "#token = :token AND #state = :state AND #state <> :gone AND #idle_from = :idle_from AND \
                attribute_not_exists(#absent_since) AND \
                (attribute_not_exists(#claim_until) OR #claim_until <= :expired)",
    update: "SET #absent_since = :now",
};

/// Absent again, later: a tombstone.
pub(crate) const GONE: Row<'static> = Row {
    operation: "gone",
    condition: "#token = :token AND #absent_since = :seen AND #absent_since < :now AND \
                (attribute_not_exists(#claim_until) OR #claim_until <= :expired)",
    update: TOMBSTONE,
};

/// Notice was delivered, and nothing has cleared it since.
pub(crate) const NOTICED: Row<'static> = Row {
    operation: "noticed",
    condition: "#token = :token AND attribute_exists(#condemned_at)",
    update: "SET #noticed_at = :now",
};

/// Nobody touches it before then. Clears the condemnation.
pub(crate) const HOLD: Row<'static> = Row {
    operation: "hold",
    condition: "#state <> :gone",
    update: "SET #hold_until = :hold REMOVE #condemned_at, #noticed_at",
};

/// Ends a hold, an unreadable one too.
pub(crate) const RELEASE: Row<'static> =
    Row { operation: "release", condition: "attribute_exists(#hold_until)", update: "REMOVE #hold_until" };

/// Back into the due index, whatever else is wrong with the record.
pub(crate) const HEAL: Row<'static> = Row {
    operation: "heal",
    condition: "(attribute_not_exists(#v) OR #v <= :v) AND #state <> :gone AND \
                (attribute_not_exists(#due_at) OR attribute_not_exists(#due_shard))",
    update: "SET #due_shard = :due_shard, #due_at = :now",
};

/// From the format before 1, which had no `first_seen` and no `v`.
pub(crate) const UPGRADE: Row<'static> = Row {
    operation: "upgrade",
    condition: "attribute_exists(#state) AND (attribute_not_exists(#v) OR #v = :zero)",
    update: "SET #v = :v, #first_seen = if_not_exists(#first_seen, :first_seen)",
};

/// What a rule demands beside [`CLAIM`] and [`CLAIMABLE`].
pub(crate) fn rule(rule: &ClaimRule) -> Vec<&'static str> {
    match rule {
        ClaimRule::Idle { .. } | ClaimRule::Shed { .. } => vec![QUIET, NOT_BUSY],
        ClaimRule::NeverActive { .. } => {
            vec!["attribute_not_exists(#last_active) AND #first_seen <= :cutoff", QUIET, NOT_BUSY]
        }
        ClaimRule::Lifetime { .. } => vec!["#running_since <= :cutoff"],
        ClaimRule::Retention { .. } => vec!["#state_since <= :cutoff"],
        ClaimRule::Notify { .. } => vec![QUIET, NOT_BUSY, "(#state = :running OR #state_since <= :cutoff)"],
        ClaimRule::Delete { noticed, saved, resting, .. } => {
            let mut demands = if resting.is_some() { vec![QUIET, NOT_BUSY] } else { vec!["#state_since <= :cutoff"] };
            demands.extend(noticed.map(|_| "attribute_exists(#condemned_at) AND #noticed_at <= :noticed"));
            demands.extend(saved.map(|_| "#saved_as_of >= :saved AND #saved_as_of >= #idle_from"));
            demands
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row repeats the shared clauses in full, since a constant can't be spliced into a constant.
    #[test]
    fn the_rows_repeat_the_shared_clauses_to_the_letter() {
        for row in [REGISTER, REGISTER_RUNNING, REGISTER_BEHIND, ABSENT, GONE] {
            assert!(row.condition.contains(UNCLAIMED), "{}: {}", row.operation, row.condition);
        }
        let ends = [STAYED, SHED, NOTIFIED, SETTLED, RESUMED, DELETED, HAND_OVER];
        let wanted = [STAYED_WANTED, SHED_WANTED, SETTLED_WANTED];
        let returns = [ABANDON, ABANDON_FAILED, ABANDON_TO_RUNNING, ABANDON_WANTED];
        for row in ends.into_iter().chain(wanted).chain(returns) {
            assert!(row.condition.starts_with(OWN), "{}: {}", row.operation, row.condition);
        }
    }
}
