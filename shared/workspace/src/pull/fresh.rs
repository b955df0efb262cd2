//! Fresh places beside the roots, and the renames that publish them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::late::is_empty;
use crate::{
    beneath::{Beneath, remove},
    error::{Asked as _, Error, raw},
    member::Member,
    place::Place,
};

/// Where the roots are written before they are published, one for each.
#[derive(Debug)]
pub(super) struct Fresh {
    places: Vec<FreshRoot>,
    published: bool,
}

#[derive(Debug)]
struct FreshRoot {
    name: Member,
    at: PathBuf,
    root: PathBuf,
}

fn prefix(root: &Path) -> Vec<u8> {
    [b".", root.file_name().map(std::os::unix::ffi::OsStrExt::as_bytes).unwrap_or_default(), b".furlough-"].concat()
}

impl Fresh {
    /// New directories; or the roots themselves, where they are there and empty: a mount can't be renamed.
    pub(super) fn make(place: &Place, nonce: u64) -> Result<Self, Error> {
        sweep(place)?;
        let mut places = Vec::new();
        for root in &place.roots {
            let empty = Beneath::open(&root.path).is_ok_and(|root| is_empty(&root).unwrap_or(false));
            let at = if empty {
                root.path.clone()
            } else {
                let name = [prefix(&root.path), format!("{nonce:016x}").into_bytes()].concat();
                let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&name);
                let at = root.path.with_file_name(name);
                let mut made = fs::DirBuilder::new();
                std::os::unix::fs::DirBuilderExt::mode(&mut made, 0o700);
                made.create(&at).asked("make", raw(&at))?;
                at
            };
            places.push(FreshRoot { name: root.name.clone(), at, root: root.path.clone() });
        }
        Ok(Self { places, published: false })
    }

    pub(super) fn roots(&self) -> Result<Vec<Beneath>, Error> {
        self.places.iter().map(|fresh| Beneath::open(&fresh.at).asked("open", raw(&fresh.at))).collect()
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.places.iter().map(|fresh| fresh.at.clone()).collect()
    }

    /// The roots that are written into directly.
    pub(super) fn direct(&self) -> Vec<Member> {
        self.places.iter().filter(|fresh| fresh.at == fresh.root).map(|fresh| fresh.name.clone()).collect()
    }

    /// Puts each in its root's place; what was there is removed afterwards.
    pub(super) fn publish(mut self) -> Result<(), Error> {
        for fresh in self.places.iter().filter(|fresh| fresh.at != fresh.root) {
            swap(&fresh.at, &fresh.root).asked("publish", raw(&fresh.root))?;
        }
        self.published = true;
        for fresh in self.places.iter().filter(|fresh| fresh.at != fresh.root) {
            remove_path(&fresh.at).asked("remove", raw(&fresh.at))?;
        }
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        for fresh in &self.places {
            // What can't be removed now is swept by the next pull.
            _ = if fresh.at == fresh.root { remove_content(&fresh.at) } else { remove_path(&fresh.at) };
        }
    }
}

fn swap(fresh: &Path, root: &Path) -> io::Result<()> {
    if !root.exists() {
        return fs::rename(fresh, root);
    }
    Ok(renameat_with(CWD, fresh, CWD, root, RenameFlags::EXCHANGE)?)
}

fn remove_path(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let parent = Beneath::open(parent)?.directory(b"")?;
    Ok(remove(parent, std::os::unix::ffi::OsStrExt::as_bytes(name))?)
}

fn remove_content(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        remove_path(&entry?.path())?;
    }
    Ok(())
}

/// Removes what interrupted pulls have left beside the roots.
fn sweep(place: &Place) -> Result<(), Error> {
    for root in &place.roots {
        let (Some(parent), prefix) = (root.path.parent(), prefix(&root.path)) else { continue };
        for entry in fs::read_dir(parent).asked("read", raw(parent))? {
            let path = entry.asked("read", raw(parent))?.path();
            let name = path.file_name().map(std::os::unix::ffi::OsStrExt::as_bytes).unwrap_or_default();
            if name.starts_with(&prefix) && name.len() == prefix.len() + 16 {
                remove_path(&path).asked("remove", raw(&path))?;
            }
        }
    }
    Ok(())
}

/// Removes what an interrupted pull has left in roots that it wrote into directly.
pub(super) fn clear_direct(place: &Place, direct: &[Member]) -> Result<(), Error> {
    for root in place.roots.iter().filter(|root| direct.contains(&root.name) && root.path.exists()) {
        remove_content(&root.path).asked("empty", raw(&root.path))?;
    }
    Ok(())
}
