//! Packing: workers read and compress frames in any order, one hand takes them in theirs.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use super::sink::Sink;
use crate::{
    archive::{self, padding},
    beneath::Cursor,
    entry::{Content, Entry, Identity, Kind},
    error::{Asked as _, Error},
    frame::{Frame, Packer},
    limits::{FRAME_BYTES, PIECE_BYTES},
    manifest::LongFile,
    source::{Long, Source, Taken},
    tree::{Change, Id, Tree},
    watched::Watched,
};

/// What makes a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// The members of this range of the order.
    Members { from: usize, to: usize },
    /// A piece of a long file.
    Piece { id: Id, index: usize },
}

/// What is to be read, in the order of the layer.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) order: Vec<Id>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) hot: usize,
}

impl Plan {
    /// Files and links that are not known to be the same: hot ones first.
    pub(crate) fn of(tree: &Tree, cold: &[bool], walked: &[Id]) -> Self {
        let mut plan = Self::default();
        let to_read = |id: &&Id| {
            let node = tree.node(**id);
            matches!(node.kind, Kind::File | Kind::Symlink) && matches!(node.change, Change::New | Change::Suspect)
        };
        for class in [false, true] {
            let begin = plan.order.len();
            plan.order.extend(walked.iter().filter(to_read).filter(|id| cold[**id as usize] == class));
            plan.cut(tree, begin);
            if !class {
                plan.hot = plan.jobs.len();
            }
        }
        plan
    }

    /// The content of what a job reads.
    fn job_bytes(&self, tree: &Tree, at: usize) -> u64 {
        match self.jobs[at] {
            Job::Members { from, to } => self.order[from..to].iter().map(|id| tree.node(*id).size).sum(),
            Job::Piece { id, index } => {
                let rest = tree.node(id).size.saturating_sub(index as u64 * PIECE_BYTES as u64);
                rest.min(PIECE_BYTES as u64)
            }
        }
    }

    /// The content of all that is to be read.
    pub(crate) fn bytes(&self, tree: &Tree) -> u64 {
        self.order.iter().map(|id| tree.node(*id).size).sum()
    }

    fn cut(&mut self, tree: &Tree, begin: usize) {
        let (mut from, mut bytes) = (begin, 0);
        for at in begin..self.order.len() {
            let id = self.order[at];
            let size = tree.node(id).size;
            if size > PIECE_BYTES as u64 {
                self.members(from, at);
                let pieces = usize::try_from(size.div_ceil(PIECE_BYTES as u64)).unwrap_or(usize::MAX);
                self.jobs.extend((0..pieces).map(|index| Job::Piece { id, index }));
                (from, bytes) = (at + 1, 0);
                continue;
            }
            bytes += 3 * archive::BLOCK as u64 + size + padding(size) as u64;
            if bytes >= FRAME_BYTES as u64 {
                self.members(from, at + 1);
                (from, bytes) = (at + 1, 0);
            }
        }
        self.members(from, self.order.len());
    }

    fn members(&mut self, from: usize, to: usize) {
        if from < to {
            self.jobs.push(Job::Members { from, to });
        }
    }
}

/// What became of members.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Packed, with their identities and sizes.
    pub(crate) packed: Vec<(Id, Identity, u64)>,
    /// Read, and the same as in the last snapshot.
    pub(crate) same: Vec<Id>,
    pub(crate) gone: Vec<Id>,
    pub(crate) left_out: Vec<(Id, &'static str)>,
    pub(crate) torn: Vec<Id>,
    pub(crate) long: Vec<LongFile>,
    /// Not what the walk found: the layer can't be used.
    pub(crate) otherwise: Vec<Id>,
}

impl Outcome {
    fn append(&mut self, mut other: Self) {
        self.packed.append(&mut other.packed);
        self.same.append(&mut other.same);
        self.gone.append(&mut other.gone);
        self.left_out.append(&mut other.left_out);
        self.torn.append(&mut other.torn);
        self.otherwise.append(&mut other.otherwise);
    }
}

#[derive(Default)]
struct Done {
    frame: Option<Frame>,
    outcome: Outcome,
    /// A piece's digest, and with the first the member.
    piece: Option<(Content, Option<Entry>)>,
}

#[derive(Default)]
struct Queue {
    next: usize,
    taken: usize,
    ready: BTreeMap<usize, Result<Done, Error>>,
    stop: bool,
}

/// Packs a plan's jobs into the sink.
pub(crate) struct Pack<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) source: &'a Source<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) level: i32,
    pub(crate) threads: usize,
    pub(crate) watched: &'a Watched,
}

