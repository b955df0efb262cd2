//! The files of a worktree as one tar, and the proof that it holds what it says.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufWriter, Read, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, Mode, OFlags, Stat, openat, readlinkat};
use tar::{Builder, EntryType, Header};

use crate::walk::{self, Enter, Item, Visitor};

/// zstd's own default: the speed of a disk, and most of what can be won.
const LEVEL: i32 = 3;
/// The longest target that a tar header has room for; a longer one goes into an extension.
const MAX_LINK_BYTES: usize = 100;

/// What is packed.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The worktree; it becomes `tree/`.
    pub top: PathBuf,
    /// Its administrative folder; it becomes `admin/`.
    pub admin: Option<PathBuf>,
    /// What is left out, from the worktree's top: folders that tools make again.
    pub left_out: HashSet<PathBuf>,
}

/// What was packed, in order.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pub members: Vec<Member>,
    /// What a tar can't hold, for people.
    pub unkept: Vec<String>,
}

/// One member of the tar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    path: Vec<u8>,
    kind: u8,
    mode: u32,
    mtime: u64,
    size: u64,
    link: Vec<u8>,
    hash: blake3::Hash,
}

type Pack = Builder<zstd::Encoder<'static, BufWriter<File>>>;

struct Packing<'a> {
    tar: &'a mut Pack,
    prefix: &'static str,
    left_out: &'a HashSet<PathBuf>,
    linked: HashMap<(u64, u64), PathBuf>,
    packed: &'a mut Packed,
    late: &'a dyn Fn() -> bool,
}

/// Packs it into `target`, and has it on disk. `late` says when there is no time left.
pub(crate) fn pack(source: &Source, target: &Path, late: &dyn Fn() -> bool) -> io::Result<Packed> {
    let file = File::options().write(true).create_new(true).open(target)?;
    let mut tar = Builder::new(zstd::Encoder::new(BufWriter::new(file), LEVEL)?);
    let mut packed = Packed::default();
    let nothing = HashSet::new();
    let parts = [("tree", Some(&source.top), &source.left_out), ("admin", source.admin.as_ref(), &nothing)];
    for (prefix, top, left_out) in parts {
        let Some(top) = top else { continue };
        let mut packing =
            Packing { tar: &mut tar, prefix, left_out, linked: HashMap::new(), packed: &mut packed, late };
        walk::walk(&walk::open_folder(top)?, &mut packing)?;
    }
    let mut file = tar.into_inner()?.finish()?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(packed)
}

impl Visitor for Packing<'_> {
    fn item(&mut self, item: &Item<'_>) -> io::Result<Enter> {
        let pointer = self.prefix == "tree" && item.path == Path::new(".git");
        if pointer || self.left_out.contains(item.path) {
            return Ok(Enter::No);
        }
        if (self.late)() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the time for it is over"));
        }
        if item.mounted {
            return Err(io::Error::other(format!("a filesystem is mounted at `{}`", item.path.display())));
        }
        match item.kind() {
            FileType::Directory => self.plain(item, EntryType::Directory, &[])?,
            FileType::Fifo => self.plain(item, EntryType::Fifo, &[])?,
            FileType::Symlink => {
                let target = readlinkat(item.folder, item.name, Vec::new())?;
                self.plain(item, EntryType::Symlink, target.as_bytes())?;
            }
            FileType::RegularFile => self.file(item)?,
            kind => self.packed.unkept.push(format!("`{}`, a {kind:?}", item.path.display())),
        }
        Ok(Enter::Yes)
    }

    fn unreadable(&mut self, path: &Path, error: io::Error) -> io::Result<()> {
        Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
    }
}

impl Packing<'_> {
    /// A member without content.
    fn plain(&mut self, item: &Item<'_>, kind: EntryType, link: &[u8]) -> io::Result<()> {
        self.append(item.path, item.stat, kind, link, 0, io::empty())
    }

    fn file(&mut self, item: &Item<'_>) -> io::Result<()> {
        let file = open(item.folder, item)?;
        let stat = rustix::fs::fstat(&file)?;
        if stat.st_nlink > 1 {
            let first = self.linked.entry((stat.st_dev, stat.st_ino)).or_insert_with(|| item.path.to_owned()).clone();
            if first != item.path {
                let target = Path::new(self.prefix).join(first);
                return self.append(item.path, &stat, EntryType::Link, target.as_os_str().as_bytes(), 0, io::empty());
            }
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        self.append(item.path, &stat, EntryType::Regular, &[], size, File::from(file))
    }

    fn append(
        &mut self,
        path: &Path,
        stat: &Stat,
        kind: EntryType,
        link: &[u8],
        size: u64,
        from: impl Read,
    ) -> io::Result<()> {
        let path = Path::new(self.prefix).join(path);
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(stat.st_mode & 0o7777);
        header.set_uid(stat.st_uid.into());
        header.set_gid(stat.st_gid.into());
        let mtime = u64::try_from(stat.st_mtime).unwrap_or(0);
        header.set_mtime(mtime);
        header.set_size(size);
        let nanos = format!("{mtime}.{:09}", stat.st_mtime_nsec);
        let mut extensions = vec![("mtime", nanos.as_bytes())];
        if link.len() > MAX_LINK_BYTES {
            extensions.push(("linkpath", link));
        } else if !link.is_empty() {
            header.set_link_name_literal(link)?;
        }
        self.tar.append_pax_extensions(extensions)?;
        let mut reading = Hashing { from: from.take(size), hasher: blake3::Hasher::new(), read: 0, late: self.late };
        self.tar.append_data(&mut header, &path, &mut reading)?;
        if reading.read != size {
            return Err(io::Error::other(format!("`{}` changed while it was saved", path.display())));
        }
        self.packed.members.push(Member {
            path: path.as_os_str().as_bytes().to_vec(),
            kind: kind.as_byte(),
            mode: stat.st_mode & 0o7777,
            mtime,
            size,
            link: link.to_vec(),
            hash: reading.hasher.finalize(),
        });
        Ok(())
    }
}

fn open(folder: &OwnedFd, item: &Item<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, item.name, flags, Mode::empty())
        .map_err(|errno| io::Error::new(io::Error::from(errno).kind(), format!("`{}`: {errno}", item.path.display())))
}

struct Hashing<'a, R> {
    from: R,
    hasher: blake3::Hasher,
    read: u64,
    late: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.late)() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the time for it is over"));
        }
        let read = self.from.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.read += read as u64;
        Ok(read)
    }
}

/// Reads the tar back and compares every member with what was packed.
pub(crate) fn verify(file: &Path, packed: &Packed) -> io::Result<()> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("read back, it differs: {what}"));
    let mut archive = tar::Archive::new(zstd::Decoder::new(File::open(file)?)?);
    let mut expected = packed.members.iter();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut entry, &mut hasher)?;
        let header = entry.header();
        let member = Member {
            path: strip_slash(&entry.path_bytes()).to_vec(),
            kind: header.entry_type().as_byte(),
            mode: header.mode()?,
            mtime: header.mtime()?,
            size: header.size()?,
            link: entry.link_name_bytes().unwrap_or_default().to_vec(),
            hash: hasher.finalize(),
        };
        match expected.next() {
            Some(packed) if *packed == member => {}
            _ => return Err(wrong(format!("`{}`", String::from_utf8_lossy(&member.path)))),
        }
    }
    match expected.next() {
        None => Ok(()),
        Some(missing) => Err(wrong(format!("`{}` is missing", String::from_utf8_lossy(&missing.path)))),
    }
}

fn strip_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}
