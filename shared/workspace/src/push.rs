//! Push: what changed since the last snapshot becomes a layer, and the manifest with it the head.
//!
//! ```text
//! walk ─► compare with the cache ─► read, pack, compress (all cores) ─► parts ─► manifest ─► commit ─► cache
//! ```

mod pack;
mod sink;
mod tail;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use pack::{Outcome, Pack, Plan, unchanged};
use sink::Sink;
use tokio::sync::mpsc;

use crate::{
    cache::{CacheReader, CacheWriter, Origin, RowValues},
    commit::{After, Commit, CommitError, Committed, Head, Lease, Renewed},
    diff::compare,
    entry::Kind,
    error::{Asked as _, Error, raw},
    exclude::{Rules, is_cold},
    format::RESTORE,
    key::{Key, Sort},
    limits::{
        ATTEMPTS, DEAD_PERCENT, DELTA_FLOOR_BYTES, DELTA_PERCENT, MAX_DELTA_PATHS, MAX_LAYERS, MAX_MANIFEST_BYTES,
        MAX_PARTS, PART_BYTES, PIECE_BYTES, TRIES,
    },
    manifest::{BadManifest, FORMAT, Layer, Manifest, Note, Root},
    member::{Member, escape},
    place::{Place, Position, Stage, State},
    source::Source,
    time::Millis,
    transfer::Store,
    tree::{Change, Id, Tree},
    walk::walk,
    watched::Watched,
};

/// The shortest time between two renewals.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

pub(crate) const CACHE: &str = "cache";
pub(crate) const NEXT_CACHE: &str = "cache.next";

/// Which generation the trees may be pushed onto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The one that the state folder says they descend from.
    Known,
    /// Whichever the head is: the caller knows better than the state folder.
    Replace,
}

/// A push.
#[derive(Debug, Clone)]
pub struct Push {
    /// The lease that it is done under.
    pub lease: Lease,
    /// The head, as it was given with the lease.
    pub head: Option<Head>,
    /// The trees.
    pub place: Place,
    /// What is left out by rule.
    pub rules: Rules,
    /// What it may replace.
    pub basis: Basis,
    /// What happens to the lease when it is done.
    pub after: After,
    /// When it begins.
    pub now: Millis,
    /// A random number: what tells the objects of two tries apart.
    pub nonce: u64,
    /// Zstd's level: 1, or 3 where the link is slower than about 3 Gbit/s.
    pub level: i32,
    /// How many threads walk, read and compress.
    pub threads: usize,
    /// For how long the lease is renewed, at every third of it.
    pub ttl: Duration,
    /// Who watches, and may stop it.
    pub watched: Watched,
}

/// How a push ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Pushed {
    /// There is a new head.
    Committed {
        /// It.
        head: Head,
        /// What it consists of.
        manifest: Arc<Manifest>,
    },
    /// Nothing differs from the head.
    Unchanged(Head),
    /// The lease is another one's. Nothing was changed.
    Fenced,
    /// The head is not the one that the push was to replace. Nothing was changed.
    Moved(Option<Head>),
    /// The trees do not descend from the head, or nobody knows whether they do. Nothing was changed.
    Unrelated {
        /// The manifest that they descend from.
        trees: Option<Key>,
        /// The head.
        head: Key,
    },
    /// A pull died while it changed the trees: they are nothing. Pull again.
    HalfPulled,
}

/// What a push begins with.
struct Begun {
    state: State,
    parent: Option<(Head, Manifest)>,
    cache: Option<CacheReader>,
}

/// What is to be packed.
struct Scan {
    tree: Tree,
    walked: Vec<Id>,
    cold: Vec<bool>,
    deleted: Vec<Member>,
    /// Whether a whole new base is made.
    base: bool,
}

/// A packed layer, if anything was to be packed, and the tree as it was read.
struct Packed {
    tree: Tree,
    layer: Option<Layer>,
    base: bool,
    torn: Vec<Member>,
}

