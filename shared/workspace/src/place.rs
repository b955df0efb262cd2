//! Where a workspace is on this machine: its roots, and the folder for what is known about them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{
    commit::Head,
    error::{Asked as _, Error, raw},
    key::{Key, Name},
    limits::MAX_ROOTS,
    manifest::Manifest,
    member::{Member, split},
};

/// One tree of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath {
    /// The first component of its members' paths.
    pub name: Member,
    /// Where it is.
    pub path: PathBuf,
}

/// The roots of a workspace on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The trees. None is in another, and the state folder is in none.
    pub roots: Vec<RootPath>,
    /// What is known about them: one folder for each place.
    pub state: PathBuf,
}

/// What the trees of a place are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    pub(crate) workspace: Name,
    pub(crate) manifest: Key,
    /// The layers of that manifest, if they are known.
    pub(crate) layers: Vec<Key>,
    pub(crate) stage: Stage,
}

/// How far a pull has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The trees descend from that manifest.
    Whole,
    /// A pull is changing them, or died while it did: they are nothing.
    Pulling {
        /// Roots that it writes into directly.
        direct: Vec<Member>,
    },
}

impl Position {
    /// Of trees that are a generation.
    pub(crate) fn whole(head: &Head, manifest: &Manifest) -> Self {
        Self {
            workspace: manifest.workspace.clone(),
            manifest: head.manifest.clone(),
            layers: manifest.layers.iter().map(|layer| layer.key.clone()).collect(),
            stage: Stage::Whole,
        }
    }
}

/// The state folder, while nobody else uses it.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    _lock: fs::File,
}

impl Place {
    /// Of these roots, by name; the state folder is made if it is missing.
    pub fn new(roots: Vec<RootPath>, state: impl Into<PathBuf>) -> Result<Self, Error> {
        let mut place = Self { roots, state: state.into() };
        if !(1..=MAX_ROOTS).contains(&place.roots.len()) {
            return Err(Error::Roots(format!("{} roots, and 1 to {MAX_ROOTS} are allowed", place.roots.len())));
        }
        fs::create_dir_all(&place.state).asked("make", raw(&place.state))?;
        place.state = place.state.canonicalize().asked("find", raw(&place.state))?;
        for root in &mut place.roots {
            if root.name.split().0.is_some() {
                return Err(Error::Roots(format!("the root's name `{}` has a slash", root.name)));
            }
            root.path = resolved(&root.path)?;
        }
        place.roots.sort_by(|a, b| a.name.cmp(&b.name));
        place.check_apart()?;
        Ok(place)
    }

    fn check_apart(&self) -> Result<(), Error> {
        let all: Vec<&Path> = self.roots.iter().map(|root| root.path.as_path()).chain([self.state.as_path()]).collect();
        for (at, path) in all.iter().enumerate() {
            if let Some(other) = all[..at].iter().find(|other| path.starts_with(other) || other.starts_with(path)) {
                return Err(Error::Roots(format!("`{}` and `{}` are in one another", path.display(), other.display())));
            }
        }
        match self.roots.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(Error::Roots(format!("two roots have the name `{}`", pair[0].name))),
            None => Ok(()),
        }
    }

    /// The number of the root that a member is in, and its path below it.
    pub(crate) fn locate<'a>(&self, path: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let slash = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        let at = self.roots.iter().position(|root| root.name.bytes() == &path[..slash])?;
        Some((at, path.get(slash + 1..).unwrap_or_default()))
    }

    /// The same, as the directory and the name in it. A root itself has no name.
    pub(crate) fn locate_in<'a>(&self, path: &'a [u8]) -> Option<(usize, &'a [u8], &'a [u8])> {
        let (root, below) = self.locate(path)?;
        let (directory, name) = split(below);
        Some((root, directory.unwrap_or_default(), name))
    }

    pub(crate) fn lock(&self) -> Result<State, Error> {
        let path = self.state.join("lock");
        let lock = fs::File::create(&path).asked("open", raw(&path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(State { folder: self.state.clone(), _lock: lock }),
            Err(_) => Err(Error::InUse(self.state.clone())),
        }
    }
}

/// The path with the links of its parent followed; it need not be there itself.
fn resolved(path: &Path) -> Result<PathBuf, Error> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let name = path.file_name().ok_or_else(|| Error::Roots(format!("`{}` has no name", path.display())))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    Ok(parent.canonicalize().asked("find", raw(parent))?.join(name))
}

impl State {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What the trees are; nothing where nothing is known, or what is there can't be read.
    pub(crate) fn position(&self) -> Option<Position> {
        serde_json::from_slice(&fs::read(self.file("position")).ok()?).ok()
    }

    pub(crate) fn set_position(&self, position: &Position) -> Result<(), Error> {
        let bytes = serde_json::to_vec(position).map_err(std::io::Error::other).asked("write", b"position")?;
        self.replace("position", &bytes)
    }

    /// Writes a file of the folder, whole or not at all.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (next, path) = (self.file(&format!("{name}.writing")), self.file(name));
        fs::write(&next, bytes).asked("write", raw(&next))?;
        fs::rename(&next, &path).asked("write", raw(&path))
    }
}
