//! What plain file reads tell of one worktree: no process is started, nothing is written.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use lifecycle::{Incarnation, Time};

use crate::{place::Place, trash::is_our_lock};

/// The longest `.git`, `HEAD`, `commondir`, `gitdir` or `locked` that is read: a path and a word.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum Looked {
    /// A linked git worktree.
    Worktree(Box<Worktree>),
    /// Something that Furlough does not touch, and what it is.
    Other(String),
    /// Nothing.
    Vanished,
}

/// A linked worktree.
#[derive(Debug, Clone)]
pub(crate) struct Worktree {
    /// Where it lies.
    pub place: Place,
    /// Tells it from one made later under the same name.
    pub incarnation: Incarnation,
    /// When its `.git` file was made here, where the filesystem tells.
    pub born: Time,
    /// The administrative folder that its `.git` file names.
    pub admin: PathBuf,
    /// What stands there; `None`: the repository is gone.
    pub git: Option<Admin>,
}

/// The administrative folder of a linked worktree, `<repository>/.git/worktrees/<name>`.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    /// The repository's own folder.
    pub common: PathBuf,
    /// What is checked out.
    pub head: Head,
    /// The reason in its lock, if it is locked.
    pub locked: Option<String>,
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// A branch, by its full name.
    Branch(Vec<u8>),
    /// A commit, by its hash.
    Detached(String),
    /// It can't be read.
    Unreadable,
}

/// Files of the administrative folder that a command of git under way leaves behind.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// Looks at a place. An error is something other than "it is not there".
pub(crate) fn look(place: Place, trust_times: bool) -> io::Result<Looked> {
    let Some(top) = absent(fs::symlink_metadata(&place.path))? else { return Ok(Looked::Vanished) };
    if top.is_symlink() {
        return Ok(Looked::Other("a symbolic link, which is never followed".into()));
    }
    if !top.is_dir() {
        return Ok(Looked::Other("not a folder".into()));
    }
    let dot_git = place.path.join(".git");
    let Some(meta) = absent(fs::symlink_metadata(&dot_git))? else {
        return Ok(Looked::Other("a folder without `.git`".into()));
    };
    if meta.is_dir() {
        return Ok(Looked::Other("a repository of its own, not a linked worktree".into()));
    }
    if !meta.is_file() {
        return Ok(Looked::Other("its `.git` is neither a file nor a folder".into()));
    }
    let Some(text) = absent(read_small(&dot_git))? else { return Ok(Looked::Vanished) };
    let Some(admin) = text.strip_prefix(b"gitdir: ").map(|path| resolve(&place.path, path)) else {
        return Ok(Looked::Other("its `.git` file names no folder".into()));
    };
    match admin_at(&admin, &meta)? {
        Found::Others(backlink) => Ok(Looked::Other(format!("its git folder belongs to `{}`", backlink.display()))),
        Found::Unlinked => Ok(Looked::Other("its `.git` names a folder that is no worktree's (a submodule?)".into())),
        Found::Gone => Ok(Looked::Worktree(Box::new(worktree(place, &meta, trust_times, admin, None)))),
        Found::Ours(git) => Ok(Looked::Worktree(Box::new(worktree(place, &meta, trust_times, admin, Some(git))))),
    }
}

fn worktree(place: Place, dot_git: &fs::Metadata, trust_times: bool, admin: PathBuf, git: Option<Admin>) -> Worktree {
    // The birth time where the filesystem has one. Else the time of writing: git writes it once.
    let birth = dot_git.created().or_else(|_| dot_git.modified());
    let born = birth.map_or(Time::MIN, time);
    let name = admin.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let incarnation = Incarnation::new(format!("{name}:{}:{}", dot_git.ino(), born.millis()));
    let written = dot_git.modified().map_or(born, time);
    let born = if trust_times { written } else { born };
    Worktree { place, incarnation, born, admin, git }
}

enum Found {
    Ours(Admin),
    Others(PathBuf),
    Unlinked,
    Gone,
}

