//! Sandboxes of providers with an HTTP API as runtimes: one module a provider.
//!
//! ```text
//! cloudflare, daytona, e2b, openhands (the roles) ──► api (one request, one bounded answer, at a pace) ──► the provider
//!    ├── wire, observe: pure      headers: how long to wait, what time it is there
//!    ├── paging: cursors that end   row: field by field, told by its name alone
//!    ├── look: one by id, before an act and after it
//!    └── verb: what an answer comes to      backend::provider: aimed, ours, at a pace
//! ```
//!
//! **Invariants.** A listing that can't be read is an error, never an empty page; one row that can't is named, and the
//! listing is partial. Every verb looks again by id just before it acts, and acts only on what is ours, in the run and
//! the state that were looked at; it is asked once, and what an answer that did not come has done is `Unknown`. Only
//! questions are asked twice. A state, a word or a number that this version does not know is never guessed at. Times are
//! used only while the provider's clock and ours agree. A zero that means another thing to the provider can't be written:
//! the types have none. No call wakes a sandbox, renews its timer or counts as its use. A key is in no log, no error and
//! no `Debug`, and leaves this machine over TLS alone.
//!
//! **Must never know**: policy, records, claims, or why it is asked.
//!
//! **Why no client libraries.** The providers' own SDKs are for making sandboxes, in other languages; those for Rust
//! are none of theirs. Some ten calls of each API are needed, read with more distrust than a generated client has.

mod api;
pub mod cloudflare;
pub mod daytona;
pub mod e2b;
mod headers;
mod look;
pub mod openhands;
mod paging;
mod row;
mod verb;

pub use backend::provider::{Key, Scope};
