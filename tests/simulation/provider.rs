//! The provider as one process reaches it: every call a moment at which others may run, and one that can fail.

use std::{future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use backend::{
    Archivable, Backend, BackendError, Bounds, Deletable, Deleted, ErrorKind, FileReclaimable, Inspectable, Listable,
    Outcome, Page, PageToken, Probe, Probed, Shed, Sighting, Suspendable, Target,
};
use lifecycle::{Busy, Incarnation, RuntimeId, State, Survives, Tier, policy::WorkspaceRule};
use tokio::{sync::oneshot, time::sleep};

use super::{
    process::{Fault, Process},
    scenario::{Shows, backend as name},
    world::Verb,
};

/// How far a listing lags behind at most.
const LAG_MILLIS: u64 = 60_000;

/// The backend of `process`.
pub(crate) fn backend(process: &Process) -> Backend {
    let archives = process.sim().scenario().archives;
    let hand = Backend::builder(name(), "simulated", Arc::new(Hand(process.clone())));
    let hand = hand.probes().suspends().deletes().sheds();
    if archives { hand.archives().build() } else { hand.build() }
}

struct Hand(Process);

fn unreachable(what: &str) -> BackendError {
    BackendError::new(ErrorKind::Unreachable, format!("a planted fault: {what}"))
}

impl Hand {
    fn throttled(&self) -> BackendError {
        self.0.sim().count("the provider says too many requests");
        let retry_after = self.0.chance().seconds(10..=90);
        BackendError::new(ErrorKind::Throttled { retry_after }, "a planted fault: slow down")
    }

    /// A call that changes nothing: on the way, or lost.
    async fn looks(&self, what: &str, id: Option<&RuntimeId>) -> Result<(), BackendError> {
        self.0.way(id, || what.to_owned()).await;
        let fault = self.0.fault(self.0.sim().storm().provider, Duration::from_secs(1));
        if let Some(fault) = fault {
            self.0.sim().count("a look at the provider fails");
            self.0.sim().note(self.0.name(), id, || format!("{what} FAILS {fault:?}"));
        }
        match fault {
            None => Ok(()),
            Some(Fault::Throttled) => Err(self.throttled()),
            Some(Fault::Before | Fault::After) => Err(unreachable(what)),
            Some(Fault::TimesOut { .. }) => pending().await,
        }
    }

    /// A call that changes something. Its request, once sent, lives on when its sender gives up or dies; it arrives
    /// before the call's deadline or never.
    async fn verb(&self, verb: Verb, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        let (process, sim) = (&self.0, self.0.sim());
        process.way(Some(&target.id), || format!("before {verb:?}")).await;
        let left = bounds.left(process.now())?;
        sim.began(process, verb, target, bounds);
        let fault = process.fault(sim.storm().provider, left);
        if let Some(fault) = fault {
            sim.count("a verb of the provider fails");
            sim.note(process.name(), Some(&target.id), || format!("{verb:?} FAILS {fault:?}"));
        }
        let arrives = match fault {
            Some(Fault::Before) => return self.unasked(target, unreachable("it does not answer")),
            Some(Fault::Throttled) => return self.unasked(target, self.throttled()),
            Some(Fault::TimesOut { arrives: None }) => {
                sim.ended(process, &target.id);
                return pending().await;
            }
            Some(Fault::TimesOut { arrives: Some(late) }) => late,
            Some(Fault::After) | None => self.takes(left),
        };
        let (told, answer) = oneshot::channel();
        let (sender, aim) = (process.clone(), target.clone());
        tokio::spawn(async move {
            sleep(arrives).await;
            let _ = told.send(sender.sim().reached(&sender, verb, &aim));
        });
        if matches!(fault, Some(Fault::TimesOut { .. })) {
            return pending().await;
        }
        let outcome = answer.await.unwrap_or_else(|_| Outcome::Unknown("the run is over".into()));
        process.way(Some(&target.id), || format!("after {verb:?}")).await;
        // The worst moment to die: it is done, and nobody has written it down.
        process.may_die(Some(&target.id), sim.storm().crash * 8, || format!("after {verb:?}")).await;
        if fault == Some(Fault::After) {
            return Ok(Outcome::Unknown("a planted fault: the answer was lost".into()));
        }
        Ok(outcome)
    }

    fn unasked<T>(&self, target: &Target, error: BackendError) -> Result<Outcome<T>, BackendError> {
        self.0.sim().ended(&self.0, &target.id);
        Err(error)
    }

    /// How long a request is on its way: mostly not long.
    fn takes(&self, left: Duration) -> Duration {
        let chance = self.0.chance();
        let takes = if chance.mille(60) { chance.seconds(5..=110) } else { chance.millis(1..=400) };
        takes.min(left.saturating_sub(Duration::from_millis(1)))
    }
}

fn without<T>(outcome: Outcome<Incarnation>, with: impl FnOnce() -> T) -> Outcome<T> {
    match outcome {
        Outcome::Done(_) => Outcome::Done(with()),
        Outcome::AlreadyDone => Outcome::AlreadyDone,
        Outcome::Gone => Outcome::Gone,
        Outcome::Moved { incarnation, state } => Outcome::Moved { incarnation, state },
        Outcome::Refused(why) => Outcome::Refused(why),
        Outcome::Pending => Outcome::Pending,
        Outcome::Unknown(why) => Outcome::Unknown(why),
    }
}

#[async_trait]
impl Listable for Hand {
    /// Behind the truth by up to a minute, with rows missing and rows twice, and now and then cut short.
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        self.looks("list", None).await?;
        let (sim, chance) = (self.0.sim(), self.0.chance());
        let rough = sim.storm().rows;
        let lag = if chance.mille(rough * 3) { chance.millis(0..=LAG_MILLIS) } else { Duration::ZERO };
        let from: usize = page.map_or(0, |token| token.0.parse().unwrap_or_default());
        let size = sim.scenario().page;
        let rows = sim.listed(lag);
        let more =
            rows.len() > from + size && !sim.chances("a listing ends early and says it is whole", chance, rough / 4);
        let mut seen = Vec::new();
        for row in rows.into_iter().skip(from).take(size) {
            if sim.chances("a row is missing from a listing", chance, rough) {
                continue;
            }
            if sim.chances("a row comes twice in a listing", chance, rough) {
                seen.push(row.clone());
            }
            seen.push(row);
        }
        let partial = sim.chances("a listing says that it is partial", chance, rough / 4);
        self.0.way(None, || "after list".to_owned()).await;
        Ok(Page {
            seen,
            unreadable: partial.then(|| "a row can't be read".into()).into_iter().collect(),
            next: more.then(|| PageToken((from + size).to_string().into())),
        })
    }
}

