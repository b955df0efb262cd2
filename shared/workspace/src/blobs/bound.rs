//! What a sandbox may have signed: the host's check of each key that it asks for.
//!
//! **Invariants.** Written is below the workspace's own prefix, under the token of the lease that the sandbox was given, and
//! nothing else; read is what is in the workspace, and the layers that it shares with the one it was made from. What is
//! asked for otherwise is refused before anything is signed.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;

use super::{Signed, Signer, StoreError, Tag, Upload};
use crate::{commit::Lease, key::Key, manifest::Manifest};

/// Signs for one workspace, and for writing under one lease.
#[derive(Clone)]
pub struct Bound {
    inner: Arc<dyn Signer>,
    lease: Lease,
    shared: BTreeSet<String>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Bound {
    /// For what is written under `lease`, and for reading its workspace.
    pub fn new(inner: Arc<dyn Signer>, lease: Lease) -> Self {
        Self { inner, lease, shared: BTreeSet::new() }
    }

    /// And for reading the layers of a generation of it: they may be another workspace's. The caller has checked its digest.
    #[must_use]
    pub fn reading(mut self, manifest: &Manifest) -> Self {
        if manifest.workspace == self.lease.workspace {
            self.shared.extend(manifest.layers.iter().map(|layer| layer.key.to_string()));
        }
        self
    }

    fn to_write(&self, key: &str) -> Result<(), StoreError> {
        let is_ours = |key: &Key| key.workspace == self.lease.workspace && key.token == self.lease.token;
        if key.parse().is_ok_and(|key| is_ours(&key)) { Ok(()) } else { Err(foreign(key)) }
    }

    fn to_put(&self, key: &str) -> Result<(), StoreError> {
        if key == self.lease.workspace.restore_key() { Ok(()) } else { self.to_write(key) }
    }

    fn to_read(&self, key: &str) -> Result<(), StoreError> {
        let is_ours = |key: &Key| key.workspace == self.lease.workspace;
        if self.shared.contains(key) || key.parse().is_ok_and(|key| is_ours(&key)) { Ok(()) } else { Err(foreign(key)) }
    }
}

fn foreign(key: &str) -> StoreError {
    let why = "it is not of this workspace and lease, and is not signed for".to_owned();
    StoreError::Refused { key: key.to_owned(), why }
}

#[async_trait]
impl Signer for Bound {
    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        self.to_write(key)?;
        self.inner.begin(key).await
    }

    async fn sign_parts(&self, upload: &Upload, parts: &[(u32, u64)]) -> Result<Vec<Signed>, StoreError> {
        self.to_write(&upload.key)?;
        self.inner.sign_parts(upload, parts).await
    }

    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        self.to_write(&upload.key)?;
        self.inner.complete(upload, tags).await
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        self.to_write(&upload.key)?;
        self.inner.abort(upload).await
    }

    async fn sign_put(&self, key: &str, bytes: u64) -> Result<Signed, StoreError> {
        self.to_put(key)?;
        self.inner.sign_put(key, bytes).await
    }

    async fn sign_get(&self, key: &str) -> Result<Signed, StoreError> {
        self.to_read(key)?;
        self.inner.sign_get(key).await
    }
}
