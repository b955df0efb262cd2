//! The trash: what is reclaimed is one rename away, for as long as the policy keeps it.
//!
//! ```text
//! <root>/<uuid>/<repository>  ── rename ──►  <root>/.furlough-trash/<entry>/content
//!                                                                 └─ note.json: from where, which runtime, when
//! ```
//!
//! The note is on disk before the rename, and git's worktree is locked before it too, so that nobody's `git worktree
//! prune` drops the HEAD and the index of what lies here. A process killed between any two steps leaves the thing whole, in one
//! of the two places; the next act in the same trash tidies a note without content.

mod moves;
mod note;
mod remove;
mod yard;

pub(crate) use moves::{Moved, Moving, empty, move_in, remove_condemned, undo};
pub(crate) use note::{GitNote, Note};
pub(crate) use yard::{Yard, entry_name, listed};

/// Begins the reason of every lock of ours.
const LOCK: &str = "in furlough's trash as ";

/// The reason that git's lock gets while a worktree lies in the trash.
pub(crate) fn lock_text(entry: &str) -> String {
    format!("{LOCK}{entry}; `furlough undo` brings it back")
}

/// Whether a lock is ours.
pub(crate) fn is_our_lock(reason: &str) -> bool {
    reason.starts_with(LOCK)
}

/// Why an act in the trash ended before its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A test stopped it, as a kill would: nothing is tidied.
    Killed(std::io::Error),
    /// It can't be done, whoever asks.
    Refused(String),
    /// Another process works in this trash.
    Occupied,
    /// The machine failed.
    Fault(backend::BackendError),
}
