//! How long a container may idle before it sleeps, and its files are lost: written so that it does not sleep before the
//! policy would delete it, and never read back.

use std::{num::NonZeroU64, time::Duration};

use async_trait::async_trait;
use backend::{BackendError, Bounds, NativeLifecycle, NativeWanted, Outcome, Target};
use lifecycle::{Incarnation, NativeObserved, State};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Cloudflare, observe::SLEEPS};
use crate::{
    look::Looks,
    verb::{aimed, failed},
};

/// What a look and a write take at least.
const WRITE: Duration = Duration::from_secs(10);
/// Of so many sandboxes it is remembered what was written; of more, it is written again.
const REMEMBERED: usize = 100_000;

/// What was written of one run.
pub(super) type Written = (Incarnation, NonZeroU64);

#[async_trait]
impl NativeLifecycle for Cloudflare {
    /// None of the timers that a policy has: Cloudflare's ends a container and its files.
    fn attainable(&self, _wanted: NativeWanted) -> NativeWanted {
        NativeWanted::default()
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a look", Duration::ZERO, bounds)?;
        Ok(match self.find_run(target, left).await? {
            Ok(_) => Outcome::Done(SLEEPS),
            Err(miss) => miss.outcome(),
        })
    }

    /// `AlreadyDone`: this process wrote the same to this run. A write of what stands there changes nothing at
    /// Cloudflare's either; one of another value begins the time anew.
    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a write of `sleepAfter`", WRITE, bounds)?;
        let id = target.id.encoded();
        let wish = sleep_after(wanted).map(|seconds| (target.incarnation.clone(), seconds));
        if wish.is_some() && self.remembered().get(id) == wish.as_ref() {
            return Ok(Outcome::AlreadyDone);
        }
        let found = match self.find(target, left / 2).await? {
            Ok(found) => found,
            Err(miss) => return Ok(miss.outcome()),
        };
        if let Err(miss) = aimed(&found.seen, target, &[State::Running]) {
            return Ok(miss.outcome());
        }
        let Some(wish) = wish else { return Ok(Outcome::Refused(ENDLESS.into())) };
        let call = self.worker.call(Method::PUT, &["v1", "instances", &found.raw.id, "sleep-after"]);
        let left = self.api.time_for("a write of `sleepAfter`", Duration::ZERO, bounds)?;
        match self.worker.act(call.body(json!({ "seconds": wish.1 })), left).await {
            Ok(_) => {
                let mut remembered = self.remembered();
                if remembered.len() >= REMEMBERED {
                    remembered.clear();
                }
                remembered.insert(id.to_owned(), wish);
                Ok(Outcome::Done(SLEEPS))
            }
            // Its container ended meanwhile, and the listing is late.
            Err(failure) if failure.is(StatusCode::CONFLICT) => Ok(Outcome::Pending),
            Err(failure) => failed(failure),
        }
    }
}

impl Cloudflare {
    fn remembered(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<String, Written>> {
        self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What is said where a policy has no end for a sandbox.
const ENDLESS: &str = "Cloudflare's sleep loses a sandbox's files, and the policy keeps them for ever, or it is held: \
                       its `sleepAfter` stays as its application set it; only `keepAlive` there keeps it";

/// As long as the policy keeps an idle one: until it is suspended, and from then until it is deleted. Whole seconds,
/// rounded up, never none, which would be at once.
fn sleep_after(wanted: NativeWanted) -> Option<NonZeroU64> {
    let kept = wanted.idle_suspend?.saturating_add(wanted.delete.or(wanted.archive)?);
    NonZeroU64::new(kept.as_secs().saturating_add(u64::from(kept.subsec_nanos() > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_may_idle_as_long_as_the_policy_keeps_it_and_never_for_no_time() {
        const HOUR: Duration = Duration::from_hours(1);
        let of = |idle_suspend, archive, delete| sleep_after(NativeWanted { idle_suspend, archive, delete });
        let seconds = |seconds| NonZeroU64::new(seconds);
        assert_eq!(of(Some(HOUR), Some(2 * HOUR), None), seconds(3 * 3_600));
        assert_eq!(of(Some(HOUR), Some(2 * HOUR), Some(4 * HOUR)), seconds(5 * 3_600));
        assert_eq!(of(Some(Duration::from_millis(1)), Some(Duration::ZERO), None), seconds(1));
        for (idle, keep) in [(None, Some(HOUR)), (Some(HOUR), None), (Some(Duration::ZERO), Some(Duration::ZERO))] {
            assert_eq!(of(idle, keep, None), None, "{idle:?}, {keep:?}");
        }
    }
}
