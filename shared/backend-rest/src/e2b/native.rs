//! The end of a run: put off while it is used, and never brought forward.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Bounds, NativeLifecycle, NativeWanted, Outcome, Target};
use lifecycle::{NativeObserved, State};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{E2b, look::Found};
use crate::{
    look::Looks,
    verb::{aimed, failed, moved, same_run},
};

/// What a look and a write take at least.
const WRITE: Duration = Duration::from_secs(10);

#[async_trait]
impl NativeLifecycle for E2b {
    /// None of the timers that a policy has: E2B ends a run at a time, whatever goes on in it, keeps what is
    /// paused for ever, and has no archive.
    fn attainable(&self, _wanted: NativeWanted) -> NativeWanted {
        NativeWanted::default()
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a look", Duration::ZERO, bounds)?;
        Ok(match self.find_run(target, left).await? {
            Ok(found) => Outcome::Done(found.raw.native()),
            Err(miss) => miss.outcome(),
        })
    }

    /// Puts the end of the run off to `idle_suspend` from now, and a margin: E2B's clock knows no activity, so it is
    /// armed anew at each look, and only acts when nobody looks any more. `AlreadyDone`: it ends later anyhow.
    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a write of the timeout", WRITE, bounds)?;
        let found = match self.find(target, left).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if let Err(miss) = aimed(&found.seen, target, &[State::Running]) {
            return Ok(miss.outcome());
        }
        let Some(wanted) = wanted.idle_suspend.filter(|wanted| self.ends_before(&found, *wanted)) else {
            return Ok(Outcome::AlreadyDone);
        };
        let seconds = wanted.as_secs() + u64::from(wanted.subsec_nanos() > 0);
        let call = self.api.call(Method::POST, &["sandboxes", &found.raw.id, "timeout"]);
        let left = self.api.time_for("a write of the timeout", Duration::ZERO, bounds)?;
        match self.api.act(call.body(json!({"timeout": seconds})), left).await {
            Ok(_) => self.armed(target, wanted, bounds).await,
            Err(failure) if failure.is(StatusCode::NOT_FOUND) => Ok(Outcome::Gone),
            Err(failure) => failed(failure),
        }
    }
}

impl E2b {
    /// Whether its run ends sooner than `wanted` from now.
    fn ends_before(&self, found: &Found, wanted: Duration) -> bool {
        found.raw.end_at < self.api.now().plus(wanted)
    }

    /// E2B shortens what is more than its plan allows, and says nothing.
    async fn armed(
        &self,
        target: &Target,
        wanted: Duration,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        const ROUNDED: Duration = Duration::from_secs(5);
        Ok(match self.find(target, bounds.deadline.since(self.api.now())).await {
            Ok(Ok(found)) if !same_run(&found.seen, target) => moved(&found.seen).outcome(),
            Ok(Ok(found)) if self.ends_before(&found, wanted.saturating_sub(ROUNDED)) => {
                let why = format!("E2B ends this run at {}, the latest that its plan allows", found.raw.end_at);
                Outcome::Refused(why.into())
            }
            Ok(Ok(found)) => Outcome::Done(found.raw.native()),
            Ok(Err(miss)) => miss.outcome(),
            Err(error) => Outcome::Unknown(error.message.into()),
        })
    }
}
