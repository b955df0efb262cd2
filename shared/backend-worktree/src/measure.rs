//! One walk over a worktree: how big it is, when a file of it was last written, and what is in it that git does not show.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
};

use lifecycle::{FileSizes, Tier, Time};
use rustix::fs::{FileType, Stat};

use crate::{
    status::Status,
    tiers::TierFolder,
    walk::{self, Enter, Item, Visitor},
    written::{Newest, Stamps},
};

/// What the walk found.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    pub sizes: FileSizes,
    /// The newest writing of a file that git does not ignore. Folders don't count: a shed changes theirs.
    pub newest: Newest,
    /// Untracked files.
    pub untracked: u64,
    /// Ignored files outside of the tiers' folders, and the first of them.
    pub ignored: u64,
    pub ignored_example: Option<PathBuf>,
    /// Repositories inside, by the path of their `.git`.
    pub repositories: Vec<PathBuf>,
    /// Folders on which another filesystem is mounted.
    pub mounts: Vec<PathBuf>,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Untracked,
    Ignored,
    Shed(Tier),
}

struct Measuring {
    now: Time,
    classes: HashMap<PathBuf, Class>,
    /// The folders that the walk is in whose class holds for all below.
    within: Vec<(PathBuf, Class)>,
    linked: HashSet<(u64, u64)>,
    found: Measure,
    bytes: Bytes,
}

#[derive(Default)]
struct Bytes {
    caches: u64,
    dependencies: u64,
    total: u64,
}

/// Walks the worktree. `status` is `None` where git can't tell; then no file is anything but plain.
pub(crate) fn measure(top: &Path, status: Option<&Status>, tiers: &[TierFolder], now: Time) -> io::Result<Measure> {
    let mut classes = HashMap::new();
    if let Some(status) = status {
        classes.extend(status.untracked.iter().map(|path| (path.clone(), Class::Untracked)));
        classes.extend(status.ignored_files.iter().map(|path| (path.clone(), Class::Ignored)));
        classes.extend(status.ignored_folders.iter().map(|path| (path.clone(), Class::Ignored)));
    }
    classes.extend(tiers.iter().map(|folder| (folder.path.clone(), Class::Shed(folder.tier))));
    let mut measuring = Measuring {
        now,
        classes,
        within: Vec::new(),
        linked: HashSet::new(),
        found: Measure::default(),
        bytes: Bytes::default(),
    };
    walk::walk(&walk::open_folder(top)?, &mut measuring)?;
    let Measuring { mut found, bytes, .. } = measuring;
    found.sizes = FileSizes {
        caches: status.map(|_| bytes.caches),
        dependencies: status.map(|_| bytes.dependencies),
        total: found.unreadable.is_empty().then_some(bytes.total),
    };
    Ok(found)
}

impl Measuring {
    fn class(&mut self, path: &Path) -> Class {
        while self.within.last().is_some_and(|(top, _)| !path.starts_with(top)) {
            self.within.pop();
        }
        let above = self.within.last().map_or(Class::Plain, |(_, class)| *class);
        match self.classes.get(path) {
            // A cache inside of a dependency folder keeps a tier of its own.
            Some(class) => {
                self.within.push((path.to_owned(), *class));
                *class
            }
            None => above,
        }
    }

    fn weigh(&mut self, stat: &Stat, class: Class) {
        let hard_linked = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink > 1;
        if hard_linked && !self.linked.insert((stat.st_dev, stat.st_ino)) {
            return;
        }
        let bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        self.bytes.total += bytes;
        match class {
            Class::Shed(Tier::Caches) => self.bytes.caches += bytes,
            Class::Shed(_) => self.bytes.dependencies += bytes,
            _ => {}
        }
    }

    fn count(&mut self, item: &Item<'_>, class: Class) {
        match class {
            Class::Untracked => self.found.untracked += 1,
            Class::Ignored => {
                self.found.ignored += 1;
                self.found.ignored_example.get_or_insert_with(|| item.path.to_owned());
            }
            Class::Plain | Class::Shed(_) => {}
        }
        if matches!(class, Class::Plain | Class::Untracked) {
            self.found.newest.add(item.path, Stamps::from(item.stat), self.now);
        }
    }
}

impl Visitor for Measuring {
    fn item(&mut self, item: &Item<'_>) -> io::Result<Enter> {
        let class = self.class(item.path);
        if item.mounted {
            self.found.mounts.push(item.path.to_owned());
            return Ok(Enter::No);
        }
        self.weigh(item.stat, class);
        let top_level_git = item.path == Path::new(".git");
        if item.name.to_bytes() == b".git" && !top_level_git && !matches!(class, Class::Shed(_)) {
            self.found.repositories.push(item.path.to_owned());
        }
        if item.kind() != FileType::Directory && !top_level_git {
            self.count(item, class);
        }
        Ok(Enter::Yes)
    }

    fn unreadable(&mut self, path: &Path, error: io::Error) -> io::Result<()> {
        self.found.unreadable.push(format!("`{}`: {error}", path.display()));
        Ok(())
    }
}
