//! Walking a tree through folder handles: a link is an item, never a way.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};

/// The deepest folder that is walked: a handle is held open for each level.
pub(crate) const MAX_DEPTH: usize = 256;

/// How a folder is opened: it, and not what a link points to.
pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One thing in a tree.
pub(crate) struct Item<'a> {
    /// The folder that it is in.
    pub folder: &'a OwnedFd,
    /// Its name there.
    pub name: &'a CStr,
    /// Its path from the top of the walk.
    pub path: &'a Path,
    /// What it is.
    pub stat: &'a Stat,
    /// A folder on which something is mounted; not entered.
    pub mounted: bool,
}

impl Item<'_> {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

/// Whether a folder is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enter {
    Yes,
    No,
}

/// What is done at each item, a folder before what is in it.
pub(crate) trait Visitor {
    fn item(&mut self, item: &Item<'_>) -> io::Result<Enter>;
    /// A folder that could not be read, or lies too deep.
    fn unreadable(&mut self, path: &Path, error: io::Error) -> io::Result<()>;
}

/// Opens the folder itself; a link in its place is an error.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, FOLDER, Mode::empty())?)
}

/// Walks what is in `top`, in the order of names. What vanishes meanwhile is left out.
pub(crate) fn walk(top: &OwnedFd, visitor: &mut dyn Visitor) -> io::Result<()> {
    let device = rustix::fs::fstat(top)?.st_dev;
    level(top, Path::new(""), device, MAX_DEPTH, visitor)
}

fn level(folder: &OwnedFd, path: &Path, device: u64, left: usize, visitor: &mut dyn Visitor) -> io::Result<()> {
    let names = match names(folder) {
        Ok(names) => names,
        Err(error) => return visitor.unreadable(path, error),
    };
    for name in &names {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let inner = path.join(OsStr::from_bytes(name.to_bytes()));
        let mounted = mounted(folder, name, &stat, device)?;
        let item = Item { folder, name, path: &inner, stat: &stat, mounted };
        let enter = visitor.item(&item)?;
        if enter == Enter::No || mounted || item.kind() != FileType::Directory {
            continue;
        }
        if left == 0 {
            visitor.unreadable(&inner, io::Error::other(format!("deeper than {MAX_DEPTH} folders")))?;
            continue;
        }
        match openat(folder, name, FOLDER, Mode::empty()) {
            Ok(next) => level(&next, &inner, device, left - 1, visitor)?,
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => visitor.unreadable(&inner, error.into())?,
        }
    }
    Ok(())
}

/// Whether something is mounted on a folder: another filesystem, or another folder of this one, which has the same device
/// number, so that only the kernel's own mark tells it (Linux 5.8; elsewhere there are no such mounts to speak of).
pub(crate) fn mounted(folder: &OwnedFd, name: &CStr, stat: &Stat, device: u64) -> io::Result<bool> {
    if stat.st_dev != device {
        return Ok(true);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(false);
    }
    marked(folder, name)
}

#[cfg(target_os = "linux")]
fn marked(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    use rustix::{
        fs::{StatxAttributes, StatxFlags, statx},
        io::Errno,
    };
    match statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()) {
        Ok(stat) => Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        Err(Errno::NOENT | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn marked(_: &OwnedFd, _: &CStr) -> io::Result<bool> {
    Ok(false)
}

/// The names in a folder, sorted, without `.` and `..`.
pub(crate) fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Opens the folder at `path` below `top`, each part without following a link.
pub(crate) fn descend(top: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = top.try_clone()?;
    for part in path.components() {
        folder = openat(&folder, part.as_os_str(), FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// A path's folder and its name there.
pub(crate) fn parent_and_name(path: &Path) -> Option<(PathBuf, &OsStr)> {
    Some((path.parent()?.to_owned(), path.file_name()?))
}