/// Pushes. What fails leaves the head, and the trees, as they were.
pub async fn push(store: &Store, commit: &dyn Commit, push: Push) -> Result<Pushed, Error> {
    let state = push.place.lock()?;
    let position = state.position().filter(|position| position.workspace == push.lease.workspace);
    if position.as_ref().is_some_and(|position| position.stage != Stage::Whole) && push.basis == Basis::Known {
        return Ok(Pushed::HalfPulled);
    }
    let known = adopt(&state, position, push.head.as_ref())?;
    if let Some(head) = &push.head
        && known.as_ref() != Some(&head.manifest)
        && push.basis == Basis::Known
    {
        return Ok(Pushed::Unrelated { trees: known, head: head.manifest.clone() });
    }
    let parent = match &push.head {
        Some(head) => Some((head.clone(), manifest_of(store, head).await?)),
        None => None,
    };
    let push = Arc::new(push);
    let cache = usable_cache(&state, &push)?;
    let begun = Begun { state, parent, cache };
    let pushing = Pushing { store, commit, push };
    let mut work = std::pin::pin!(pushing.run(begun));
    let lost = tokio::select! {
        biased;
        done = &mut work => return done,
        () = pushing.lost() => &pushing.push.watched,
    };
    // What it has begun is undone, unless it was done already.
    lost.stop();
    match work.await {
        Err(Error::Cancelled) => Ok(Pushed::Fenced),
        done => done,
    }
}

/// What the trees descend from. A commit whose answer was lost, or whose end a kill prevented, is found here.
fn adopt(state: &State, position: Option<Position>, head: Option<&Head>) -> Result<Option<Key>, Error> {
    let known = position.map(|position| position.manifest);
    let Some(head) = head.filter(|head| known.as_ref() != Some(&head.manifest)) else { return Ok(known) };
    let next = CacheReader::open(&state.file(NEXT_CACHE)).filter(|next| next.origin.manifest == head.manifest);
    if next.is_none() {
        return Ok(known);
    }
    settle_cache(state)?;
    let (workspace, manifest) = (head.manifest.workspace.clone(), head.manifest.clone());
    state.set_position(&Position { workspace, manifest, layers: Vec::new(), stage: Stage::Whole })?;
    Ok(Some(head.manifest.clone()))
}

pub(crate) fn settle_cache(state: &State) -> Result<(), Error> {
    let (next, path) = (state.file(NEXT_CACHE), state.file(CACHE));
    std::fs::rename(&next, &path).asked("write", raw(&path))
}

/// The cache, if it is of these roots, these rules, and the head.
fn usable_cache(state: &State, push: &Push) -> Result<Option<CacheReader>, Error> {
    let Some(head) = &push.head else { return Ok(None) };
    let origin = Origin::of(&push.place, &head.manifest, push.rules.exclusions())?;
    Ok(CacheReader::open(&state.file(CACHE)).filter(|cache| cache.origin == origin))
}

/// The manifest of a head, if its bytes are the ones that were committed.
pub async fn manifest_of(store: &Store, head: &Head) -> Result<Manifest, Error> {
    let key = head.manifest.to_string();
    let bytes = store.get_all(&key, MAX_MANIFEST_BYTES as u64).await?;
    manifest_in(&bytes, head).map_err(|source| Error::Manifest { key, source })
}

/// The same, out of bytes that were read already.
pub fn manifest_in(bytes: &[u8], head: &Head) -> Result<Manifest, BadManifest> {
    if blake3::hash(bytes).to_hex().as_str() != head.blake3 {
        return Err(BadManifest::Wrong("its digest is not the one that was committed"));
    }
    let manifest = Manifest::parse(bytes)?;
    let matches = manifest.workspace == head.manifest.workspace && manifest.generation == head.generation;
    if matches { Ok(manifest) } else { Err(BadManifest::Wrong("it is another one's")) }
}

struct Pushing<'a> {
    store: &'a Store,
    commit: &'a dyn Commit,
    push: Arc<Push>,
}

