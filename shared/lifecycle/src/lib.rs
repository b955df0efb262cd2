//! Furlough's words and its decisions, as pure values and functions.
//!
//! ```text
//! Observation (a backend saw) ─┐
//! Record (the ledger keeps)  ──┼─► Snapshot ─┐                                  ┌─► file, tables, Markdown
//! sweep, budgets, pause, disk ─┘             ├─► plan(&Snapshot, &Policy, now) ─► Plan ─► Report of a pass
//! configuration ──────────────────► Policy ──┤
//!                                            └─► Judge: one runtime ─► arming (when next), explain (why)
//! ```
//!
//! **Invariants.** Nothing here reads a clock, a file, the environment or a network, and nothing is
//! async: the time is an argument. [`plan()`] is total: every runtime of a snapshot gets exactly one
//! verdict, an act or a keep, each with its reason. Unknown is never idle. Blank, zero and absent are
//! the safe side. The target of an act is the runtime of its evidence.
//!
//! **Must never know**: how a provider is called, how a record is stored, where a setting came from.
//!
//! **Why pure.** Every step of a reclaimer destroys something. A decision that is a value can be
//! printed, tested, kept as a fixture and refused later, by people and by other processes.

pub mod activity;
pub mod arming;
pub mod duration;
pub mod explain;
pub mod id;
mod judge;
pub mod native;
pub mod observation;
pub mod plan;
pub mod policy;
pub mod record;
pub mod report;
pub mod snapshot;
pub mod state;
pub mod time;
pub mod trash;
pub mod verdict;

pub use activity::{Activity, Busy, Signal, SignalSet};
pub use arming::{Arming, arming};
pub use explain::{Explanation, explain};
pub use id::{BackendName, IdError, RuntimeId};
pub use judge::Judge;
pub use observation::{Cannot, FileSizes, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation, Ownership};
pub use plan::{Headline, Item, Kept, Plan, PlanError, PlanRefused, Saves, plan};
pub use policy::{Policy, PolicyHash, Rules};
pub use record::{Claim, Epoch, Incarnation, Record, Token};
pub use report::{Entry, Fate, Report, Standing, Table};
pub use snapshot::{Capabilities, Disk, ProbeAnswer, Snapshot, SnapshotBuilder, Subject, Sweep, UnitSnapshot};
pub use state::{Role, State, Survives, Tier};
pub use time::Time;
pub use verdict::{Action, Evidence, Reason, Verdict};
