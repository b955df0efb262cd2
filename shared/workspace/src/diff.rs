//! What changed since the last snapshot: the tree as it is against the cache, in one pass over both.

use std::cmp::Ordering;

use crate::{
    cache::{CacheReader, Row},
    entry::{Entry, Kind, Mtime},
    error::{Asked as _, Error},
    member::{Member, escape, tree_order},
    tree::{Change, Id, Tree},
};

/// What the cache has and the tree has not. Sets the tree's `change`, `known` and `identity`.
pub(crate) fn compare(tree: &mut Tree, cache: &mut CacheReader) -> Result<Vec<Member>, Error> {
    let mut deleted = Deleted(Vec::new());
    let mut row = next(cache)?;
    tree.each(|tree, id, path| {
        while let Some(old) = row.take_if(|old| tree_order(&old.path, path) == Ordering::Less) {
            deleted.add(&old.path)?;
            row = next(cache)?;
        }
        let Some(old) = row.take_if(|old| old.path == path) else { return Ok(()) };
        row = next(cache)?;
        settle(tree, id, &old, &mut deleted)
    })?;
    while let Some(old) = row {
        deleted.add(&old.path)?;
        row = next(cache)?;
    }
    Ok(deleted.0)
}

fn next(cache: &mut CacheReader) -> Result<Option<Row>, Error> {
    cache.next().asked("read", b"cache")
}

/// The topmost of the paths that are gone.
struct Deleted(Vec<Member>);

impl Deleted {
    fn add(&mut self, path: &[u8]) -> Result<(), Error> {
        let path = Member::new(path).map_err(|source| Error::Member { path: escape(path), source })?;
        // What is below a deleted path comes right after it.
        if self.0.last().is_none_or(|last| !path.is_within(last.bytes())) {
            self.0.push(path);
        }
        Ok(())
    }
}

fn settle(tree: &mut Tree, id: Id, old: &Row, deleted: &mut Deleted) -> Result<(), Error> {
    let kind = tree.node(id).kind;
    if (kind == Kind::Directory) != (old.kind == Kind::Directory) {
        return deleted.add(&old.path);
    }
    let linked = if kind == Kind::HardLink { Some(link_entry(tree, id)?.identity(None)) } else { None };
    let node = tree.node_mut(id);
    node.known = true;
    node.identity = old.identity;
    node.change = match linked {
        Some(identity) if kind == old.kind && identity == old.identity => Change::Same,
        Some(_) => Change::New,
        None if kind != old.kind || node.quick != old.quick => Change::New,
        None if node.fingerprint == old.fingerprint && !old.racy => Change::Same,
        None => Change::Suspect,
    };
    Ok(())
}

/// A further name of a file, as it is packed.
pub(crate) fn link_entry(tree: &Tree, id: Id) -> Result<Entry, Error> {
    let target = tree.path(tree.node(id).first);
    Ok(Entry {
        path: tree.member(id)?,
        kind: Kind::HardLink,
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime: Mtime::default(),
        size: 0,
        target,
        xattrs: Vec::new(),
    })
}
