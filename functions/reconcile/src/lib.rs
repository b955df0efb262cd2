//! One pass per scheduled tick, as a Lambda function; and the backends of a configuration, which the command builds too.
//!
//! ```text
//! event ─► tick ─► settings, as they are now ─► units ─► Pass::run, within the invocation's time ─► summary
//!                                                                      ├─► report (JSON) ─► bucket, or folder
//!                                                                      └─► metrics ─► log
//! ```
//!
//! **Invariants.** A pass begins nothing that can't end, or be given back, before its invocation does. It ends
//! visibly: completed, unfinished (the next goes on), busy (another one has the backend), or failed, which fails the
//! invocation. An event can make a pass more careful than the configuration, never less. A bad new configuration keeps
//! the last good one and is counted for an alarm.
//!
//! **Must never know**: how a pass orders its effects, how a provider is called.

#[cfg(feature = "lambda")]
pub mod lambda;
mod limits;
mod metered;
mod reports;
mod summary;
mod tick;
mod units;

pub use limits::{TooShort, limits};
pub use metered::lines;
pub use reports::{Folder, Reports};
pub use summary::{Ended, Summary, UnitSummary};
pub use tick::{Event, EventError, Failed, Parts, tick};
pub use units::{UnitError, longest_wait, units};
