//! Reading members to be packed, through directory handles, as they are at one moment.

use std::{
    collections::HashMap,
    fs::File,
    io::Read as _,
    os::{fd::AsFd, unix::fs::FileExt as _},
    path::PathBuf,
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use crate::{
    beneath::{Beneath, Cursor},
    entry::{Content, Entry, Kind},
    error::{Asked as _, Error, raw},
    limits::{MAX_XATTR_BYTES, PIECE_BYTES, READS},
    member::Member,
    place::{Place, State},
    stat::Stat,
    tree::{Id, Tree},
};

/// The roots of a place, and the private copies of files that did not stand still.
pub(crate) struct Source<'a> {
    place: &'a Place,
    roots: Vec<Beneath>,
    spooled: HashMap<Id, Spooled>,
}

/// A private copy.
pub(crate) struct Spooled {
    file: File,
    entry: Entry,
    pub(crate) torn: bool,
}

/// What reading a member gave.
pub(crate) enum Taken {
    /// All of it, at one moment; or, if torn, at several.
    Whole { entry: Entry, content: Option<Content>, torn: bool },
    /// It is not there any more.
    Gone,
    /// It is there and can't be kept.
    LeftOut(&'static str),
    /// It is no longer what the walk found: too large to be read at once, or of another kind.
    Otherwise,
}

impl<'a> Source<'a> {
    pub(crate) fn open(place: &'a Place) -> Result<Self, Error> {
        let roots = place.roots.iter().map(|root| Beneath::open(&root.path).asked("open", raw(&root.path)));
        Ok(Self { place, roots: roots.collect::<Result<_, _>>()?, spooled: HashMap::new() })
    }

    pub(crate) fn spooled(&self, id: Id) -> Option<&Spooled> {
        self.spooled.get(&id)
    }

    fn open_file(&self, cursor: &mut Cursor, path: &[u8]) -> Result<(File, Stat), Errno> {
        let (root, directory, name) = self.place.locate_in(path).ok_or(Errno::NOENT)?;
        let handle = cursor.directory(root, directory, || self.roots[root].directory(directory))?;
        // A FIFO that took the file's place must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(handle, name, flags, Mode::empty())?;
        let stat = Stat::of(&file)?;
        Ok((file.into(), stat))
    }

    /// Reads a file of one piece into `content`, which is empty.
    pub(crate) fn file(&self, cursor: &mut Cursor, path: &Member, content: &mut Vec<u8>) -> Result<Taken, Error> {
        let mut torn = true;
        let mut entry = None;
        for _ in 0..READS {
            let (mut file, before) = match self.open_file(cursor, path.bytes()) {
                Ok(opened) => opened,
                Err(error) => return taken_or(error, path),
            };
            if before.file_type() != FileType::RegularFile || before.size > PIECE_BYTES as u64 {
                return Ok(Taken::Otherwise);
            }
            content.clear();
            let read = (&mut file).take(PIECE_BYTES as u64 + 1).read_to_end(content).asked("read", path.bytes())?;
            if read > PIECE_BYTES {
                return Ok(Taken::Otherwise);
            }
            let xattrs = xattrs(&file);
            let after = Stat::of(&file).asked("look at", path.bytes())?;
            let Ok(xattrs) = xattrs else { return Ok(Taken::LeftOut("its extended attributes are too large")) };
            torn = before != after || after.size != read as u64;
            let read = Stat { size: read as u64, ..after };
            entry = Some(entry_of(path.clone(), Kind::File, &read, Vec::new(), xattrs));
            if !torn {
                break;
            }
        }
        let Some(entry) = entry else { return Ok(Taken::Gone) };
        Ok(Taken::Whole { entry, content: Some(Content::whole(content)), torn })
    }

