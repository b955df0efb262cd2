//! What somebody who watches a pass is told while it runs: progress bars, lines of a log.

use lifecycle::{BackendName, Item};

/// One step of a pass.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// So many runtimes were listed so far.
    Listed {
        /// Of which backend.
        backend: &'a BackendName,
        /// How many.
        runtimes: usize,
    },
    /// So many of the runtimes that need a closer look had one.
    Looked {
        /// Of which backend.
        backend: &'a BackendName,
        /// How many had it.
        done: usize,
        /// Of how many.
        of: usize,
    },
    /// An item was begun.
    Began {
        /// Which.
        item: &'a Item,
    },
    /// An item ended, one way or another: the report says which.
    Ended {
        /// Which.
        item: &'a Item,
        /// Whether it was done.
        done: bool,
    },
}

/// Is told each step, and can stop what is to come. It must not block: it is called between the calls of a pass.
pub trait Watch: Send + Sync {
    /// One step was made.
    fn step(&self, step: Step<'_>);

    /// Whether nothing new is to be begun any more: what was begun is ended, and the rest is left and said so.
    fn stopped(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn step(&self, _: Step<'_>) {}
}
