//! Records in files, each changed under a lock of its own and replaced by a rename.

use std::{fs, io, path::PathBuf, time::Duration};

use async_trait::async_trait;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Acquired, After, Commit, CommitError, Committed, Head, Lease, Renewed};
use crate::{
    key::Name,
    limits::MAX_OWNER_BYTES,
    time::{Clock, Millis},
};

/// The records of a folder.
#[derive(Debug, Clone)]
pub struct DirectoryCommit {
    folder: PathBuf,
    clock: Clock,
    skew: Duration,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    token: u64,
    lease: Option<Holder>,
    head: Option<Head>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Holder {
    owner: String,
    until_ms: Millis,
}

impl DirectoryCommit {
    /// In this folder, by this clock; `skew` is the most that any two clocks differ.
    pub fn new(folder: impl Into<PathBuf>, clock: Clock, skew: Duration) -> Self {
        Self { folder: folder.into(), clock, skew }
    }

    /// Runs `change` on the record while no other process does, and keeps what it says is new.
    async fn with<T: Send + 'static>(
        &self,
        workspace: &Name,
        change: impl FnOnce(&mut Record) -> (T, Keep) + Send + 'static,
    ) -> Result<T, CommitError> {
        let folder = self.folder.clone();
        let name = workspace.clone();
        let work = move || -> io::Result<T> {
            fs::create_dir_all(&folder)?;
            let lock = fs::File::create(folder.join(format!("{name}.lock")))?;
            flock(&lock, FlockOperation::LockExclusive)?;
            let path = folder.join(format!("{name}.json"));
            let mut record = match fs::read(&path) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Record::default(),
                Err(error) => return Err(error),
            };
            let (outcome, keep) = change(&mut record);
            if keep == Keep::New {
                let next = folder.join(format!("{name}.next"));
                let file = fs::File::create(&next)?;
                serde_json::to_writer(&file, &record)?;
                file.sync_all()?;
                fs::rename(&next, &path)?;
            }
            Ok(outcome)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(io::Error::other)
            .flatten()
            .map_err(|error| CommitError { workspace: workspace.clone(), why: error.to_string() })
    }

    fn until(&self, ttl: Duration) -> Millis {
        self.clock.now().saturating_add(millis(ttl))
    }
}

#[derive(PartialEq, Eq)]
enum Keep {
    Old,
    New,
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

impl Record {
    fn holds(&self, lease: &Lease) -> bool {
        self.token == lease.token && self.lease.as_ref().is_some_and(|holder| holder.owner == lease.owner)
    }
}

#[async_trait]
impl Commit for DirectoryCommit {
    async fn acquire(&self, workspace: &Name, owner: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        if owner.len() > MAX_OWNER_BYTES {
            let why = format!("the owner has {} bytes; at most {MAX_OWNER_BYTES} are allowed", owner.len());
            return Err(CommitError { workspace: workspace.clone(), why });
        }
        let (now, until_ms) = (self.clock.now(), self.until(ttl));
        let free_from = millis(self.skew);
        let (name, owner) = (workspace.clone(), owner.to_owned());
        self.with(workspace, move |record| {
            if let Some(holder) = &record.lease
                && holder.owner != owner
                && now <= holder.until_ms.saturating_add(free_from)
            {
                let held = Acquired::Held { owner: holder.owner.clone(), until_ms: holder.until_ms };
                return (held, Keep::Old);
            }
            record.token += 1;
            record.lease = Some(Holder { owner: owner.clone(), until_ms });
            let lease = Lease { workspace: name, owner, token: record.token, until_ms };
            (Acquired::Granted { lease, head: record.head.clone() }, Keep::New)
        })
        .await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Renewed, CommitError> {
        let until_ms = self.until(ttl);
        let held = lease.clone();
        self.with(&lease.workspace, move |record| match &mut record.lease {
            Some(holder) if record.token == held.token && holder.owner == held.owner => {
                holder.until_ms = until_ms;
                (Renewed::Until(until_ms), Keep::New)
            }
            _ => (Renewed::Lost, Keep::Old),
        })
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), CommitError> {
        let held = lease.clone();
        self.with(&lease.workspace, move |record| {
            if record.holds(&held) {
                record.lease = None;
                ((), Keep::New)
            } else {
                ((), Keep::Old)
            }
        })
        .await
    }

    async fn commit(&self, lease: &Lease, replaces: u64, head: &Head, after: After) -> Result<Committed, CommitError> {
        lease.check(replaces, head)?;
        let (lease_held, head) = (lease.clone(), head.clone());
        self.with(&lease.workspace, move |record| {
            if record.head.as_ref() == Some(&head) {
                return (Committed::Done, Keep::Old);
            }
            if !record.holds(&lease_held) {
                return (Committed::Fenced, Keep::Old);
            }
            if record.head.as_ref().map_or(0, |head| head.generation) != replaces {
                return (Committed::Moved(record.head.clone()), Keep::Old);
            }
            record.head = Some(head);
            if after == After::Release {
                record.lease = None;
            }
            (Committed::Done, Keep::New)
        })
        .await
    }

    async fn head(&self, workspace: &Name) -> Result<Option<Head>, CommitError> {
        self.with(workspace, |record| (record.head.clone(), Keep::Old)).await
    }

    async fn lease(&self, workspace: &Name) -> Result<Option<Lease>, CommitError> {
        let name = workspace.clone();
        self.with(workspace, move |record| {
            let token = record.token;
            let lease = record.lease.as_ref();
            let lease = lease.map(|holder| Lease {
                workspace: name,
                owner: holder.owner.clone(),
                token,
                until_ms: holder.until_ms,
            });
            (lease, Keep::Old)
        })
        .await
    }
}
