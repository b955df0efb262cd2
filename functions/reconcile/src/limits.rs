//! What fits into the time of one invocation.

use std::time::Duration;

use lifecycle::duration::Human;
use pass::Limits;
use settings::Settings;

use crate::units::longest_wait;

/// The longest that a look may take: a function is billed while it waits.
const LOOK: Duration = Duration::from_secs(10);

/// The longest that an act may take, beside what its runtime is given to stop.
const ACT: Duration = Duration::from_secs(45);

/// What is left for the report, the log, and giving the lease back.
const CLOSING: Duration = Duration::from_secs(10);

/// A pass that has less than this for its work is not begun.
const LEAST: Duration = Duration::from_secs(5);

/// The invocation ends too soon for one act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the invocation has {} left and one act with its looks may take {}; raise the function's timeout", Human(*left), Human(*needed))]
pub struct TooShort {
    /// What is left of it.
    pub left: Duration,
    /// What is needed.
    pub needed: Duration,
}

/// The limits of a pass in an invocation that has `left`: it begins new things for so long that what it began last
/// still ends.
pub fn limits(settings: &Settings, left: Duration) -> Result<Limits, TooShort> {
    let usual = Limits::default();
    let grace = settings.backends.iter().map(longest_wait).max().unwrap_or_default();
    let act_timeout = ACT.saturating_add(grace);
    // A claim lasts for an act, three looks and the clocks' difference.
    let claim = LOOK.saturating_mul(3).saturating_add(act_timeout).saturating_add(settings.policy.skew);
    let ending = claim.saturating_add(CLOSING);
    let needed = ending.saturating_add(LEAST);
    if left < needed {
        return Err(TooShort { left, needed });
    }
    Ok(Limits {
        concurrency: usize::try_from(settings.pass.concurrency.get()).unwrap_or(usize::MAX),
        duration: settings.pass.deadline.min(left.saturating_sub(ending)),
        look_timeout: LOOK,
        act_timeout,
        sweep_every: settings.pass.sweep_every,
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        settings::parse(text, "test").unwrap()
    }

    #[test]
    fn what_was_begun_last_ends_before_the_invocation() {
        let settings = settings("");
        let left = Duration::from_mins(5);
        let limits = limits(&settings, left).unwrap();
        let claim = limits.look_timeout * 3 + limits.act_timeout + settings.policy.skew;
        assert!(limits.duration + claim + CLOSING <= left);
        assert_eq!(limits.duration, Duration::from_secs(205), "the rest is used");
    }

    #[test]
    fn the_configured_deadline_is_the_most() {
        let settings = settings("[pass]\ndeadline = \"30s\"\n");
        assert_eq!(limits(&settings, Duration::from_mins(15)).unwrap().duration, Duration::from_secs(30));
    }

    #[test]
    fn an_invocation_that_is_too_short_is_refused_with_what_it_needs() {
        let error = limits(&settings(""), Duration::from_mins(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the invocation has 1m left and one act with its looks may take 1m 40s; raise the function's timeout"
        );
    }
}
