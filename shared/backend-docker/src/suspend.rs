//! Suspend is a stop, resume is a start.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Bounds, Outcome, Suspendable, Target};
use lifecycle::{Incarnation, State, Survives};
use reqwest::StatusCode;

use crate::{
    DEFAULT_STOP_GRACE, Docker,
    engine::{ASK, Failure},
    observe::Status,
    verb::{Found, Look, Miss},
};

/// What looking, interrupting and the engine's own work may take beside the grace.
const MARGIN: Duration = Duration::from_secs(15);

/// What a start may take at least.
const START: Duration = Duration::from_secs(5);

#[async_trait]
impl Suspendable for Docker {
    fn survives(&self) -> Survives {
        Survives::Disk
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        let needed = self.grace().saturating_add(MARGIN);
        let left = self.time_for("a stop", needed, bounds)?;
        let found = match self.to_suspend(target, left).await? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        };
        self.interrupt(&found, bounds).await;
        self.stay_down(&found).await;
        // The agent was asked, which takes its time: look again, so that the stop hits what was looked at.
        let left = self.time_for("a stop", self.grace(), bounds)?;
        match self.to_suspend(target, left).await? {
            Ok(found) => self.stop(target, &found, bounds).await,
            Err(outcome) => Ok(outcome),
        }
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let left = self.time_for("a start", START, bounds)?;
        let found = match self.find(target, Look::Quick, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        let verb = match found.status {
            Status::Running => return Ok(Outcome::AlreadyDone),
            Status::Restarting | Status::Stopping => return Ok(Outcome::Pending),
            _ if !found.same_run(target) => return Ok(found.moved().outcome()),
            Status::Removing | Status::Dead => return Ok(found.moved().outcome()),
            Status::Paused => "unpause",
            Status::Created | Status::Exited => "start",
        };
        let path = format!("/containers/{}/{verb}", found.raw.id);
        let answer = self.engine.post(&path, None, self.time_for("a start", START, bounds)?).await;
        self.resumed(target, answer, bounds).await
    }
}

impl Docker {
    /// The grace in whole seconds. None at all would kill at once, and is taken as the default.
    fn grace(&self) -> Duration {
        let grace = self.options.stop_grace;
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        if seconds == 0 { DEFAULT_STOP_GRACE } else { Duration::from_secs(seconds) }
    }

    /// The container, if it is still the one to stop.
    async fn to_suspend(&self, target: &Target, left: Duration) -> Result<Result<Found, Outcome>, BackendError> {
        let found = match self.find(target, Look::Quick, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(Err(miss.outcome())),
        };
        if found.same_run(target) && found.state() == State::Suspended {
            return Ok(Err(Outcome::AlreadyDone));
        }
        if found.raw.stop_deletes() {
            let why = format!("container `{}` was started with `--rm`: stopping it deletes it", found.raw.bare_name());
            return Ok(Err(Outcome::Refused(why.into())));
        }
        Ok(found.aimed(target).map_err(Miss::outcome))
    }

    /// A container that the engine starts again by itself is told not to be, where the engine can do that.
    ///
    /// `unless-stopped` differs from `always` only in what happens to a container that was stopped by hand, so
    /// it is left so after a resume: nothing on a container can remember what it was before.
    async fn stay_down(&self, found: &Found) {
        if !found.raw.comes_back() {
            return;
        }
        let body = r#"{"RestartPolicy":{"Name":"unless-stopped"}}"#.to_owned();
        let path = format!("/containers/{}/update", found.raw.id);
        if let Err(failure) = self.engine.post(&path, Some(body), ASK).await {
            tracing::warn!(
                backend = %self.options.name,
                container = found.raw.bare_name(),
                reason = failure.words(),
                "a container with `restart=always` could not be changed to `unless-stopped`: the engine starts it \
                 again when it restarts itself"
            );
        }
    }

    async fn stop(&self, target: &Target, found: &Found, bounds: Bounds) -> Result<Outcome, BackendError> {
        let answer = self.ask_to_stop(found, bounds).await?;
        if !matches!(answer, Err(Failure::Said { .. })) {
            return self.stopped(target, answer, bounds).await;
        }
        // podman does not stop a paused one, Docker does: what it is in now tells, not which error it was.
        let left = bounds.deadline.since(self.now());
        match self.find(target, Look::Quick, left).await? {
            Ok(now) if now.status == Status::Paused && now.same_run(target) => {
                let path = format!("/containers/{}/unpause", now.raw.id);
                let answer = match self.engine.post(&path, None, ASK.min(left)).await {
                    Ok(_) => self.ask_to_stop(&now, bounds).await?,
                    unpaused => unpaused,
                };
                self.stopped(target, answer, bounds).await
            }
            _ => self.stopped(target, answer, bounds).await,
        }
    }

    async fn ask_to_stop(&self, found: &Found, bounds: Bounds) -> Result<Result<StatusCode, Failure>, BackendError> {
        let left = self.time_for("a stop", self.grace(), bounds)?;
        let path = format!("/containers/{}/stop?t={}", found.raw.id, self.grace().as_secs());
        Ok(self.engine.post(&path, None, left).await)
    }

    /// What a stop came to: by what is there now, since an engine's answers to it differ.
    async fn stopped(
        &self,
        target: &Target,
        answer: Result<StatusCode, Failure>,
        bounds: Bounds,
    ) -> Result<Outcome, BackendError> {
        let before = matches!(answer, Ok(StatusCode::NOT_MODIFIED));
        let words = match answer {
            Err(Failure::NotAsked(error)) => return Err(error),
            Err(failure @ (Failure::NoAnswer(_) | Failure::Unreadable(_))) => {
                return Ok(Outcome::Unknown(failure.words().into()));
            }
            Err(failure) => Some(failure.words()),
            Ok(_) => None,
        };
        let found = match self.find(target, Look::Quick, bounds.deadline.since(self.now())).await {
            Ok(Ok(found)) => found,
            Ok(Err(miss)) => return Ok(miss.outcome()),
            Err(error) => return Ok(Outcome::Unknown(error.message.into())),
        };
        Ok(match (found.same_run(target), found.state(), words) {
            (true, State::Suspended, _) if before => Outcome::AlreadyDone,
            (true, State::Suspended, _) => Outcome::Done(()),
            (true, State::Suspending, _) => Outcome::Pending,
            (true, State::Running, words) => Outcome::Unknown(
                words.unwrap_or_else(|| "the engine answered that it stopped, and it runs".to_owned()).into(),
            ),
            _ => found.moved().outcome(),
        })
    }

    /// What a start came to.
    async fn resumed(
        &self,
        target: &Target,
        answer: Result<StatusCode, Failure>,
        bounds: Bounds,
    ) -> Result<Outcome<Incarnation>, BackendError> {
        let words = match answer {
            Err(Failure::NotAsked(error)) => return Err(error),
            Err(failure) if failure.is_not_there() => return Ok(Outcome::Gone),
            Err(failure) => return Ok(Outcome::Unknown(failure.words().into())),
            Ok(StatusCode::NOT_MODIFIED) => return Ok(Outcome::AlreadyDone),
            Ok(_) => "it was started and stopped again at once: look at its log",
        };
        match self.find(target, Look::Quick, bounds.deadline.since(self.now())).await {
            Ok(Ok(found)) if found.state() == State::Running => Ok(Outcome::Done(found.raw.incarnation())),
            Ok(Ok(_)) => Ok(Outcome::Unknown(words.into())),
            Ok(Err(miss)) => Ok(miss.outcome()),
            Err(error) => Ok(Outcome::Unknown(error.message.into())),
        }
    }
}
