//! Pull: a generation becomes a tree, in a fresh place that a rename publishes; or onto an older one, by the difference.
//!
//! ```text
//! manifest ─► ranged reads, hot first ─► check, unpack, write (all cores) ─► links, directories ─► publish ─► cache
//! ```

mod fresh;
mod late;
mod plan;
mod write;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fresh::{Fresh, clear_direct};
use futures::StreamExt as _;
use plan::{Fetch, fetches};
use rustix::fs::Mode;
use tokio::sync::{mpsc, watch};
use write::{Fetched, Gathered, LongState, Seen, Target, Worker, path_hash};

pub(crate) use plan::{Voids, piece, piece_bytes};
pub use write::Owner;

use crate::{
    beneath::{Beneath, DIRECTORY},
    cache::{CacheReader, Origin},
    commit::Head,
    diff::compare,
    entry::{Kind, Mtime},
    error::{Asked as _, Error, raw},
    exclude::Rules,
    manifest::{Counts, Manifest},
    member::Member,
    place::{Place, Position, Stage, State},
    push::{CACHE, NEXT_CACHE, manifest_of, settle_cache, write_cache},
    source::Source,
    stat::{filesystem_now, is_racy},
    transfer::{Reading, Store},
    tree::{Change, Tree},
    walk::walk,
    watched::Watched,
};

/// What happens to what is in the roots and in no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// Nothing is pulled over it.
    Keep,
    /// It is lost.
    Discard,
}

/// A pull.
#[derive(Debug, Clone)]
pub struct Pull {
    /// What is pulled.
    pub head: Head,
    /// Where.
    pub place: Place,
    /// What happens to what is there.
    pub local: Local,
    /// The most that the trees may have, in bytes.
    pub limit_bytes: Option<u64>,
    /// Who owns what is restored: whoever restores it, where it is not said.
    pub owner: Option<Owner>,
    /// A random number, for the names of fresh places.
    pub nonce: u64,
    /// How many threads unpack and write.
    pub threads: usize,
    /// How many ranges are read at once.
    pub connections: usize,
    /// Who watches, and may stop it.
    pub watched: Watched,
}

/// How far a pull is. Sent as it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ready {
    /// Nothing can be used yet.
    #[default]
    Nothing,
    /// All that is not in folders of dependencies and builds is there: git, reading and editing work. The roots are in these
    /// places until they are published; what is opened there stays open.
    Hot(Vec<PathBuf>),
    /// Everything is there, checked, and in its place.
    Whole,
}

/// How a pull ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Pulled {
    /// The trees are this generation.
    Whole {
        /// It.
        manifest: Arc<Manifest>,
        /// How they came to be it.
        way: Way,
        /// Extended attributes that the filesystem here does not take.
        without_xattrs: u64,
    },
    /// There is work in the roots that no snapshot has. Nothing was changed.
    LocalChanges {
        /// Some of it.
        some: Vec<Member>,
    },
    /// Something is in a root, and nobody knows what. Nothing was changed.
    Occupied(PathBuf),
}

/// How many local changes are named.
const SHOWN: usize = 10;

/// How trees came to be a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a fresh place.
    Fresh,
    /// By the difference to an older generation.
    Difference,
    /// They were it.
    Same,
}

