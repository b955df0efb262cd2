//! A pass: the only place that orders effects.
//!
//! ```text
//! observe ─► lifecycle::plan ─► look closer ─► plan again ─► for each item:
//!   backend.list, inspect, probe                │   pause read ─► budget taken ─► claim (conditional)
//!   ledger.records, observe                     │   ─► look again ─► act ─► complete │ hand over │ abandon
//!                                               └─► kept: when to look next, into the due index
//! ```
//!
//! [`Pass::preview`] reads only. [`Pass::apply`] does what a plan file lists and nothing else. [`Pass::run`]
//! is one tick under the configured mode: what is due, and a whole sweep when that is due. [`Pass::wake`]
//! calls one runtime back. [`Pass::undo`] takes back what an act left in the trash or suspended.
//!
//! **Invariants.** No provider call that changes something is begun without a live claim, and none that
//! can't end before the claim does. Between the claim and the act the runtime is looked at again, judged by
//! the same pure planner, and left alone when it is no longer what the plan says. Pause and budget are read
//! before each claim. An answer that did not come is looked for before anything is asked again. A failed,
//! short or endless listing is partial, and absence counts when it was seen twice, apart in time, by id. A
//! claim that outlived its holder gives the right to look, never to act on the old evidence. What a pass
//! can't finish in its time is left, said so, and still due. One backend's trouble stops no other.
//!
//! **Must never know**: which provider it calls, how a record is stored, what makes a runtime idle.
//!
//! **Why judge again instead of comparing fields.** A plan is old when it is applied, and a look is old when
//! its claim is won. Comparing what changed needs a list of what matters, and such lists rot; asking the
//! planner again, on what is there now, can't forget a rule that the planner has.

mod apply;
mod attempt;
mod call;
mod context;
mod due;
mod examine;
mod listing;
mod notice;
pub mod notify;
mod outcome;
mod presence;
mod preview;
mod rate;
mod recover;
mod run;
mod scene;
mod settle;
mod sweep;
mod trash;
mod undo;
mod unit_run;
mod wake;
pub mod watch;

use std::{sync::Arc, time::Duration};

use backend::{Backend, Clock};
use ledger::{Ledger, LedgerError};
use lifecycle::{Policy, plan::PlanRefused};

pub use notify::{Notifier, Webhook};
pub use outcome::{Busy, Emptied, Outcome, Recovered, Recovery, Stuck, Upkeep};
pub use preview::Survey;
pub use rate::Gate;
pub use undo::{Undoable, Undone, Way};
pub use wake::Woken;
pub use watch::{Step, Unwatched, Watch};

/// A backend and the pace at which it may be called.
pub struct Unit {
    /// The backend with its roles.
    pub backend: Backend,
    /// Its rate.
    pub gate: Gate,
}

/// Everything that a pass needs. Build it once and run it as often as wanted.
pub struct Pass {
    /// Where records are.
    pub ledger: Ledger,
    /// The backends.
    pub units: Vec<Unit>,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The time.
    pub clock: Clock,
    /// Who acts, for people and for claims: at most [`ledger::MAX_OWNER_BYTES`].
    pub owner: String,
    /// How much, how long, how often.
    pub limits: Limits,
    /// Who is told of what happens. `None`: nobody, and a deletion that needs a notice never comes.
    pub notifier: Option<Arc<dyn Notifier>>,
    /// Who watches it work.
    pub watch: Arc<dyn Watch>,
}

/// The limits of a pass. Reaching one is reported, and the next pass goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Calls under way at once, in each unit. At least 1.
    pub concurrency: usize,
    /// How long a pass begins new things; what it began it ends.
    pub duration: Duration,
    /// How long a pass keeps a backend to itself without a sign of life; it renews that while it works. After a
    /// pass was killed, the next one waits so long.
    pub lease: Duration,
    /// The longest that a look may take.
    pub look_timeout: Duration,
    /// The longest that an act may take: a claim lasts so long, two looks, and the clocks' difference.
    pub act_timeout: Duration,
    /// Records that a tick reads, and runtimes that get a closer look, in each unit.
    pub max_items: usize,
    /// Pages of one listing.
    pub max_pages: usize,
    /// How often everything is listed.
    pub sweep_every: Duration,
    /// How far apart two sightings of an absence must be, beside the difference of two clocks.
    pub absent_apart: Duration,
    /// The wait after a failed attempt; it doubles with each.
    pub backoff: Duration,
    /// The longest wait after failed attempts.
    pub backoff_max: Duration,
    /// From so many failed attempts a runtime is reported as stuck.
    pub stuck_after: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 8,
            duration: Duration::from_mins(10),
            lease: Duration::from_mins(2),
            look_timeout: Duration::from_secs(30),
            act_timeout: Duration::from_mins(2),
            max_items: 10_000,
            max_pages: 10_000,
            sweep_every: Duration::from_hours(1),
            absent_apart: Duration::from_mins(5),
            backoff: Duration::from_mins(1),
            backoff_max: Duration::from_hours(6),
            stuck_after: 3,
        }
    }
}

/// A pass that could not be made at all. What concerns one backend or one runtime is in the report.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The plan may not be applied.
    #[error(transparent)]
    Refused(#[from] PlanRefused),
    /// The plan names a backend that is not configured.
    #[error("the plan names backend `{backend}`, which is not configured; make a new one with `furlough plan`")]
    NoBackend {
        /// Which.
        backend: lifecycle::BackendName,
    },
    /// The ledger could not be asked.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
