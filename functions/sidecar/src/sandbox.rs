//! What the works do in a real sandbox: servers, files, the store, the host.
//!
//! **Invariants.** A server is told of a user after the user's files are there, and is ended before they are pushed for
//! the last time. It is taken from the pool once. A push waits for the one before it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use settings::system::Moment;
use tokio::sync::{Mutex as Turn, watch};
use workspace::{
    Basis, Local, Owner, Place, Pull, Pulled, Push, Pushed, Ready, RootPath, Store, Watched,
    commit::{After, Commit, Head, Renewed},
    exclude::Rules,
    key::Name,
    member::Member,
};

use crate::{
    activity::beat::Answered,
    agent::NotInit,
    delivery::{Activity, Delivery},
    files,
    keeper::{Effects, Failed, NotAwake},
    pool::Pool,
    processes::{self, Which},
    server::Server,
};

/// How long the interrupting of what runs may take. The server's end waits for it anyhow.
const INTERRUPT: Duration = Duration::from_secs(10);
/// How many ranges are read at once.
const CONNECTIONS: usize = 8;
/// Zstd's level: sandboxes are near their bucket.
const LEVEL: i32 = 1;

const LOST: &str = "the lease is another one's by now; deinit with `discard` gives this copy up";

/// Finds the store and the keeper of records that a delivery names, and tells of activity.
#[async_trait]
pub trait Hosts: Send + Sync + 'static {
    /// Nothing is asked yet.
    fn open(&self, delivery: &Delivery) -> Result<(Store, Arc<dyn Commit>), Failed>;
    /// Sends a heartbeat. `busy_for`: how long its runtime will be busy.
    async fn beat(&self, activity: &Activity, busy_for: Option<Duration>) -> Answered;
    /// Tells that what its runtime holds is kept.
    async fn saved(&self, activity: &Activity, save: &Save) -> Result<(), Failed>;
}

/// What is told of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// Whose work it is.
    pub workspace: Name,
    /// The generation that has it.
    pub generation: u64,
    /// How long ago its scan began, or longer.
    pub age: Duration,
}

/// How the sandbox is used.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The sidecar's own folder.
    pub scratch: PathBuf,
    /// Folders of everybody's that what is a user's is removed from, where servers have users of their own.
    pub sweep: Vec<PathBuf>,
    /// How long a lease is held.
    pub lease: Duration,
    /// This process, if orphans come back to it and nothing else is below it.
    pub adopts: Option<i32>,
}

/// What is known of the user's workspace.
struct Session {
    place: Place,
    store: Store,
    commit: Arc<dyn Commit>,
    head: Option<Head>,
    /// The head has all work of the tree that it was made from.
    whole: bool,
}

/// A sandbox.
pub struct Sandbox {
    pool: Pool,
    hosts: Arc<dyn Hosts>,
    terms: Terms,
    serving: watch::Sender<Option<Arc<Server>>>,
    session: Turn<Option<Session>>,
    /// Servers that have ended: what they had is still there.
    left: Mutex<Vec<Arc<Server>>>,
}

impl Sandbox {
    /// Of these parts.
    pub fn new(pool: Pool, hosts: Arc<dyn Hosts>, terms: Terms) -> Self {
        let serving = watch::Sender::new(None);
        Self { pool, hosts, terms, serving, session: Turn::new(None), left: Mutex::default() }
    }

    /// The server that serves.
    pub fn serving(&self) -> Option<Arc<Server>> {
        self.serving.borrow().clone()
    }

    fn place(&self, delivery: &Delivery) -> Result<Place, Failed> {
        let root = |(name, path): (&String, &PathBuf)| match Member::parse(name) {
            Ok(name) => Ok(RootPath { name, path: path.clone() }),
            Err(error) => Err(Failed(error.to_string())),
        };
        let roots: Result<_, _> = delivery.workspace.roots.iter().map(root).collect();
        Place::new(roots?, self.place_folder()).map_err(|error| said(&error))
    }

    fn place_folder(&self) -> PathBuf {
        self.terms.scratch.join(files::PLACE)
    }

