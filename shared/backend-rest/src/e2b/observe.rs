//! From what E2B shows of a sandbox to what Furlough knows of a runtime. Pure.

use std::sync::Arc;

use lifecycle::{
    Activity, Busy, FileSizes, Incarnation, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation, RuntimeId,
    State, Time,
};

use super::{
    Options,
    wire::{OnTimeout, Sandbox},
};
use crate::row::Unread;

impl Sandbox {
    pub(super) fn state(&self) -> State {
        if self.paused { State::Suspended } else { State::Running }
    }

    /// What Furlough knows of it at `now`. An error says, for people, what can't be read.
    pub(super) fn observation(&self, options: &Options, now: Time) -> Result<Observation, Unread> {
        let id = RuntimeId::new(&options.name, self.id.as_bytes()).map_err(|error| Unread(error.to_string()))?;
        Ok(Observation {
            id,
            incarnation: Incarnation::new(self.started.as_str()),
            state: self.state(),
            state_since: Some(if self.paused { self.end_at } else { self.started_at }.min(now)),
            running_since: (!self.paused).then_some(self.started_at.min(now)),
            // E2B tells nothing of what goes on in a sandbox: that is for heartbeats to tell.
            activity: if self.paused { Activity::At(self.end_at.min(now)) } else { Activity::Unknown },
            busy: Busy::No,
            ownership: options.scope.ownership(&self.template, &self.metadata),
            labels: Arc::new(self.metadata.clone()),
            cannot: Vec::new(),
            loss: Loss::Unknown,
            files: FileSizes::default(),
            native: Some(Box::new(self.native())),
            sharers: 1,
            about: format!("{} ({})", self.id, self.template).into(),
        })
    }

    /// E2B has no timer of idleness: a run has an end, which can be put off, and what happens then was settled
    /// when it was made. A paused one is kept for ever.
    pub(super) fn native(&self) -> NativeObserved {
        let effect = match self.on_timeout {
            OnTimeout::Pause => NativeEffect::Suspend,
            OnTimeout::Kill | OnTimeout::Unknown => NativeEffect::Destroy,
        };
        let deadline = (!self.paused).then_some(NativeDeadline { at: self.end_at, effect });
        NativeObserved { deadline, ..NativeObserved::default() }
    }
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