    pub(crate) fn symlink(&self, cursor: &mut Cursor, path: &Member) -> Result<Taken, Error> {
        let mut read = || {
            let (root, directory, name) = self.place.locate_in(path.bytes()).ok_or(Errno::NOENT)?;
            let handle = cursor.directory(root, directory, || self.roots[root].directory(directory))?;
            let stat = Stat::at(handle, name)?;
            if stat.file_type() != FileType::Symlink {
                return Ok(None);
            }
            Ok(Some((stat, rustix::fs::readlinkat(handle, name, Vec::new())?.into_bytes())))
        };
        match read() {
            Ok(Some((stat, target))) => {
                let stat = Stat { size: 0, ..stat };
                let entry = entry_of(path.clone(), Kind::Symlink, &stat, target, Vec::new());
                Ok(Taken::Whole { entry, content: None, torn: false })
            }
            Ok(None) => Ok(Taken::Otherwise),
            Err(error) => taken_or(error, path),
        }
    }

    pub(crate) fn directory(&self, path: &Member) -> Result<Taken, Error> {
        let Some((root, below)) = self.place.locate(path.bytes()) else { return Ok(Taken::Gone) };
        let handle = match self.roots[root].directory(below) {
            Ok(handle) => handle,
            Err(error) => return taken_or(error, path),
        };
        let stat = Stat::of(&handle).asked("look at", path.bytes())?;
        let Ok(xattrs) = xattrs(&handle) else {
            return Ok(Taken::LeftOut("its extended attributes are too large"));
        };
        let stat = Stat { size: 0, ..stat };
        let entry = entry_of(path.clone(), Kind::Directory, &stat, Vec::new(), xattrs);
        Ok(Taken::Whole { entry, content: None, torn: false })
    }

    /// What a further name of a file says of that file, for readers that apply it.
    pub(crate) fn stat(&self, path: &Member) -> Result<Option<Stat>, Error> {
        match self.open_file(&mut Cursor::default(), path.bytes()) {
            Ok((_, stat)) if stat.file_type() == FileType::RegularFile => Ok(Some(stat)),
            Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error).asked("look at", path.bytes()),
        }
    }

    /// A long file, open; none when it is not the one that the walk found.
    pub(crate) fn long(&self, cursor: &mut Cursor, tree: &Tree, id: Id) -> Result<Option<Long>, Error> {
        let path = tree.member(id)?;
        if let Some(spooled) = self.spooled(id) {
            let file = spooled.file.try_clone().asked("open", path.bytes())?;
            return Ok(Some(Long { file, entry: spooled.entry.clone(), stat: None }));
        }
        let Ok((file, stat)) = self.open_file(cursor, path.bytes()) else { return Ok(None) };
        if stat.fingerprint() != tree.node(id).fingerprint {
            return Ok(None);
        }
        let Ok(xattrs) = xattrs(&file) else { return Ok(None) };
        let entry = entry_of(path, Kind::File, &stat, Vec::new(), xattrs);
        Ok(Some(Long { file, entry, stat: Some(stat) }))
    }

    /// Whether a member is what its node's identity says.
    pub(crate) fn is_same(&self, tree: &Tree, id: Id) -> Result<bool, Error> {
        let node = tree.node(id);
        let path = tree.member(id)?;
        let mut cursor = Cursor::default();
        let taken = match node.kind {
            Kind::File if node.size > PIECE_BYTES as u64 => return self.is_same_long(tree, id),
            Kind::File => self.file(&mut cursor, &path, &mut Vec::new())?,
            Kind::Symlink => self.symlink(&mut cursor, &path)?,
            Kind::Directory => self.directory(&path)?,
            Kind::HardLink | Kind::Whiteout => return Ok(false),
        };
        match taken {
            Taken::Whole { entry, content, torn: false } => Ok(entry.identity(content) == node.identity),
            _ => Ok(false),
        }
    }

    /// The same, of a long file, piece by piece.
    pub(crate) fn is_same_long(&self, tree: &Tree, id: Id) -> Result<bool, Error> {
        let Some(long) = self.long(&mut Cursor::default(), tree, id)? else { return Ok(false) };
        let mut pieces = Vec::new();
        let mut buffer = Vec::new();
        for index in 0..usize::try_from(long.entry.size.div_ceil(PIECE_BYTES as u64)).unwrap_or(usize::MAX) {
            buffer.clear();
            if !long.piece(index, &mut buffer)? {
                return Ok(false);
            }
            pieces.push(Content::whole(&buffer));
        }
        Ok(long.entry.identity(Some(Content::pieces(&pieces))) == tree.node(id).identity)
    }

