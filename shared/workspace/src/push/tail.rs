//! The end of a layer: signs of what is deleted, further names of files, and directories, the deepest first.

use std::collections::HashSet;

use super::{pack::Outcome, sink::Sink};
use crate::{
    archive,
    diff::link_entry,
    entry::{Entry, Kind, Mtime},
    error::{Asked as _, Error},
    frame::Packer,
    limits::FRAME_BYTES,
    member::Member,
    source::{Source, Taken},
    tree::{Change, Id, Tree},
};

struct Tail<'a> {
    packer: Packer,
    raw: Vec<u8>,
    sink: &'a mut Sink,
}

impl Tail<'_> {
    fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        archive::header(entry, &mut self.raw)
            .map_err(|source| Error::Unwritable { path: entry.path.clone(), source })?;
        self.sink.members += 1;
        if self.raw.len() >= FRAME_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let frame = self.packer.pack(&self.raw).asked("compress", b"a frame")?;
        self.raw.clear();
        self.sink.frame(&frame)
    }
}

/// Adds it to the sink, if the layer has anything at all. What directories are gone or unread is added to `outcome`.
pub(crate) fn tail(
    tree: &Tree,
    source: &Source<'_>,
    walked: &[Id],
    deleted: &mut Vec<Member>,
    outcome: &mut Outcome,
    level: i32,
    sink: &mut Sink,
) -> Result<(), Error> {
    let packer = Packer::new(level).asked("start", b"the compressor")?;
    let mut tail = Tail { packer, raw: Vec::new(), sink };
    let leaders: HashSet<Id> = outcome.packed.iter().map(|(id, ..)| *id).collect();
    let absent: HashSet<Id> = outcome.gone.iter().copied().chain(outcome.left_out.iter().map(|(id, _)| *id)).collect();
    for id in walked.iter().filter(|id| tree.node(**id).kind == Kind::HardLink) {
        let node = tree.node(*id);
        if absent.contains(&node.first) {
            // The name that held the content is gone: the walk has to be done again.
            outcome.otherwise.push(*id);
            return Ok(());
        }
        if node.change != Change::Same || leaders.contains(&node.first) {
            link(&mut tail, tree, source, *id, outcome)?;
        }
    }
    add_gone(tree, outcome, deleted)?;
    let above = Above::of(tree, outcome, deleted);
    for id in walked.iter().rev().filter(|id| tree.node(**id).kind == Kind::Directory) {
        directory(&mut tail, tree, source, *id, above.has(tree, *id), outcome)?;
    }
    add_gone(tree, outcome, deleted)?;
    for path in deleted.iter() {
        tail.add(&whiteout(path.clone()))?;
    }
    if tail.raw.is_empty() && tail.sink.frames() == 0 {
        return Ok(());
    }
    archive::trailer(&mut tail.raw);
    tail.flush()
}

fn link(tail: &mut Tail<'_>, tree: &Tree, source: &Source<'_>, id: Id, outcome: &mut Outcome) -> Result<(), Error> {
    let entry = link_entry(tree, id)?;
    let identity = entry.identity(None);
    // Both names were one file when it was walked. If they no longer are, it has to be walked again.
    let Some(stat) = source.stat(&entry.path)? else {
        outcome.otherwise.push(id);
        return Ok(());
    };
    let entry = Entry { mode: stat.permissions(), uid: stat.uid, gid: stat.gid, mtime: stat.mtime, ..entry };
    tail.add(&entry)?;
    outcome.packed.push((id, identity, 0));
    Ok(())
}

/// The directories in which the layer makes, replaces or removes something. Readers without the manifest change their
/// times by that, so they are in the layer too.
struct Above {
    changed: HashSet<Id>,
    emptied: HashSet<Vec<u8>>,
}

impl Above {
    fn of(tree: &Tree, outcome: &Outcome, deleted: &[Member]) -> Self {
        let changed = outcome.packed.iter().map(|(id, ..)| tree.node(*id).parent).collect();
        let emptied = deleted.iter().filter_map(|path| path.split().0.map(<[u8]>::to_vec)).collect();
        Self { changed, emptied }
    }

    fn has(&self, tree: &Tree, id: Id) -> bool {
        self.changed.contains(&id) || !self.emptied.is_empty() && self.emptied.contains(&tree.path(id))
    }
}

fn directory(
    tail: &mut Tail<'_>,
    tree: &Tree,
    source: &Source<'_>,
    id: Id,
    is_above: bool,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let node = tree.node(id);
    if node.change == Change::Same && !is_above {
        return Ok(());
    }
    match source.directory(&tree.member(id)?)? {
        Taken::Gone | Taken::Otherwise if !tree.is_root(id) => outcome.gone.push(id),
        Taken::Gone | Taken::Otherwise => outcome.otherwise.push(id),
        Taken::LeftOut(why) => outcome.left_out.push((id, why)),
        Taken::Whole { entry, .. } => {
            let identity = entry.identity(None);
            if node.change == Change::Suspect && identity == node.identity && !is_above {
                outcome.same.push(id);
            } else {
                tail.add(&entry)?;
                outcome.packed.push((id, identity, 0));
            }
        }
    }
    Ok(())
}

/// Deletes also what the last snapshot has and this one could not read; of nested paths, the topmost.
fn add_gone(tree: &Tree, outcome: &Outcome, deleted: &mut Vec<Member>) -> Result<(), Error> {
    let absent = outcome.gone.iter().chain(outcome.left_out.iter().map(|(id, _)| id));
    for id in absent.filter(|id| tree.node(**id).known) {
        deleted.push(tree.member(*id)?);
    }
    deleted.sort();
    deleted.dedup_by(|later, earlier| later.is_within(earlier.bytes()));
    Ok(())
}

fn whiteout(path: Member) -> Entry {
    Entry {
        path,
        kind: Kind::Whiteout,
        mode: 0,
        uid: 0,
        gid: 0,
        mtime: Mtime::default(),
        size: 0,
        target: Vec::new(),
        xattrs: Vec::new(),
    }
}
