//! Where workspaces are: their records, their bytes, and what is known of each folder here.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ledger::{Ledger, Workspaces};
use settings::{WorkspaceSettings, system};
use workspace::{
    Place, RootPath, Store,
    blobs::{Blobs, Wire, directory::Directory, http::Http, s3::S3},
    commit::{Acquired, Commit, Head, Lease},
    key::Name,
    manifest::Manifest,
    member::Member,
    time::Clock,
};

use super::{chain, fault, leased, unasked};
use crate::{
    answer::Fault,
    parts::{Plant, owner},
};

/// How long a lease is held from each renewal on.
pub(super) const TTL: Duration = Duration::from_mins(2);
/// How long a signed request is good for.
const VALID: Duration = Duration::from_mins(15);
/// The name of the only root of what is first pushed here.
const ROOT: &str = "project";

/// The records and the bytes of workspaces.
pub(super) struct Kept {
    pub(super) ledger: Ledger,
    pub(super) commit: Workspaces,
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) store: Store,
    pub(super) settings: WorkspaceSettings,
    folder: PathBuf,
}

impl Kept {
    /// To write.
    pub(super) async fn acting(plant: &Plant) -> Result<Self, Fault> {
        let (_, ledger) = plant.store().await?;
        Self::of(plant, ledger).await
    }

    /// To look, without a trace: the records are a copy.
    pub(super) async fn looking(plant: &Plant) -> Result<Self, Fault> {
        Self::of(plant, plant.copy().await?).await
    }

    async fn of(plant: &Plant, ledger: Ledger) -> Result<Self, Fault> {
        let clock = Clock::new(|| system::now().millis());
        let settings = plant.settings.workspaces.clone();
        let folder = plant.data.join("workspaces");
        let (blobs, wire) = match &settings.store {
            None => in_folder(&folder, &clock)?,
            Some(bucket) => in_bucket(bucket, &clock).await?,
        };
        let store = Store { signer: blobs.clone(), wire, clock: clock.clone() };
        let commit = Workspaces::new(ledger.clone(), clock);
        Ok(Self { ledger, commit, blobs, store, settings, folder })
    }

    /// The newest generation.
    pub(super) async fn head(&self, name: &Name) -> Result<Head, Fault> {
        let head = self.commit.head(name).await.map_err(|error| unasked(&error))?;
        head.ok_or_else(|| {
            let problem = format!("there is no workspace `{name}`; `furlough workspace list` shows those that are");
            Fault::failed("unknown_workspace", problem)
        })
    }

    /// What it consists of.
    pub(super) async fn manifest(&self, head: &Head) -> Result<Manifest, Fault> {
        workspace::manifest_of(&self.store, head).await.map_err(|error| fault(&error))
    }

    /// The right to write it.
    pub(super) async fn lease(&self, name: &Name, word: &str) -> Result<(Lease, Option<Head>), Fault> {
        match self.commit.acquire(name, &owner(word), TTL).await.map_err(|error| unasked(&error))? {
            Acquired::Granted { lease, head } => Ok((lease, head)),
            Acquired::Held { owner, until_ms } => Err(leased(name, &owner, until_ms)),
        }
    }

    /// A workspace's place in a folder here: its only root is the folder, several are in it by name.
    pub(super) fn place(&self, name: &Name, dir: &Path, manifest: Option<&Manifest>) -> Result<Place, Fault> {
        let dir = absolute(dir)?;
        let root = |name: &Member, path: PathBuf| RootPath { name: name.clone(), path };
        let roots = match manifest.map(|manifest| &manifest.roots[..]) {
            None => {
                let name = Member::parse(ROOT).map_err(|error| Fault::failed("workspace", error))?;
                vec![root(&name, dir.clone())]
            }
            Some([only]) => vec![root(&only.name, dir.clone())],
            Some(several) => {
                fs::create_dir_all(&dir).map_err(|error| unmade(&dir, &error))?;
                several.iter().map(|one| root(&one.name, dir.join(OsStr::from_bytes(one.name.bytes())))).collect()
            }
        };
        let hash = blake3::hash(dir.as_os_str().as_encoded_bytes()).to_hex();
        let state = self.folder.join("places").join(format!("{name}-{}", &hash[..16]));
        Place::new(roots, state).map_err(|error| fault(&error))
    }
}

type Stores = (Arc<dyn Blobs>, Arc<dyn Wire>);

fn in_folder(folder: &Path, clock: &Clock) -> Result<Stores, Fault> {
    let store = directory(folder, clock)?;
    Ok((Arc::new(store.clone()), Arc::new(store)))
}

/// The store in this folder. What it signs, only this process can prove.
pub(crate) fn directory(folder: &Path, clock: &Clock) -> Result<Directory, Fault> {
    let secret = system::random().map_err(|error| Fault::failed("machine", error))?;
    let secret = *blake3::hash(secret.as_bytes()).as_bytes();
    Ok(Directory::new(folder.join("objects"), secret, nonce(), VALID, clock.clone()))
}

async fn in_bucket(bucket: &settings::Bucket, clock: &Clock) -> Result<Stores, Fault> {
    let wire = Http::new().map_err(|error| Fault::failed("machine", chain(&error)))?;
    Ok((self::bucket(bucket, clock).await, Arc::new(wire)))
}

/// The store in a bucket.
pub(crate) async fn bucket(bucket: &settings::Bucket, clock: &Clock) -> Arc<dyn Blobs> {
    let client = aws::Cloud::here().await.objects();
    Arc::new(S3::new(client, &*bucket.name, &*bucket.prefix, VALID, clock.clone()))
}

/// A number that no other try has.
pub(super) fn nonce() -> u64 {
    u64::from_str_radix(&system::unique()[..16], 16).unwrap_or_default()
}

/// How many threads work.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// The folder, which need not be there itself, without links on the way to it.
fn absolute(dir: &Path) -> Result<PathBuf, Fault> {
    if let Ok(found) = dir.canonicalize() {
        return Ok(found);
    }
    let name = dir.file_name().ok_or_else(|| Fault::usage("folder", format!("`{}` names no folder", dir.display())))?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let made = fs::create_dir_all(parent).and_then(|()| parent.canonicalize());
    made.map(|parent| parent.join(name)).map_err(|error| unmade(parent, &error))
}

fn unmade(dir: &Path, error: &std::io::Error) -> Fault {
    Fault::failed("folder", format!("`{}` could not be made: {error}", dir.display()))
}
