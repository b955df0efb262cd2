//! The configuration, and the one room that reads files, the environment, the clock and randomness.
//!
//! ```text
//! --config │ FURLOUGH_CONFIG │ ./furlough.toml │ built-in ──► load ──► Settings { policy, backends, … }
//!                                                              │            or Faults, each with its line
//!                     TOML text ──► parse (pure) ──► tables ──► checks
//! environment, clock, ids ──► system
//! ```
//!
//! **Invariants.** An unknown key is a fault, never ignored. Every key has a safe side: zero and absent
//! mean never and none, or are refused where they could only be unsafe; the table in `check.rs` says which.
//! A fault has a line of the file. Secrets are read at their use, by [`system::secret`] or [`Secrets`], and can't
//! be printed.
//! No other crate reads the environment or a clock (clippy.toml forbids it).
//!
//! **Must never know**: what a backend does with its settings, or what a plan is.
//!
//! **Why a reader of our own** over `toml`'s tree instead of serde's derive: serde stops at the first fault
//! and knows no line for a missing or doubtful value. One declaration makes struct, reader and schema.

mod check;
mod detect;
mod fault;
mod file;
pub mod functions;
mod kept;
mod load;
mod log;
mod nearest;
mod origin;
mod read;
mod scalar;
mod secret;
mod secrets;
mod settings;
pub mod system;
mod text;

pub use check::{NotABucket, parse};
pub use fault::{Excerpt, Fault, Faults, Severity};
pub use kept::{Kept, KeptError, Reading};
pub use load::{MAX_BYTES, SettingsError, load};
pub use log::MAX_FAULTS;
pub use origin::{Address, AddressError, FileOrigin, Origin, OriginError, Text};
pub use secret::{Secret, SecretSource};
pub use secrets::{SecretError, Secrets};
pub use settings::{
    BackendSettings, Bucket, Cloudflare, Docker, Kind, Modal, Notify, OpenHandsApi, PassLimits, Provider, Rate,
    Repository, Scope, Settings, Source, TerminateRunning, Webhook, WorkspaceSettings, Worktree,
};

/// The configuration that a newcomer gets, without backends: those are looked for.
pub const BUILT_IN: &str = include_str!("default.toml");

/// The JSON Schema (2020-12) of the configuration.
pub fn schema() -> serde_json::Value {
    let mut schema = <file::File as read::Read>::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "furlough.toml".into();
    schema
}

/// The full name of every key, in the order of the schema: `mode`, `clock.coalesce`, `policy.idle.after`, ….
pub fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    <file::File as read::Read>::keys("", &mut keys);
    keys
}
