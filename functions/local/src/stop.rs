//! Somebody interrupts: what was begun is ended, nothing new is begun. Whoever insists is obeyed at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{answer::Fault, terminal::Terminal};

/// Whether a pass is to begin nothing new. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopped(Arc<AtomicBool>);

impl Stopped {
    /// Whether somebody stopped it.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Hears of SIGINT and SIGTERM.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    stopped: Stopped,
    terminal: Terminal,
}

impl Stop {
    /// Listens from now on, and passes it on to who looks at `stopped`.
    pub(crate) fn new(stopped: &Stopped, terminal: Terminal) -> Result<Self, Fault> {
        let listen = |kind| signal(kind).map_err(|error| Fault::failed("machine", format!("no signals: {error}")));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, stopped: stopped.clone(), terminal })
    }

    /// Does `work` to its end, which comes soon once somebody interrupts. A second time it is left as it is.
    pub(crate) async fn until_done<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return Ok(done),
            () = self.asked() => {}
        }
        self.terminal
            .note("interrupted: what was begun is ended, nothing new is begun; once more to leave it as it is");
        tokio::select! {
            done = &mut work => Ok(done),
            () = self.asked() => Err(Fault::failed(
                "interrupted",
                "interrupted at work: what was begun is whole, done or not; a pass after its claims have ended, in some \
                 minutes, puts its records in order",
            )),
        }
    }

    /// Whether somebody interrupted at some time.
    pub(crate) fn is_asked(&self) -> bool {
        self.stopped.is_set()
    }

    /// Whether somebody wants it to stop before this has passed.
    pub(crate) async fn within(&mut self, wait: Duration) -> bool {
        tokio::select! {
            () = self.asked() => true,
            () = tokio::time::sleep(wait) => false,
        }
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.stopped.0.store(true, Ordering::Relaxed);
    }
}