/// Pulls. `ready` says how far it is.
pub async fn pull(store: &Store, pull: Pull, ready: &watch::Sender<Ready>) -> Result<Pulled, Error> {
    let manifest = Arc::new(manifest_of(store, &pull.head).await?);
    if let Some(limit) = pull.limit_bytes.filter(|limit| manifest.counts.bytes > *limit) {
        return Err(Error::Quota { bytes: manifest.counts.bytes, limit });
    }
    let place = matched(&pull.place, &manifest)?;
    let state = Arc::new(place.lock()?);
    let pull = Arc::new(Pull { place, ..pull });
    let looked = {
        let (pull, state, manifest) = (pull.clone(), state.clone(), manifest.clone());
        blocking(move || look(&pull, &state, &manifest)).await?
    };
    let from = match looked {
        Looked::Same => {
            ready.send_replace(Ready::Whole);
            return Ok(Pulled::Whole { manifest, way: Way::Same, without_xattrs: 0 });
        }
        Looked::Changed(some) => return Ok(Pulled::LocalChanges { some }),
        Looked::Occupied(root) => return Ok(Pulled::Occupied(root)),
        Looked::Older(layers) => Some(layers),
        Looked::Nothing => None,
    };
    let pulling = Pulling { store, pull: pull.clone(), state: state.clone(), manifest: manifest.clone(), from };
    let without_xattrs = pulling.run(ready).await?;
    let way = if from.is_some() { Way::Difference } else { Way::Fresh };
    tracing::info!(workspace = %manifest.workspace, generation = manifest.generation, ?way, "pulled");
    Ok(Pulled::Whole { manifest, way, without_xattrs })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).asked("run", b"a pull")?
}

/// The place with the snapshot's roots, no more and no fewer.
fn matched(place: &Place, manifest: &Manifest) -> Result<Place, Error> {
    let here: Vec<_> = place.roots.iter().map(|root| &root.name).collect();
    let mut there: Vec<_> = manifest.roots.iter().map(|root| &root.name).collect();
    there.sort();
    if here == there {
        return Ok(place.clone());
    }
    let names = |names: &[&Member]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(Error::Roots(format!("the snapshot has the roots {}, and the place has {}", names(&there), names(&here))))
}

/// What is in the roots now.
enum Looked {
    /// Nothing that has to be kept.
    Nothing,
    /// This generation.
    Same,
    /// A generation whose layers, so many, are the first of this one's.
    Older(usize),
    /// Work that no snapshot has.
    Changed(Vec<Member>),
    /// Nobody knows.
    Occupied(PathBuf),
}

fn look(pull: &Pull, state: &State, manifest: &Manifest) -> Result<Looked, Error> {
    let position = state.position().filter(|position| position.workspace == manifest.workspace);
    if let Some(Position { stage: Stage::Pulling { direct }, .. }) = &position {
        // An interrupted pull starts clean.
        clear_direct(&pull.place, direct)?;
        return Ok(Looked::Nothing);
    }
    let Some((position, mut cache)) = position.and_then(|position| known(pull, state, position)) else {
        return occupied(pull);
    };
    let mut tree = walk(&pull.place, &rules_of(manifest)?, pull.threads)?;
    let mut changed = compare(&mut tree, &mut cache)?;
    changed.extend(really_changed(pull, &tree)?);
    if !changed.is_empty() {
        changed.truncate(SHOWN);
        return Ok(if pull.local == Local::Keep { Looked::Changed(changed) } else { Looked::Nothing });
    }
    if position.manifest == pull.head.manifest {
        return Ok(Looked::Same);
    }
    let here = position.layers.len();
    let there = manifest.layers.iter().map(|layer| &layer.key);
    let is_prefix = here > 0 && here < manifest.layers.len() && position.layers.iter().zip(there).all(|(a, b)| a == b);
    Ok(if is_prefix { Looked::Older(here) } else { Looked::Nothing })
}

/// What the trees are, if the cache is whole and of these roots.
fn known(pull: &Pull, state: &State, position: Position) -> Option<(Position, CacheReader)> {
    let cache = CacheReader::open(&state.file(CACHE)).filter(|cache| cache.origin.manifest == position.manifest)?;
    let origin = Origin::of(&pull.place, &position.manifest, cache.origin.exclusions()).ok()?;
    (origin == cache.origin).then_some((position, cache))
}

/// The rules by which the snapshot was made: what they leave out is not looked at.
fn rules_of(manifest: &Manifest) -> Result<Rules, Error> {
    Rules::new(manifest.exclusions.iter().cloned()).map_err(|error| Error::Roots(error.to_string()))
}

