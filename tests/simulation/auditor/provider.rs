//! What each act on the provider must keep.

use std::time::Duration;

use backend::Bounds;
use lifecycle::{RuntimeId, State, Time};

use super::{Auditor, Flight, Look, Right};
use crate::simulation::{
    process::Process,
    trace::offset,
    world::{Runtime, Verb},
};

impl Auditor {
    /// A process looked at a runtime: this is what was there.
    pub(crate) fn looked(&mut self, process: &Process, id: &RuntimeId, there: Option<&Runtime>, now: Time) {
        self.called(process.name());
        let look = Look { at: now, there: there.cloned(), unread: false };
        self.hands(process.name()).looks.insert(id.clone(), look);
    }

    /// A process asked the agent server inside.
    pub(crate) fn probed(&mut self, process: &Process, id: &RuntimeId, unread: bool) {
        self.called(process.name());
        if unread {
            self.count("an agent server does not answer");
        }
        if let Some(look) = self.hands(process.name()).looks.get_mut(id) {
            look.unread = unread;
        }
    }

    /// A verb is asked for. Invariants 2 and 5, and 1 as far as a look can tell.
    pub(crate) fn began(&mut self, process: &Process, verb: Verb, id: &RuntimeId, bounds: Bounds, now: Time) {
        self.called(process.name());
        self.claim_of(process, verb, id, bounds, now);
        let other = self.truth(id).flights.first().cloned();
        if let Some(Flight { process: other, verb: under_way }) = other {
            let what = format!("{} begins {verb:?} while {under_way:?} of {other} is under way", process.name());
            self.violated(2, now, Some(id), what);
        }
        self.truth(id).flights.push(Flight { process: process.name().to_owned(), verb });
        if verb != Verb::Resume {
            self.looked_before(process, verb, id, now);
        }
    }

    /// Invariants 2 and 5: under a live claim of the caller's own, with time enough, and made for this.
    fn claim_of(&mut self, process: &Process, verb: Verb, id: &RuntimeId, bounds: Bounds, now: Time) {
        let skew = self.skew();
        let Some(holder) = self.truth(id).holder.clone().filter(|holder| holder.process == process.name()) else {
            return self.violated(2, now, Some(id), format!("{} begins {verb:?} without a claim", process.name()));
        };
        if self.rows.get(id).is_none_or(|row| row.token != holder.token || row.until.is_none()) {
            self.violated(2, now, Some(id), format!("{} begins {verb:?} on a claim that ended", process.name()));
        }
        if bounds.deadline.plus(skew) > holder.until || now > holder.until.plus(skew) {
            self.violated(2, now, Some(id), format!("{verb:?} may outlive its claim until {}", offset(holder.until)));
        }
        let wanted = if verb == Verb::Resume { Right::Wake } else { Right::Act };
        if holder.right != wanted {
            self.violated(5, now, Some(id), format!("{verb:?} on a claim that gives the right to {:?}", holder.right));
        }
    }

    /// Invariants 1, 4 and 6: between the claim and the act it was looked at again, and was as the evidence says.
    fn looked_before(&mut self, process: &Process, verb: Verb, id: &RuntimeId, now: Time) {
        let claimed = self.truth(id).holder.as_ref().map(|holder| holder.at);
        let look = self.hands(process.name()).looks.get(id).cloned();
        let Some(look) = look.filter(|look| claimed.is_some_and(|claimed| look.at >= claimed)) else {
            return self.violated(1, now, Some(id), format!("{verb:?} without a look after the claim"));
        };
        let Some(there) = &look.there else {
            return self.violated(4, now, Some(id), format!("{verb:?} on what the last look did not find"));
        };
        if !there.ours() || there.hold_label {
            self.violated(6, now, Some(id), format!("{verb:?} on what is not ours, or held by its label"));
        }
        if verb == Verb::Delete && there.state == State::Running {
            self.violated(3, now, Some(id), "a delete from running".to_owned());
        }
        if self.outlived(there, look.at) {
            return;
        }
        if look.unread {
            self.violated(4, now, Some(id), format!("{verb:?} although the agent server inside did not answer"));
        }
        let quiet = self.quiet(verb);
        if verb == Verb::Shed {
            self.read_before(process, id, now);
        }
        let seen = there.kind.shows != crate::simulation::scenario::Shows::Nothing;
        if seen && look.at.since(there.active) <= quiet {
            let what = format!("{verb:?}, and the look before saw it active at {}", offset(there.active));
            self.violated(1, now, Some(id), what);
        }
        if seen && there.busy_until.is_some_and(|until| until > look.at.plus(self.skew())) {
            self.violated(1, now, Some(id), format!("{verb:?}, and the look before saw it at work"));
        }
    }

