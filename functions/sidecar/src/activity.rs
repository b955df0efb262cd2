//! Activity from beside the server: what counts as work, and what follows from it.
//!
//! ```text
//! proxy ── requests that mean work, messages of websockets ─► Signs ─┐
//! agent server ── conversations, commands (Sightings) ───────────────┴► Tracker ─┬► heartbeat ─► its answer ─► Tracker
//!                                                                       (pure)    └► Keeper: push
//! ```
//!
//! A request means work by its method: what only asks (GET, HEAD, OPTIONS) does not, and neither does one that is
//! refused. Of a websocket only what its client says counts, so that one that listens does not. Our own questions go
//! to the server directly, and are no signs.
//!
//! **Invariants.** What was seen is told, as soon as the last answer's `next` lets it be. A heartbeat that is refused
//! because the runtime is about to stop is sent again, so that it is wanted; one whose registration is over is not, and
//! the state says so. When either is told, and when work has ended for a while, the workspace is pushed; of every push that
//! has all work the runtime's record is told, with how long ago its scan began.
//!
//! **Must never know**: what makes a runtime idle.

pub mod beat;
pub mod look;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lifecycle::Time;

use crate::{
    activity::{
        beat::{Answered, End, MAX_WAIT},
        look::{Sightings, look},
    },
    delivery::Delivery,
    keeper::Keeper,
    sandbox::{Hosts, Sandbox},
};

/// How long work that is under way keeps its runtime busy without another word.
pub const BUSY_FOR: Duration = Duration::from_mins(2);

/// What whoever hands requests through has noticed since the last look.
#[derive(Debug, Clone, Default)]
pub struct Signs(Arc<Noticed>);

#[derive(Debug, Default)]
struct Noticed {
    worked: AtomicBool,
    requests: Mutex<Requests>,
    ended: Mutex<Option<End>>,
}

/// Those that are not answered yet, by their numbers.
#[derive(Debug, Default)]
struct Requests {
    open: BTreeSet<u64>,
    next: u64,
    /// What the next one's was at the last look.
    looked: u64,
}

/// A request that means work, and is not answered yet.
#[derive(Debug)]
pub struct UnderWay(Signs, u64);

impl Signs {
    /// Something was done.
    pub fn sign(&self) {
        self.0.worked.store(true, Ordering::Relaxed);
    }

    /// Something is under way until it is dropped. From one look to the next it counts: who is refused is so at once.
    pub fn begin(&self) -> UnderWay {
        let mut requests = self.requests();
        let number = requests.next;
        requests.next += 1;
        requests.open.insert(number);
        drop(requests);
        UnderWay(self.clone(), number)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why no heartbeats are sent any more, if there is a reason.
    pub fn ended(&self) -> Option<End> {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, ended: Option<End>) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = ended;
    }

    fn take(&self) -> Seen {
        let worked = self.0.worked.swap(false, Ordering::Relaxed);
        let mut requests = self.requests();
        let (before, next) = (requests.looked, requests.next);
        requests.looked = next;
        Seen { worked, busy: requests.open.first().is_some_and(|oldest| *oldest < before) }
    }
}

impl UnderWay {
    /// It was done.
    pub fn sign(&self) {
        self.0.sign();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.requests().open.remove(&self.1);
    }
}

/// What a look has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Something was done since the last look.
    pub worked: bool,
    /// Something is under way.
    pub busy: bool,
}

/// What is due now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Todo {
    /// A heartbeat; with what it says of how long it will be busy.
    pub beat: Option<Option<Duration>>,
    /// A push.
    pub save: bool,
}

/// What is known of one delivery's activity.
#[derive(Debug, Clone)]
pub struct Tracker {
    save_after: Duration,
    /// When work was last seen that was not pushed since.
    worked: Option<Time>,
    /// Something was seen since the last heartbeat that was taken.
    unsent: bool,
    /// No heartbeat before then.
    next: Time,
    /// The last one was refused, and what there was then was pushed.
    refused: bool,
    ended: Option<End>,
}

impl Tracker {
    /// With nothing seen yet. A push is due when nothing was seen for `save_after`.
    pub const fn new(save_after: Duration) -> Self {
        Self { save_after, worked: None, unsent: false, next: Time::MIN, refused: false, ended: None }
    }