#[async_trait]
impl Inspectable for Hand {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        self.looks("inspect", Some(id)).await?;
        let seen = self.0.sim().inspected(&self.0, id);
        self.0.way(Some(id), || "after inspect".to_owned()).await;
        Ok(seen.map_or(Sighting::NotThere, |seen| Sighting::Seen(Box::new(seen))))
    }
}

#[async_trait]
impl Probed for Hand {
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        self.looks("probe", Some(&target.id)).await?;
        bounds.left(self.0.now())?;
        let sim = self.0.sim();
        let now = sim.now();
        let answer = sim.with(|state| {
            let Some(there) = state.world.runtimes.get(&target.id) else { return Ok(Outcome::Gone) };
            if there.incarnation() != target.incarnation || there.state != State::Running {
                return Ok(Outcome::Moved { incarnation: there.incarnation(), state: there.state });
            }
            if there.kind.shows != Shows::Probe {
                return Ok(Outcome::Refused("there is no agent server inside".into()));
            }
            if there.silent_until.is_some_and(|until| now < until) {
                return Err(unreachable("the agent server inside does not answer"));
            }
            let busy = there.busy_until.filter(|until| now < *until).map_or(Busy::No, Busy::Until);
            Ok(Outcome::Done(Probe { last_active: Some(there.active), busy }))
        });
        sim.probed(&self.0, &target.id, answer.is_err());
        self.0.way(Some(&target.id), || "after probe".to_owned()).await;
        answer
    }
}

#[async_trait]
impl Suspendable for Hand {
    fn survives(&self) -> Survives {
        Survives::Disk
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        Ok(without(self.verb(Verb::Suspend, target, bounds).await?, || ()))
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        self.verb(Verb::Resume, target, bounds).await
    }
}

#[async_trait]
impl Archivable for Hand {
    fn archive_survives(&self) -> Survives {
        Survives::Disk
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        Ok(without(self.verb(Verb::Archive, target, bounds).await?, || ()))
    }
}

#[async_trait]
impl Deletable for Hand {
    async fn delete(
        &self,
        target: &Target,
        _: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        Ok(without(self.verb(Verb::Delete, target, bounds).await?, Deleted::default))
    }
}

#[async_trait]
impl FileReclaimable for Hand {
    async fn shed(&self, target: &Target, _: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        Ok(without(self.verb(Verb::Shed, target, bounds).await?, Shed::default))
    }
}
