//! Walks the roots in parallel: one `fstatat` a member, no reads.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use rustix::{
    fs::{Dir, FileType},
    io::Errno,
};

use crate::{
    beneath::{DIRECTORY, open_directory},
    entry::{Kind, Mtime},
    error::{Asked as _, Error, raw},
    exclude::Rules,
    limits::{MAX_DEPTH, MAX_MEMBERS, MAX_PATH_BYTES},
    manifest::{DEVICE, FIFO, Note, SET_ID_BITS, SOCKET},
    member::Member,
    place::Place,
    stat::{Stat, filesystem_now, is_racy},
    tree::{Found, Id, Tree},
};

struct Job {
    id: Id,
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    depth: usize,
    path_bytes: usize,
}

#[derive(Default)]
struct Work {
    tree: Tree,
    jobs: Vec<Job>,
    busy: usize,
    failed: Option<Error>,
}

/// The tree below the roots of a place.
pub(crate) fn walk(place: &Place, rules: &Rules, threads: usize) -> Result<Tree, Error> {
    let spare =
        rustix::fs::open(&place.state, DIRECTORY, rustix::fs::Mode::empty()).asked("open", raw(&place.state))?;
    let mut work = Work::default();
    let mut roots = Vec::new();
    let mut began = Vec::new();
    for root in &place.roots {
        let handle = open_root(&root.path)?;
        let now = filesystem_now(&handle, &spare).asked("ask for the time at", raw(&root.path))?;
        let stat = Stat::of(&handle).asked("look at", raw(&root.path))?;
        roots.push(found(root.name.bytes().to_vec(), Kind::Directory, &stat, now));
        began.push((Arc::new(handle), root.name.bytes().len(), now));
    }
    work.tree.add(None, roots);
    for (at, (handle, path_bytes, _)) in began.iter().enumerate() {
        let id = Id::try_from(at).unwrap_or_default();
        work.jobs.push(Job { id, parent: handle.clone(), name: b".".to_vec(), depth: 1, path_bytes: *path_bytes });
    }
    let now = began.iter().map(|(_, _, now)| *now).min_by_key(|now| (now.seconds, now.nanos)).unwrap_or_default();
    let walker = Walker { work: Mutex::new(work), more: Condvar::new(), rules, now };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| walker.run());
        }
    });
    let work = walker.work.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = work.failed {
        return Err(error);
    }
    let mut tree = work.tree;
    tree.tie_names();
    tree.left_out.sort();
    Ok(tree)
}

fn open_root(path: &Path) -> Result<OwnedFd, Error> {
    let flags = DIRECTORY - rustix::fs::OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).asked("open", raw(path))
}

fn found(name: Vec<u8>, kind: Kind, stat: &Stat, now: Mtime) -> Found {
    Found {
        name,
        kind,
        size: if kind == Kind::File { stat.size } else { 0 },
        quick: stat.quick(),
        fingerprint: stat.fingerprint(),
        racy: is_racy(stat.ctime, now),
        shared: (kind == Kind::File && stat.links > 1).then_some((stat.device, stat.inode)),
    }
}

/// The bits that let somebody act as somebody else.
const SET_ID: u32 = 0o6000;

/// Whether a directory has its bit from the one above it, of which it is told already.
fn inherits(above: impl AsFd, kind: Kind) -> bool {
    kind == Kind::Directory && Stat::of(above).is_ok_and(|above| above.permissions() & SET_ID != 0)
}

struct Walker<'a> {
    work: Mutex<Work>,
    more: Condvar,
    rules: &'a Rules,
    now: Mtime,
}

/// If a walker panics, the others end too, and don't wait for what it had.
struct Fallen<'a>(&'a Walker<'a>);

impl Drop for Fallen<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let fallen: Result<(), _> = Err(std::io::Error::other("it panicked")).asked("run", b"a walk");
            self.0.lock().failed = fallen.err();
            self.0.more.notify_all();
        }
    }
}

