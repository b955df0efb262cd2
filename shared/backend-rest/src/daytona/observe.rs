//! From what Daytona shows of a sandbox to what Furlough knows of a runtime. Pure.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use lifecycle::{
    Activity, Busy, Cannot, FileSizes, Incarnation, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation,
    Role, RuntimeId, State, Time,
};

use super::{
    Options,
    wire::{Deletion, Sandbox, Status, Timers},
};
use crate::row::Unread;

/// Activity is shown this late: the proxy tells of an open connection every 50 s, and what it told is written down
/// within 25 s more. What is left is for the difference of the clocks.
const STALE: Duration = Duration::from_mins(2);

impl Sandbox {
    /// What Furlough knows of it at `now`. An error says, for people, what can't be read.
    pub(super) fn observation(&self, options: &Options, now: Time) -> Result<Observation, Unread> {
        let id = RuntimeId::new(&options.name, self.id.as_bytes()).map_err(|error| Unread(error.to_string()))?;
        let ahead = self.last_activity.map_or(Duration::ZERO, |at| at.since(now));
        if ahead > STALE {
            let ahead = ahead.as_secs();
            return Err(Unread(format!("sandbox `{}`: its last activity is {ahead} s in the future", self.name)));
        }
        let state = self.status.state();
        let rests = matches!(state, State::Suspended | State::Archived);
        Ok(Observation {
            id,
            incarnation: self.incarnation(),
            state,
            // Each change of the state is written down as activity too, and nothing can be active after it.
            state_since: self.last_activity.filter(|_| rests).map(|at| at.min(now)),
            running_since: None,
            activity: self.activity(now),
            busy: if self.status == Status::Worked { Busy::Unread } else { Busy::No },
            ownership: options.scope.ownership(&self.name, &self.labels),
            labels: Arc::new(self.labels.clone()),
            cannot: self.cannot(),
            loss: Loss::Unknown,
            files: FileSizes::default(),
            native: Some(Box::new(self.native())),
            sharers: 1,
            about: self.name.as_str().into(),
        })
    }

    /// Daytona tells when a sandbox was made, and nothing that differs from one run of it to the next. What
    /// happened between two looks shows in its state and its activity alone.
    fn incarnation(&self) -> Incarnation {
        Incarnation::new(self.created.as_deref().unwrap_or("unknown"))
    }

    /// While it runs, it may have been active a little later than it is shown, and never later than now.
    fn activity(&self, now: Time) -> Activity {
        match (self.status, self.last_activity) {
            (Status::Worked | Status::Going(_) | Status::Destroyed, _) | (_, None) => Activity::Unknown,
            (Status::Started, Some(at)) => Activity::At(at.plus(STALE).min(now)),
            (_, Some(at)) => Activity::At(at.min(now)),
        }
    }

    fn cannot(&self) -> Vec<Cannot> {
        let ephemeral = "it is ephemeral: stopping it deletes it";
        let lacks = |roles: &[Role], why: &str| {
            let why: Arc<str> = why.into();
            roles.iter().map(|role| Cannot { role: *role, why: why.clone() }).collect()
        };
        match self.status {
            _ if self.timers.delete == Deletion::AtStop => lacks(&[Role::Suspend, Role::Archive], ephemeral),
            Status::Paused => lacks(&[Role::Archive], "it is paused, and Daytona archives what is stopped alone"),
            Status::Failed => lacks(&[Role::Suspend, Role::Archive], "it failed: look at it, recover it or delete it"),
            _ => Vec::new(),
        }
    }

    /// Its timers, and what the first of them does when.
    pub(super) fn native(&self) -> NativeObserved {
        let Timers { idle, archive, delete } = self.timers;
        NativeObserved {
            idle_suspend: idle.map(span),
            archive: Some(span(archive)),
            delete: match delete {
                Deletion::Never => None,
                Deletion::After(minutes) => Some(span(minutes)),
                Deletion::AtStop => Some(Duration::ZERO),
            },
            mutable: true,
            hidden: false,
            deadline: self.deadline(),
        }
    }

    fn deadline(&self) -> Option<NativeDeadline> {
        let Timers { idle, archive, delete } = self.timers;
        let after = |timer: Option<NonZeroU32>, effect| {
            let at = self.last_activity?.plus(span(timer?));
            Some(NativeDeadline { at, effect })
        };
        let stop = if delete == Deletion::AtStop { NativeEffect::Destroy } else { NativeEffect::Suspend };
        let timers = match (self.status, delete) {
            (Status::Started, _) => [after(idle, stop), None],
            (Status::Stopped, Deletion::After(minutes)) => {
                [after(Some(archive), NativeEffect::Archive), after(Some(minutes), NativeEffect::Destroy)]
            }
            (Status::Stopped, _) => [after(Some(archive), NativeEffect::Archive), None],
            _ => [None, None],
        };
        let ends = self.destroyed_at.map(|at| NativeDeadline { at, effect: NativeEffect::Destroy });
        timers.into_iter().flatten().chain(ends).min_by_key(|deadline| deadline.at)
    }
}

pub(super) fn span(minutes: NonZeroU32) -> Duration {
    Duration::from_secs(u64::from(minutes.get()) * 60)
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