    /// The files of the workspace, as this user's.
    async fn bring(&self, delivery: &Delivery, user: Option<u32>) -> Result<Session, Failed> {
        for root in delivery.workspace.roots.values() {
            files::make(root, user, delivery.head.is_none())?;
        }
        let place = self.place(delivery)?;
        let (store, commit) = self.hosts.open(delivery)?;
        if let Some(head) = &delivery.head {
            let pull = Pull {
                head: head.clone(),
                place: place.clone(),
                local: Local::Discard,
                limit_bytes: delivery.workspace.limit_bytes,
                owner: user.map(|user| Owner { uid: user, gid: user }),
                nonce: nonce(),
                threads: threads(),
                connections: CONNECTIONS,
                watched: Watched::default(),
            };
            let pulled = workspace::pull(&store, pull, &watch::Sender::new(Ready::Nothing)).await;
            match pulled.map_err(|error| said(&error))? {
                Pulled::Whole { .. } => {}
                Pulled::LocalChanges { .. } | Pulled::Occupied(_) => {
                    return Err(Failed("the places of the workspace are not empty".to_owned()));
                }
            }
        }
        Ok(Session { place, store, commit, head: delivery.head.clone(), whole: true })
    }

    /// Hands over to a dormant server.
    async fn hand_over(&self, server: Arc<Server>, delivery: &Delivery) -> Result<(), Failed> {
        match server.agent.init(&delivery.agent).await {
            Ok(()) => {
                if let Some(key) = delivery.session_key() {
                    server.agent.remember(key).await;
                }
                self.serving.send_replace(Some(server));
                self.pool.in_use();
                Ok(())
            }
            Err(NotInit::Refused(why)) => {
                self.pool.put_back(server);
                Err(why)
            }
            Err(NotInit::Unknown(why)) => {
                // It may have been told: it is ended with the user's other processes.
                self.serving.send_replace(Some(server));
                Err(why)
            }
        }
    }

    /// Ends the server that serves, and everything that it has started.
    async fn end(&self, within: Duration) -> Result<(), Failed> {
        let Some(server) = self.serving() else { return Ok(()) };
        let tree = processes::tree(server.process);
        server.end(within).await;
        let which = match (server.user, self.terms.adopts) {
            (Some(user), _) => Which::Of(user),
            (None, Some(own)) => Which::Below(own),
            (None, None) => Which::These(tree),
        };
        processes::end(&which).await?;
        if let Some(own) = self.terms.adopts {
            processes::reap(own);
        }
        self.left().push(server);
        self.serving.send_replace(None);
        self.pool.want();
        Ok(())
    }

    async fn send(&self, delivery: &Delivery, after: After) -> Result<(), Failed> {
        let mut session = self.session.lock().await;
        let Some(session) = &mut *session else { return Err(Failed("there is nothing to push".to_owned())) };
        let began = Moment::now();
        let rules =
            Rules::new(delivery.workspace.exclude.iter().cloned()).map_err(|error| Failed(error.to_string()))?;
        let push = Push {
            lease: delivery.lease.clone(),
            head: session.head.clone(),
            place: session.place.clone(),
            rules,
            basis: Basis::Known,
            after,
            now: settings::system::now().millis(),
            nonce: nonce(),
            level: LEVEL,
            threads: threads(),
            ttl: self.terms.lease,
            watched: Watched::default(),
        };
        let pushed = workspace::push(&session.store, &*session.commit, push).await.map_err(|error| said(&error))?;
        let (head, whole) = match pushed {
            Pushed::Committed { head, manifest } => (head, manifest.keeps_all_work()),
            Pushed::Unchanged(head) => (head, session.whole),
            Pushed::Fenced => return Err(Failed(LOST.to_owned())),
            Pushed::Moved(_) | Pushed::Unrelated { .. } => {
                let why = "the workspace has another generation by now; deinit with `discard` gives this copy up";
                return Err(Failed(why.to_owned()));
            }
            Pushed::HalfPulled => {
                let why = "the workspace was pulled by half only; deinit with `discard` gives it up";
                return Err(Failed(why.to_owned()));
            }
        };
        let generation = head.generation;
        (session.head, session.whole) = (Some(head), whole);
        if whole {
            self.tell(delivery, generation, began).await;
        }
        Ok(())
    }

