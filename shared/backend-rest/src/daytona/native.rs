//! Daytona's own timers: stop (pause, for a VM), archive, delete.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use backend::{BackendError, Bounds, NativeLifecycle, NativeWanted, Outcome, Target};
use lifecycle::NativeObserved;
use reqwest::Method;

use super::{
    Daytona,
    look::Found,
    observe::span,
    wire::{Deletion, LONGEST_ARCHIVE, Sandbox, Status, Timers},
};
use crate::{
    look::Looks,
    verb::{failed, moved, same_run, unread},
};

/// What a look and a write of each timer take at least.
const WRITE: Duration = Duration::from_secs(10);

/// A deletion that would come sooner than this after its timer was written is not written: whoever shortens it by
/// mistake has no time to see it.
const WARNING: Duration = Duration::from_hours(1);

/// One timer, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Stop(Option<NonZeroU32>),
    Pause(Option<NonZeroU32>),
    Archive(NonZeroU32),
    Delete(Option<NonZeroU32>),
}

impl Write {
    /// The last two parts of its path. What Daytona means by a zero is said here alone.
    fn path(self) -> [String; 2] {
        let minutes = |timer: Option<NonZeroU32>, never: &str| timer.map_or(never.to_owned(), |it| it.to_string());
        match self {
            Self::Stop(timer) => ["autostop".to_owned(), minutes(timer, "0")],
            Self::Pause(timer) => ["autopause".to_owned(), minutes(timer, "0")],
            Self::Archive(timer) => ["autoarchive".to_owned(), timer.to_string()],
            Self::Delete(timer) => ["autodelete".to_owned(), minutes(timer, "-1")],
        }
    }
}

#[async_trait]
impl NativeLifecycle for Daytona {
    /// Whole minutes, rounded up, at least one. An archive can't be put off for longer than 30 days, nor for
    /// ever; it loses nothing.
    fn attainable(&self, wanted: NativeWanted) -> NativeWanted {
        let timers = timers(wanted);
        let delete = match timers.delete {
            Deletion::After(minutes) => Some(span(minutes)),
            Deletion::Never | Deletion::AtStop => None,
        };
        NativeWanted { idle_suspend: timers.idle.map(span), archive: Some(span(timers.archive)), delete }
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a look", Duration::ZERO, bounds)?;
        Ok(match self.find_run(target, left).await? {
            Ok(found) => Outcome::Done(found.raw.native()),
            Err(miss) => miss.outcome(),
        })
    }

    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        let left = self.api.time_for("a write of timers", WRITE, bounds)?;
        let mut found = match self.find(target, left).await? {
            Ok(found) if same_run(&found.seen, target) && found.seen.state == target.state => found,
            Ok(found) => return Ok(moved(&found.seen).outcome()),
            Err(miss) => return Ok(miss.outcome()),
        };
        let wanted = timers(wanted);
        if let Some(why) = self.unwise(&found, wanted) {
            return Ok(Outcome::Refused(why.into()));
        }
        let writes = writes(&found.raw, wanted);
        if writes.is_empty() {
            return Ok(Outcome::AlreadyDone);
        }
        for write in writes {
            let left = self.api.time_for("a write of timers", Duration::ZERO, bounds)?;
            let [timer, minutes] = write.path();
            let call = self.api.call(Method::POST, &["sandbox", &found.raw.id, &timer, &minutes]);
            found = match self.api.act(call, left).await {
                Ok(answer) => match self.read(&answer) {
                    Ok(found) => found,
                    Err(failure) => return Ok(unread(failure.words())),
                },
                Err(failure) => return failed(failure),
            };
        }
        Ok(Outcome::Done(found.raw.native()))
    }
}

impl Daytona {
    /// Why these timers are not written.
    fn unwise(&self, found: &Found, wanted: Timers) -> Option<String> {
        let Sandbox { gpu, status, last_activity, timers, .. } = &found.raw;
        if *gpu && wanted.delete != timers.delete {
            return Some("a GPU sandbox is ephemeral: Daytona lets nobody change when it is deleted".to_owned());
        }
        let Deletion::After(minutes) = wanted.delete else { return None };
        if *status != Status::Stopped || wanted.delete == timers.delete {
            return None;
        }
        let at = last_activity.map(|stopped| stopped.plus(span(minutes)));
        let soon = at.is_none_or(|at| at < self.api.now().plus(WARNING));
        soon.then(|| format!("it has been stopped for so long that a timer of {minutes} min would delete it at once"))
    }
}

/// What Daytona can hold of what is wanted.
fn timers(wanted: NativeWanted) -> Timers {
    Timers {
        idle: wanted.idle_suspend.and_then(minutes),
        archive: wanted.archive.and_then(minutes).map_or(LONGEST_ARCHIVE, |after| after.min(LONGEST_ARCHIVE)),
        delete: wanted.delete.and_then(minutes).map_or(Deletion::Never, Deletion::After),
    }
}

/// Whole minutes, rounded up, at least one. `None`: more than Daytona's numbers hold, which is as good as never.
fn minutes(duration: Duration) -> Option<NonZeroU32> {
    let minutes = i32::try_from(duration.as_millis().div_ceil(60_000).max(1)).ok()?;
    NonZeroU32::new(minutes.unsigned_abs())
}

/// What has to be written, the deletion last: the timers before it are in place when it begins to count.
fn writes(sandbox: &Sandbox, wanted: Timers) -> Vec<Write> {
    let idle = if sandbox.vm { Write::Pause(wanted.idle) } else { Write::Stop(wanted.idle) };
    let delete = match wanted.delete {
        Deletion::After(minutes) => Write::Delete(Some(minutes)),
        Deletion::Never | Deletion::AtStop => Write::Delete(None),
    };
    let all = [
        (sandbox.timers.idle != wanted.idle, idle),
        (sandbox.timers.archive != wanted.archive, Write::Archive(wanted.archive)),
        (sandbox.timers.delete != wanted.delete, delete),
    ];
    all.into_iter().filter_map(|(differs, write)| differs.then_some(write)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_timer_is_sooner_than_wanted_and_none_is_written_as_another_thing(
            seconds in proptest::collection::vec(proptest::option::of(prop_oneof![0..10_000_u64, 0..u64::MAX / 1_000]), 3),
        ) {
            let wanted = seconds.iter().map(|seconds| seconds.map(Duration::from_secs)).collect::<Vec<_>>();
            let timers = timers(NativeWanted { idle_suspend: wanted[0], archive: wanted[1], delete: wanted[2] });
            let delete = match timers.delete {
                Deletion::After(minutes) => Some(minutes),
                Deletion::Never => None,
                Deletion::AtStop => return Err(TestCaseError::fail("nobody wants that")),
            };
            for (wanted, timer) in [(wanted[0], timers.idle), (wanted[2], delete)] {
                prop_assert!(timer.is_none_or(|timer| wanted.is_some_and(|wanted| span(timer) >= wanted)));
                let fits = wanted.is_some_and(|wanted| wanted.as_secs() <= 60 * i32::MAX as u64);
                prop_assert_eq!(timer.is_some(), fits);
            }
            prop_assert!(timers.archive <= LONGEST_ARCHIVE);
            prop_assert_ne!(&Write::Delete(delete).path()[1], "0");
        }
    }
}
