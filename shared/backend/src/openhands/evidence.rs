//! What the answers prove.

use lifecycle::{Busy, Time, activity::MAX_BUSY};

use super::reading::{Command, Conversation};
use crate::Probe;

/// What is proved so far. Grows only: no answer makes a server less active or less busy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    now: Time,
    active: Option<Time>,
    busy_until: Option<Time>,
}

impl Evidence {
    /// Nothing is proved. `now`: after the first answer came, so that no activity is told too early.
    pub(super) fn at(now: Time) -> Self {
        Self { now, active: None, busy_until: None }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Activity at that time, or now if the server's clock is ahead of ours.
    pub(super) fn active(&mut self, at: Time) {
        self.active = self.active.max(Some(at.min(self.now)));
    }

    fn busy(&mut self, until: Time) {
        if until > self.now {
            self.busy_until = self.busy_until.max(Some(until));
        }
    }

    /// Every event moves `updated_at`; work under way vetoes for [`MAX_BUSY`] after the last one.
    pub(super) fn conversations(&mut self, conversations: &[Conversation]) {
        for conversation in conversations {
            self.active(conversation.updated_at);
            if conversation.working {
                self.busy(conversation.updated_at.min(self.now).plus(MAX_BUSY));
            }
        }
    }

    /// Whether it makes a difference when this command ended.
    pub(super) fn can_matter(&self, command: &Command) -> bool {
        self.active.is_none_or(|active| self.end_at_the_latest(command) > active)
    }

    /// Whether no command that began before that can make a difference.
    pub(super) fn nothing_before_matters(&self, begun: Time) -> bool {
        self.active.is_some_and(|active| begun.plus(MAX_BUSY) <= active)
    }

    /// What began before that was not asked for: it counts as if it had been let run as long as anything is.
    pub(super) fn anything_before(&mut self, begun: Option<Time>) {
        let latest = begun.unwrap_or(self.now).min(self.now).plus(MAX_BUSY);
        self.active(latest);
        self.busy(latest);
    }

    /// A command that ended then; `None`: it is running, as long as the server lets it, or nobody could tell.
    pub(super) fn command(&mut self, command: &Command, ended: Option<Time>) {
        let latest = self.end_at_the_latest(command);
        self.active(ended.map_or(latest, |ended| ended.min(latest)));
        if ended.is_none() {
            self.busy(latest);
        }
    }

    /// The server ends a command at its timeout; we believe that for [`MAX_BUSY`].
    fn end_at_the_latest(&self, command: &Command) -> Time {
        command.begun.min(self.now).plus(command.timeout.min(MAX_BUSY))
    }

    /// What it comes to. `since`: no activity is told to be earlier.
    pub(super) fn probe(self, since: Option<Time>) -> Probe {
        Probe {
            last_active: self.active.map(|active| since.map_or(active, |since| active.max(since.min(self.now)))),
            busy: self.busy_until.map_or(Busy::No, Busy::Until),
        }
    }
}
