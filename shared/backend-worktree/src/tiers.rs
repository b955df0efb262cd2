//! Which folders of a worktree can be shed, and in which tier.
//!
//! A folder is of a tier when git ignores it, nothing in it is tracked, its name (or a mark in it) says that a tool
//! rebuilds it, and it holds no repository near its top. An ignored *file* is never of a tier: `.env` is work. Nor is an
//! ignored folder of another name: `data/` may be all that there is of it.

use std::{
    ffi::OsStr,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use lifecycle::Tier;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

use crate::walk::{self, Enter, Item, Visitor};

/// How far below a folder's top a repository keeps it from being shed (facts of OpenHands' own reclaimer).
const GIT_LEVELS: usize = 3;

/// Caches of tools.
const CACHES: [&str; 22] = [
    ".angular",
    ".cache",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".npm",
    ".nx",
    ".nyc_output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".sass-cache",
    ".svelte-kit",
    ".tox",
    ".turbo",
    ".yarn-cache",
    "__pycache__",
    "_cacache",
];

/// Dependencies and build output.
const DEPENDENCIES: [&str; 19] = [
    ".build",
    ".bundle",
    ".dart_tool",
    ".eggs",
    ".next",
    ".nuxt",
    ".output",
    ".stack-work",
    ".venv",
    "Pods",
    "_build",
    "bower_components",
    "build",
    "dist",
    "dist-newstyle",
    "node_modules",
    "out",
    "target",
    "venv",
];

/// What a tool puts into a folder that it can make again, and what tier that makes it.
const MARKS: [(&str, Tier); 2] = [("pyvenv.cfg", Tier::Dependencies), ("CACHEDIR.TAG", Tier::Caches)];

/// A folder of a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TierFolder {
    pub tier: Tier,
    /// From the worktree's top.
    pub path: PathBuf,
}

/// The folders that can be shed, among those that git says are ignored as a whole.
pub(crate) fn classify(worktree: &OwnedFd, ignored: &[PathBuf]) -> Vec<TierFolder> {
    let mut found = Vec::new();
    for path in ignored {
        // A folder that can't be read, or is gone, is not shed.
        let Ok(folder) = walk::descend(worktree, path) else { continue };
        let Some(tier) = tier_of(&folder, path) else { continue };
        if holds_repository(&folder).unwrap_or(true) {
            continue;
        }
        if tier == Tier::Dependencies {
            let cache = path.join(".cache");
            if path.ends_with("node_modules") && walk::descend(worktree, &cache).is_ok() {
                found.push(TierFolder { tier: Tier::Caches, path: cache });
            }
        }
        found.push(TierFolder { tier, path: path.clone() });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The tier that a folder's name says.
pub(crate) fn named(path: &Path) -> Option<Tier> {
    let name = path.file_name()?;
    let has = |names: &[&str]| names.iter().any(|known| OsStr::new(known) == name);
    if has(&CACHES) {
        return Some(Tier::Caches);
    }
    (has(&DEPENDENCIES) || name.as_bytes().ends_with(b".egg-info")).then_some(Tier::Dependencies)
}

fn tier_of(folder: &OwnedFd, path: &Path) -> Option<Tier> {
    if let Some(tier) = named(path) {
        return Some(tier);
    }
    MARKS.into_iter().find(|(mark, _)| is_file(folder, mark)).map(|(_, tier)| tier)
}

fn is_file(folder: &OwnedFd, name: &str) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Whether a `.git`, or a bare repository, stands within [`GIT_LEVELS`] of a folder's top.
fn holds_repository(folder: &OwnedFd) -> io::Result<bool> {
    struct Search(bool);
    impl Visitor for Search {
        fn item(&mut self, item: &Item<'_>) -> io::Result<Enter> {
            let name = item.name.to_bytes();
            let bare = name == b"HEAD"
                && ["objects", "refs"].iter().all(|part| {
                    openat(item.folder, *part, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                        .is_ok()
                });
            self.0 |= name == b".git" || bare;
            let deep = item.path.components().count() >= GIT_LEVELS;
            Ok(if self.0 || deep { Enter::No } else { Enter::Yes })
        }
        fn unreadable(&mut self, _: &Path, error: io::Error) -> io::Result<()> {
            Err(error)
        }
    }
    let mut search = Search(false);
    walk::walk(folder, &mut search)?;
    Ok(search.0)
}
