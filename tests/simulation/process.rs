//! A process: a program's life with a clock of its own, calls that can go wrong, and a death between any two.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use backend::Clock;
use lifecycle::{RuntimeId, Time};
use tokio::{sync::Notify, time::sleep};

use super::{chance::Chance, sim::Sim};

/// A process. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Process(Arc<Inner>);

struct Inner {
    /// Whose life: the name of its program and the number of the life.
    name: String,
    /// What it calls itself in the ledger: the same in each of its lives.
    owner: String,
    sim: Sim,
    /// Milliseconds that its clock is ahead of the true time.
    ahead: i64,
    chance: Chance,
    dead: AtomicBool,
    died: Notify,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive.
    Before,
    /// "Too many requests": it arrives, and nothing is done.
    Throttled,
    /// It is done, and its answer does not come back.
    After,
    /// No answer comes in time, and nobody knows: it arrives so much later, if ever.
    TimesOut { arrives: Option<Duration> },
}

impl Process {
    pub(crate) fn new(sim: &Sim, owner: &str, life: u64) -> Self {
        let name = format!("{owner}#{life}");
        let chance = Chance::named(sim.seed(), &name);
        // Any two clocks differ by less than the skew.
        let widest = u64::try_from(sim.scenario().policy.skew.as_millis()).unwrap_or_default();
        let ahead =
            i64::try_from(chance.below(widest)).unwrap_or_default() - i64::try_from(widest / 2).unwrap_or_default();
        Self(Arc::new(Inner {
            name,
            owner: owner.to_owned(),
            sim: sim.clone(),
            ahead,
            chance,
            dead: AtomicBool::new(false),
            died: Notify::new(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn owner(&self) -> &str {
        &self.0.owner
    }

    pub(crate) fn sim(&self) -> &Sim {
        &self.0.sim
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.0.chance
    }

    /// The time by its own clock.
    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.0.sim.now().millis() + self.0.ahead)
    }

    /// The true time at which its clock shows `shown`.
    pub(crate) fn true_time(&self, shown: Time) -> Time {
        Time::from_millis(shown.millis() - self.0.ahead)
    }

    pub(crate) fn clock(&self) -> Clock {
        let process = self.clone();
        Clock::new(move || process.now())
    }

    /// Runs `work` to its end, or to where the process dies; then nothing of it is left.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.died.notified() => None,
            done = work => Some(done),
        }
    }

    /// On the way to or from somebody: others may run, and this process may die.
    pub(crate) async fn way(&self, runtime: Option<&RuntimeId>, what: impl FnOnce() -> String) {
        let storm = self.0.sim.storm();
        sleep(self.travel(storm.slow)).await;
        if self.0.dead.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        self.may_die(runtime, storm.crash, what).await;
    }

    /// Dies here, so often in a thousand.
    pub(crate) async fn may_die(&self, runtime: Option<&RuntimeId>, often: u64, what: impl FnOnce() -> String) {
        // What sends a heartbeat is not followed through its deaths: a lost request or answer is the same to everybody.
        if self.0.owner.starts_with("pass") && self.0.chance.mille(often) {
            self.0.dead.store(true, Ordering::Relaxed);
            self.0.sim.count("a process dies between two calls");
            self.0.sim.note(&self.0.name, runtime, || format!("DIES {}", what()));
            self.0.died.notify_one();
            pending::<()>().await;
        }
    }

    fn travel(&self, slow: u64) -> Duration {
        let chance = &self.0.chance;
        match chance.below(1_000) {
            draw if draw < slow => chance.millis(1_000..=25_000),
            draw if draw < 300 => chance.millis(5..=60),
            _ => chance.millis(1..=4),
        }
    }

    /// Whether the call that is about to be made goes wrong, and how.
    pub(crate) fn fault(&self, often: u64, longest: Duration) -> Option<Fault> {
        let chance = &self.0.chance;
        if !chance.mille(often) {
            return None;
        }
        Some(match chance.below(5) {
            0 => Fault::Before,
            1 => Fault::Throttled,
            2 | 3 => Fault::After,
            _ => {
                let longest = u64::try_from(longest.as_millis()).unwrap_or(1).max(2);
                Fault::TimesOut { arrives: chance.mille(600).then(|| chance.millis(1..=longest - 1)) }
            }
        })
    }
}
