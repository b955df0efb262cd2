//! Directory handles below a root: nothing here follows a link or leaves the root, whoever changes the tree meanwhile.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

/// The flags by which directories are opened.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory, and what is below it.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// The directory at this path, whose own links are followed: the caller names it.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// A directory below it; the root itself at an empty path.
    pub(crate) fn directory(&self, below: &[u8]) -> Result<OwnedFd, Errno> {
        if below.is_empty() {
            return rustix::io::fcntl_dupfd_cloexec(&self.root, 0).map_err(|_| Errno::MFILE);
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.root, below, DIRECTORY, Mode::empty(), resolve) {
                // Not in this kernel, or not in this sandbox: step by step then.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        self.step_by_step(below, Missing::Fail)
    }

    /// The same; what is missing on the way is made, for its owner alone.
    pub(crate) fn made(&self, below: &[u8]) -> Result<OwnedFd, Errno> {
        match self.directory(below) {
            Err(Errno::NOENT) => self.step_by_step(below, Missing::Make),
            opened => opened,
        }
    }

    fn step_by_step(&self, below: &[u8], missing: Missing) -> Result<OwnedFd, Errno> {
        let mut at = self.directory(b"")?;
        for name in below.split(|byte| *byte == b'/') {
            at = match open_directory(&at, name) {
                Err(Errno::NOENT) if missing == Missing::Make => {
                    match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    open_directory(&at, name)?
                }
                opened => opened?,
            };
        }
        Ok(at)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Make,
}

/// A directory in a directory, not through a link.
pub(crate) fn open_directory(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
}

/// The directory of the last member that was asked for: members come directory by directory.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    last: Option<(usize, Vec<u8>, OwnedFd)>,
}

impl Cursor {
    /// The handle of directory `below` of the root with this number, opened by `open` if it is not the last one.
    pub(crate) fn directory(
        &mut self,
        root: usize,
        below: &[u8],
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<&OwnedFd, Errno> {
        let hit = self.last.as_ref().is_some_and(|(last, path, _)| *last == root && path == below);
        if !hit {
            self.last = Some((root, below.to_vec(), open()?));
        }
        self.last.as_ref().map(|(_, _, handle)| handle).ok_or(Errno::BADF)
    }
}

/// Removes what has this name, with all that is below it, following nothing. What is not there is removed.
pub(crate) fn remove(parent: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    use rustix::fs::{AtFlags, unlinkat};
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let directory = open_directory(&parent, name)?;
    // What can't be written in can't be emptied.
    let mode = rustix::fs::fstat(&directory)?.st_mode;
    if Mode::from_raw_mode(mode) & Mode::RWXU != Mode::RWXU {
        rustix::fs::fchmod(&directory, Mode::RWXU)?;
    }
    for entry in rustix::fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            remove(&directory, name)?;
        }
    }
    unlinkat(&parent, name, AtFlags::REMOVEDIR)
}
