//! The next server, started before it is needed.
//!
//! ```text
//! wanted ─► start ─► spare ─► taken (and wanted again: at once, where the next has another user; else after the stop)
//! ```
//!
//! **Invariants.** While code of a user runs, no server starts or waits as the same user: it could be changed by that
//! code, and would then be another user's. One that died or would not start is tried again, later each time.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    keeper::Failed,
    server::{Launch, Server},
};

/// After how long a start is tried again, at first and at most.
const AGAIN: Duration = Duration::from_millis(250);
const AT_MOST: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Default)]
struct State {
    /// Whether one may be started now.
    wanted: bool,
    spare: Option<Arc<Server>>,
    /// The user of the server that was taken.
    busy: Option<u32>,
    failed: Option<Failed>,
}

/// Keeps one dormant server.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    launch: Launch,
    /// The users that servers run as, in turn; none: as the sidecar's own.
    users: Vec<u32>,
    state: watch::Sender<State>,
}

impl Pool {
    /// Begins to keep one.
    pub fn start(launch: Launch, users: Vec<u32>) -> Self {
        let state = watch::Sender::new(State { wanted: true, ..State::default() });
        let pool = Self(Arc::new(Inner { launch, users, state }));
        tokio::spawn(pool.clone().keep());
        pool
    }

    /// How servers are started.
    pub fn launch(&self) -> &Launch {
        &self.0.launch
    }

    /// The dormant server, if there is one.
    pub fn spare(&self) -> Option<Arc<Server>> {
        self.0.state.borrow().spare.clone().filter(|server| !server.has_exited())
    }

    /// Takes the dormant server, as soon as there is one. No other is started until [`Pool::want`].
    pub async fn take(&self) -> Result<Arc<Server>, Failed> {
        let mut changes = self.0.state.subscribe();
        let within = self.0.launch.start_within;
        let taken = tokio::time::timeout(within, async {
            loop {
                let spare = changes.wait_for(|state| state.spare.is_some()).await.is_ok();
                if let Some(server) = self.take_now().filter(|_| spare) {
                    return server;
                }
            }
        });
        taken.await.map_err(|_| {
            let failed = self.0.state.borrow().failed.clone();
            failed.unwrap_or_else(|| Failed(format!("no agent server is dormant after {} s", within.as_secs())))
        })
    }

    fn take_now(&self) -> Option<Arc<Server>> {
        let mut taken = None;
        self.0.state.send_if_modified(|state| {
            let spare = state.spare.take();
            let found = spare.is_some();
            taken = spare.filter(|server| !server.has_exited());
            if let Some(server) = &taken {
                (state.wanted, state.busy) = (false, server.user);
            }
            found
        });
        taken
    }

    /// Puts one back that nobody used.
    pub fn put_back(&self, server: Arc<Server>) {
        self.0.state.send_modify(|state| {
            (state.wanted, state.spare, state.busy) = (true, Some(server.clone()), None);
        });
        tokio::spawn(self.clone().watch(server));
    }

    /// The one that was taken is in use: the next may be started if it has another user.
    pub fn in_use(&self) {
        if self.0.users.len() > 1 {
            self.0.state.send_modify(|state| state.wanted = true);
        }
    }

    /// The one that was taken has ended, with all its processes: the next may be started.
    pub fn want(&self) {
        self.0.state.send_modify(|state| (state.wanted, state.busy) = (true, None));
    }

    /// Ends what is there. No other is started.
    pub async fn close(&self) {
        self.0.state.send_modify(|state| state.wanted = false);
        let spare = self.0.state.borrow().spare.clone();
        if let Some(server) = spare {
            server.end(Duration::ZERO).await;
        }
    }

    async fn keep(self) {
        let mut changes = self.0.state.subscribe();
        let mut wait = AGAIN;
        while changes.wait_for(|state| state.wanted && state.spare.is_none()).await.is_ok() {
            match Server::start(&self.0.launch, self.free_user()).await {
                Ok(server) => {
                    wait = AGAIN;
                    let server = Arc::new(server);
                    self.0.state.send_modify(|state| (state.spare, state.failed) = (Some(server.clone()), None));
                    self.clone().watch(server).await;
                }
                Err(failed) => {
                    tracing::warn!(%failed, again_s = wait.as_secs(), "an agent server could not be started");
                    self.0.state.send_modify(|state| state.failed = Some(failed));
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(AT_MOST);
                }
            }
        }
    }

    fn free_user(&self) -> Option<u32> {
        let busy = self.0.state.borrow().busy;
        self.0.users.iter().copied().find(|user| Some(*user) != busy)
    }

    /// Watches the spare, until it is taken or has exited.
    async fn watch(self, server: Arc<Server>) {
        let mut changes = self.0.state.subscribe();
        tokio::select! {
            _ = changes.wait_for(|state| state.spare.is_none()) => {}
            () = server.exited() => {
                tracing::warn!("a dormant agent server has exited");
                self.0.state.send_if_modified(|state| {
                    state.spare.take_if(|spare| Arc::ptr_eq(spare, &server)).is_some()
                });
                _ = std::fs::remove_dir_all(&server.folder);
            }
        }
    }
}
