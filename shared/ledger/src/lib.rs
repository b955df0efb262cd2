//! What outlives a pass: records, claims, fences, the due index, budgets, leases and the audit.
//!
//! ```text
//! pass, functions ──► Ledger ──► conditions (one table) ──► aws-sdk-dynamodb ──► AWS, or `embedded`
//!                        │
//!                        ├──► item ──► lifecycle::Record
//!                        └──► Workspaces ──► workspace::commit::Commit
//! ```
//!
//! **Invariants.** A claim commits only if no activity newer than its evidence has been acknowledged:
//! heartbeat and claim are conditional writes on one item, so one of them loses visibly. The token grows at
//! every claim and registration and is never reset; what a stale holder writes later fails on it. Activity
//! moves only forward. A record that is not gone is always in the due index, under a claim too, so that a
//! dead holder's claim is found without the healer. An attribute that can't be read makes its record an
//! error, never an idle or a free one; a hold that can't be read holds; a budget that can't be read is
//! spent. A record of a newer format is not touched. Every loop has a limit.
//!
//! **Must never know**: how a provider is called, what policy says, what time it is (`now` is an argument).
//!
//! **Why conditions on one item.** Reclaimers that read, decide and then write kill what came back in
//! between. Here the decision's evidence is a condition of the write itself, evaluated by the store, and what
//! stood there is returned with the refusal: a lost race costs no second read.
//!
//! What each operation demands, writes and may cost is one table of rows, in `conditions`; an item's form is in `item`. The
//! leases and heads of workspaces are records of their own, which [`Workspaces`] keeps for the engine.

mod attribute;
mod audit;
mod budget;
mod conditions;
mod error;
mod expression;
mod item;
mod outcome;
mod read;
mod request;
mod runtime;
mod store;
mod tables;
mod unit;
mod workspace;

use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use lifecycle::{RuntimeId, Time};

pub use audit::{AuditLine, UNDO};
pub use error::LedgerError;
pub use lifecycle::Arming;
pub use outcome::{
    Claimed, Completed, Cursor, Due, Healed, Heartbeat, HoldSet, Leased, Lost, Many, Noted, Rearmed, RecordPage,
    Registered, Saved, Taken,
};
pub use request::{ClaimRequest, ClaimRule, Completion, Detail, Ended, Failure, HoldRequest, ProbeSeen};
pub use runtime::Save;
pub use unit::{Pause, Unit};
pub use workspace::{WorkspacePage, WorkspaceRecord, Workspaces};

/// The longest incarnation that a record holds, in bytes. Docker's (an id of 64 hex digits and a time) has 95.
pub const MAX_INCARNATION_BYTES: usize = 100;

/// The longest owner of a claim, in bytes.
pub const MAX_OWNER_BYTES: usize = 40;

/// A record that no rule makes due is looked at again after this long.
pub const RECHECK: Duration = Duration::from_hours(24);

/// How long the record of a runtime that is no more is kept.
pub const TOMBSTONE_KEEP: Duration = Duration::from_hours(30 * 24);

/// How long a line of the audit is kept.
pub const AUDIT_KEEP: Duration = Duration::from_hours(180 * 24);

/// How often a write is tried again when others wrote in between.
pub(crate) const ROUNDS: u32 = 8;

/// The two tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Records, units, budgets.
    pub main: String,
    /// The audit.
    pub actions: String,
}

impl Default for Tables {
    fn default() -> Self {
        Self { main: "furlough".to_owned(), actions: "furlough-actions".to_owned() }
    }
}

/// How a ledger is used. All processes on one pair of tables use the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which tables.
    pub tables: Tables,
    /// Over how many partitions a backend's due index is spread, at least 1. It may grow, never shrink.
    pub shards: u32,
    /// How late a heartbeat may be; also the width of the jitter.
    pub coalesce: Duration,
    /// The most that any two clocks differ.
    pub skew: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { tables: Tables::default(), shards: 4, coalesce: Duration::from_secs(30), skew: Duration::from_secs(10) }
    }
}

/// The ledger. Clones share the client.
#[derive(Debug, Clone)]
pub struct Ledger {
    client: Client,
    options: Arc<Options>,
}

impl Ledger {
    /// On these tables, through this client.
    pub fn new(client: Client, options: Options) -> Self {
        let options = Options { shards: options.shards.max(1), ..options };
        Self { client, options: Arc::new(options) }
    }

    /// The same tables through the same client, with other times: those of a newer configuration.
    #[must_use]
    pub fn timed(&self, coalesce: Duration, skew: Duration) -> Self {
        Self { client: self.client.clone(), options: Arc::new(Options { coalesce, skew, ..(*self.options).clone() }) }
    }

    /// How it is used.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// When a record that ought to come due at `due_at` does: later by the runtime's own jitter, which is
    /// less than `coalesce` and always the same, so that a fleet armed at once doesn't come due at once.
    pub fn jittered(&self, id: &RuntimeId, due_at: Time) -> Time {
        due_at.plus(Duration::from_millis(self.jitter(id)))
    }

    fn jitter(&self, id: &RuntimeId) -> u64 {
        let width = u64::try_from(self.options.coalesce.as_millis()).unwrap_or(u64::MAX);
        item::digest(id).checked_rem(width).unwrap_or(0)
    }

    /// The partition of the due index that a runtime is in.
    fn shard(&self, id: &RuntimeId) -> String {
        let shard = item::digest(id) % u64::from(self.options.shards);
        item::shard_name(id.backend(), u32::try_from(shard).unwrap_or(0))
    }

    /// A claim that ended before this is free, whoever's clock it was.
    fn expired(&self, now: Time) -> Time {
        now.minus(self.options.skew)
    }
}
