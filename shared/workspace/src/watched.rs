//! What somebody sees of a push or a pull while it goes on, and how they end it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::watch;

/// A push or a pull that somebody watches. Clones are of the same one.
#[derive(Debug, Clone, Default)]
pub struct Watched(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    total: AtomicU64,
    done: AtomicU64,
    moved: AtomicU64,
    stop: watch::Sender<bool>,
}

/// How far it is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What there is to do: of a push what is to be read, of a pull what is to come. 0: that is not known yet.
    pub total: u64,
    /// What of it is done.
    pub done: u64,
    /// What went over the wire, as far as it was taken.
    pub moved: u64,
}

impl Watched {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        let Inner { total, done, moved, .. } = &*self.0;
        let [total, done, moved] = [total, done, moved].map(|count| count.load(Ordering::Relaxed));
        Progress { total, done, moved }
    }

    /// Has it given up, soon: what it has begun is undone, and what was there stays. It ends with
    /// [`Error::Cancelled`](crate::Error::Cancelled), or as if nobody had asked where it was done already.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.0.stop.borrow()
    }

    /// Waits until it is to be given up.
    pub(crate) async fn stopped(&self) {
        // The sender is here, so this can't fail.
        _ = self.0.stop.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub(crate) fn expects(&self, bytes: u64) {
        self.0.total.store(bytes, Ordering::Relaxed);
        self.0.done.store(0, Ordering::Relaxed);
    }

    pub(crate) fn did(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        self.0.moved.fetch_add(bytes, Ordering::Relaxed);
    }
}