    /// Tells that all work is kept. Not told, it is not deleted either: the next push tells it again.
    async fn tell(&self, delivery: &Delivery, generation: u64, began: Moment) {
        let Some(activity) = &delivery.activity else { return };
        let save = Save { workspace: delivery.workspace.name.clone(), generation, age: began.age() };
        if let Err(why) = self.hosts.saved(activity, &save).await {
            tracing::warn!(runtime = %activity.runtime, %why, "what is kept could not be told");
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes what a user has left: the workspace, what is known about it, and what his servers had.
fn clean(roots: &[PathBuf], place: &Path, left: &[Arc<Server>], sweep: &[PathBuf]) -> Result<(), Failed> {
    roots.iter().try_for_each(|root| files::empty(root))?;
    files::remove(place)?;
    for server in left {
        files::remove(&server.folder)?;
        if let Some(user) = server.user {
            sweep.iter().try_for_each(|folder| files::sweep(folder, user))?;
        }
    }
    match files::occupied(roots)? {
        Some(root) => Err(Failed(format!("`{}` is not empty after it was emptied", root.display()))),
        None => Ok(()),
    }
}

#[async_trait]
impl Effects for Sandbox {
    async fn wake(&self, delivery: &Delivery) -> Result<(), NotAwake> {
        if let Some(root) = files::occupied(delivery.workspace.roots.values()).map_err(NotAwake::Untouched)? {
            let why = format!("`{}` is not empty: nothing is pulled over what is there", root.display());
            return Err(NotAwake::Untouched(Failed(why)));
        }
        let server = self.pool.take().await.map_err(NotAwake::Untouched)?;
        match self.bring(delivery, server.user).await {
            Ok(session) => *self.session.lock().await = Some(session),
            Err(why) => {
                self.pool.put_back(server);
                return Err(NotAwake::Begun(why));
            }
        }
        self.hand_over(server, delivery).await.map_err(NotAwake::Begun)
    }

    async fn revive(&self, delivery: &Delivery) -> Result<(), Failed> {
        self.end(Duration::ZERO).await?;
        let server = self.pool.take().await?;
        self.hand_over(server, delivery).await
    }

    async fn stop(&self, delivery: &Delivery) -> Result<(), Failed> {
        if let (Some(server), Some(key)) = (self.serving(), delivery.session_key())
            && !server.has_exited()
        {
            // What does not answer in time is stopped as it is.
            _ = tokio::time::timeout(INTERRUPT, server.agent.interrupt(key)).await;
        }
        self.end(self.pool.launch().stop_within).await
    }

    async fn push(&self, delivery: &Delivery) -> Result<(), Failed> {
        self.send(delivery, After::Release).await
    }

    async fn wipe(&self, delivery: &Delivery) -> Result<(), Failed> {
        *self.session.lock().await = None;
        let roots: Vec<_> = delivery.workspace.roots.values().cloned().collect();
        let (place, left, sweep) = (self.place_folder(), self.left().clone(), self.terms.sweep.clone());
        let cleaned = tokio::task::spawn_blocking(move || clean(&roots, &place, &left, &sweep)).await;
        cleaned.map_err(|error| Failed(format!("a wipe broke off: {error}")))??;
        self.left().clear();
        Ok(())
    }

    async fn keep(&self, delivery: &Delivery) -> Result<(), Failed> {
        if let Some(session) = &*self.session.lock().await {
            match session.commit.renew(&delivery.lease, self.terms.lease).await {
                Ok(Renewed::Until(_)) => {}
                Ok(Renewed::Lost) => return Err(Failed(LOST.to_owned())),
                Err(error) => return Err(Failed(error.to_string())),
            }
        }
        self.send(delivery, After::Keep).await
    }

    async fn exited(&self) {
        if let Some(server) = self.serving() {
            server.exited().await;
        }
    }
}

fn nonce() -> u64 {
    settings::system::unique().get(..16).and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or_default()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// With what it came from.
fn said(error: &workspace::Error) -> Failed {
    let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    Failed(format!("{error}{source}"))
}
