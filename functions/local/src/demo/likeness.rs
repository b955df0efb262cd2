//! What worktrees look like, file by file: the demo shows that what was taken back is what was there.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::fixture::local;
use crate::answer::Fault;

/// The trash is not a part of what is compared.
const TRASH: &str = ".furlough-trash";

/// Every path below a folder, with its mode, its time and its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Likeness(BTreeMap<PathBuf, Trait>);

/// Mode, time of writing in nanoseconds, and what is in it.
type Trait = (u32, i128, Vec<u8>);

impl Likeness {
    /// Reads everything below `folder`.
    pub(crate) fn of(folder: &Path) -> Result<Self, Fault> {
        let mut all = BTreeMap::new();
        read(folder, &mut all).map_err(|error| local(folder, &error))?;
        Ok(Self(all))
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> u64 {
        self.0.values().filter(|(_, _, content)| !content.is_empty()).count() as u64
    }
}

fn read(folder: &Path, all: &mut BTreeMap<PathBuf, Trait>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path)?;
        if path.file_name().is_some_and(|name| name == TRASH) {
            continue;
        }
        let mut time = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        let mut content = Vec::new();
        if meta.is_dir() {
            // A folder's own time changes when something in it is moved out and back.
            time = 0;
            read(&path, all)?;
        } else if meta.is_symlink() {
            content = fs::read_link(&path)?.into_os_string().into_encoded_bytes();
        } else {
            content = fs::read(&path)?;
        }
        all.insert(path, (meta.mode(), time, content));
    }
    Ok(())
}
