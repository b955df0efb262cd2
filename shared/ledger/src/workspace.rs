//! The records of workspaces, `workspace/<name>`: the lease, the fence and the head, which the engine knows as a
//! [`Commit`].
//!
//! | operation | condition | writes |
//! |---|---|---|
//! | acquire | no lease, one's own, or over for longer than the skew | the lease, `token + 1` |
//! | renew | token and owner | the lease's end |
//! | release | token and owner | no lease |
//! | commit | token and owner, and the head's generation | the head, and no lease where it is released |
//!
//! Each costs one unit: the largest legal record has less than 1,024 bytes (measured by a test). A refused commit is told
//! apart by what stood there: the very head is a commit whose answer was lost.

use std::time::Duration;

use async_trait::async_trait;
use lifecycle::Time;
use workspace::{
    commit::{Acquired, After, Commit, CommitError, Committed, Head, Lease, Renewed},
    key::Name,
    limits::MAX_OWNER_BYTES,
    time::Clock,
};

use crate::{
    Cursor, Ledger, LedgerError,
    attribute::Item,
    expression::Values,
    item::{Reader, VERSION},
    read::ScanSlice,
    store::{RECORD, Written},
};

const PREFIX: &str = "workspace/";

/// A new record, or one of this format.
const FORMAT: &str = "(attribute_not_exists(#v) OR #v = :v)";

/// Free, the owner's own, or over: by clocks that differ by the skew at most.
const FREE: &str = "(attribute_not_exists(#claim_until) OR #claim_until < :expired OR #claim_owner = :owner)";

/// The lease is the one that was given, and was not given back.
const OWN: &str = "#token = :token AND #claim_owner = :owner AND attribute_exists(#claim_until)";

/// There is no head yet.
const NO_HEAD: &str = "attribute_not_exists(#generation)";

/// The head that the writer knew.
const SAME_HEAD: &str = "#generation = :replaces";

const ACQUIRE: &str = "SET #v = :v, #claim_owner = :owner, #claim_until = :until, \
                       #token = if_not_exists(#token, :now) + :one";
const RENEW: &str = "SET #claim_until = :until";
const RELEASE: &str = "REMOVE #claim_owner, #claim_until";
const COMMIT: &str = "SET #manifest = :manifest, #digest = :digest, #generation = :generation, #as_of = :as_of, \
                      #bytes = :bytes";
const COMMIT_AND_RELEASE: &str = "SET #manifest = :manifest, #digest = :digest, #generation = :generation, \
                                  #as_of = :as_of, #bytes = :bytes REMOVE #claim_owner, #claim_until";

/// What is kept of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Which.
    pub name: Name,
    /// The fence: that of the last lease that was given.
    pub token: u64,
    /// The lease, if one is held, over or not.
    pub lease: Option<Lease>,
    /// The current generation, if there is one.
    pub head: Option<Head>,
}

/// A page of workspaces.
#[derive(Debug, Default)]
pub struct WorkspacePage {
    /// Those that could be read.
    pub records: Vec<WorkspaceRecord>,
    /// The keys of those that could not, with the reason.
    pub unreadable: Vec<(String, LedgerError)>,
    /// The next page; `None`: this was the last.
    pub next: Option<Cursor>,
}

impl Ledger {
    /// A page of all workspaces, in no order. It reads through the whole table: for a listing by a person.
    pub async fn workspaces(&self, page: Option<Cursor>) -> Result<WorkspacePage, LedgerError> {
        let slice = ScanSlice { operation: "workspaces", prefix: PREFIX, words: &[] };
        let (items, next) = self.scan(&slice, page).await?;
        let mut page = WorkspacePage { next, ..WorkspacePage::default() };
        for found in items {
            let key = found.get("pk").and_then(|key| key.as_s().ok()).cloned().unwrap_or_default();
            let name = key.strip_prefix(PREFIX).and_then(|name| Name::new(name).ok());
            let record = match name {
                Some(name) => record(&name, &found),
                None => Err(Reader::new(&key, &found).malformed("pk", "it is no workspace's key")),
            };
            match record {
                Ok(record) => page.records.push(record),
                Err(error) => page.unreadable.push((key, error)),
            }
        }
        Ok(page)
    }
}

impl Ledger {
    /// The newest generation of a workspace.
    pub(crate) async fn generation(&self, workspace: &Name) -> Result<Option<u64>, LedgerError> {
        let Some(found) = self.item(&key(workspace), RECORD, "workspace").await? else { return Ok(None) };
        Ok(record(workspace, &found)?.head.map(|head| head.generation))
    }
}

/// The keeper of workspaces' records, by a clock.
#[derive(Debug, Clone)]
pub struct Workspaces {
    ledger: Ledger,
    clock: Clock,
}

impl Workspaces {
    /// In this ledger; leases end by this clock.
    pub fn new(ledger: Ledger, clock: Clock) -> Self {
        Self { ledger, clock }
    }

    fn now(&self) -> Time {
        Time::from_millis(self.clock.now())
    }

    async fn write(
        &self,
        operation: &'static str,
        workspace: &Name,
        demands: &[&str],
        update: &str,
        values: Values,
    ) -> Result<Written<WorkspaceRecord>, CommitError> {
        let condition = [&[FORMAT], demands].concat().join(" AND ");
        let values = values.number("v", VERSION).number("one", 1);
        let pk = key(workspace);
        let written = async {
            Ok(match self.ledger.update(operation, (&pk, RECORD), Some(&condition), update, &values).await? {
                Written::Done(new) => Written::Done(record(workspace, &new)?),
                Written::Refused(old) => Written::Refused(old.map(|old| record(workspace, &old)).transpose()?),
            })
        };
        written.await.map_err(|error| unasked(workspace, &error))
    }