/// What a directory has.
#[derive(Default)]
struct Listed {
    found: Vec<Found>,
    left_out: Vec<(Vec<u8>, &'static str)>,
}

impl Walker<'_> {
    fn run(&self) {
        while let Some(job) = self.next() {
            let _fallen = Fallen(self);
            let listed = self.list(&job);
            let mut work = self.lock();
            work.busy -= 1;
            let taken = listed.and_then(|(handle, listed)| self.take(&mut work, &job, &handle, listed));
            if let Err(error) = taken {
                work.failed.get_or_insert(error);
            }
            self.more.notify_all();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next directory; none when no more can come.
    fn next(&self) -> Option<Job> {
        let mut work = self.lock();
        loop {
            if work.failed.is_some() {
                return None;
            }
            if let Some(job) = work.jobs.pop() {
                work.busy += 1;
                return Some(job);
            }
            if work.busy == 0 {
                return None;
            }
            work = self.more.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A directory that can't be read has nothing in it, and that is noted. One that is gone is no longer listed.
    fn list(&self, job: &Job) -> Result<(Arc<OwnedFd>, Listed), Error> {
        let mut listed = Listed::default();
        let handle = match open_directory(&job.parent, &job.name) {
            Ok(handle) => Arc::new(handle),
            // What is gone by now has nothing in it.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok((job.parent.clone(), listed)),
            Err(_) => {
                listed.left_out.push((Vec::new(), "the directory can't be read"));
                return Ok((job.parent.clone(), listed));
            }
        };
        let entries = Dir::read_from(&handle).asked("read", &job.name)?;
        for entry in entries {
            let entry = entry.asked("read", &job.name)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                self.look(job, &handle, name, &mut listed);
            }
        }
        listed.found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((handle, listed))
    }

    fn look(&self, job: &Job, handle: impl AsFd, name: &[u8], listed: &mut Listed) {
        let mut leave = |why| listed.left_out.push((name.to_vec(), why));
        // What is gone by now is not there.
        let Ok(stat) = Stat::at(&handle, name) else { return };
        let kind = match stat.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => return leave(FIFO),
            FileType::Socket => return leave(SOCKET),
            _ => return leave(DEVICE),
        };
        if job.path_bytes + 1 + name.len() > MAX_PATH_BYTES || job.depth + 1 > MAX_DEPTH {
            return leave("its path is too long or too deep");
        }
        if kind != Kind::Symlink && stat.permissions() & SET_ID != 0 && !inherits(handle, kind) {
            leave(SET_ID_BITS);
        }
        listed.found.push(found(name.to_vec(), kind, &stat, self.now));
    }

    fn take(&self, work: &mut Work, job: &Job, handle: &Arc<OwnedFd>, mut listed: Listed) -> Result<(), Error> {
        let tree = &mut work.tree;
        let above = |depth: usize| ancestor(tree, job.id, depth);
        listed.found.retain(|child| !self.rules.leaves_out(&child.name, above));
        let path = if listed.left_out.is_empty() { Vec::new() } else { tree.path(job.id) };
        for (name, why) in listed.left_out {
            let path = if name.is_empty() { path.clone() } else { [&path[..], b"/", &name].concat() };
            match Member::new(&path) {
                Ok(path) => tree.left_out.push(Note { path, why: why.to_owned() }),
                Err(_) => tree.left_out.push(Note { path: tree.member(job.id)?, why: format!("below it: {why}") }),
            }
        }
        let children: Vec<_> =
            listed.found.iter().map(|child| (child.kind == Kind::Directory).then(|| child.name.clone())).collect();
        let first = tree.add(Some(job.id), listed.found).filter(|_| (tree.nodes.len() as u64) < MAX_MEMBERS);
        let first = first.ok_or_else(|| Error::Roots(format!("more than {MAX_MEMBERS} members")))?;
        // The first child is taken next: a LIFO keeps few directories open.
        for (at, name) in children.into_iter().enumerate().rev() {
            let Some(name) = name else { continue };
            let id = first + Id::try_from(at).unwrap_or_default();
            let path_bytes = job.path_bytes + 1 + name.len();
            work.jobs.push(Job { id, parent: handle.clone(), name, depth: job.depth + 1, path_bytes });
        }
        Ok(())
    }
}

/// The name of a directory (depth 0) or of one above it; the roots' own names are the last.
fn ancestor(tree: &Tree, id: Id, depth: usize) -> Option<&[u8]> {
    let mut at = id;
    for _ in 0..depth {
        if tree.is_root(at) {
            return None;
        }
        at = tree.node(at).parent;
    }
    Some(tree.name(at))
}
