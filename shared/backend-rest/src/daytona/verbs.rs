//! Suspend, resume, archive, delete. All of them end later than they are answered: what was begun is `Pending`.

use std::time::Duration;

use async_trait::async_trait;
use backend::{Archivable, BackendError, Bounds, Deletable, Deleted, Outcome, Suspendable, Target};
use lifecycle::{Incarnation, Role, State, Survives, policy::WorkspaceRule};
use reqwest::{Method, StatusCode};

use super::{Daytona, look::Found};
use crate::{
    api::{Answer, Failure},
    look::Looks,
    verb::{Miss, able, aimed, failed, moved, same_run, unread},
};

/// What looking and asking take at least. Daytona answers before the work is done.
const BEGIN: Duration = Duration::from_secs(10);
/// Daytona holds an answer to a start for up to 30 s.
const START: Duration = Duration::from_secs(40);

#[async_trait]
impl Suspendable for Daytona {
    /// A stop keeps the disk. A VM is paused, which keeps its memory too; what holds for all of them is said.
    fn survives(&self) -> Survives {
        Survives::Disk
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let left = self.api.time_for("a stop", BEGIN, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        match found.seen.state {
            State::Suspended if same_run(&found.seen, target) => return Ok(Outcome::AlreadyDone),
            State::Suspending if same_run(&found.seen, target) => return Ok(Outcome::Pending),
            _ => {}
        }
        if let Err(miss) = able(&found.seen, Role::Suspend).and_then(|()| aimed(&found.seen, target, &[State::Running]))
        {
            return Ok(miss.outcome());
        }
        let verb = if found.raw.vm { "pause" } else { "stop" };
        let answer = self.post(&found, verb, self.api.time_for("a stop", Duration::ZERO, bounds)?).await;
        self.came_to(target, answer, Goal::new(State::Suspended, State::Suspending), bounds).await
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let left = self.api.time_for("a start", START, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        match found.seen.state {
            State::Running => return Ok(Outcome::AlreadyDone),
            State::Resuming => return Ok(Outcome::Pending),
            _ => {}
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended, State::Archived]) {
            return Ok(miss.outcome());
        }
        let answer = self.post(&found, "start", self.api.time_for("a start", Duration::ZERO, bounds)?).await;
        let done = self.came_to(target, answer, Goal::new(State::Running, State::Resuming), bounds).await?;
        Ok(done.map(|()| found.seen.incarnation.clone()))
    }
}

#[async_trait]
impl Archivable for Daytona {
    fn archive_survives(&self) -> Survives {
        Survives::Disk
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let left = self.api.time_for("an archive", BEGIN, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        match found.seen.state {
            State::Archived if same_run(&found.seen, target) => return Ok(Outcome::AlreadyDone),
            State::Archiving if same_run(&found.seen, target) => return Ok(Outcome::Pending),
            _ => {}
        }
        if let Err(miss) =
            aimed(&found.seen, target, &[State::Suspended]).and_then(|()| able(&found.seen, Role::Archive))
        {
            return Ok(miss.outcome());
        }
        let answer = self.post(&found, "archive", self.api.time_for("an archive", Duration::ZERO, bounds)?).await;
        self.came_to(target, answer, Goal::new(State::Archived, State::Archiving), bounds).await
    }
}

#[async_trait]
impl Deletable for Daytona {
    /// What would be lost can't be read, and nothing is saved here: whether it was saved is settled before this is
    /// asked.
    async fn delete(
        &self,
        target: &Target,
        _save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let left = self.api.time_for("a deletion", BEGIN, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if found.seen.state == State::Deleting {
            return Ok(Outcome::Pending);
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended, State::Archived]) {
            return Ok(miss.outcome());
        }
        let left = self.api.time_for("a deletion", Duration::ZERO, bounds)?;
        let call = self.api.call(Method::DELETE, &["sandbox", &found.raw.id]);
        let answer = self.api.act(call, left).await;
        let done = self.came_to(target, answer, Goal::new(State::Gone, State::Deleting), bounds).await?;
        Ok(done.map(|()| Deleted::default()))
    }
}

/// What an act leads to: the state at its end, and the one on its way there.
#[derive(Debug, Clone, Copy)]
struct Goal {
    end: State,
    way: State,
}

impl Goal {
    fn new(end: State, way: State) -> Self {
        Self { end, way }
    }

    /// What it is to be seen in `found` after the act was answered.
    fn outcome(self, found: &Found, target: &Target) -> Outcome {
        match found.seen.state {
            state if state == self.end => Outcome::Done(()),
            state if state == self.way => Outcome::Pending,
            state if state == target.state => unread("Daytona answered that it is done, and shows no change yet"),
            _ => moved(&found.seen).outcome(),
        }
    }
}

impl Daytona {
    async fn post(&self, found: &Found, verb: &str, within: Duration) -> Result<Answer, Failure> {
        let call = self.api.call(Method::POST, &["sandbox", &found.raw.id, verb]);
        // Without force, whatever a server's default is.
        let call = if verb == "stop" { call.query(&[("force", "false")]) } else { call };
        self.api.act(call, within).await
    }

    /// What an act came to: by the sandbox in its answer. Where it was refused, by one more look, since the same
    /// state is refused in several ways: somebody else may have begun just that.
    async fn came_to(
        &self,
        target: &Target,
        answer: Result<Answer, Failure>,
        goal: Goal,
        bounds: Bounds,
    ) -> Result<Outcome, BackendError> {
        let failure = match answer {
            Ok(answer) => {
                return Ok(match self.read(&answer) {
                    Ok(found) => goal.outcome(&found, target),
                    Err(failure) => unread(failure.words()),
                });
            }
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => return Ok(Outcome::Gone),
            Err(failure) => failure,
        };
        let look_again = failure.is(StatusCode::CONFLICT) || failure.is(StatusCode::BAD_REQUEST);
        if !look_again {
            return failed(failure);
        }
        match self.find(target, bounds.deadline.since(self.api.now())).await {
            Err(error) => Ok(Outcome::Unknown(error.message.into())),
            Ok(Err(Miss::Gone)) => Ok(Outcome::Gone),
            Ok(Err(miss)) => Ok(miss.outcome()),
            Ok(Ok(found)) if found.seen.state == goal.end => Ok(Outcome::AlreadyDone),
            Ok(Ok(found)) if found.seen.state == goal.way => Ok(Outcome::Pending),
            Ok(Ok(found)) if found.seen.state != target.state => Ok(moved(&found.seen).outcome()),
            // It stands as it was looked at, and something is under way that does not show yet.
            Ok(Ok(_)) if failure.is(StatusCode::CONFLICT) => Ok(Outcome::Unknown(failure.words().into())),
            Ok(Ok(_)) => failed(failure),
        }
    }
}