fn admin_at(admin: &Path, dot_git: &fs::Metadata) -> io::Result<Found> {
    let Some(meta) = absent(fs::metadata(admin))? else { return Ok(Found::Gone) };
    if !meta.is_dir() {
        return Ok(Found::Unlinked);
    }
    let (Some(common), Some(back)) = (absent(read_small(&admin.join("commondir")))?, backlink(admin)?) else {
        return Ok(Found::Unlinked);
    };
    // A worktree moved by hand has a backlink to nothing; one copied by hand has somebody else's.
    if let Some(other) = absent(fs::symlink_metadata(&back))?
        && (other.dev(), other.ino()) != (dot_git.dev(), dot_git.ino())
    {
        return Ok(Found::Others(back));
    }
    let common = common_folder(admin, &common);
    if absent(fs::metadata(common.join("HEAD")))?.is_none() {
        return Ok(Found::Gone);
    }
    Ok(Found::Ours(Admin {
        common,
        head: head(admin),
        // A lock of ours on a worktree that stands here was left by a pass that was killed.
        locked: lock_reason(admin)?.filter(|reason| !is_our_lock(reason)),
    }))
}

/// Git writes `../..`, which is two names less unless there is a link in them.
fn common_folder(admin: &Path, text: &[u8]) -> PathBuf {
    let folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    match admin.parent().and_then(|worktrees| Some((worktrees, worktrees.parent()?))) {
        Some((worktrees, common)) if text == b"../.." && folder(admin) && folder(worktrees) => common.to_owned(),
        _ => {
            let common = resolve(admin, text);
            fs::canonicalize(&common).unwrap_or(common)
        }
    }
}

/// A merge, rebase or the like that was begun in a worktree and not ended.
pub(crate) fn under_way(admin: &Path) -> Option<&'static str> {
    let begun = UNDER_WAY.iter().find(|(file, _)| admin.join(file).symlink_metadata().is_ok());
    begun.map(|(_, what)| *what)
}

/// Where the administrative folder says that its worktree's `.git` file is.
pub(crate) fn backlink(admin: &Path) -> io::Result<Option<PathBuf>> {
    Ok(absent(read_small(&admin.join("gitdir")))?.map(|path| resolve(admin, &path)))
}

/// The reason in a worktree's lock; `None`: it is not locked.
pub(crate) fn lock_reason(admin: &Path) -> io::Result<Option<String>> {
    Ok(absent(read_small(&admin.join("locked")))?.map(|reason| String::from_utf8_lossy(&reason).into_owned()))
}

fn head(admin: &Path) -> Head {
    let Ok(text) = read_small(&admin.join("HEAD")) else { return Head::Unreadable };
    if let Some(branch) = text.strip_prefix(b"ref: ") {
        return Head::Branch(branch.to_vec());
    }
    match String::from_utf8(text) {
        Ok(hash) if is_hash(&hash) => Head::Detached(hash),
        _ => Head::Unreadable,
    }
}

/// A full hash, SHA-1 or SHA-256.
pub(crate) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Reads a file of one line, without its line end. A longer one is an error.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = read_limited(path, MAX_POINTER_BYTES)?;
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    Ok(bytes)
}

/// Reads a regular file of at most `limit` bytes. Never waits on a pipe that somebody put there.
pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::{io::Read as _, os::unix::fs::OpenOptionsExt as _};
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes")));
    }
    Ok(bytes)
}

/// `path` as git means it in a file of the folder `base`.
fn resolve(base: &Path, path: &[u8]) -> PathBuf {
    base.join(OsStr::from_bytes(path))
}

/// What is not there is `None`; any other error stays one.
pub(crate) fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file's time as ours.
pub(crate) fn time(at: std::time::SystemTime) -> Time {
    let millis = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    match at.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => Time::from_millis(millis(after)),
        Err(before) => Time::from_millis(millis(before.duration()).saturating_neg()),
    }
}
