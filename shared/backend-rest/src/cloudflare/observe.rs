//! From what Cloudflare shows of an instance to what Furlough knows of a runtime. Pure.

use std::{collections::BTreeMap, sync::Arc};

use lifecycle::{Activity, Busy, FileSizes, Incarnation, Loss, NativeObserved, Observation, RuntimeId, State, Time};

use super::{
    Options,
    wire::{Instance, Status},
};
use crate::row::Unread;

/// What is shown of `sleepAfter`: that it is there, can be written and can't be read.
pub(super) const SLEEPS: NativeObserved =
    NativeObserved { idle_suspend: None, archive: None, delete: None, mutable: true, hidden: true, deadline: None };

impl Instance {
    /// What Furlough knows of it at `now`; `None`: it has no container, so there is nothing to know. An error says, for
    /// people, what can't be read.
    pub(super) fn observation(&self, options: &Options, now: Time) -> Result<Option<Observation>, Unread> {
        let state = match self.status {
            Status::Starting => State::Resuming,
            Status::Runs => State::Running,
            Status::Stopping => State::Deleting,
            Status::None => return Ok(None),
        };
        let id = RuntimeId::new(&options.name, self.id.as_bytes()).map_err(|error| Unread(error.to_string()))?;
        let since = self.started_at.map(|at| at.min(now)).filter(|_| state == State::Running);
        let name = self.name.as_deref().unwrap_or_default();
        Ok(Some(Observation {
            id,
            incarnation: Incarnation::new(self.started.as_deref().unwrap_or(&self.updated)),
            state,
            state_since: since,
            running_since: since,
            // Cloudflare tells nothing of what goes on in a container: that is for heartbeats to tell.
            activity: Activity::Unknown,
            busy: Busy::No,
            ownership: options.scope.ownership(name, &BTreeMap::new()),
            labels: Arc::default(),
            cannot: Vec::new(),
            loss: Loss::Unknown,
            files: FileSizes::default(),
            native: Some(Box::new(SLEEPS)),
            sharers: 1,
            about: if name.is_empty() { self.id.as_str() } else { name }.into(),
        }))
    }
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
