//! Finding worktrees: OpenHands' layout under a root, and the linked worktrees of configured repositories.
//!
//! Only file reads, a page at a time, with memory for a page: 10⁵ worktrees list without a single process of git.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use backend::{BackendError, ErrorKind};

use crate::{
    fault,
    look::{absent, backlink, is_its_own, read_small},
    options::{Repository, Root},
    place::{Place, TRASH, split, uuid_hex},
};

/// The most that one page examines.
pub(crate) const PAGE: usize = 1_000;

/// A part of a listing, before it is looked at.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What may be a worktree of ours.
    pub places: Vec<Place>,
    /// What is there but is none, and what it is.
    pub strays: Vec<(Place, Cow<'static, str>)>,
    /// What could not be read.
    pub unreadable: Vec<String>,
    /// The key of the last one examined; `None`: this was all.
    pub last: Option<Vec<u8>>,
}

impl Found {
    fn len(&self) -> usize {
        self.places.len() + self.strays.len() + self.unreadable.len()
    }
}

/// Whether the root can be listed. `Ok(false)`: it was only guessed, and there is none.
pub(crate) fn check_root(root: &Root) -> Result<bool, BackendError> {
    let path = root.path();
    let meta = match absent(path.symlink_metadata()) {
        Ok(Some(meta)) => meta,
        Ok(None) if matches!(root, Root::Detected(_)) => return Ok(false),
        Ok(None) => {
            return Err(local(format!(
                "worktree root `{}` does not exist; mount it, or correct `root`",
                path.display()
            )));
        }
        Err(error) => return Err(fault::at("read worktree root", path, &error)),
    };
    if meta.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return Err(local(format!(
            "worktree root `{}` is a symbolic link to `{}`; a link is never followed: set `root` to the folder itself",
            path.display(),
            target.display()
        )));
    }
    if !meta.is_dir() {
        return Err(local(format!("worktree root `{}` is not a folder", path.display())));
    }
    Ok(true)
}

fn local(message: String) -> BackendError {
    BackendError::new(ErrorKind::Local, message)
}

/// A page of the root, in the order of names, after `after`: the key of a worktree, or a name that is done with.
pub(crate) fn root_page(root: &Path, after: Option<&[u8]>) -> io::Result<Found> {
    let mut found = Found::default();
    let mut parts = after.into_iter().flat_map(|key| key.splitn(2, |b| *b == b'/')).map(OsStr::from_bytes);
    let (first, second) = (parts.next(), parts.next());
    let tops = smallest(root, first, PAGE + 1)?;
    let more = tops.len() > PAGE;
    for top in tops.into_iter().take(PAGE) {
        let resumed = first == Some(top.as_os_str());
        if top == TRASH || (resumed && second.is_none()) {
            continue;
        }
        for (place, what) in under(root, &top, &mut found) {
            if resumed && place.path.file_name() <= second {
                continue;
            }
            if found.len() >= PAGE {
                return Ok(found);
            }
            found.last = Some(place.key.clone());
            match what {
                None => found.places.push(place),
                Some(what) => found.strays.push((place, what.into())),
            }
        }
        found.last = Some(top.as_bytes().to_vec());
    }
    if !more {
        found.last = None;
    }
    Ok(found)
}

/// What lies under one name of the root: its worktrees, or the name itself as a stray.
fn under(root: &Path, top: &OsStr, found: &mut Found) -> Vec<(Place, Option<&'static str>)> {
    let path = root.join(top);
    let stray = |what| vec![(Place::stray(root, top), Some(what))];
    match absent(path.symlink_metadata()) {
        Ok(None) => return Vec::new(),
        Ok(Some(meta)) if meta.is_symlink() => return stray("a symbolic link, which is never followed"),
        Ok(Some(meta)) if !meta.is_dir() => return Vec::new(),
        Ok(Some(_)) if uuid_hex(top).is_none() => return stray("not a conversation's folder"),
        Ok(Some(_)) => {}
        Err(error) => {
            found.unreadable.push(format!("`{}`: {error}", path.display()));
            return Vec::new();
        }
    }
    match absent(folders(&path)) {
        Ok(None) => Vec::new(),
        Ok(Some(names)) if names.is_empty() => stray("a conversation's folder without a worktree"),
        Ok(Some(names)) => names.iter().map(|name| (Place::in_root(root, top, name), None)).collect(),
        Err(error) => {
            found.unreadable.push(format!("`{}`: {error}", path.display()));
            Vec::new()
        }
    }
}

/// The folders (and links) in a folder, sorted; more than a page are cut off, which no conversation has.
fn folders(path: &Path) -> io::Result<Vec<OsString>> {
    let names = smallest(path, None, PAGE)?;
    let keep = |name: &OsString| {
        let meta = path.join(name).symlink_metadata();
        name != TRASH && meta.is_ok_and(|meta| meta.is_dir() || meta.is_symlink())
    };
    Ok(names.into_iter().filter(keep).collect())
}

