//! The backends of providers, on simulators that their own SDKs drive too (`.ci/sdk.py`).

mod cloudflare;
mod command;
mod daytona;
mod e2b;
mod lab;
mod modal;
mod openhands;
mod passes;

use std::{num::NonZeroU32, time::Duration};

use backend::Bounds;
use lifecycle::Time;

/// As fast as tests are.
const RATE: (NonZeroU32, Duration) = (NonZeroU32::new(10_000).unwrap(), Duration::from_secs(1));

/// Bounds of two minutes from `now`.
fn minutes(now: Time) -> Bounds {
    Bounds { deadline: now.plus(Duration::from_mins(2)) }
}
