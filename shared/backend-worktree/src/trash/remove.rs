//! Removing a tree for ever, through folder handles: links are removed, never followed; nothing that is mounted in it is entered.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, statat, unlinkat};

use crate::walk::{FOLDER, mounted, names};

/// How deep the removal goes before it lifts what is deeper to the top: a handle is held for each level.
const MAX_DEPTH: usize = 128;

/// Removes `name` in `folder` with all that is in it. That it is not there is a success.
pub(crate) fn remove(folder: &OwnedFd, name: &CStr) -> io::Result<()> {
    let device = fstat(folder)?.st_dev;
    let mut removal = Removal { top: folder, device, lifted: 0 };
    removal.item(folder, name, MAX_DEPTH)?;
    for n in 0.. {
        if n == removal.lifted {
            break;
        }
        removal.item(folder, &lifted_name(n)?, MAX_DEPTH)?;
    }
    Ok(())
}

struct Removal<'a> {
    top: &'a OwnedFd,
    device: u64,
    lifted: u64,
}

impl Removal<'_> {
    fn item(&mut self, folder: &OwnedFd, name: &CStr, left: usize) -> io::Result<()> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(unlinkat(folder, name, AtFlags::empty())?);
        }
        if mounted(folder, name, &stat, self.device)? {
            return Err(io::Error::new(io::ErrorKind::CrossesDevices, "something is mounted in it; unmount it first"));
        }
        if left == 0 {
            let lifted = lifted_name(self.lifted)?;
            renameat(folder, name, self.top, &lifted)?;
            self.lifted += 1;
            return Ok(());
        }
        let inner = open(folder, name)?;
        for name in names(&inner)? {
            self.item(&inner, &name, left - 1)?;
        }
        Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }
}

/// Opens a folder, and makes it writable first where its mode forbids its emptying.
fn open(folder: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let inner = match openat(folder, name, FOLDER, Mode::empty()) {
        Err(rustix::io::Errno::ACCESS) => {
            // A handle that needs no right to read, so that the mode is set on this very folder.
            let path = openat(folder, name, OFlags::PATH | FOLDER, Mode::empty())?;
            let through = format!("/proc/self/fd/{}", path.as_raw_fd());
            std::fs::set_permissions(through, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            openat(folder, name, FOLDER, Mode::empty())?
        }
        inner => inner?,
    };
    if fstat(&inner)?.st_mode & 0o700 != 0o700 {
        fchmod(&inner, Mode::RWXU)?;
    }
    Ok(inner)
}

fn lifted_name(n: u64) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(format!("lifted-{n}")).map_err(io::Error::other)
}