    /// Invariant 1 for what its claim does not refuse heartbeats of: the record was read under the claim, and told of
    /// nothing. What reaches it later, before the call does its work, is not refused: files come back from the trash.
    fn read_before(&mut self, process: &Process, id: &RuntimeId, now: Time) {
        let claimed = self.truth(id).holder.as_ref().map(|holder| holder.at);
        let read = self.hands(process.name()).reads.get(id).copied();
        let Some((_, told)) = read.filter(|(at, _)| claimed.is_some_and(|claimed| *at >= claimed)) else {
            return self.violated(
                1,
                now,
                Some(id),
                "it is shed, and its record was not read under the claim".to_owned(),
            );
        };
        let quiet = self.quiet(Verb::Shed);
        if let Some(told) = told.filter(|told| now.since(*told) < quiet) {
            let what = format!("it is shed, and its record said that it was active at {}", offset(told));
            self.violated(1, now, Some(id), what);
        }
    }

    /// For how long nothing was active, at least, before `verb`.
    fn quiet(&self, verb: Verb) -> Duration {
        let rules = self.scenario.rules();
        match verb {
            Verb::Suspend => rules.idle_after.unwrap_or_default(),
            Verb::Shed => rules.files.caches.unwrap_or_default(),
            Verb::Resume | Verb::Archive | Verb::Delete => Duration::ZERO,
        }
    }

    /// It ran for longer than `lifetime.max`, so activity does not count.
    fn outlived(&self, there: &Runtime, now: Time) -> bool {
        let max = self.scenario.rules().lifetime_max;
        max.is_some_and(|max| there.state == State::Running && now.since(there.running_since) > max)
    }

    /// A verb had its effect on the provider. `before`: what was there.
    pub(crate) fn effect(&mut self, process: &Process, verb: Verb, id: &RuntimeId, before: &Runtime, now: Time) {
        self.count(match verb {
            Verb::Suspend => "a runtime is suspended by us",
            Verb::Resume => "a runtime is resumed by us",
            Verb::Archive => "a runtime is archived by us",
            Verb::Delete => "a runtime is deleted by us",
            Verb::Shed => "files are shed",
        });
        self.live_kill(verb, id, before, now);
        let holder = self.truth(id).holder.clone();
        if holder.as_ref().is_none_or(|holder| holder.process != process.name()) {
            let what = format!("{verb:?} of {} landed while {holder:?} has it", process.name());
            self.violated(2, now, Some(id), what);
        }
        if verb == Verb::Delete {
            self.recoverable(id, before, now);
        }
        if !before.ours() {
            self.violated(6, now, Some(id), format!("{verb:?} on what is not ours"));
        }
        if before.kind.mute() && verb == Verb::Suspend && !self.outlived(before, now) {
            self.never_active(id, before, now);
        }
    }

    /// Invariant 1, by the clock on the wall: nobody was told that his activity is recorded within the policy's time,
    /// nor that his work is known to be under way.
    fn live_kill(&mut self, verb: Verb, id: &RuntimeId, before: &Runtime, now: Time) {
        if verb != Verb::Suspend || self.outlived(before, now) {
            return;
        }
        let (quiet, truth) = (self.quiet(verb), self.truth(id));
        let (told, busy) = (truth.acknowledged, truth.busy);
        if let Some(told) = told.filter(|told| now.since(*told) < quiet) {
            let what = format!("it was suspended, and its activity at {} was acknowledged", offset(told));
            self.violated(1, now, Some(id), what);
        }
        if let Some(busy) = busy.filter(|busy| *busy > now) {
            let what = format!("it was suspended, and work until {} was acknowledged", offset(busy));
            self.violated(1, now, Some(id), what);
        }
    }

    /// Invariant 3: nothing running, nothing that must be saved, nothing without its notice.
    fn recoverable(&mut self, id: &RuntimeId, before: &Runtime, now: Time) {
        let rules = self.scenario.rules().clone();
        if before.state == State::Running {
            self.violated(3, now, Some(id), "it was deleted while it ran".to_owned());
        }
        if rules.workspace == lifecycle::policy::WorkspaceRule::Save {
            self.violated(3, now, Some(id), "it was deleted with work that is not saved".to_owned());
        }
        let keep = if before.state == State::Archived { rules.retention.archived } else { rules.retention.suspended };
        if keep.is_none_or(|keep| now.since(before.state_since) < keep) {
            let what = format!("it was deleted, and rests only since {}", offset(before.state_since));
            self.violated(3, now, Some(id), what);
        }
        let Some(wait) = rules.notice_before_delete else { return };
        let noticed = self.truth(id).noticed.filter(|at| now.since(*at) >= wait);
        if noticed.is_none_or(|at| at < before.running_since) {
            self.violated(3, now, Some(id), "it was deleted without a notice in time".to_owned());
        }
    }

    /// Invariant 4: unknown is never idle, unless the policy says from when on.
    fn never_active(&mut self, id: &RuntimeId, before: &Runtime, now: Time) {
        let after = self.scenario.rules().unknown_after;
        if after.is_none_or(|after| now.since(before.born) < after) && self.truth(id).acknowledged.is_none() {
            self.violated(4, now, Some(id), "it was suspended, and nothing is known of its activity".to_owned());
        }
    }

    /// A verb has landed, or never will.
    pub(crate) fn landed(&mut self, process: &Process, id: &RuntimeId) {
        let flights = &mut self.truth(id).flights;
        if let Some(at) = flights.iter().position(|flight| flight.process == process.name()) {
            flights.remove(at);
        }
    }
}