    /// Takes a look into account.
    pub fn seen(&mut self, seen: Seen, now: Time) -> Todo {
        let works = seen.worked || seen.busy;
        if works {
            self.worked = Some(now);
            self.unsent = true;
        }
        let save = !works && self.worked.is_some_and(|worked| now.since(worked) >= self.save_after);
        if save {
            self.worked = None;
        }
        // A clock that went back would wait for long.
        let due = now >= self.next || self.next.since(now) > MAX_WAIT;
        let beat = (self.unsent && due && self.ended.is_none()).then(|| seen.busy.then_some(BUSY_FOR));
        Todo { beat, save }
    }

    /// Takes the answer to a heartbeat into account. Whether what there is should be pushed at once.
    pub fn told(&mut self, told: Answered, now: Time) -> bool {
        let first = !self.refused;
        match told {
            Answered::Taken { wait } => {
                (self.unsent, self.refused, self.next) = (false, false, now.plus(wait));
                false
            }
            Answered::Later { wait } => {
                self.next = now.plus(wait);
                false
            }
            Answered::NotRunning { wait } => {
                (self.refused, self.next) = (true, now.plus(wait));
                first
            }
            Answered::Ended(end) => {
                (self.refused, self.ended) = (true, Some(end));
                first
            }
        }
    }
}

/// How often is looked, and when is pushed.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How often.
    pub look_every: Duration,
    /// How long after the last sign of work what there is is pushed.
    pub save_after: Duration,
}

/// What watching needs.
pub struct Watcher {
    /// Knows whose the sandbox is, and pushes.
    pub keeper: Keeper,
    /// Has the server that serves.
    pub sandbox: Arc<Sandbox>,
    /// What was noticed.
    pub signs: Signs,
    /// The way to the host.
    pub hosts: Arc<dyn Hosts>,
    /// How often.
    pub pace: Pace,
}

/// What is known of whoever is served.
struct Watched {
    delivery: Arc<Delivery>,
    tracker: Tracker,
    sightings: Sightings,
}

impl Watcher {
    /// Looks, tells, and has pushed, until the process ends.
    pub async fn run(self) {
        let mut watched: Option<Watched> = None;
        loop {
            tokio::time::sleep(self.pace.look_every).await;
            let Some(delivery) = self.keeper.status().serving else {
                watched = None;
                self.signs.take();
                self.signs.end(None);
                continue;
            };
            let mut now = watched.take().filter(|known| known.delivery.whose() == delivery.whose());
            let known = now.get_or_insert_with(|| self.fresh(&delivery));
            if known.delivery.activity != delivery.activity {
                // Another registration: what the last one was told says nothing of it.
                known.tracker = Tracker { worked: known.tracker.worked, unsent: true, ..self.fresh(&delivery).tracker };
                self.signs.end(None);
            }
            known.delivery = delivery;
            self.look(known).await;
            watched = now;
        }
    }

    fn fresh(&self, delivery: &Arc<Delivery>) -> Watched {
        let tracker = Tracker::new(self.pace.save_after);
        Watched { delivery: delivery.clone(), tracker, sightings: Sightings::default() }
    }

    async fn look(&self, watched: &mut Watched) {
        let Watched { delivery, tracker, sightings } = watched;
        let mut seen = self.signs.take();
        if let (Some(server), Some(key)) = (self.sandbox.serving(), delivery.session_key()) {
            let inside = look(&server.agent, key, sightings).await;
            seen = Seen { worked: seen.worked || inside.worked, busy: seen.busy || inside.busy };
        }
        let Todo { beat, mut save } = tracker.seen(seen, settings::system::now());
        if let (Some(busy_for), Some(activity)) = (beat, &delivery.activity) {
            let told = self.hosts.beat(activity, busy_for).await;
            if let Answered::Ended(end) = told {
                tracing::warn!(runtime = %activity.runtime, %end, "no heartbeat is sent any more");
                self.signs.end(Some(end));
            }
            save |= tracker.told(told, settings::system::now());
        }
        if save {
            self.keeper.keep().await;
        }
    }
}

#[cfg(test)]
mod tests;