fn occupied(pull: &Pull) -> Result<Looked, Error> {
    if pull.local == Local::Discard {
        return Ok(Looked::Nothing);
    }
    for root in &pull.place.roots {
        match Beneath::open(&root.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).asked("open", raw(&root.path)),
            Ok(open) => {
                if !late::is_empty(&open).asked("read", raw(&root.path))? {
                    return Ok(Looked::Occupied(root.path.clone()));
                }
            }
        }
    }
    Ok(Looked::Nothing)
}

/// Of the members whose fingerprints differ, those that do.
fn really_changed(pull: &Pull, tree: &Tree) -> Result<Vec<Member>, Error> {
    let source = Source::open(&pull.place)?;
    let mut changed = Vec::new();
    for id in 0..u32::try_from(tree.nodes.len()).unwrap_or(u32::MAX) {
        let node = tree.node(id);
        let differs = match node.change {
            Change::Same => false,
            // What is in it is looked at by itself; its own time and mode are nobody's work.
            _ if node.kind == Kind::Directory && node.known => false,
            Change::New | Change::Absent => true,
            Change::Suspect => !source.is_same(tree, id)?,
        };
        if differs {
            changed.push(tree.member(id)?);
        }
    }
    Ok(changed)
}

struct Pulling<'a> {
    store: &'a Store,
    pull: Arc<Pull>,
    state: Arc<State>,
    manifest: Arc<Manifest>,
    /// How many layers are here already, if the difference is pulled.
    from: Option<usize>,
}

/// What the fetching side and the writing side share.
struct Restore {
    pull: Arc<Pull>,
    state: Arc<State>,
    manifest: Arc<Manifest>,
    from: Option<usize>,
    fetches: Vec<Fetch>,
    coming: Mutex<mpsc::Receiver<Fetched>>,
    ready: watch::Sender<Ready>,
}