    async fn get(&self, workspace: &Name) -> Result<Option<WorkspaceRecord>, CommitError> {
        let found = async {
            let found = self.ledger.item(&key(workspace), RECORD, "workspace").await?;
            found.map(|found| record(workspace, &found)).transpose()
        };
        found.await.map_err(|error| unasked(workspace, &error))
    }
}

fn key(workspace: &Name) -> String {
    format!("{PREFIX}{workspace}")
}

fn unasked(workspace: &Name, error: &LedgerError) -> CommitError {
    CommitError { workspace: workspace.clone(), why: error.to_string() }
}

fn under(lease: &Lease) -> Values {
    Values::default().number("token", lease.token).text("owner", &*lease.owner)
}

fn record(name: &Name, item: &Item) -> Result<WorkspaceRecord, LedgerError> {
    let key = key(name);
    let read = Reader::new(&key, item);
    read.version()?;
    let token = read.needed("token", read.number("token")?)?;
    let lease = read.claim()?.map(|claim| Lease {
        workspace: name.clone(),
        owner: claim.owner.to_string(),
        token,
        until_ms: claim.until.millis(),
    });
    let head = read.number::<u64>("generation")?.map(|generation| head(&read, generation)).transpose()?;
    Ok(WorkspaceRecord { name: name.clone(), token, lease, head })
}

fn head(read: &Reader<'_>, generation: u64) -> Result<Head, LedgerError> {
    let manifest = read.needed("manifest", read.text("manifest")?)?;
    Ok(Head {
        manifest: manifest.parse().map_err(|why| read.malformed("manifest", format!("{why}")))?,
        blake3: read.needed("digest", read.text("digest")?)?.to_owned(),
        generation,
        as_of_ms: read.needed("as_of", read.number("as_of")?)?,
        bytes: read.needed("bytes", read.number("bytes")?)?,
    })
}

#[async_trait]
impl Commit for Workspaces {
    async fn acquire(&self, workspace: &Name, owner: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        let (bytes, limit) = (owner.len(), MAX_OWNER_BYTES);
        if bytes > limit {
            let error = LedgerError::TooLong { item: key(workspace), what: "owner", bytes, limit };
            return Err(unasked(workspace, &error));
        }
        let now = self.now();
        let values = Values::default()
            .text("owner", owner)
            .time("now", now)
            .time("until", now.plus(ttl))
            .time("expired", self.ledger.expired(now));
        match self.write("acquire", workspace, &[FREE], ACQUIRE, values).await? {
            Written::Done(WorkspaceRecord { lease: Some(lease), head, .. }) => Ok(Acquired::Granted { lease, head }),
            Written::Refused(Some(WorkspaceRecord { lease: Some(lease), .. })) => {
                Ok(Acquired::Held { owner: lease.owner, until_ms: lease.until_ms })
            }
            // Neither is written by anything here.
            _ => {
                let why = "a record without a lease stood where one was refused or given".to_owned();
                Err(CommitError { workspace: workspace.clone(), why })
            }
        }
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Renewed, CommitError> {
        let until = self.now().plus(ttl);
        let values = under(lease).time("until", until);
        Ok(match self.write("renew", &lease.workspace, &[OWN], RENEW, values).await? {
            Written::Done(_) => Renewed::Until(until.millis()),
            Written::Refused(_) => Renewed::Lost,
        })
    }

    async fn release(&self, lease: &Lease) -> Result<(), CommitError> {
        self.write("release", &lease.workspace, &[OWN], RELEASE, under(lease)).await.map(drop)
    }

    async fn commit(&self, lease: &Lease, replaces: u64, head: &Head, after: After) -> Result<Committed, CommitError> {
        lease.check(replaces, head)?;
        let values = under(lease)
            .number("replaces", replaces)
            .text("manifest", head.manifest.to_string())
            .text("digest", &*head.blake3)
            .number("generation", head.generation)
            .number("as_of", head.as_of_ms)
            .number("bytes", head.bytes);
        let known = if replaces == 0 { NO_HEAD } else { SAME_HEAD };
        let update = if after == After::Release { COMMIT_AND_RELEASE } else { COMMIT };
        let refused = match self.write("commit", &lease.workspace, &[OWN, known], update, values).await? {
            Written::Done(_) => return Ok(Committed::Done),
            Written::Refused(old) => old,
        };
        let Some(old) = refused else { return Ok(Committed::Fenced) };
        let is_ours = old.lease.is_some_and(|held| held.owner == lease.owner && held.token == lease.token);
        Ok(match old.head {
            Some(found) if found == *head => Committed::Done,
            found if is_ours => Committed::Moved(found),
            _ => Committed::Fenced,
        })
    }

    async fn head(&self, workspace: &Name) -> Result<Option<Head>, CommitError> {
        Ok(self.get(workspace).await?.and_then(|record| record.head))
    }

    async fn lease(&self, workspace: &Name) -> Result<Option<Lease>, CommitError> {
        Ok(self.get(workspace).await?.and_then(|record| record.lease))
    }
}
