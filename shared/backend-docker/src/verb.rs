//! What all verbs share: the look just before the act, and how much time is left for it.

use std::time::Duration;

pub(crate) use backend::Miss;
use backend::{BackendError, Bounds, ErrorKind, Target};
use lifecycle::{Ownership, RuntimeId, State, Time};

use crate::{
    Docker,
    engine::{ASK, Failure},
    observe::{Status, is_full_id},
    wire::{Event, Exec, Inspected},
};

/// How long measuring a container's disk may take before it is left unmeasured: the engine walks its layer.
const MEASURE: Duration = Duration::from_secs(20);

/// How many commands of one container are asked for. One more counts as running.
const MAX_EXECS: usize = 16;

/// A container as it was found, of the scope and in a known state.
pub(crate) struct Found {
    pub(crate) raw: Inspected,
    pub(crate) status: Status,
}

impl Found {
    pub(crate) fn state(&self) -> State {
        self.status.state()
    }

    /// Whether this is the run that the target was looked at in.
    pub(crate) fn same_run(&self, target: &Target) -> bool {
        self.raw.incarnation() == target.incarnation
    }

    /// It is not what was aimed at.
    pub(crate) fn moved(&self) -> Miss {
        Miss::Moved { incarnation: self.raw.incarnation(), state: self.state() }
    }

    /// The run and the state of the target, or what is there instead.
    pub(crate) fn aimed(self, target: &Target) -> Result<Self, Miss> {
        if self.same_run(target) && self.state() == target.state { Ok(self) } else { Err(self.moved()) }
    }
}

/// Whether a look also measures the container's disk, which makes the engine walk it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Quick,
    Measured,
}

impl Docker {
    /// Looks at one container. `Ok(None)`: the engine says that there is none.
    pub(crate) async fn look(
        &self,
        id: &RuntimeId,
        look: Look,
        within: Duration,
    ) -> Result<Option<Inspected>, Failure> {
        let Some(container) = self.container(id) else {
            // No container can have this id. That is only worth saying when the engine can say anything.
            return self.engine.negotiate().await.map(|_| None);
        };
        let quick = format!("/containers/{container}/json");
        let measured = match look {
            Look::Quick => None,
            Look::Measured => Some(self.engine.get(&format!("{quick}?size=true"), within.min(MEASURE)).await),
        };
        let answer = match measured {
            // Measuring failed or took too long: what is there without its size is worth knowing.
            None | Some(Err(Failure::NoAnswer(_) | Failure::Said { .. })) => self.quick(&quick, within).await,
            Some(answer) => answer,
        };
        match answer {
            // The engine also takes names and the beginning of an id.
            Ok(Inspected { id, .. }) if id != container => Ok(None),
            Ok(inspected) => Ok(Some(inspected)),
            Err(failure) if failure.is_not_there() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// podman, asked while it removes a container, answers 500 once and 404 then: hence the second question.
    async fn quick(&self, path: &str, within: Duration) -> Result<Inspected, Failure> {
        match self.engine.get::<Inspected>(path, within.min(ASK)).await {
            Err(Failure::Said { status, .. }) if status.is_server_error() => {
                self.engine.get(path, within.min(ASK)).await.map(Inspected::unmeasured)
            }
            answer => answer.map(Inspected::unmeasured),
        }
    }

    /// Leaves only the commands that run, and finds out since when.
    pub(crate) async fn running_execs(&self, raw: &mut Inspected) -> Result<(), Failure> {
        self.keep_running_execs(raw).await?;
        if !raw.execs.is_empty() {
            let begun = self.events(raw, "exec_start").await.unwrap_or_default();
            raw.execs_begun = newest_of_all(&raw.execs, &begun);
        }
        Ok(())
    }

    /// Podman also shows those that have ended.
    async fn keep_running_execs(&self, raw: &mut Inspected) -> Result<(), Failure> {
        let mut asked = 0;
        while let Some(exec) = raw.execs.last().filter(|_| asked < MAX_EXECS) {
            asked += 1;
            match self.engine.get::<Exec>(&format!("/exec/{exec}/json"), ASK).await {
                Ok(Exec { running: true }) => return Ok(()),
                Ok(Exec { running: false }) => raw.execs.pop(),
                Err(failure) if failure.is_not_there() => raw.execs.pop(),
                Err(failure) => return Err(failure),
            };
        }
        Ok(())
    }

    /// The container's id, where this runtime can be one of this backend's.
    fn container(&self, id: &RuntimeId) -> Option<String> {
        let text = String::from_utf8(id.provider_id()).ok()?;
        (id.backend() == &self.options.name && is_full_id(&text)).then_some(text)
    }

    /// Looks for the target and refuses what is not ours: the last check before each act.
    pub(crate) async fn find(
        &self,
        target: &Target,
        look: Look,
        within: Duration,
    ) -> Result<Result<Found, Miss>, BackendError> {
        let Some(raw) = self.look(&target.id, look, within).await? else { return Ok(Err(Miss::Gone)) };
        let labels = &raw.config.labels;
        if self.options.scope.ownership(self.options.openhands, raw.bare_name(), labels) != Ownership::Ours {
            let why = format!("container `{}` is not in the scope of backend `{}`", raw.bare_name(), self.options.name);
            return Ok(Err(Miss::Refused(why.into())));
        }
        let Some(status) = Status::parse(&raw.state.status) else {
            let why = format!("container `{}` is in a state that this version does not know", raw.bare_name());
            return Ok(Err(Miss::Refused(why.into())));
        };
        Ok(Ok(Found { raw, status }))
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        self.options.clock.now()
    }

    /// What is left until the deadline, when that is at least `needed`.
    pub(crate) fn time_for(&self, what: &str, needed: Duration, bounds: Bounds) -> Result<Duration, BackendError> {
        let left = bounds.left(self.now())?;
        if left < needed {
            let (needed, left) = (needed.as_secs(), left.as_secs());
            return Err(BackendError::new(
                ErrorKind::Unreachable,
                format!("{what} can take {needed} s and {left} s are left before the deadline: not begun"),
            ));
        }
        Ok(left)
    }
}

/// When the last of these commands began; `None`: of one of them nobody knows any more.
fn newest_of_all(execs: &[String], begun: &[Event]) -> Option<Time> {
    let of = |exec: &String| begun.iter().filter(|event| event.exec() == Some(exec)).map(Event::at).max();
    let times: Option<Vec<_>> = execs.iter().map(of).collect();
    times?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(exec: &str, seconds: i64) -> Event {
        let body = serde_json::json!({"time": seconds, "Actor": {"Attributes": {"execID": exec}}});
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn commands_began_when_the_last_of_them_did_if_that_is_known_of_each() {
        let execs = ["a".to_owned(), "b".to_owned()];
        let (first, second) = (event("a", 100), event("b", 300));
        assert_eq!(newest_of_all(&execs, &[first.clone(), event("c", 900), second]), Some(Time::from_millis(300_000)));
        assert_eq!(newest_of_all(&execs, std::slice::from_ref(&first)), None);
        assert_eq!(newest_of_all(&execs[..1], &[first, event("a", 50)]), Some(Time::from_millis(100_000)));
    }
}