struct Shared<'a> {
    pack: &'a Pack<'a>,
    queue: Mutex<Queue>,
    moved: Condvar,
}

impl Pack<'_> {
    pub(crate) fn run(&self, sink: &mut Sink) -> Result<Outcome, Error> {
        let shared = Shared { pack: self, queue: Mutex::default(), moved: Condvar::new() };
        thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, self.plan.jobs.len().max(1)) {
                scope.spawn(|| shared.work());
            }
            let collected = shared.collect(sink);
            shared.lock().stop = true;
            shared.moved.notify_all();
            collected
        })
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collect(&self, sink: &mut Sink) -> Result<Outcome, Error> {
        let mut all = Outcome::default();
        let mut long: Option<(Entry, Vec<Content>)> = None;
        for (at, job) in self.pack.plan.jobs.iter().enumerate() {
            let done = self.take(at)?;
            self.pack.watched.did(self.pack.plan.job_bytes(self.pack.tree, at));
            let has_frame = done.frame.is_some();
            if let (Job::Piece { id, index: 0 }, true) = (job, has_frame) {
                let size = self.pack.tree.node(*id).size;
                all.long.push(LongFile { path: self.pack.tree.member(*id)?, size, frame: sink.frames() });
            }
            if let Some(frame) = done.frame {
                sink.frame(&frame)?;
                if at < self.pack.plan.hot {
                    sink.hot = sink.frames();
                }
            }
            if let (Job::Piece { id, index }, Some((content, entry))) = (job, done.piece) {
                if let Some(entry) = entry {
                    long = Some((entry, Vec::new()));
                }
                if let Some((entry, pieces)) = &mut long {
                    pieces.push(content);
                    let size = entry.size;
                    if (*index as u64 + 1) * PIECE_BYTES as u64 >= size {
                        sink.members += 1;
                        all.packed.push((*id, entry.identity(Some(Content::pieces(pieces))), size));
                    }
                }
            }
            sink.members += done.outcome.packed.len() as u64;
            all.append(done.outcome);
            if !all.otherwise.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    fn take(&self, at: usize) -> Result<Done, Error> {
        let mut queue = self.lock();
        loop {
            if let Some(done) = queue.ready.remove(&at) {
                queue.taken = at + 1;
                self.moved.notify_all();
                return done;
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next job, as long as not too many wait to be taken.
    fn next(&self) -> Option<usize> {
        let ahead = 4 * self.pack.threads;
        let mut queue = self.lock();
        loop {
            if queue.stop || queue.next >= self.pack.plan.jobs.len() {
                return None;
            }
            if queue.next < queue.taken + ahead {
                queue.next += 1;
                return Some(queue.next - 1);
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        let mut worker = None;
        while let Some(at) = self.next() {
            let _fallen = Fallen { shared: self, at };
            let done = match &mut worker {
                Some(worker) => Worker::job(worker, at),
                none => Worker::new(self.pack).and_then(|fresh| none.insert(fresh).job(at)),
            };
            self.lock().ready.insert(at, done);
            self.moved.notify_all();
        }
    }
}

/// A worker's hold on its job: if it panics, whoever waits for the job is told.
struct Fallen<'a> {
    shared: &'a Shared<'a>,
    at: usize,
}

impl Drop for Fallen<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let fallen = std::io::Error::other("it panicked");
            let mut queue = self.shared.lock();
            queue.stop = true;
            queue.ready.insert(self.at, Err(fallen).asked("run", b"the packer"));
            drop(queue);
            self.shared.moved.notify_all();
        }
    }
}

struct Worker<'a> {
    pack: &'a Pack<'a>,
    packer: Packer,
    cursor: Cursor,
    raw: Vec<u8>,
    content: Vec<u8>,
    long: Option<(Id, Long)>,
}

impl<'a> Worker<'a> {
    fn new(pack: &'a Pack<'a>) -> Result<Self, Error> {
        let packer = Packer::new(pack.level).asked("start", b"the compressor")?;
        Ok(Self { pack, packer, cursor: Cursor::default(), raw: Vec::new(), content: Vec::new(), long: None })
    }

    fn job(&mut self, at: usize) -> Result<Done, Error> {
        self.raw.clear();
        let mut done = match self.pack.plan.jobs[at] {
            Job::Members { from, to } => self.members(from, to)?,
            Job::Piece { id, index } => self.piece(id, index)?,
        };
        if !self.raw.is_empty() && done.outcome.otherwise.is_empty() {
            done.frame = Some(self.packer.pack(&self.raw).asked("compress", b"a frame")?);
        }
        Ok(done)
    }

    fn members(&mut self, from: usize, to: usize) -> Result<Done, Error> {
        let mut done = Done::default();
        for id in &self.pack.plan.order[from..to] {
            let node = self.pack.tree.node(*id);
            let path = self.pack.tree.member(*id)?;
            self.content.clear();
            let taken = match node.kind {
                Kind::File => self.pack.source.file(&mut self.cursor, &path, &mut self.content)?,
                _ => self.pack.source.symlink(&mut self.cursor, &path)?,
            };
            match taken {
                Taken::Gone => done.outcome.gone.push(*id),
                Taken::LeftOut(why) => done.outcome.left_out.push((*id, why)),
                Taken::Otherwise => done.outcome.otherwise.push(*id),
                Taken::Whole { entry, content, torn } => {
                    let identity = entry.identity(content);
                    if node.change == Change::Suspect && identity == node.identity {
                        done.outcome.same.push(*id);
                        continue;
                    }
                    if torn {
                        done.outcome.torn.push(*id);
                    }
                    archive::header(&entry, &mut self.raw)
                        .map_err(|source| Error::Unwritable { path: entry.path.clone(), source })?;
                    self.raw.extend_from_slice(&self.content);
                    self.raw.resize(self.raw.len() + padding(entry.size), 0);
                    done.outcome.packed.push((*id, identity, entry.size));
                }
            }
        }
        Ok(done)
    }

    fn piece(&mut self, id: Id, index: usize) -> Result<Done, Error> {
        let mut done = Done::default();
        if self.long.as_ref().is_none_or(|(open, _)| *open != id) {
            let opened = self.pack.source.long(&mut self.cursor, self.pack.tree, id)?;
            self.long = opened.map(|long| (id, long));
        }
        let Some((_, long)) = &self.long else {
            done.outcome.otherwise.push(id);
            return Ok(done);
        };
        if index == 0 {
            archive::header(&long.entry, &mut self.raw)
                .map_err(|source| Error::Unwritable { path: long.entry.path.clone(), source })?;
        }
        let begin = self.raw.len();
        if !long.piece(index, &mut self.raw)? {
            done.outcome.otherwise.push(id);
            return Ok(done);
        }
        let content = Content::whole(&self.raw[begin..]);
        if (index as u64 + 1) * PIECE_BYTES as u64 >= long.entry.size {
            self.raw.resize(self.raw.len() + padding(long.entry.size), 0);
            if self.pack.source.spooled(id).is_some_and(|spooled| spooled.torn) {
                done.outcome.torn.push(id);
            }
        }
        done.piece = Some((content, (index == 0).then(|| long.entry.clone())));
        Ok(done)
    }
}

/// Digests the pieces of long files whose fingerprints alone differ, and says which are the same.
pub(crate) fn unchanged(tree: &Tree, source: &Source<'_>, suspects: &[Id], threads: usize) -> Result<Vec<Id>, Error> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let same = Mutex::new(Ok(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, suspects.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(id) = suspects.get(at) else { return };
                    let found = source.is_same_long(tree, *id);
                    let mut same = same.lock().unwrap_or_else(PoisonError::into_inner);
                    match (&mut *same, found) {
                        (Ok(same), Ok(true)) => same.push(*id),
                        (same, Err(error)) => *same = Err(error),
                        _ => {}
                    }
                }
            });
        }
    });
    same.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, RootPath, member::Member};

    /// It would wait for ever otherwise.
    #[test]
    fn whoever_waits_for_a_worker_that_panics_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootPath { name: Member::parse("project").unwrap(), path: folder.path().join("project") };
        std::fs::create_dir(&root.path).unwrap();
        let place = Place::new(vec![root], folder.path().join("state")).unwrap();
        let (source, tree, watched) = (Source::open(&place).unwrap(), Tree::default(), Watched::default());
        // There is no such member: a fault of ours, which a worker meets.
        let plan = Plan { order: vec![7], jobs: vec![Job::Members { from: 0, to: 1 }; 100], hot: 0 };
        let (parts, _coming) = tokio::sync::mpsc::channel(1);
        let pack = Pack { tree: &tree, source: &source, plan: &plan, level: 1, threads: 4, watched: &watched };
        let run = std::panic::AssertUnwindSafe(|| pack.run(&mut Sink::new(parts, 1 << 20)).map(drop));
        std::panic::catch_unwind(run).unwrap_err();
    }
}
