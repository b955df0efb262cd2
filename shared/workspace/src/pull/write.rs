//! Workers that check, unpack and write frames, in any order, through directory handles.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags},
    io::Errno,
};

use super::plan::{Voids, piece, piece_bytes};
use crate::{
    archive::{Reader, padding},
    beneath::{Beneath, Cursor},
    entry::{Content, Entry, Identity, Kind, Mtime},
    error::{Asked as _, Error},
    frame::Unpacker,
    limits::PIECE_BYTES,
    manifest::{Counts, Layer, Manifest},
    member::{Member, split},
    place::Place,
    stat::{Fingerprint, Stat},
};

/// Who owns what is restored, where it is not whoever restores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// What a member was when it was written: the row of the cache that is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) path: u64,
    pub(super) fingerprint: Fingerprint,
    pub(super) identity: Identity,
    pub(super) ctime: Mtime,
    pub(super) kind: Kind,
    pub(super) hot: bool,
}

/// The name of a path in a table of many.
pub(super) fn path_hash(path: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&blake3::hash(path).as_bytes()[..8]);
    u64::from_le_bytes(word)
}

/// A directory as it was before something in it was replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touched {
    pub(super) mode: u32,
    pub(super) mtime: Mtime,
}

/// Where and what is written.
pub(super) struct Target<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) voids: &'a Voids<'a>,
    /// Names the roots; the trees are in `roots`.
    pub(super) place: &'a Place,
    pub(super) roots: Vec<Beneath>,
    pub(super) owner: Option<Owner>,
    pub(super) umask: u32,
    /// Set where a tree is changed in place.
    pub(super) in_place: bool,
    pub(super) long: HashMap<(usize, usize), Mutex<LongState>>,
    pub(super) gathered: Mutex<Gathered>,
}

/// What the workers have found.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) seen: Vec<Seen>,
    /// Directories and further names of files, for the end.
    pub(super) late: Vec<(usize, Entry)>,
    pub(super) touched: HashMap<Vec<u8>, Touched>,
    pub(super) counts: Counts,
    /// Attributes that this filesystem does not take.
    pub(super) without_xattrs: u64,
}

/// A long file of which some pieces are written.
#[derive(Default)]
pub(super) struct LongState {
    file: Option<Arc<File>>,
    entry: Option<Entry>,
    pieces: Vec<Option<Content>>,
}

/// A fetched range: its frames' packed bytes.
pub(super) struct Fetched {
    pub(super) layer: usize,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) hot: bool,
}

