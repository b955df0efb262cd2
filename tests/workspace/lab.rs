//! A store, a keeper of records, and hosts that push and pull.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use ledger::{Options, Workspaces};
use tempfile::TempDir;
use tokio::sync::watch;
use workspace::{
    Basis, Local, Place, Pull, Pulled, Push, Pushed, Ready, RootPath, Store, Watched,
    blobs::directory::Directory,
    commit::{Acquired, After, Commit, Head, Lease, directory::DirectoryCommit},
    exclude::Rules,
    key::Name,
    member::Member,
    pull, push,
    time::Clock,
};

use crate::ledger::fixture::{World, options, world_with};

/// How long a lease is held, and by how much clocks may differ.
pub(super) const TTL: Duration = Duration::from_mins(1);
pub(super) const SKEW: Duration = Duration::from_secs(10);

/// A store with everything around it, in a folder of its own.
pub(super) struct Lab {
    pub(super) folder: Folder,
    pub(super) blobs: Directory,
    pub(super) commit: Arc<dyn Commit>,
    pub(super) store: Store,
    pub(super) now: Arc<AtomicI64>,
    nonce: AtomicU64,
}

/// Removed at the end by whoever made it.
pub(super) struct Folder {
    path: PathBuf,
    _made: Option<TempDir>,
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn name() -> Name {
    Name::new("w").unwrap()
}

impl Lab {
    pub(super) fn new() -> Self {
        let made = tempfile::tempdir().unwrap();
        Self::of(Folder { path: made.path().to_path_buf(), _made: Some(made) }, 1)
    }

    /// With its records in a ledger.
    pub(super) async fn on_ledger() -> (Self, World) {
        let lab = Self::new();
        let world = world_with(Options { skew: SKEW, ..options() }).await;
        let commit = Arc::new(Workspaces::new(world.ledger.clone(), lab.store.clock.clone()));
        (Self { commit, ..lab }, world)
    }

    /// Another process's, whose uploads and nonces begin at `seed`.
    pub(super) fn at(path: PathBuf, seed: u64) -> Self {
        Self::of(Folder { path, _made: None }, seed)
    }

    fn of(folder: Folder, seed: u64) -> Self {
        let now = Arc::new(AtomicI64::new(4_102_444_800_000));
        let clock = {
            let now = now.clone();
            Clock::new(move || now.load(Ordering::Relaxed))
        };
        let blobs =
            Directory::new(folder.path().join("bucket"), [7; 32], seed << 32, Duration::from_mins(15), clock.clone());
        let commit = Arc::new(DirectoryCommit::new(folder.path().join("records"), clock.clone(), SKEW));
        let store = Store { signer: Arc::new(blobs.clone()), wire: Arc::new(blobs.clone()), clock };
        Self { folder, blobs, commit, store, now, nonce: AtomicU64::new(seed << 32) }
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce.fetch_add(1 << 16, Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(super) fn pass(&self, time: Duration) {
        self.now.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// A host of this name, with an empty project.
    pub(super) fn host(&self, name: &str) -> Host {
        let host = self.bare_host(name);
        fs::create_dir_all(&host.project).unwrap();
        host
    }

    /// A host that has nothing yet.
    pub(super) fn bare_host(&self, name: &str) -> Host {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        Host { name: name.to_owned(), project: folder.join("project"), state: folder.join("state") }
    }

    pub(super) async fn lease(&self, owner: &str) -> (Lease, Option<Head>) {
        match self.commit.acquire(&name(), owner, TTL).await.unwrap() {
            Acquired::Granted { lease, head } => (lease, head),
            held @ Acquired::Held { .. } => panic!("{held:?}"),
        }
    }

    pub(super) async fn push_request(&self, host: &Host) -> Push {
        let (lease, head) = self.lease(&host.name).await;
        Push {
            lease,
            head,
            place: host.place(),
            rules: Rules::new([]).unwrap(),
            basis: Basis::Known,
            after: After::Release,
            now: self.now(),
            nonce: self.nonce(),
            level: 1,
            threads: 2,
            ttl: TTL,
            watched: Watched::default(),
        }
    }

    pub(super) async fn try_push(&self, host: &Host) -> Result<Pushed, workspace::Error> {
        push(&self.store, &*self.commit, self.push_request(host).await).await
    }

    /// Pushes what must be pushed.
    pub(super) async fn push(&self, host: &Host) -> Arc<workspace::manifest::Manifest> {
        match self.try_push(host).await.unwrap() {
            Pushed::Committed { manifest, .. } => manifest,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn pull_request(&self, host: &Host) -> Pull {
        Pull {
            head: self.commit.head(&name()).await.unwrap().expect("something was pushed"),
            place: host.place(),
            local: Local::Keep,
            limit_bytes: None,
            owner: None,
            nonce: self.nonce(),
            threads: 2,
            connections: 4,
            watched: Watched::default(),
        }
    }

    pub(super) async fn try_pull(&self, host: &Host) -> Result<Pulled, workspace::Error> {
        pull(&self.store, self.pull_request(host).await, &watch::Sender::new(Ready::Nothing)).await
    }

    /// Pulls what must be pulled, and says how.
    pub(super) async fn pull(&self, host: &Host) -> workspace::Way {
        match self.try_pull(host).await.unwrap() {
            Pulled::Whole { way, .. } => way,
            other => panic!("{other:?}"),
        }
    }
}

/// A machine with a workspace of one root.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) project: PathBuf,
    pub(super) state: PathBuf,
}

impl Host {
    pub(super) fn place(&self) -> Place {
        place(&[("project", &self.project)], &self.state)
    }
}

pub(super) fn place(roots: &[(&str, &Path)], state: &Path) -> Place {
    let root = |(name, path): &(&str, &Path)| RootPath { name: Member::parse(name).unwrap(), path: path.to_path_buf() };
    Place::new(roots.iter().map(root).collect(), state).unwrap()
}

/// Each scenario with the records in a folder and with the records in a ledger.
macro_rules! with_both_keepers {
    ($($scenario:ident;)*) => {
        mod in_a_folder {
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario($crate::workspace::lab::Lab::new()).await;
                }
            )*
        }

        mod in_a_ledger {
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario($crate::workspace::lab::Lab::on_ledger().await.0).await;
                }
            )*
        }
    };
}

pub(super) use with_both_keepers;
