//! Garbage: which generations are kept, and what is removed of the rest.
//!
//! **Invariants.** Nothing is removed while somebody holds the workspace's lease: collecting takes it. Nothing that the head,
//! a kept or a pinned generation refers to is removed; if one of their manifests can't be read, nothing is. What is no
//! longer referred to is first condemned, and removed by a later run, a whole grace afterwards: whoever was reading it then
//! has ended. What is younger than the grace may be a push's that nobody has committed yet, and stays. Manifests go before
//! their layers, so that a kill in between leaves none that refers to what is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use crate::{
    blobs::{Blobs, Object, StoreError},
    commit::{Acquired, Commit, Head, Lease},
    error::Error,
    key::{Key, Name, Sort},
    limits::MAX_MANIFEST_BYTES,
    manifest::{BadManifest, Manifest},
    time::Millis,
};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How many generations, the head's included; at least 1.
    pub last: usize,
    /// How long what is no longer referred to stays. Longer than the longest push and the longest pull.
    pub grace: Duration,
}

/// Whether anything is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is changed: the report says what would be.
    DryRun,
    /// What the report says is done.
    Act,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It is the head's, or a kept generation's.
    Kept,
    /// It is a pinned generation's: other workspaces were made from it.
    Pinned,
    /// It is referred to by nothing, and may belong to a push that is not committed yet.
    Young,
    /// It is referred to by nothing, and is removed by a run after this time.
    Condemned(Millis),
    /// It is removed.
    Removed,
    /// Nobody knows what it is. It stays.
    Unknown,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept: a kept generation refers to it"),
            Self::Pinned => f.write_str("kept: other workspaces were made from it"),
            Self::Young => f.write_str("kept: it may belong to a push that is not committed yet"),
            Self::Condemned(until) => write!(f, "condemned: removed after {until}"),
            Self::Removed => f.write_str("removed: nothing has referred to it for the whole grace"),
            Self::Unknown => f.write_str("kept: nobody knows what it is"),
        }
    }
}

/// How collecting ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collected {
    /// Somebody holds the lease. Nothing was looked at.
    Leased {
        /// Who.
        owner: String,
        /// Until when.
        until_ms: Millis,
    },
    /// What became of each object.
    Done(BTreeMap<String, (u64, Fate)>),
}

/// Takes the lease for as long as it collects, and gives it back.
pub async fn collect(
    blobs: &dyn Blobs,
    commit: &dyn Commit,
    workspace: &Name,
    retention: Retention,
    mode: Mode,
    now: Millis,
) -> Result<Collected, Error> {
    let (lease, head) = match commit.acquire(workspace, OWNER, LEASE).await? {
        Acquired::Granted { lease, head } => (lease, head),
        Acquired::Held { owner, until_ms } => return Ok(Collected::Leased { owner, until_ms }),
    };
    let collector = Collector { blobs, commit, lease: &lease, retention, mode, now };
    let done = collector.run(head).await;
    commit.release(&lease).await?;
    done.map(Collected::Done)
}

const OWNER: &str = "collector";
const LEASE: Duration = Duration::from_mins(5);
/// How many objects are removed before the lease is renewed.
const REMOVALS: usize = 100;
const MAX_CONDEMNED_BYTES: u64 = 64 << 20;

struct Collector<'a> {
    blobs: &'a dyn Blobs,
    commit: &'a dyn Commit,
    lease: &'a Lease,
    retention: Retention,
    mode: Mode,
    now: Millis,
}

