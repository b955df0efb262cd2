//! The only room that calls a backend: in its turn, within a time, and not after it said "too many".

use std::{future::Future, sync::Arc, time::Duration};

use backend::{BackendError, Bounds, Clock, ErrorKind, Outcome, Page, PageToken, Sighting, Target};
use lifecycle::{
    Action, Busy, Incarnation, Observation, RuntimeId, Time, duration::Human, policy::WorkspaceRule, snapshot::Disk,
    snapshot::ProbeAnswer,
};

use crate::{Limits, Unit};

/// What an act left behind, whichever it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Where the work was saved first, if something was.
    pub saved: Option<Arc<str>>,
    /// What it can be taken back by.
    pub undo: Vec<Arc<str>>,
    /// What stayed behind on purpose, for people.
    pub kept: Vec<Arc<str>>,
    /// Bytes freed.
    pub bytes: u64,
}

/// A unit's backend, called within limits.
#[derive(Clone, Copy)]
pub(crate) struct Calls<'a> {
    pub(crate) unit: &'a Unit,
    pub(crate) clock: &'a Clock,
    pub(crate) limits: &'a Limits,
}

impl Calls<'_> {
    /// One page of the listing.
    pub(crate) async fn page(&self, token: Option<&PageToken>) -> Result<Page, BackendError> {
        self.within(self.limits.look_timeout, self.unit.backend.list.list(token)).await
    }

    /// The filesystem that its runtimes lie on.
    pub(crate) async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        self.within(self.limits.look_timeout, self.unit.backend.list.disk()).await
    }

    /// A fresh look at one runtime.
    pub(crate) async fn look(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.within(self.limits.look_timeout, self.unit.backend.inspect.inspect(id)).await
    }

    /// Asks the agent server inside. `None`: there is none to ask. No answer is [`Busy::Unread`].
    pub(crate) async fn probe(&self, seen: &Observation) -> Option<ProbeAnswer> {
        let role = self.unit.backend.probe.as_ref()?;
        let target = target(seen);
        let bounds = Bounds { deadline: self.clock.now().plus(self.limits.look_timeout) };
        let unread = ProbeAnswer { last_active: None, busy: Busy::Unread };
        match self.within(self.limits.look_timeout, role.probe(&target, bounds)).await {
            Ok(Outcome::Done(probe)) => Some(ProbeAnswer { last_active: probe.last_active, busy: probe.busy }),
            Ok(Outcome::Refused(_)) => None,
            Ok(_) | Err(_) => Some(unread),
        }
    }

    /// Does what an item says to the target that was looked at, within a claim that ends at `until`.
    pub(crate) async fn act(
        &self,
        action: Action,
        target: &Target,
        save: WorkspaceRule,
        until: Time,
    ) -> Result<Outcome<Effect>, BackendError> {
        let backend = &self.unit.backend;
        let bounds = Bounds { deadline: until };
        let lacks = |role: &str| Ok(Outcome::Refused(format!("the backend has no `{role}`").into()));
        match action {
            Action::Suspend => match &backend.suspend {
                Some(role) => self.verb(bounds, role.suspend(target, bounds), |()| Effect::default()).await,
                None => lacks("suspend"),
            },
            Action::Archive => match &backend.archive {
                Some(role) => self.verb(bounds, role.archive(target, bounds), |()| Effect::default()).await,
                None => lacks("archive"),
            },
            Action::Delete => match &backend.delete {
                Some(role) => self.verb(bounds, role.delete(target, save, bounds), deleted).await,
                None => lacks("delete"),
            },
            Action::Shed(tier) => match &backend.files {
                Some(role) => self.verb(bounds, role.shed(target, tier, bounds), shed).await,
                None => lacks("files"),
            },
            Action::Notify => Ok(Outcome::Refused("a notice is not the backend's to give".into())),
        }
    }

    /// Brings a runtime back, within a claim that ends at `until`.
    pub(crate) async fn resume(&self, target: &Target, until: Time) -> Result<Outcome<Incarnation>, BackendError> {
        let bounds = Bounds { deadline: until };
        match &self.unit.backend.suspend {
            Some(role) => self.verb(bounds, role.resume(target, bounds), |incarnation| incarnation).await,
            None => Ok(Outcome::Refused("the backend has no `suspend`, so nothing to resume".into())),
        }
    }

    /// A look: no answer within the limit is an error, since nothing was changed.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        self.turn().await?;
        match tokio::time::timeout(limit, call).await {
            Ok(answer) => answer.inspect_err(|error| self.heed(error)),
            Err(_) => Err(BackendError::new(ErrorKind::Unreachable, format!("no answer in {}", Human(limit)))),
        }
    }

    /// An act: no answer before the claim ends is an unknown outcome, to be looked at before it is asked again.
    async fn verb<T, U>(
        &self,
        bounds: Bounds,
        call: impl Future<Output = Result<Outcome<T>, BackendError>>,
        with: impl FnOnce(T) -> U,
    ) -> Result<Outcome<U>, BackendError> {
        self.turn().await?;
        let left = bounds.left(self.clock.now())?;
        if left < self.limits.act_timeout {
            let message = format!(
                "only {} were left of the claim; an act may take {}: nothing was begun",
                Human(left),
                Human(self.limits.act_timeout)
            );
            return Err(BackendError::new(ErrorKind::Unreachable, message));
        }
        let Ok(answer) = tokio::time::timeout(left, call).await else {
            return Ok(Outcome::Unknown(format!("no answer in {}", Human(left)).into()));
        };
        answer.inspect_err(|error| self.heed(error)).map(|outcome| mapped(outcome, with))
    }

    async fn turn(&self) -> Result<(), BackendError> {
        self.unit.gate.turn().await;
        let now = self.clock.now();
        self.unit.gate.closed(now).map_or(Ok(()), |until| Err(throttled(until.since(now))))
    }

    fn heed(&self, error: &BackendError) {
        if let ErrorKind::Throttled { retry_after } = error.kind {
            self.unit.gate.close(self.clock.now().plus(retry_after));
        }
    }
}

/// What an act on this observation is aimed at.
pub(crate) fn target(seen: &Observation) -> Target {
    Target { id: seen.id.clone(), incarnation: seen.incarnation.clone(), state: seen.state }
}

fn throttled(retry_after: Duration) -> BackendError {
    let message = format!("the backend asked to wait: not before {} from now", Human(retry_after));
    BackendError::new(ErrorKind::Throttled { retry_after }, message)
}

fn mapped<T, U>(outcome: Outcome<T>, with: impl FnOnce(T) -> U) -> Outcome<U> {
    match outcome {
        Outcome::Done(value) => Outcome::Done(with(value)),
        Outcome::AlreadyDone => Outcome::AlreadyDone,
        Outcome::Gone => Outcome::Gone,
        Outcome::Moved { incarnation, state } => Outcome::Moved { incarnation, state },
        Outcome::Refused(why) => Outcome::Refused(why),
        Outcome::Pending => Outcome::Pending,
        Outcome::Unknown(why) => Outcome::Unknown(why),
    }
}

fn deleted(deleted: backend::Deleted) -> Effect {
    Effect { saved: deleted.saved, undo: deleted.undo.into_iter().collect(), kept: deleted.kept, bytes: deleted.bytes }
}

fn shed(shed: backend::Shed) -> Effect {
    Effect { undo: shed.undo, bytes: shed.bytes, ..Effect::default() }
}