impl<'a> Target<'a> {
    pub(super) fn layer(&self, number: usize) -> &'a Layer {
        &self.manifest.layers[number]
    }

    fn contradiction(&self, layer: usize, path: &Member, why: &'static str) -> Error {
        Error::Contradiction { key: self.layer(layer).key.to_string(), path: path.clone(), why }
    }

    pub(super) fn gathered(&self) -> std::sync::MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory that a member is in, made if it is missing, and the member's name.
    pub(super) fn parent<'p>(
        &self,
        cursor: &'p mut Cursor,
        layer: usize,
        path: &'p Member,
    ) -> Result<(&'p OwnedFd, &'p [u8]), Error> {
        let located = self.place.locate_in(path.bytes()).filter(|(.., name)| !name.is_empty());
        let (root, below, name) = located.ok_or_else(|| self.contradiction(layer, path, "it is in no root"))?;
        let handle = cursor.directory(root, below, || self.open_parent(root, below));
        Ok((handle.asked("open the directory of", path.bytes())?, name))
    }

    fn open_parent(&self, root: usize, below: &[u8]) -> Result<OwnedFd, Errno> {
        let handle = match self.roots[root].directory(below) {
            Err(Errno::NOENT) => {
                if self.in_place {
                    // What is made changes the directory above it.
                    self.open_parent(root, split(below).0.unwrap_or_default())?;
                }
                self.roots[root].made(below)?
            }
            opened => opened?,
        };
        if self.in_place {
            self.touch(&handle, root, below)?;
        }
        Ok(handle)
    }

    /// Remembers what a directory is, and makes it one that can be written in.
    pub(super) fn touch(&self, handle: impl AsFd, root: usize, below: &[u8]) -> Result<(), Errno> {
        let name = self.place.roots[root].name.bytes();
        let path = if below.is_empty() { name.to_vec() } else { [name, b"/", below].concat() };
        let stat = Stat::of(&handle)?;
        let touched = Touched { mode: stat.permissions(), mtime: stat.mtime };
        self.gathered().touched.entry(path).or_insert(touched);
        if stat.permissions() & 0o300 == 0o300 {
            return Ok(());
        }
        rustix::fs::fchmod(handle, Mode::from_raw_mode(stat.permissions() | 0o700))
    }

    /// The identity and the stat of what was just written.
    pub(super) fn see(entry: &Entry, content: Option<Content>, stat: &Stat, hot: bool) -> Seen {
        Seen {
            path: path_hash(entry.path.bytes()),
            fingerprint: stat.fingerprint(),
            identity: entry.identity(content),
            ctime: stat.ctime,
            kind: entry.kind,
            hot,
        }
    }

    /// Owner, mode, attributes and times of an open file or directory.
    pub(super) fn dress(&self, handle: impl AsFd, entry: &Entry, mode_now: u32) -> Result<(), Error> {
        let path = entry.path.bytes();
        if let Some(owner) = self.owner {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(&handle, Some(uid), Some(gid)).asked("change the owner of", path)?;
        }
        for (name, value) in &entry.xattrs {
            match rustix::fs::fsetxattr(&handle, name.as_slice(), value, XattrFlags::empty()) {
                Err(Errno::NOTSUP) => self.gathered().without_xattrs += 1,
                set => set.asked("set an attribute of", path)?,
            }
        }
        if mode_now != entry.mode {
            rustix::fs::fchmod(&handle, Mode::from_raw_mode(entry.mode)).asked("change the mode of", path)?;
        }
        rustix::fs::futimens(&handle, &times(entry.mtime)).asked("set the time of", path)
    }
}

pub(super) fn times(mtime: Mtime) -> Timestamps {
    let time = Timespec { tv_sec: mtime.seconds, tv_nsec: i64::from(mtime.nanos) };
    Timestamps { last_access: time, last_modification: time }
}

/// Set-user and set-group bits are not restored: what was written by one user could act for another.
pub(super) fn restored(entry: Entry) -> Entry {
    Entry { mode: entry.mode & 0o1777, ..entry }
}

/// One thread's tools.
pub(super) struct Worker<'t, 'a> {
    target: &'t Target<'a>,
    unpacker: Unpacker,
    raw: Vec<u8>,
    cursor: Cursor,
    mine: Gathered,
}

impl<'t, 'a> Worker<'t, 'a> {
    pub(super) fn new(target: &'t Target<'a>) -> Result<Self, Error> {
        let unpacker = Unpacker::new().asked("start", b"the decompressor")?;
        Ok(Self { target, unpacker, raw: Vec::new(), cursor: Cursor::default(), mine: Gathered::default() })
    }

    pub(super) fn fetched(&mut self, fetched: &Fetched) -> Result<(), Error> {
        let layer = self.target.layer(fetched.layer);
        let mut rest = &fetched.bytes[..];
        for (at, row) in layer.frames.iter().enumerate().skip(fetched.first).take(fetched.count) {
            let (packed, after) = rest.split_at_checked(row.packed as usize).ok_or(Error::Cancelled)?;
            rest = after;
            let mut raw = std::mem::take(&mut self.raw);
            self.unpacker.unpack(packed, row.raw as usize, row.digest, &mut raw).map_err(|source| {
                let from: u64 = layer.frames[..at].iter().map(|frame| u64::from(frame.packed)).sum();
                Error::Frame { key: layer.key.to_string(), frame: at, from, to: from + u64::from(row.packed), source }
            })?;
            self.frame(fetched.layer, at, &raw, fetched.hot)?;
            self.raw = raw;
        }
        Ok(())
    }