impl Pushing<'_> {
    async fn run(&self, begun: Begun) -> Result<Pushed, Error> {
        let Begun { state, parent, cache } = begun;
        let state = Arc::new(state);
        let key = self.key(Sort::Layer, parent.as_ref().map_or(0, |(head, _)| head.generation) + 1);
        let packed = self.pack(&state, parent.as_ref(), cache, &key).await?;
        let Some((head, manifest)) = self.manifest(&packed, parent.as_ref())? else {
            let Some((head, manifest)) = parent else {
                return Err(Error::Roots("there is nothing to push".to_owned()));
            };
            return self.unchanged(&state, packed, head, &manifest).await;
        };
        self.write_cache(&state, packed, &head, NEXT_CACHE).await?;
        let bytes = manifest.to_bytes().map_err(|source| Error::Manifest { key: head.manifest.to_string(), source })?;
        if head.generation == 1 {
            self.put_restore().await?;
        }
        self.store.put(&head.manifest.to_string(), bytes.into()).await?;
        if self.push.watched.is_stopped() {
            return Err(Error::Cancelled);
        }
        let replaces = parent.as_ref().map_or(0, |(head, _)| head.generation);
        match self.commit(replaces, &head).await? {
            Committed::Fenced => return Ok(Pushed::Fenced),
            Committed::Moved(head) => return Ok(Pushed::Moved(head)),
            Committed::Done => {}
        }
        settle_cache(&state)?;
        state.set_position(&Position::whole(&head, &manifest))?;
        tracing::info!(workspace = %head.manifest.workspace, generation = head.generation, bytes = head.bytes, "pushed");
        Ok(Pushed::Committed { head, manifest: Arc::new(manifest) })
    }

    /// Holds the lease for as long as it is ours. A keeper that can't be asked is asked again: the commit decides.
    async fn lost(&self) {
        let Push { lease, ttl, .. } = &*self.push;
        loop {
            tokio::time::sleep((*ttl / 3).max(SHORTEST_WAIT)).await;
            match self.commit.renew(lease, *ttl).await {
                Ok(Renewed::Lost) => return,
                Ok(Renewed::Until(_)) => {}
                Err(error) => tracing::warn!(%error, "the lease could not be renewed; it is tried again"),
            }
        }
    }

    fn key(&self, sort: Sort, generation: u64) -> Key {
        let Push { lease, nonce, .. } = &*self.push;
        Key { workspace: lease.workspace.clone(), sort, generation, token: lease.token, nonce: *nonce }
    }

    /// Says the same in every version, so whatever is there may stay.
    async fn put_restore(&self) -> Result<(), Error> {
        let key = self.push.lease.workspace.restore_key();
        match self.store.put(&key, Bytes::from_static(RESTORE.as_bytes())).await {
            Err(crate::blobs::StoreError::Refused { .. }) => Ok(()),
            put => Ok(put?),
        }
    }

    /// Asks again after a lost answer: a commit that was done is done.
    async fn commit(&self, replaces: u64, head: &Head) -> Result<Committed, CommitError> {
        let mut tried = 0;
        loop {
            match self.commit.commit(&self.push.lease, replaces, head, self.push.after).await {
                Err(_) if tried + 1 < TRIES => tried += 1,
                answer => return answer,
            }
        }
    }

    /// The cache is written anew: what was read and found the same is not read again.
    async fn unchanged(
        &self,
        state: &Arc<State>,
        packed: Packed,
        head: Head,
        manifest: &Manifest,
    ) -> Result<Pushed, Error> {
        self.write_cache(state, packed, &head, NEXT_CACHE).await?;
        settle_cache(state)?;
        state.set_position(&Position::whole(&head, manifest))?;
        if self.push.after == After::Release {
            self.commit.release(&self.push.lease).await?;
        }
        Ok(Pushed::Unchanged(head))
    }

    /// Packs and sends the layer; anew, when a long file changed under it.
    async fn pack(
        &self,
        state: &Arc<State>,
        parent: Option<&(Head, Manifest)>,
        mut cache: Option<CacheReader>,
        key: &Key,
    ) -> Result<Packed, Error> {
        let chain = parent.map(|(_, manifest)| Chain::of(manifest));
        let mut unsettled: Vec<Member> = Vec::new();
        for attempt in 0..=ATTEMPTS {
            let key = Key { nonce: key.nonce.wrapping_add(u64::from(attempt)), ..key.clone() };
            let (parts, coming) = mpsc::channel(1);
            let packing = Packing {
                push: self.push.clone(),
                state: state.clone(),
                chain,
                cache: cache.take(),
                key: key.clone(),
                unsettled: std::mem::take(&mut unsettled),
                parts,
            };
            let work = tokio::task::spawn_blocking(move || packing.run());
            let name = key.to_string();
            let (packed, sent) = tokio::join!(work, self.store.upload(&name, coming, &self.push.watched));
            let packed = packed.map_err(std::io::Error::other).asked("run", b"the packer")?;
            // A store that refuses ends the packer too: its reason is the better one.
            let sent = sent?;
            match packed? {
                Ok(packed) if packed.layer.is_some() == sent => return Ok(packed),
                Ok(_) => return Err(Error::Cancelled),
                Err(otherwise) => unsettled = otherwise,
            }
            cache = usable_cache(state, &self.push)?;
        }
        let first = unsettled.into_iter().next();
        Err(first.map_or(Error::Cancelled, Error::Unsettled))
    }

    fn manifest(&self, packed: &Packed, parent: Option<&(Head, Manifest)>) -> Result<Option<(Head, Manifest)>, Error> {
        let Some(layer) = &packed.layer else { return Ok(None) };
        let generation = parent.map_or(0, |(head, _)| head.generation) + 1;
        let mut layers = match parent {
            Some((_, manifest)) if !packed.base => manifest.layers.clone(),
            _ => Vec::new(),
        };
        layers.push(layer.clone());
        let push = &self.push;
        let manifest = Manifest {
            format: FORMAT,
            tool: concat!("furlough ", env!("CARGO_PKG_VERSION")).to_owned(),
            workspace: push.lease.workspace.clone(),
            generation,
            token: push.lease.token,
            parent: parent.map(|(head, _)| head.manifest.clone()),
            as_of_ms: push.now,
            roots: push
                .place
                .roots
                .iter()
                .map(|root| Root { name: root.name.clone(), path: escape(raw(&root.path)) })
                .collect(),
            exclusions: push.rules.exclusions().to_vec(),
            counts: packed.tree.counts(),
            left_out: packed.tree.left_out.clone(),
            torn: packed.torn.clone(),
            layers,
        };
        let key = Key { nonce: layer.key.nonce, ..self.key(Sort::Manifest, generation) };
        let bytes = manifest.to_bytes().map_err(|source| Error::Manifest { key: key.to_string(), source })?;
        let head = Head {
            manifest: key,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
            generation,
            as_of_ms: push.now,
            bytes: manifest.counts.bytes,
        };
        Ok(Some((head, manifest)))
    }

    async fn write_cache(
        &self,
        state: &Arc<State>,
        packed: Packed,
        head: &Head,
        name: &'static str,
    ) -> Result<(), Error> {
        let (push, state, manifest) = (self.push.clone(), state.clone(), head.manifest.clone());
        let work = move || {
            let origin = Origin::of(&push.place, &manifest, push.rules.exclusions())?;
            write_cache(packed.tree, &state, &origin, name)
        };
        tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).asked("run", b"the packer")?
    }
}