    /// Copies a file that did not stand still, so that its size does. Nothing when it is gone or no file.
    pub(crate) fn spool(&mut self, state: &State, tree: &mut Tree, id: Id) -> Result<(), Error> {
        let path = tree.member(id)?;
        let Ok((mut file, before)) = self.open_file(&mut Cursor::default(), path.bytes()) else { return Ok(()) };
        if before.file_type() != FileType::RegularFile {
            return Ok(());
        }
        let name: PathBuf = state.file("spool");
        let mut options = File::options();
        let mut copy =
            options.read(true).write(true).create(true).truncate(true).open(&name).asked("make", raw(&name))?;
        // Nobody else needs its name.
        std::fs::remove_file(&name).asked("remove", raw(&name))?;
        let size = std::io::copy(&mut (&mut file).take(before.size), &mut copy).asked("copy", path.bytes())?;
        let after = Stat::of(&file).asked("look at", path.bytes())?;
        let Ok(xattrs) = xattrs(&file) else { return Ok(()) };
        let entry = entry_of(path, Kind::File, &Stat { size, ..after }, Vec::new(), xattrs);
        tree.node_mut(id).size = size;
        self.spooled.insert(id, Spooled { file: copy, entry, torn: before != after });
        Ok(())
    }
}

/// A long file that is being packed.
pub(crate) struct Long {
    file: File,
    pub(crate) entry: Entry,
    stat: Option<Stat>,
}

impl Long {
    /// Reads a piece to the end of `out`; false when the file is no longer the one that was opened.
    pub(crate) fn piece(&self, index: usize, out: &mut Vec<u8>) -> Result<bool, Error> {
        let from = index as u64 * PIECE_BYTES as u64;
        let length = usize::try_from((self.entry.size - from).min(PIECE_BYTES as u64)).unwrap_or(PIECE_BYTES);
        let at = out.len();
        out.resize(at + length, 0);
        match self.file.read_exact_at(&mut out[at..], from) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read.asked("read", self.entry.path.bytes())?,
        }
        match &self.stat {
            Some(stat) => Ok(Stat::of(&self.file).asked("look at", self.entry.path.bytes())? == *stat),
            None => Ok(true),
        }
    }
}

fn taken_or(error: Errno, path: &Member) -> Result<Taken, Error> {
    match error {
        Errno::NOENT => Ok(Taken::Gone),
        Errno::ACCESS | Errno::PERM => Ok(Taken::LeftOut("it can't be read")),
        // A link or a file stands where a directory or a file was.
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO => Ok(Taken::Otherwise),
        error => Err(error).asked("open", path.bytes()),
    }
}

fn entry_of(path: Member, kind: Kind, stat: &Stat, target: Vec<u8>, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Entry {
    let mode = stat.permissions();
    Entry { path, kind, mode, uid: stat.uid, gid: stat.gid, mtime: stat.mtime, size: stat.size, target, xattrs }
}

/// There are more of them than an archive keeps.
struct TooLarge;

type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// The extended attributes of the `user.` name space; none where the filesystem has none.
fn xattrs(fd: impl AsFd) -> Result<Xattrs, TooLarge> {
    let mut names = [0_u8; 1024];
    let mut all;
    let names: &[u8] = match rustix::fs::flistxattr(&fd, &mut names) {
        Ok(0) => return Ok(Vec::new()),
        Ok(length) => &names[..length],
        Err(Errno::RANGE) => {
            all = vec![0_u8; 64 << 10];
            let length = rustix::fs::flistxattr(&fd, &mut all).map_err(|_| TooLarge)?;
            &all[..length]
        }
        Err(_) => return Ok(Vec::new()),
    };
    let mut kept = Vec::new();
    let mut bytes = 0;
    for name in names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0_u8; 64 << 10];
        let Ok(length) = rustix::fs::fgetxattr(&fd, name, &mut value) else { continue };
        value.truncate(length);
        bytes += name.len() + length;
        if bytes > MAX_XATTR_BYTES || name.contains(&b'=') {
            return Err(TooLarge);
        }
        kept.push((name.to_vec(), value));
    }
    kept.sort();
    Ok(kept)
}
