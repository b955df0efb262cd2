//! Stands beside an agent server in a sandbox: dormant until a workspace is brought, and dormant again when it was
//! taken away. The server itself is unmodified, and knows nothing of it.
//!
//! ```text
//! host ── /init, /deinit ─► front ─► Keeper ─► machine ─► Effects ──► Sandbox ─┬► Pool ─► Server (a child process)
//!                            │        (one task)  (pure)                       ├► workspace: pull, push ─► bucket
//! people ── all else ────────┴► proxy ─► the server that serves                └► processes, files: the wipe
//!                                 └► activity ─► heartbeats, pushes
//! ```
//!
//! **Invariants.** Of what one user left the next one finds nothing: no file in the workspace's places, no process, no
//! temporary folder, no variable, no key. Nothing is wiped before it was pushed and committed, unless somebody said that
//! it may be lost. What failed can be tried again, and what was done and asked for again is done. Code of a user never
//! holds a key that opens the sidecar, nor touches the server of the next one.
//!
//! **Must never know**: what an agent server does, how the host keeps its records, credentials of a cloud.

pub mod activity;
pub mod agent;
pub mod delivery;
pub mod files;
pub mod frames;
pub mod front;
pub mod host;
pub mod keeper;
pub mod machine;
pub mod options;
pub mod pool;
pub mod processes;
pub mod protocol;
pub mod proxy;
pub mod sandbox;
pub mod server;

use std::{sync::Arc, time::Duration};

use axum::Router;

pub use delivery::Delivery;
pub use front::InitKey;
pub use options::Options;

use crate::{
    activity::{Signs, Watcher},
    front::Front,
    keeper::{Failed, Keeper, Reply},
    machine::How,
    pool::Pool,
    proxy::Proxy,
    sandbox::{Hosts, Sandbox},
};

/// A sidecar that runs.
#[derive(Debug, Clone)]
pub struct Sidecar {
    keeper: Keeper,
    pool: Pool,
    grace: Duration,
}

impl Sidecar {
    /// Starts it: what it answers, and itself. `adopts`: this process, if orphans come back to it.
    pub fn start(options: &Options, key: InitKey, hosts: Arc<dyn Hosts>, adopts: Option<i32>) -> (Router, Self) {
        let pool = Pool::start(options.launch(), options.user.clone());
        let sandbox = Arc::new(Sandbox::new(pool.clone(), hosts.clone(), options.terms(adopts)));
        let keeper = Keeper::start(sandbox.clone(), options.push_every);
        let (below, proxy, signs) = (options.below.clone(), Proxy::default(), Signs::default());
        let watcher = Watcher {
            keeper: keeper.clone(),
            sandbox: sandbox.clone(),
            signs: signs.clone(),
            hosts,
            pace: options.pace(),
        };
        tokio::spawn(watcher.run());
        let front = Front { keeper: keeper.clone(), pool: pool.clone(), sandbox, key, below, proxy, signs };
        (front::router(Arc::new(front)), Self { keeper, pool, grace: options.grace })
    }

    /// Takes the workspace away, as often as it has to be tried within the grace, and ends the servers.
    pub async fn end(&self) -> Result<(), Failed> {
        let mut last = Failed("the grace was over before the workspace was pushed".to_owned());
        let trying = async {
            loop {
                match self.keeper.deinit(None, How::Save).await {
                    Reply::Failed(why) => last = why,
                    Reply::Done | Reply::Already(_) | Reply::Another | Reply::Busy(_) => return,
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let saved = tokio::time::timeout(self.grace, trying).await;
        self.pool.close().await;
        saved.map_err(|_| last)
    }
}
