//! From what OpenHands shows of a sandbox and its conversations to what Furlough knows of a runtime. Pure.

use std::{sync::Arc, time::Duration};

use lifecycle::{Activity, Busy, Cannot, FileSizes, Incarnation, Loss, Observation, Role, RuntimeId, State, Time};

use super::{
    Options,
    uses::Use,
    wire::{Sandbox, Status, shown},
};
use crate::row::Unread;

/// A conversation's change is told this late: a sandbox keeps its events back for 30 s, and tries again where it is
/// not heard.
const STALE: Duration = Duration::from_mins(1);

/// Whether the server has a pause, as far as was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pauses {
    Yes,
    No,
}

impl Status {
    /// The state in Furlough's words. What failed may run, so it is never deleted without having been paused.
    pub(super) fn state(self) -> State {
        match self {
            Self::Starting => State::Resuming,
            Self::Running | Self::Failed => State::Running,
            Self::Paused => State::Suspended,
            Self::Missing => State::Gone,
        }
    }
}

impl Sandbox {
    /// What Furlough knows of it at `now`. An error says, for people, what can't be read.
    pub(super) fn observation(
        &self,
        told: Option<&Use>,
        pauses: Pauses,
        options: &Options,
        now: Time,
    ) -> Result<Observation, Unread> {
        let id = RuntimeId::new(&options.name, self.id.as_bytes()).map_err(|error| Unread(error.to_string()))?;
        let ahead = told.map_or(Duration::ZERO, |told| told.last.since(now));
        if ahead > STALE {
            let (id, ahead) = (shown(&self.id), ahead.as_secs());
            return Err(Unread(format!("sandbox `{id}`: its last activity is {ahead} s in the future")));
        }
        let state = self.status.state();
        let labels = told.map(|told| told.tags.clone()).unwrap_or_default();
        Ok(Observation {
            id,
            // Nothing tells one run from the next, but for a secret.
            incarnation: Incarnation::new(self.created.as_deref().unwrap_or(&self.id)),
            state,
            state_since: None,
            running_since: None,
            activity: activity(state, told, now),
            busy: told.filter(|told| state == State::Running && told.works(now)).map_or(Busy::No, |told| told.busy),
            ownership: options.scope.ownership(&self.name, &labels),
            labels: Arc::new(labels),
            cannot: cannot(pauses),
            loss: Loss::Unknown,
            files: FileSizes::default(),
            native: None,
            sharers: told.map_or(1, |told| told.conversations.max(1)),
            about: format!("{} ({})", self.id, self.name).into(),
        })
    }
}

/// While it runs, it may have been active a little later than was told, and never later than now. One without a
/// conversation tells nothing.
fn activity(state: State, told: Option<&Use>, now: Time) -> Activity {
    match (state, told) {
        (State::Running, Some(told)) => Activity::At(told.last.plus(STALE).min(now)),
        (State::Suspended, Some(told)) => Activity::At(told.last.min(now)),
        (State::Suspended, None) => Activity::Frozen,
        _ => Activity::Unknown,
    }
}

fn cannot(pauses: Pauses) -> Vec<Cannot> {
    match pauses {
        Pauses::Yes => Vec::new(),
        Pauses::No => vec![Cannot { role: Role::Suspend, why: NO_PAUSE.into() }],
    }
}

/// What is said of every sandbox of a server that has no pause.
pub(super) const NO_PAUSE: &str = "this OpenHands server has no pause: delete the sandbox's conversation there";

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