/// The `limit` smallest names that are not before `from`, with memory for no more.
fn smallest(folder: &Path, from: Option<&OsStr>, limit: usize) -> io::Result<Vec<OsString>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if from.is_some_and(|from| name.as_os_str() < from) {
            continue;
        }
        if names.len() < limit || names.last().is_some_and(|last| name < *last) {
            names.insert(name);
            if names.len() > limit {
                names.pop_last();
            }
        }
    }
    Ok(names.into_iter().collect())
}

/// A repository's own folder: `.git` of a work tree, what a linked worktree's `.git` leads to, or a bare one itself.
pub(crate) fn common_folder(repository: &Repository) -> Result<PathBuf, BackendError> {
    let path = &repository.path;
    let error = |why: String| local(format!("repository `{}` at `{}`: {why}", repository.name, path.display()));
    let dot_git = path.join(".git");
    let folder = match absent(dot_git.metadata()).map_err(|e| fault::at("read", &dot_git, &e))? {
        Some(meta) if meta.is_dir() => dot_git,
        Some(_) => {
            let text = read_small(&dot_git).map_err(|e| fault::at("read", &dot_git, &e))?;
            let admin = text.strip_prefix(b"gitdir: ").ok_or_else(|| error("its `.git` names no folder".into()))?;
            let admin = path.join(OsStr::from_bytes(admin));
            let common = absent(read_small(&admin.join("commondir"))).map_err(|e| fault::at("read", &admin, &e))?;
            common.map_or(admin.clone(), |common| admin.join(OsStr::from_bytes(&common)))
        }
        None => path.clone(),
    };
    if ["HEAD", "objects"].iter().all(|part| folder.join(part).exists()) {
        return Ok(folder);
    }
    Err(error("no git repository is there; correct the path, or take it out of the configuration".into()))
}

/// A page of a repository's linked worktrees. Those under `root` are left out: they are listed there.
pub(crate) fn repository_page(
    repository: &Repository,
    root: Option<&Path>,
    after: Option<&[u8]>,
) -> Result<Found, BackendError> {
    let folder = common_folder(repository)?.join("worktrees");
    let mut found = Found::default();
    let after = after.and_then(split).map(|(_, name)| name);
    let names = absent(smallest(&folder, after.as_deref(), PAGE + 1)).map_err(|e| fault::at("list", &folder, &e))?;
    let names = names.unwrap_or_default();
    let more = names.len() > PAGE;
    for name in names.into_iter().take(PAGE) {
        if after.as_ref() == Some(&name) {
            continue;
        }
        found.last = Some([repository.name.as_bytes(), b"/", name.as_bytes()].concat());
        match repository_place(repository, &folder, &name) {
            Ok(Some(place)) if root.is_some_and(|root| place.path.starts_with(root)) => {}
            Ok(Some(place)) => found.places.push(place),
            Ok(None) => {}
            Err(error) if is_its_own(&error) => {
                let what = format!("its `gitdir` can't be read: {error}");
                found.strays.push((nowhere(repository, &folder, &name), what.into()));
            }
            Err(error) => found.unreadable.push(format!("`{}`: {error}", folder.join(&name).display())),
        }
    }
    if !more {
        found.last = None;
    }
    Ok(found)
}

/// Where a repository says that one of its worktrees lies.
pub(crate) fn repository_place(repository: &Repository, folder: &Path, name: &OsStr) -> io::Result<Option<Place>> {
    let admin = folder.join(name);
    let Some(dot_git) = backlink(&admin)? else { return Ok(None) };
    Ok(dot_git.parent().map(|path| Place::of_repository(&repository.name, admin, path.to_owned())))
}

/// One of which nobody can read where it lies: what there is of it is its administrative folder.
fn nowhere(repository: &Repository, folder: &Path, name: &OsStr) -> Place {
    let admin = folder.join(name);
    Place::of_repository(&repository.name, admin.clone(), admin)
}

/// Where the runtime of an id lies, if the configuration has a place for it.
pub(crate) fn find(
    root: Option<&Root>,
    repositories: &[Repository],
    key: &[u8],
) -> Result<Option<Place>, BackendError> {
    let parts = split(key);
    if let Some((first, second)) = &parts
        && let Some(repository) = repositories.iter().find(|repository| *first == *repository.name)
    {
        let folder = common_folder(repository)?.join("worktrees");
        return match repository_place(repository, &folder, second) {
            Err(error) if is_its_own(&error) => Ok(Some(nowhere(repository, &folder, second))),
            place => place.map_err(|e| fault::at("read", &folder.join(second), &e)),
        };
    }
    let Some(root) = root else { return Ok(None) };
    if !check_root(root)? {
        return Ok(None);
    }
    let plain = !key.contains(&b'/') && !key.contains(&0) && !matches!(key, b"" | b"." | b"..");
    Ok(match parts {
        Some((first, second)) => uuid_hex(&first).map(|_| Place::in_root(root.path(), &first, &second)),
        None => plain.then(|| Place::stray(root.path(), OsStr::from_bytes(key))),
    })
}