impl Collector<'_> {
    async fn run(&self, head: Option<Head>) -> Result<BTreeMap<String, (u64, Fate)>, Error> {
        let prefix = self.lease.workspace.prefix();
        let objects = self.blobs.list(&prefix).await?;
        let pins = format!("{prefix}{PINS}/");
        let pinned: Vec<Key> = objects.iter().filter_map(|object| pinned_key(&object.key, &pins, &prefix)).collect();
        let kept = self.referred(self.history(head).await?).await?;
        let pinned = self.referred(pinned).await?;
        let mut condemned = self.condemned().await?;
        let mut fates = BTreeMap::new();
        for object in &objects {
            let fate = self.fate(object, &kept, &pinned, &mut condemned);
            fates.insert(object.key.clone(), (object.bytes, fate));
        }
        condemned.retain(|key, _| fates.get(key).is_some_and(|(_, fate)| matches!(fate, Fate::Condemned(_))));
        if self.mode == Mode::Act {
            self.act(&fates, &condemned).await?;
        }
        Ok(fates)
    }

    /// The head's manifest and those before it, as many as are kept.
    async fn history(&self, head: Option<Head>) -> Result<Vec<Key>, Error> {
        let mut history = Vec::new();
        let mut next = head.map(|head| head.manifest);
        while let Some(key) = next.take().filter(|_| history.len() < self.retention.last.max(1)) {
            next = match self.manifest(&key).await {
                Ok(manifest) => manifest.parent,
                // An older run has removed what is before the kept ones.
                Err(Error::Store(StoreError::Missing(_))) if !history.is_empty() => break,
                Err(error) => return Err(error),
            };
            history.push(key);
        }
        Ok(history)
    }

    async fn manifest(&self, key: &Key) -> Result<Manifest, Error> {
        let name = key.to_string();
        let bytes = self.blobs.get(&name, MAX_MANIFEST_BYTES as u64).await?;
        let manifest = Manifest::parse(&bytes).map_err(|source| Error::Manifest { key: name.clone(), source })?;
        if manifest.workspace == key.workspace && manifest.generation == key.generation {
            Ok(manifest)
        } else {
            Err(Error::Manifest { key: name, source: BadManifest::Wrong("it is another one's") })
        }
    }

    /// These manifests and all that they refer to.
    async fn referred(&self, manifests: Vec<Key>) -> Result<BTreeSet<String>, Error> {
        let mut referred = BTreeSet::new();
        for key in manifests {
            let manifest = self.manifest(&key).await?;
            referred.extend(manifest.layers.iter().map(|layer| layer.key.to_string()));
            referred.insert(key.to_string());
        }
        Ok(referred)
    }

    fn condemned_key(&self) -> String {
        format!("{}condemned.json", self.lease.workspace.prefix())
    }

    /// Since when. What can't be read condemns nothing: the grace begins anew.
    async fn condemned(&self) -> Result<BTreeMap<String, Millis>, Error> {
        match self.blobs.get(&self.condemned_key(), MAX_CONDEMNED_BYTES).await {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(StoreError::Missing(_)) => Ok(BTreeMap::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn fate(
        &self,
        object: &Object,
        kept: &BTreeSet<String>,
        pinned: &BTreeSet<String>,
        condemned: &mut BTreeMap<String, Millis>,
    ) -> Fate {
        let grace = Millis::try_from(self.retention.grace.as_millis()).unwrap_or(Millis::MAX);
        if kept.contains(&object.key) {
            return Fate::Kept;
        }
        if pinned.contains(&object.key) {
            return Fate::Pinned;
        }
        if object.key.parse::<Key>().is_err() {
            return Fate::Unknown;
        }
        if object.written.saturating_add(grace) > self.now {
            return Fate::Young;
        }
        let until = condemned.entry(object.key.clone()).or_insert(self.now).saturating_add(grace);
        if until < self.now { Fate::Removed } else { Fate::Condemned(until) }
    }

    async fn act(
        &self,
        fates: &BTreeMap<String, (u64, Fate)>,
        condemned: &BTreeMap<String, Millis>,
    ) -> Result<(), Error> {
        let is_manifest = |key: &str| key.parse::<Key>().is_ok_and(|key| key.sort == Sort::Manifest);
        let removed = |manifests: bool| {
            let removed = fates.iter().filter(|(_, (_, fate))| *fate == Fate::Removed).map(|(key, _)| key);
            removed.filter(move |key| is_manifest(key) == manifests)
        };
        for (number, key) in removed(true).chain(removed(false)).enumerate() {
            if number % REMOVALS == 0 && !self.is_still_ours().await? {
                return Ok(());
            }
            self.blobs.delete(key).await?;
        }
        let bytes = serde_json::to_vec(condemned).map_err(|error| Error::Roots(error.to_string()))?;
        self.blobs.put(&self.condemned_key(), &bytes).await?;
        let grace = Millis::try_from(self.retention.grace.as_millis()).unwrap_or(Millis::MAX);
        self.blobs.abort_stale(&self.lease.workspace.prefix(), self.now.saturating_sub(grace)).await?;
        Ok(())
    }

    async fn is_still_ours(&self) -> Result<bool, Error> {
        Ok(self.commit.renew(self.lease, LEASE).await? != crate::commit::Renewed::Lost)
    }
}

const PINS: &str = "pins";

/// The manifest that a pin is of.
fn pinned_key(key: &str, pins: &str, prefix: &str) -> Option<Key> {
    let name = key.strip_prefix(pins)?;
    format!("{prefix}manifests/{name}").parse().ok()
}

/// Makes a workspace from a generation of another one, whose layers they then share: its first generation is that tree, and
/// its pushes are deltas to it. The generation is pinned first, so that it is never collected. Only where the new
/// workspace has no head.
pub async fn fork(
    blobs: &dyn Blobs,
    commit: &dyn Commit,
    template: &Head,
    lease: &Lease,
    nonce: u64,
    now: Millis,
) -> Result<crate::commit::Committed, Error> {
    let from = template.manifest.to_string();
    let bytes = blobs.get(&from, MAX_MANIFEST_BYTES as u64).await?;
    let refused = |source| Error::Manifest { key: from.clone(), source };
    if blake3::hash(&bytes).to_hex().as_str() != template.blake3 {
        return Err(refused(BadManifest::Wrong("its digest is not the one that was committed")));
    }
    let manifest = Manifest::parse(&bytes).map_err(refused)?;
    let name = from.rsplit('/').next().unwrap_or_default();
    blobs
        .put(&format!("{}{PINS}/{name}", template.manifest.workspace.prefix()), lease.workspace.as_str().as_bytes())
        .await?;
    let workspace = lease.workspace.clone();
    let key = Key { workspace: workspace.clone(), sort: Sort::Manifest, generation: 1, token: lease.token, nonce };
    let manifest = Manifest { workspace, generation: 1, token: lease.token, parent: None, as_of_ms: now, ..manifest };
    let bytes = manifest.to_bytes().map_err(refused)?;
    blobs.put(&key.to_string(), &bytes).await?;
    let blake3 = blake3::hash(&bytes).to_hex().to_string();
    let head = Head { manifest: key, blake3, generation: 1, as_of_ms: now, bytes: manifest.counts.bytes };
    Ok(commit.commit(lease, 0, &head, crate::commit::After::Keep).await?)
}
