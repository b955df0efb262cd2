//! What a backend is to Furlough: the roles that it may have, and what each verb can answer.
//!
//! ```text
//! pass ──► Backend { list, inspect, Option<role>… } ──► a backend crate ──► engine, git, provider
//!              ▲                                            ▲
//!              └── capabilities() ──► lifecycle::plan       ├── openhands ──► the agent server inside
//!                                                           └── contract (feature `testing`)
//! ```
//!
//! For tests (feature `testing`): `contract`, the sentences that any backend keeps; `fake`, a backend in memory
//! that behaves; `faulty`, a decorator that fails before the effect or after it.
//!
//! **Invariants.** A backend is built from typed values, so that a role which it doesn't implement
//! can't be given to it (see [`Backend::builder`]); what it lacks can't be called. A verb's answer is an
//! [`Outcome`]; an error means that it could not be asked. A failed listing is an error, never an
//! empty page. No look refreshes the runtime's own activity, ours or the provider's; the only verbs that do run
//! something inside on purpose ([`Executable`], [`openhands::Prober::interrupt_running`]).
//!
//! **Must never know**: policy, records, claims, or why it is asked.

pub mod clock;
#[cfg(feature = "testing")]
pub mod contract;
#[cfg(feature = "testing")]
pub mod fake;
#[cfg(feature = "testing")]
pub mod faulty;
pub mod openhands;
pub mod outcome;
pub mod provider;
pub mod role;
pub mod typed;

pub use clock::Clock;
pub use outcome::{BackendError, ErrorKind, Miss, Outcome};
pub use role::{
    Archivable, Bounds, Command, Deletable, Deleted, Executable, FileReclaimable, Inspectable, Listable,
    NativeLifecycle, NativeWanted, Output, Page, PageToken, Probe, Probed, Recoverable, Shed, Sighting, Suspendable,
    Target, Trashed,
};
pub use typed::{Backend, Builder};
