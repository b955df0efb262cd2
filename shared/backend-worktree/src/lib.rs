//! Git worktrees of coding agents, as a backend.
//!
//! ```text
//! OpenHands' root, repositories ──► layout ──► look (file reads) ──► list
//! conversations' files ───────────► conversations ──┤
//!                                                   └──► git, tiers, measure ──► inspect
//! delete: look again ─► save (bundle + tar, read back) ─► look again ─► lock git's worktree ─► one rename into the trash
//! shed:   look again ─► one rename a folder               undo: one rename back, refused where something new stands
//! ```
//!
//! **Invariants.** What is reclaimed is one rename away: killed between any two steps, the thing is whole and in one of two
//! places, its origin or the trash. Links are moved, never followed; nothing that stands anywhere is replaced. What a
//! deletion would lose is saved and read back first, or the deletion is refused with that reason. A worktree that is locked, or in use by
//! any of its conversations, is kept. Nothing that a repository configures is run, and looking changes no file and no time that
//! counts as activity. A branch is never removed. What the scope does not name is reported, never touched. What is written
//! into one worktree's files concerns that one alone: it hides no other, makes nothing less kept, and nothing of it is read without
//! a limit. No date of a file counts as later than now. A note in a trash counts only beside what it describes.
//!
//! **Must never know**: policies, records, claims; how long the trash keeps.
//!
//! **Why no suspend.** A worktree runs nothing of its own; its files at rest are all there is. So it is `rests`: idle for
//! long enough, it is deleted into the trash, which is the stage that can be taken back.
//!
//! **Why ignored folders of unknown names are work.** Git says that a folder is ignored, not that a tool can make it again.
//! `node_modules` and `target` can; `data` may be all that there is of it. Only known names and marks are shed; the rest is
//! saved with the tree.

mod act;
mod commits;
mod conversations;
mod fault;
pub mod git;
mod inspect;
mod layout;
mod leftovers;
mod look;
mod measure;
mod observe;
pub mod options;
mod place;
mod roles;
mod save;
mod status;
mod tiers;
mod trash;
mod walk;
mod written;
mod yards;

use std::{panic, sync::Arc};

use backend::Backend;
pub use options::{Interrupt, Options, Repository, Root, Step};

/// The kind in the configuration.
pub const KIND: &str = "worktree";

/// The backend with all the roles that worktrees have.
pub fn backend(options: Options) -> Backend {
    let name = options.name.clone();
    let typed = Arc::new(roles::Worktrees::new(options));
    Backend::builder(name, KIND, typed).rests().deletes().sheds().recovers().build()
}

/// Does what waits on a disk where waiting is allowed.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // It is neither cancelled nor awaited twice, so what is left is a panic, which goes on in the caller.
        Err(error) => panic::resume_unwind(error.into_panic()),
    }
}