pub(crate) fn write_cache(mut tree: Tree, state: &State, origin: &Origin, name: &str) -> Result<(), Error> {
    let path = state.file(name);
    let mut writer = CacheWriter::create(&path, origin).asked("write", raw(&path))?;
    tree.each(|tree, id, member| {
        let node = tree.node(id);
        if node.change == Change::Absent {
            return Ok(());
        }
        let values = RowValues {
            kind: node.kind,
            racy: node.racy,
            quick: node.quick,
            fingerprint: node.fingerprint,
            identity: node.identity,
        };
        writer.row(member, &values)
    })
    .and_then(|()| writer.finish())
    .asked("write", raw(&path))
}

/// What is known of the layers that a delta would be added to.
#[derive(Debug, Clone, Copy)]
struct Chain {
    layers: usize,
    base_bytes: u64,
    delta_bytes: u64,
    raw_bytes: u64,
}

impl Chain {
    fn of(manifest: &Manifest) -> Self {
        let base_bytes = manifest.layers.first().map_or(0, |layer| layer.bytes);
        let all: u64 = manifest.layers.iter().map(|layer| layer.bytes).sum();
        let raw_bytes = manifest.layers.iter().map(Layer::raw_bytes).sum();
        Self { layers: manifest.layers.len(), base_bytes, delta_bytes: all - base_bytes, raw_bytes }
    }

    /// Whether the next layer is to be a new base.
    fn is_over(&self, tree: &Tree) -> bool {
        let over = |part: u64, percent: u64, whole: u64| part > DELTA_FLOOR_BYTES && part * 100 > whole * percent;
        let live = tree.counts().bytes;
        self.layers >= MAX_LAYERS
            || over(self.delta_bytes, DELTA_PERCENT, self.base_bytes)
            || over(self.raw_bytes.saturating_sub(live + 1536 * tree.nodes.len() as u64), DEAD_PERCENT, self.raw_bytes)
    }
}

struct Packing {
    push: Arc<Push>,
    state: Arc<State>,
    chain: Option<Chain>,
    cache: Option<CacheReader>,
    key: Key,
    unsettled: Vec<Member>,
    parts: mpsc::Sender<Bytes>,
}

