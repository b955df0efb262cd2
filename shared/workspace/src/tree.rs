//! A tree as it was found: compact, since it may have millions of members.

use std::collections::HashMap;

use crate::{
    entry::{Identity, Kind},
    manifest::{Counts, Note},
    member::{Member, tree_order},
    stat::Fingerprint,
};

/// The number of a member in its tree.
pub(crate) type Id = u32;

/// What is to be done about a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was not in the last snapshot, or was something else, or surely differs.
    New,
    /// Its fingerprint differs: read, and see.
    Suspect,
    /// It is in the last snapshot as it is.
    Same,
    /// It was gone, or can't be kept, when it was to be read.
    Absent,
}

/// A member. Its name is in the tree's `names`.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) parent: Id,
    name: u32,
    length: u8,
    pub(crate) kind: Kind,
    pub(crate) change: Change,
    /// Whether the last snapshot had something at this path.
    pub(crate) known: bool,
    /// Whether it could have changed after it was looked at without showing it.
    pub(crate) racy: bool,
    /// A directory's first child; of a further name of a file, the member that it is another name of.
    pub(crate) first: Id,
    /// How many children a directory has.
    pub(crate) children: u32,
    pub(crate) size: u64,
    pub(crate) quick: u64,
    pub(crate) fingerprint: Fingerprint,
    /// Of the last snapshot until it is read, then its own.
    pub(crate) identity: Identity,
}

/// A child as the walk found it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) quick: u64,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) racy: bool,
    /// Device and inode, if it has more names than one.
    pub(crate) shared: Option<(u64, u64)>,
}

/// A tree: the roots, and what is below them.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    names: Vec<u8>,
    roots: u32,
    shared: HashMap<(u64, u64), Vec<Id>>,
    pub(crate) left_out: Vec<Note>,
}

impl Tree {
    /// Adds a directory's children (or, without a parent, the roots), which become neighbours. Returns the first one's
    /// number, or nothing when there are more than numbers.
    pub(crate) fn add(&mut self, parent: Option<Id>, found: Vec<Found>) -> Option<Id> {
        let first = Id::try_from(self.nodes.len()).ok()?;
        let count = u32::try_from(found.len()).ok()?;
        first.checked_add(count)?;
        for child in found {
            let id = Id::try_from(self.nodes.len()).ok()?;
            if let Some(inode) = child.shared {
                self.shared.entry(inode).or_default().push(id);
            }
            let name = u32::try_from(self.names.len()).ok()?;
            self.names.extend_from_slice(&child.name);
            self.nodes.push(Node {
                parent: parent.unwrap_or(id),
                name,
                length: u8::try_from(child.name.len()).ok()?,
                kind: child.kind,
                change: Change::New,
                known: false,
                racy: child.racy,
                first: 0,
                children: 0,
                size: child.size,
                quick: child.quick,
                fingerprint: child.fingerprint,
                identity: [0; 16],
            });
        }
        match parent {
            Some(parent) => {
                let node = &mut self.nodes[parent as usize];
                (node.first, node.children) = (first, count);
            }
            None => self.roots = count,
        }
        Some(first)
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    pub(crate) fn name(&self, id: Id) -> &[u8] {
        let node = self.node(id);
        &self.names[node.name as usize..][..usize::from(node.length)]
    }

    pub(crate) fn is_root(&self, id: Id) -> bool {
        id < self.roots
    }

    /// The bytes of a member's path.
    pub(crate) fn path(&self, id: Id) -> Vec<u8> {
        let mut chain = vec![id];
        let mut at = id;
        while !self.is_root(at) {
            at = self.node(at).parent;
            chain.push(at);
        }
        let mut path = Vec::new();
        for id in chain.iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(self.name(*id));
        }
        path
    }

    /// The path as a member's. The walk leaves out whatever has none.
    pub(crate) fn member(&self, id: Id) -> Result<Member, crate::Error> {
        let path = self.path(id);
        Member::new(&path).map_err(|source| crate::Error::Member { path: crate::member::escape(&path), source })
    }

    /// Calls `visit` with every member and its path, in the tree's order.
    pub(crate) fn each<E>(&mut self, mut visit: impl FnMut(&mut Self, Id, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut path: Vec<u8> = Vec::new();
        // Children still to come, and how long the path is without them.
        let mut stack = vec![(0..self.roots, 0_usize)];
        while let Some((siblings, length)) = stack.last_mut() {
            let Some(id) = siblings.next() else {
                stack.pop();
                continue;
            };
            path.truncate(*length);
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(self.name(id));
            visit(self, id, &path)?;
            let node = self.node(id);
            if node.kind == Kind::Directory && node.children > 0 {
                stack.push((node.first..node.first + node.children, path.len()));
            }
        }
        Ok(())
    }

    /// Of the names of one file, makes the first in the tree's order the file, and the others its further names.
    pub(crate) fn tie_names(&mut self) {
        let shared = std::mem::take(&mut self.shared);
        for mut ids in shared.into_values().filter(|ids| ids.len() > 1) {
            ids.sort_by_cached_key(|id| SortedPath(self.path(*id)));
            for id in &ids[1..] {
                let node = self.node_mut(*id);
                node.kind = Kind::HardLink;
                node.first = ids[0];
            }
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for node in self.nodes.iter().filter(|node| node.change != Change::Absent) {
            match node.kind {
                Kind::File => {
                    counts.files += 1;
                    counts.bytes += node.size;
                }
                Kind::Directory => counts.directories += 1,
                Kind::Symlink => counts.symlinks += 1,
                Kind::HardLink => counts.hard_links += 1,
                Kind::Whiteout => {}
            }
        }
        counts
    }
}

#[derive(PartialEq, Eq)]
struct SortedPath(Vec<u8>);

impl PartialOrd for SortedPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortedPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        tree_order(&self.0, &other.0)
    }
}
