//! Pause, resume, kill. A pause is believed when it was seen, not when it was answered.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use backend::{BackendError, Bounds, Deletable, Deleted, Outcome, Suspendable, Target};
use lifecycle::{Incarnation, State, Survives, Time, policy::WorkspaceRule};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{E2b, RESUME_FOR, look::Found};
use crate::{
    api::{ASK, Answer, Failure},
    look::Looks,
    verb::{Miss, aimed, failed, moved, same_run},
};

/// E2B's own limit of a request is 70 s, and a pause that is left alone before it ends may lose the sandbox.
const PAUSE: Duration = Duration::from_secs(90);
/// What a look before and one after it take.
const LOOKS: Duration = Duration::from_secs(20);
/// A resume loads the memory.
const RESUME: Duration = Duration::from_mins(1);
/// What a look and a kill take at least.
const KILL: Duration = Duration::from_secs(10);
/// How far E2B's clock may be behind ours, for a pause that it says was made by us.
const TOLERANCE: Duration = Duration::from_secs(30);

#[async_trait]
impl Suspendable for E2b {
    fn survives(&self) -> Survives {
        Survives::Memory
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.api.time_for("a pause", PAUSE + LOOKS, bounds)?;
        let found = match self.find(target, LOOKS / 2).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if found.raw.paused && same_run(&found.seen, target) {
            return Ok(Outcome::AlreadyDone);
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Running]) {
            return Ok(miss.outcome());
        }
        let began = self.api.now();
        let call = self.api.call(Method::POST, &["sandboxes", &found.raw.id, "pause"]).body(json!({}));
        // In a task of its own: whoever waits for this may stop waiting, and the pause must not be broken off.
        let api = Arc::clone(&self.api);
        let answer = tokio::spawn(async move { api.act(call, PAUSE).await }).await;
        let answer =
            answer.unwrap_or_else(|error| Err(Failure::NoAnswer(format!("the pause was broken off: {error}"))));
        self.paused(target, answer, began).await
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let left = self.api.time_for("a resume", RESUME, bounds)?;
        let found = match self.find(target, left.min(ASK)).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if !found.raw.paused {
            return Ok(Outcome::AlreadyDone);
        }
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended]) {
            return Ok(miss.outcome());
        }
        let seconds = RESUME_FOR.as_secs();
        let call =
            self.api.call(Method::POST, &["sandboxes", &found.raw.id, "connect"]).body(json!({"timeout": seconds}));
        match self.api.act(call, self.api.time_for("a resume", Duration::ZERO, bounds)?).await {
            // What it answers with is a sandbox without the start of its run.
            Ok(answer) => self.resumed(target, answer.status, bounds).await,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => Ok(Outcome::Gone),
            Err(failure) if is_full(&failure) => Ok(Outcome::Refused(failure.words().into())),
            Err(failure) => failed(failure),
        }
    }
}

#[async_trait]
impl Deletable for E2b {
    /// What would be lost can't be read, and nothing is saved here: whether it was saved is settled before this is
    /// asked.
    async fn delete(
        &self,
        target: &Target,
        _save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let left = self.api.time_for("a kill", KILL, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if let Err(miss) = aimed(&found.seen, target, &[State::Suspended]) {
            return Ok(miss.outcome());
        }
        let left = self.api.time_for("a kill", Duration::ZERO, bounds)?;
        match self.api.act(self.api.call(Method::DELETE, &["sandboxes", &found.raw.id]), left).await {
            Ok(_) => Ok(self.killed(target, bounds).await),
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => Ok(Outcome::Gone),
            Err(failure) => failed(failure),
        }
    }
}

impl E2b {
    /// What a pause came to: by what is there now. A sandbox that was paused earlier shows again what it had then,
    /// when a later pause failed; so only one that is shown to be newer than this call counts.
    async fn paused(
        &self,
        target: &Target,
        answer: Result<Answer, Failure>,
        began: Time,
    ) -> Result<Outcome, BackendError> {
        let failure = match answer {
            Ok(_) => None,
            Err(Failure::NotAsked(error)) => return Err(error),
            Err(failure) if is_refused_untouched(&failure) => return failed(failure),
            Err(failure) => Some(failure),
        };
        let words = || failure.as_ref().map_or("E2B answered that it paused".to_owned(), Failure::words);
        let found = match self.look(&target.id, ASK).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(unverified(&words(), "and now says that there is none")),
            Err(failure) => return Ok(Outcome::Unknown(failure.words().into())),
        };
        Ok(match (found.raw.paused, &failure) {
            (true, _) if found.raw.end_at < began.minus(TOLERANCE) => {
                unverified(&words(), "and shows what an earlier pause kept: what was done since may be lost")
            }
            (true, None) => Outcome::Done(()),
            (true, Some(_)) if same_run(&found.seen, target) => Outcome::AlreadyDone,
            (false, Some(failure)) if failure.is(StatusCode::CONFLICT) && same_run(&found.seen, target) => {
                Outcome::Unknown(failure.words().into())
            }
            (false, _) if same_run(&found.seen, target) => unverified(&words(), "and it runs"),
            _ => moved(&found.seen).outcome(),
        })
    }

    /// 201 is a resume, 200 says that it ran already.
    async fn resumed(
        &self,
        target: &Target,
        status: StatusCode,
        bounds: Bounds,
    ) -> Result<Outcome<Incarnation>, BackendError> {
        match self.find(target, bounds.deadline.since(self.api.now())).await {
            Ok(Ok(Found { raw, .. })) if !raw.paused && status == StatusCode::OK => Ok(Outcome::AlreadyDone),
            Ok(Ok(Found { raw, seen })) if !raw.paused => Ok(Outcome::Done(seen.incarnation)),
            Ok(Ok(_)) => Ok(Outcome::Unknown("E2B answered that it resumed, and it is paused".into())),
            Ok(Err(miss)) => Ok(miss.outcome()),
            Err(error) => Ok(Outcome::Unknown(error.message.into())),
        }
    }

    /// A kill was answered; one look more tells whether it is so.
    async fn killed(&self, target: &Target, bounds: Bounds) -> Outcome<Deleted> {
        match self.find(target, bounds.deadline.since(self.api.now())).await {
            Ok(Err(Miss::Gone)) => Outcome::Done(Deleted::default()),
            Ok(Ok(_)) => Outcome::Pending,
            Ok(Err(miss)) => miss.outcome(),
            Err(error) => Outcome::Unknown(error.message.into()),
        }
    }
}

/// It was refused before anything was begun: by the key, by a limit, or by a server that says that it left the
/// sandbox running (503).
fn is_refused_untouched(failure: &Failure) -> bool {
    match failure {
        Failure::Said { status, wait, .. } => wait.is_some() || matches!(status.as_u16(), 400 | 401 | 403 | 503),
        _ => false,
    }
}

/// No room for another running one: waiting does not help, so it is no matter of asking more slowly.
fn is_full(failure: &Failure) -> bool {
    failure.is(StatusCode::TOO_MANY_REQUESTS) && failure.words().contains("concurrent")
}

fn unverified(said: &str, but: &str) -> Outcome {
    Outcome::Unknown(format!("{said}, {but}: look at it before anything else is done to it").into())
}