impl Packing {
    /// The layer; or the members that changed under it.
    fn run(self) -> Result<Result<Packed, Vec<Member>>, Error> {
        let Self { push, state, chain, cache, key, unsettled, parts } = self;
        let mut scan = scan(&push, chain, cache)?;
        let mut source = Source::open(&push.place)?;
        for path in &unsettled {
            if let Some(id) = find(&mut scan.tree, path) {
                source.spool(&state, &mut scan.tree, id)?;
            }
        }
        let suspects: Vec<Id> = scan.walked.iter().copied().filter(|id| is_long_suspect(&scan.tree, *id)).collect();
        for id in unchanged(&scan.tree, &source, &suspects, push.threads)? {
            scan.tree.node_mut(id).change = Change::Same;
        }
        let plan = Plan::of(&scan.tree, &scan.cold, &scan.walked);
        push.watched.expects(plan.bytes(&scan.tree));
        let mut sink = Sink::new(parts, part_bytes(&scan.tree));
        let (tree, watched) = (&scan.tree, &push.watched);
        let pack = Pack { tree, source: &source, plan: &plan, level: push.level, threads: push.threads, watched };
        let mut outcome = pack.run(&mut sink)?;
        if outcome.otherwise.is_empty() {
            let deleted = &mut scan.deleted;
            tail::tail(&scan.tree, &source, &scan.walked, deleted, &mut outcome, push.level, &mut sink)?;
        }
        if !outcome.otherwise.is_empty() {
            return Ok(Err(outcome.otherwise.iter().map(|id| scan.tree.member(*id)).collect::<Result<_, _>>()?));
        }
        finish(scan, outcome, sink, key).map(Ok)
    }
}

fn finish(scan: Scan, mut outcome: Outcome, sink: Sink, key: Key) -> Result<Packed, Error> {
    let Scan { mut tree, deleted, base, .. } = scan;
    let mut replaced = Vec::new();
    for (id, identity, size) in &outcome.packed {
        if tree.node(*id).known {
            replaced.push(tree.member(*id)?);
        }
        let node = tree.node_mut(*id);
        (node.identity, node.size, node.change) = (*identity, *size, Change::Same);
    }
    replaced.sort();
    for id in outcome.gone.iter().chain(outcome.left_out.iter().map(|(id, _)| id)) {
        tree.node_mut(*id).change = Change::Absent;
    }
    for (id, why) in &outcome.left_out {
        let note = Note { path: tree.member(*id)?, why: (*why).to_owned() };
        tree.left_out.push(note);
    }
    let torn = outcome.torn.iter().map(|id| tree.member(*id)).collect::<Result<Vec<_>, _>>()?;
    // What was torn is read again next time, whatever its fingerprint says.
    for id in &outcome.torn {
        tree.node_mut(*id).racy = true;
    }
    let layer = if sink.frames() == 0 {
        None
    } else {
        Some(sink.finish(key, std::mem::take(&mut outcome.long), deleted, replaced)?)
    };
    Ok(Packed { tree, layer, base, torn })
}

fn is_long_suspect(tree: &Tree, id: Id) -> bool {
    let node = tree.node(id);
    node.kind == Kind::File && node.change == Change::Suspect && node.size > PIECE_BYTES as u64
}

/// Large enough that what does not compress at all has no more parts than an upload may have.
fn part_bytes(tree: &Tree) -> usize {
    let most = tree.counts().bytes + 2048 * tree.nodes.len() as u64;
    PART_BYTES.max(usize::try_from(most.div_ceil(u64::from(MAX_PARTS) - 1)).unwrap_or(PART_BYTES))
}

fn find(tree: &mut Tree, wanted: &Member) -> Option<Id> {
    let mut found = None;
    _ = tree.each(|_, id, path| {
        if path == wanted.bytes() {
            found = Some(id);
        }
        Ok::<_, ()>(())
    });
    found
}

fn scan(push: &Push, chain: Option<Chain>, cache: Option<CacheReader>) -> Result<Scan, Error> {
    let mut tree = walk(&push.place, &push.rules, push.threads)?;
    let mut deleted = Vec::new();
    let mut base = true;
    if let (Some(mut cache), Some(chain)) = (cache, chain) {
        deleted = compare(&mut tree, &mut cache)?;
        let changed = tree.nodes.iter().filter(|node| node.change != Change::Same).count();
        base = changed > 0 && (chain.is_over(&tree) || changed + deleted.len() > MAX_DELTA_PATHS);
        if base {
            deleted.clear();
            for node in &mut tree.nodes {
                (node.change, node.known) = (Change::New, false);
            }
        }
    }
    let mut walked = Vec::with_capacity(tree.nodes.len());
    let mut cold = vec![false; tree.nodes.len()];
    tree.each(|tree, id, _| {
        walked.push(id);
        let parent = tree.node(id).parent;
        cold[id as usize] = !tree.is_root(id) && (cold[parent as usize] || is_cold(tree.name(id)));
        Ok::<_, Error>(())
    })?;
    Ok(Scan { tree, walked, cold, deleted, base })
}