    fn frame(&mut self, number: usize, at: usize, raw: &[u8], hot: bool) -> Result<(), Error> {
        let layer = self.target.layer(number);
        let refused = |source| Error::Archive { key: layer.key.to_string(), frame: at, source };
        if let Some((file, index)) = piece(layer, at) {
            return self.piece(number, at, file, index, raw, hot);
        }
        let is_last = at + 1 == layer.frames.len();
        let mut reader = Reader::new(raw);
        loop {
            if is_last && reader.is_end() {
                return Ok(());
            }
            let Some(entry) = reader.header().map_err(refused)? else { break };
            let content = reader.content(entry.size).map_err(refused)?;
            self.member(number, restored(entry), content, hot)?;
        }
        if is_last { Err(refused(crate::archive::Refused::End)) } else { Ok(()) }
    }

    fn member(&mut self, layer: usize, entry: Entry, content: &[u8], hot: bool) -> Result<(), Error> {
        if entry.kind == Kind::Whiteout || self.target.voids.has(layer, &entry.path) {
            return Ok(());
        }
        match entry.kind {
            Kind::File => {
                self.mine.counts.files += 1;
                self.mine.counts.bytes += entry.size;
                self.file(layer, &entry, content, hot)
            }
            Kind::Symlink => {
                self.mine.counts.symlinks += 1;
                self.symlink(layer, &entry, hot)
            }
            Kind::Directory => {
                self.mine.counts.directories += 1;
                self.mine.late.push((layer, entry));
                Ok(())
            }
            _ => {
                self.mine.counts.hard_links += 1;
                self.mine.late.push((layer, entry));
                Ok(())
            }
        }
    }

