//! Pause, resume, delete. What a "not found" means is found out by looking: a pause or a resume that failed is answered
//! like that too.

use std::{sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use backend::{BackendError, Bounds, Deletable, Deleted, Outcome, Suspendable, Target};
use lifecycle::{Incarnation, Role, State, Survives, policy::WorkspaceRule};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{
    OpenHands, Which,
    observe::{NO_PAUSE, Pauses},
};
use crate::{
    api::{Answer, Call, Failure},
    look::Looks,
    verb::{Miss, able, aimed, failed, moved, same_run},
};

/// A pause ends when its pods are gone.
const PAUSE: Duration = Duration::from_secs(40);
/// A resume was seen to take 19 s.
const RESUME: Duration = Duration::from_mins(1);
/// A deletion stops the runtime first.
const DELETE: Duration = Duration::from_secs(40);
/// What a look before an act and one after it take.
const LOOK: Duration = Duration::from_secs(15);

/// What can be asked of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Pause,
    Resume,
    Delete,
}

impl Act {
    const fn goal(self) -> State {
        match self {
            Self::Pause => State::Suspended,
            Self::Resume => State::Running,
            Self::Delete => State::Gone,
        }
    }
}

#[async_trait]
impl Suspendable for OpenHands {
    /// The volume of the workspace. What was written beside it is in no paused pod.
    fn survives(&self) -> Survives {
        Survives::Volumes
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.api.time_for("a pause", PAUSE + 2 * LOOK, bounds)?;
        let found = match self.find(target, LOOK).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if found.seen.state == State::Suspended && same_run(&found.seen, target) {
            return Ok(Outcome::AlreadyDone);
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Running]).and_then(|()| able(&found.seen, Role::Suspend))
        {
            return Ok(miss.outcome());
        }
        let answer = self.api.act(self.asking(Act::Pause, &found.raw.id), PAUSE).await;
        self.came_to(target, answer, Act::Pause, bounds).await
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        self.api.time_for("a resume", RESUME + 2 * LOOK, bounds)?;
        let found = match self.find(target, LOOK).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        match found.seen.state {
            State::Running => return Ok(Outcome::AlreadyDone),
            State::Resuming => return Ok(Outcome::Pending),
            _ => {}
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended]) {
            return Ok(miss.outcome());
        }
        let answer = self.api.act(self.asking(Act::Resume, &found.raw.id), RESUME).await;
        let done = self.came_to(target, answer, Act::Resume, bounds).await?;
        Ok(done.map(|()| found.seen.incarnation))
    }
}

#[async_trait]
impl Deletable for OpenHands {
    /// What would be lost can't be read, and nothing is saved here: whether it was saved is settled before this is
    /// asked. What its conversations said stays at OpenHands.
    async fn delete(
        &self,
        target: &Target,
        _save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        self.api.time_for("a deletion", DELETE + 2 * LOOK, bounds)?;
        let found = match self.find(target, LOOK).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended]) {
            return Ok(miss.outcome());
        }
        let answer = self.api.act(self.asking(Act::Delete, &found.raw.id), DELETE).await;
        let done = self.came_to(target, answer, Act::Delete, bounds).await?;
        Ok(done.map(|()| Deleted::default()))
    }
}

impl OpenHands {
    pub(super) fn pauses(&self) -> Pauses {
        if self.no_pause.load(Ordering::Relaxed) { Pauses::No } else { Pauses::Yes }
    }

    fn asking(&self, act: Act, id: &str) -> Call {
        let sandbox = ["api", "v1", "sandboxes", id];
        let runtime = |verb| self.api.call(Method::POST, &[verb]).body(json!({"runtime_id": id}));
        match (self.options.which, act) {
            (Which::Cloud, Act::Pause) => self.api.call(Method::POST, &[&sandbox[..], &["pause"]].concat()),
            (Which::Cloud, Act::Resume) => self.api.call(Method::POST, &[&sandbox[..], &["resume"]].concat()),
            // It is the query that says which; the path is not read.
            (Which::Cloud, Act::Delete) => self.api.call(Method::DELETE, &sandbox).query(&[("sandbox_id", id)]),
            (Which::Runtime, Act::Pause) => runtime("pause"),
            (Which::Runtime, Act::Resume) => runtime("resume"),
            (Which::Runtime, Act::Delete) => runtime("stop"),
        }
    }

    /// What an act came to: by what is there now, wherever the answer leaves room.
    async fn came_to(
        &self,
        target: &Target,
        answer: Result<Answer, Failure>,
        act: Act,
        bounds: Bounds,
    ) -> Result<Outcome, BackendError> {
        let failure = match answer {
            Ok(_) => None,
            Err(failure) if act == Act::Pause && has_none(&failure) => {
                self.no_pause.store(true, Ordering::Relaxed);
                return Ok(Outcome::Refused(NO_PAUSE.into()));
            }
            Err(failure) if failure.is(StatusCode::NOT_FOUND) || failure.is(StatusCode::CONFLICT) => Some(failure),
            Err(failure) => return failed(failure),
        };
        let now = match self.find(target, bounds.deadline.since(self.api.now()).min(LOOK)).await {
            Ok(Ok(found)) => found.seen,
            Ok(Err(Miss::Gone)) if act == Act::Delete && failure.is_none() => return Ok(Outcome::Done(())),
            Ok(Err(miss)) => return Ok(miss.outcome()),
            Err(error) => return Ok(Outcome::Unknown(error.message.into())),
        };
        Ok(match failure {
            _ if !same_run(&now, target) => moved(&now).outcome(),
            None if now.state == act.goal() => Outcome::Done(()),
            None => Outcome::Pending,
            Some(_) if now.state == act.goal() => Outcome::AlreadyDone,
            Some(_) if now.state != target.state => moved(&now).outcome(),
            Some(failure) if failure.is(StatusCode::CONFLICT) => Outcome::Refused(failure.words().into()),
            Some(failure) => {
                let why = format!("{}, and it is there, `{}`: it may yet be done", failure.words(), now.state);
                Outcome::Unknown(why.into())
            }
        })
    }
}

/// The server does not know this verb.
fn has_none(failure: &Failure) -> bool {
    failure.is(StatusCode::METHOD_NOT_ALLOWED) || failure.is(StatusCode::NOT_IMPLEMENTED)
}