impl Pulling<'_> {
    async fn run(&self, ready: &watch::Sender<Ready>) -> Result<u64, Error> {
        let fetches = fetches(&self.manifest, &Voids::of(&self.manifest), self.from.unwrap_or(0));
        let (sending, coming) = mpsc::channel(2);
        let restore = Restore {
            pull: self.pull.clone(),
            state: self.state.clone(),
            manifest: self.manifest.clone(),
            from: self.from,
            fetches: fetches.clone(),
            coming: Mutex::new(coming),
            ready: ready.clone(),
        };
        let work = blocking(move || restore.run());
        let (done, sent) = tokio::join!(work, self.fetch(&fetches, sending));
        match (done, sent) {
            (Ok(without_xattrs), Ok(())) => Ok(without_xattrs),
            // The writers end early when nothing comes any more: the store's reason is the better one.
            (Ok(_) | Err(Error::Cancelled), Err(error)) | (Err(error), _) => Err(error),
        }
    }

    /// Reads all ranges, some at once, nearly in order.
    async fn fetch(&self, fetches: &[Fetch], to: mpsc::Sender<Fetched>) -> Result<(), Error> {
        let readings: Vec<_> = self.manifest.layers.iter().map(|layer| Reading::new(layer.key.to_string())).collect();
        let read = |fetch: &Fetch| {
            let (fetch, reading) = (fetch.clone(), &readings[fetch.layer]);
            async move {
                let bytes = self.store.get(reading, fetch.bytes.clone()).await?;
                let (layer, frames, hot) = (fetch.layer, fetch.frames, fetch.hot);
                Ok::<_, Error>(Fetched { layer, first: frames.start, count: frames.len(), bytes, hot })
            }
        };
        let watched = &self.pull.watched;
        watched.expects(fetches.iter().map(|fetch| fetch.bytes.end - fetch.bytes.start).sum());
        let mut ranges = futures::stream::iter(fetches).map(read).buffer_unordered(self.pull.connections.max(1));
        loop {
            let next = tokio::select! {
                biased;
                () = watched.stopped() => return Err(Error::Cancelled),
                next = ranges.next() => next,
            };
            let Some(next) = next.transpose()? else { break };
            let bytes = next.bytes.len() as u64;
            watched.moved(bytes);
            watched.did(bytes);
            if to.send(next).await.is_err() {
                // The writers have ended, and say why.
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Restore {
    fn run(self) -> Result<u64, Error> {
        let voids = Voids::of(&self.manifest);
        let gathered = match self.from {
            Some(from) => self.onto_older(&voids, from)?,
            None => self.afresh(&voids)?,
        };
        // Before the trees are called whole: whole ones of which nothing is known are somebody's work to the next pull.
        let without_xattrs = self.write_cache(gathered)?;
        self.state.set_position(&Position::whole(&self.pull.head, &self.manifest))?;
        self.ready.send_replace(Ready::Whole);
        Ok(without_xattrs)
    }

    fn onto_older(&self, voids: &Voids<'_>, from: usize) -> Result<Written, Error> {
        self.changing(Vec::new())?;
        let roots = self.pull.place.roots.iter().map(|root| Beneath::open(&root.path).asked("open", raw(&root.path)));
        let target = self.target(voids, roots.collect::<Result<_, _>>()?, true);
        late::clear(&target, &self.cleared(from))?;
        self.write(&target, &[])?;
        late::finish(&target)?;
        let gathered = target.gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let tree = walk(&self.pull.place, &rules_of(&self.manifest)?, self.pull.threads)?;
        check_counts(&tree.counts(), &self.manifest.counts)?;
        Ok(Written { gathered, hot_at: Mtime::default(), tree: Some(tree) })
    }

    fn afresh(&self, voids: &Voids<'_>) -> Result<Written, Error> {
        let fresh = Fresh::make(&self.pull.place, self.pull.nonce)?;
        let direct = fresh.direct();
        if !direct.is_empty() {
            self.changing(direct.clone())?;
        }
        let target = self.target(voids, fresh.roots()?, false);
        let hot_at = self.write(&target, &fresh.paths())?;
        late::finish(&target)?;
        let gathered = target.gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
        check_counts(&gathered.counts, &self.manifest.counts)?;
        self.changing(direct)?;
        fresh.publish()?;
        Ok(Written { gathered, hot_at, tree: None })
    }

    /// From now on the roots are nothing, until they are this generation.
    fn changing(&self, direct: Vec<Member>) -> Result<(), Error> {
        let whole = Position::whole(&self.pull.head, &self.manifest);
        self.state.set_position(&Position { stage: Stage::Pulling { direct }, ..whole })
    }

    fn target<'a>(&'a self, voids: &'a Voids<'a>, roots: Vec<Beneath>, in_place: bool) -> Target<'a> {
        let mut long = HashMap::new();
        for (layer, number) in self.manifest.layers.iter().zip(0..) {
            long.extend((0..layer.long.len()).map(|at| ((number, at), Mutex::new(LongState::default()))));
        }
        Target {
            manifest: &self.manifest,
            voids,
            place: &self.pull.place,
            roots,
            owner: self.pull.owner,
            umask: late::umask(),
            in_place,
            long,
            gathered: Mutex::new(Gathered::default()),
        }
    }

    /// What the layers from number `from` on delete or replace, as far as no later one has it void.
    fn cleared(&self, from: usize) -> Vec<(usize, &Member)> {
        let layers = self.manifest.layers.iter().enumerate().skip(from);
        layers
            .flat_map(|(number, layer)| layer.deleted.iter().chain(&layer.replaced).map(move |path| (number, path)))
            .collect()
    }

    /// Writes all that comes. Returns when, by the filesystem's clock, the hot part was announced.
    fn write(&self, target: &Target<'_>, announce: &[PathBuf]) -> Result<Mtime, Error> {
        let left = AtomicUsize::new(self.fetches.iter().filter(|fetch| fetch.hot).count());
        let hot_at = Mutex::new(Mtime::default());
        let failed = Mutex::new(None);
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..self.pull.threads.max(1) {
                scope.spawn(|| {
                    if let Err(error) = self.work(target, &left, &done, announce, &hot_at) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        self.coming.lock().unwrap_or_else(PoisonError::into_inner).close();
                    }
                });
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        if done.into_inner() != self.fetches.len() {
            return Err(Error::Cancelled);
        }
        Ok(hot_at.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn work(
        &self,
        target: &Target<'_>,
        left: &AtomicUsize,
        done: &AtomicUsize,
        announce: &[PathBuf],
        hot_at: &Mutex<Mtime>,
    ) -> Result<(), Error> {
        let mut worker = Worker::new(target)?;
        loop {
            let fetched = self.coming.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            let Some(fetched) = fetched else { break };
            worker.fetched(&fetched)?;
            done.fetch_add(1, Ordering::AcqRel);
            if fetched.hot && left.fetch_sub(1, Ordering::AcqRel) == 1 && !announce.is_empty() {
                *hot_at.lock().unwrap_or_else(PoisonError::into_inner) = self.filesystem_now(target)?;
                self.ready.send_replace(Ready::Hot(announce.to_vec()));
            }
        }
        worker.finish();
        Ok(())
    }

    fn filesystem_now(&self, target: &Target<'_>) -> Result<Mtime, Error> {
        let state = &self.pull.place.state;
        let spare = rustix::fs::open(state, DIRECTORY, Mode::empty()).asked("open", raw(state))?;
        let root = target.roots[0].directory(b"").asked("open", raw(state))?;
        filesystem_now(root, spare).asked("ask for the time at", raw(state))
    }

    /// Writes the cache: what was written, as it was then; and what was there already, as the old cache has it.
    fn write_cache(&self, written: Written) -> Result<u64, Error> {
        let Written { gathered, hot_at, tree } = written;
        let mut tree = match tree {
            Some(tree) => tree,
            None => walk(&self.pull.place, &rules_of(&self.manifest)?, self.pull.threads)?,
        };
        for node in &mut tree.nodes {
            node.change = Change::Absent;
        }
        let older = if self.from.is_some() { CacheReader::open(&self.state.file(CACHE)) } else { None };
        if let Some(mut older) = older {
            compare(&mut tree, &mut older)?;
            for node in &mut tree.nodes {
                // What differs from the old row is read again next time.
                node.racy |= node.change != Change::Same;
                node.change = if node.known { Change::Same } else { Change::Absent };
            }
        }
        if join(&mut tree, gathered.seen, hot_at) {
            let origin = Origin::of(&self.pull.place, &self.pull.head.manifest, &self.manifest.exclusions)?;
            write_cache(tree, &self.state, &origin, NEXT_CACHE)?;
            settle_cache(&self.state)?;
        }
        Ok(gathered.without_xattrs)
    }
}

/// What was written, and when the hot part of it was announced.
struct Written {
    gathered: Gathered,
    hot_at: Mtime,
    tree: Option<Tree>,
}

/// Gives the tree's members what was seen when they were written. What was not is for the next push to find. False when
/// something that was written is gone.
fn join(tree: &mut Tree, mut seen: Vec<Seen>, hot_at: Mtime) -> bool {
    seen.sort_unstable_by_key(|seen| seen.path);
    let mut found = 0;
    _ = tree.each(|tree, id, path| {
        let hash = path_hash(path);
        let Ok(at) = seen.binary_search_by_key(&hash, |seen| seen.path) else { return Ok(()) };
        let (seen, node) = (&seen[at], tree.node_mut(id));
        if seen.kind == node.kind {
            found += 1;
            (node.change, node.identity) = (Change::Same, seen.identity);
            if node.kind != Kind::HardLink {
                node.fingerprint = seen.fingerprint;
            }
            node.racy = seen.hot && is_racy(seen.ctime, hot_at);
        }
        Ok::<_, ()>(())
    });
    found == seen.len()
}

fn check_counts(restored: &Counts, expected: &Counts) -> Result<(), Error> {
    if restored == expected { Ok(()) } else { Err(Error::Counts(format!("{restored:?} instead of {expected:?}"))) }
}