    fn file(&mut self, layer: usize, entry: &Entry, content: &[u8], hot: bool) -> Result<(), Error> {
        let target = self.target;
        let (parent, name) = target.parent(&mut self.cursor, layer, &entry.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(entry.mode & 0o777);
        let file = match rustix::fs::openat(parent, name, flags, mode) {
            Err(Errno::EXIST) => return Err(target.contradiction(layer, &entry.path, "it is there twice")),
            opened => File::from(opened.asked("make", entry.path.bytes())?),
        };
        std::io::Write::write_all(&mut &file, content).asked("write", entry.path.bytes())?;
        target.dress(&file, entry, entry.mode & 0o777 & !target.umask)?;
        let stat = Stat::of(&file).asked("look at", entry.path.bytes())?;
        self.mine.seen.push(Target::see(entry, Some(Content::whole(content)), &stat, hot));
        Ok(())
    }

    fn symlink(&mut self, layer: usize, entry: &Entry, hot: bool) -> Result<(), Error> {
        let target = self.target;
        let path = entry.path.bytes();
        let (parent, name) = target.parent(&mut self.cursor, layer, &entry.path)?;
        match rustix::fs::symlinkat(entry.target.as_slice(), parent, name) {
            Err(Errno::EXIST) => return Err(target.contradiction(layer, &entry.path, "it is there twice")),
            made => made.asked("make", path)?,
        }
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        if let Some(owner) = target.owner {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::chownat(parent, name, Some(uid), Some(gid), itself).asked("change the owner of", path)?;
        }
        rustix::fs::utimensat(parent, name, &times(entry.mtime), itself).asked("set the time of", path)?;
        let stat = Stat::at(parent, name).asked("look at", path)?;
        self.mine.seen.push(Target::see(entry, None, &stat, hot));
        Ok(())
    }

    fn piece(
        &mut self,
        layer: usize,
        at: usize,
        file: usize,
        index: usize,
        raw: &[u8],
        hot: bool,
    ) -> Result<(), Error> {
        let target = self.target;
        let long = &target.layer(layer).long[file];
        let refused = |source| Error::Archive { key: target.layer(layer).key.to_string(), frame: at, source };
        let mut reader = Reader::new(raw);
        let mut entry = None;
        if index == 0 {
            let header = reader.header().map_err(refused)?.map(restored);
            let matches =
                |entry: &Entry| entry.path == long.path && entry.size == long.size && entry.kind == Kind::File;
            entry = header.filter(matches);
            if entry.is_none() {
                return Err(target.contradiction(layer, &long.path, "its first frame has another member"));
            }
        }
        let rest = reader.rest();
        let length = piece_bytes(long.size, index);
        let is_last = index + 1 == long.pieces();
        let padded = length + if is_last { padding(long.size) } else { 0 };
        if rest.len() != padded || rest[length..].iter().any(|byte| *byte != 0) {
            return Err(target.contradiction(layer, &long.path, "a frame of it has another length"));
        }
        self.write_piece((layer, file), index, entry, &rest[..length], hot)
    }

    fn write_piece(
        &mut self,
        which: (usize, usize),
        index: usize,
        entry: Option<Entry>,
        piece: &[u8],
        hot: bool,
    ) -> Result<(), Error> {
        let target = self.target;
        let long = &target.layer(which.0).long[which.1];
        let path = long.path.bytes();
        let state = target.long.get(&which).ok_or(Error::Cancelled)?;
        let file = self.long_file(which, state)?;
        write_sparsely(&file, piece, index as u64 * PIECE_BYTES as u64).asked("write", path)?;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pieces.resize(long.pieces(), None);
        state.pieces[index] = Some(Content::whole(piece));
        if entry.is_some() {
            state.entry = entry;
        }
        let pieces: Option<Vec<Content>> = state.pieces.iter().copied().collect();
        let Some(pieces) = pieces else { return Ok(()) };
        let Some(entry) = state.entry.take() else { return Ok(()) };
        state.file = None;
        target.dress(&file, &entry, 0o600 & !target.umask)?;
        let stat = Stat::of(&file).asked("look at", path)?;
        self.mine.counts.files += 1;
        self.mine.counts.bytes += entry.size;
        self.mine.seen.push(Target::see(&entry, Some(Content::pieces(&pieces)), &stat, hot));
        Ok(())
    }

    /// The file, made by whoever comes first.
    fn long_file(&mut self, which: (usize, usize), state: &Mutex<LongState>) -> Result<Arc<File>, Error> {
        let target = self.target;
        let long = &target.layer(which.0).long[which.1];
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        let (parent, name) = target.parent(&mut self.cursor, which.0, &long.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => return Err(target.contradiction(which.0, &long.path, "it is there twice")),
            opened => File::from(opened.asked("make", long.path.bytes())?),
        };
        // What is not written stays a hole.
        file.set_len(long.size).asked("make", long.path.bytes())?;
        Ok(state.file.insert(Arc::new(file)).clone())
    }

    /// Gives what was found to all.
    pub(super) fn finish(self) {
        let mut mine = self.mine;
        let mut all = self.target.gathered();
        all.seen.append(&mut mine.seen);
        all.late.append(&mut mine.late);
        let (counts, own) = (&mut all.counts, mine.counts);
        counts.files += own.files;
        counts.directories += own.directories;
        counts.symlinks += own.symlinks;
        counts.hard_links += own.hard_links;
        counts.bytes += own.bytes;
    }
}

/// Writes what is not zero.
fn write_sparsely(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    const STRETCH: usize = 64 << 10;
    let mut begin = 0;
    for (number, stretch) in bytes.chunks(STRETCH).enumerate() {
        let end = number * STRETCH + stretch.len();
        if stretch.iter().all(|byte| *byte == 0) {
            file.write_all_at(&bytes[begin..number * STRETCH], at + begin as u64)?;
            begin = end;
        }
    }
    file.write_all_at(&bytes[begin..], at + begin as u64)
}
