//! What plain file reads tell of one worktree: no process is started, nothing is written.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use lifecycle::{Incarnation, Time};

use crate::{place::Place, trash::is_our_lock, written::Stamps};

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
    pub born: Stamps,
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
    /// Where files don't tell: the repository keeps its references in reftables, which git alone reads.
    InTables,
    /// It can't be read.
    Unreadable,
}

/// What git writes as the branch into the `HEAD` of a repository with reftables: no branch can have that name.
const IN_TABLES: &[u8] = b"refs/heads/.invalid";

/// Files of the administrative folder that a command of git under way leaves behind.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// Looks at a place. An error is one of the machine; what stands there can't cause one, so that it hides no other.
pub(crate) fn look(place: Place, trust_times: bool) -> io::Result<Looked> {
    match look_into(place, trust_times) {
        Err(error) if is_its_own(&error) => Ok(Looked::Other(format!("what git keeps of it can't be read: {error}"))),
        looked => looked,
    }
}

/// Whether an error comes of what is written at one place, or of its rights, and says nothing of any other.
pub(crate) fn is_its_own(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, InvalidData, InvalidFilename, InvalidInput, PermissionDenied};
    let of_links = rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP);
    of_links || matches!(error.kind(), FileTooLarge | InvalidData | InvalidFilename | InvalidInput | PermissionDenied)
}

fn look_into(place: Place, trust_times: bool) -> io::Result<Looked> {
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
    if let Some(named) = &place.admin
        && !is_same(&admin, named)?
    {
        return Ok(Looked::Other(format!("`{}` names it, but its `.git` leads to another folder", named.display())));
    }
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
    let written = Stamps::from(dot_git);
    let born = if trust_times { written } else { Stamps { modified: born, ..written } };
    Worktree { place, incarnation, born, admin, git }
}

/// Whether two paths lead to one thing, which is there.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let id = |path: &Path| absent(fs::metadata(path)).map(|meta| meta.map(|meta| (meta.dev(), meta.ino())));
    let (one, other) = (id(one)?, id(other)?);
    Ok(one.is_some() && one == other)
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
    match text.strip_prefix(b"ref: ") {
        Some(IN_TABLES) => return Head::InTables,
        Some(name) if is_reference(name) => return Head::Branch(name.to_vec()),
        Some(_) => return Head::Unreadable,
        None => {}
    }
    match String::from_utf8(text) {
        Ok(hash) if is_hash(&hash) => Head::Detached(hash),
        _ => Head::Unreadable,
    }
}

/// A reference's full name, as git itself allows it: it can be neither an option nor a pattern of several.
pub(crate) fn is_reference(name: &[u8]) -> bool {
    let part = |part: &[u8]| !matches!(part, b"" | b"@" | [b'.', ..] | [.., b'.']) && !part.ends_with(b".lock");
    let plain = |byte: &u8| *byte > b' ' && *byte != 0x7f && !b"~^:?*[\\".contains(byte);
    let pair = |pair: &[u8]| matches!(pair, b".." | b"@{");
    name.starts_with(b"refs/")
        && name.split(|byte| *byte == b'/').all(part)
        && name.iter().all(plain)
        && !name.windows(2).any(pair)
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

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample::select};

    use super::*;

    /// A linked worktree, made by hand.
    struct Stand {
        top: tempfile::TempDir,
    }

    impl Stand {
        fn new() -> Self {
            let stand = Self { top: tempfile::tempdir().unwrap() };
            fs::create_dir_all(stand.admin()).unwrap();
            fs::create_dir_all(stand.tree()).unwrap();
            fs::write(stand.common().join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(stand.tree().join(".git"), format!("gitdir: {}\n", stand.admin().display())).unwrap();
            fs::write(stand.admin().join("gitdir"), format!("{}\n", stand.tree().join(".git").display())).unwrap();
            fs::write(stand.admin().join("commondir"), "../..\n").unwrap();
            fs::write(stand.admin().join("HEAD"), "ref: refs/heads/x\n").unwrap();
            stand
        }

        fn common(&self) -> PathBuf {
            self.top.path().join("shop/.git")
        }

        fn admin(&self) -> PathBuf {
            self.common().join("worktrees/x")
        }

        fn tree(&self) -> PathBuf {
            self.top.path().join("tree")
        }

        /// Looks, with `bytes` written over one of the pointers.
        fn look_with(&self, pointer: &str, bytes: &[u8]) -> io::Result<Looked> {
            let folder = if pointer == ".git" { self.tree() } else { self.admin() };
            fs::write(folder.join(pointer), bytes).unwrap();
            look(Place::of_repository("shop", self.admin(), self.tree()), false)
        }
    }

    /// What may be written into a pointer.
    fn pointer() -> impl Strategy<Value = Vec<u8>> {
        let begins = select(vec!["", "gitdir: ", "ref: ", "ref: refs/heads/", "../", "/", "in furlough's trash as "]);
        let begun = (begins, collection::vec(any::<u8>(), 0..40));
        let any = begun.prop_map(|(begin, rest)| [begin.as_bytes(), &rest].concat());
        let long = select(vec![255usize, 4_000, 8_191, 8_193, 100_000]).prop_map(|length| b"a".repeat(length));
        let deep =
            select(vec![2_000usize, 3_000]).prop_map(|length| [b"gitdir: ".to_vec(), b"x/".repeat(length)].concat());
        prop_oneof![4 => any, 1 => long, 1 => deep]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// Any bytes in any pointer concern one entry: no error that would hide others, no worktree that is not the one that
        /// was named, no branch that could be an option or a pattern, no lock that is not seen.
        #[test]
        fn any_bytes_in_a_pointer_keep_a_worktree_no_less(
            pointer in select(vec![".git", "gitdir", "commondir", "HEAD", "locked"]),
            bytes in pointer(),
        ) {
            let stand = Stand::new();
            let looked = stand.look_with(pointer, &bytes);
            prop_assert!(looked.is_ok(), "{:?}", looked);
            let Ok(Looked::Worktree(worktree)) = looked else { return Ok(()) };
            prop_assert!(is_same(&worktree.admin, &stand.admin()).unwrap());
            let Some(git) = worktree.git else {
                prop_assert_eq!(pointer, "commondir");
                return Ok(());
            };
            match &git.head {
                Head::Branch(name) => prop_assert!(is_reference(name)),
                Head::Detached(hash) => prop_assert!(is_hash(hash)),
                Head::Unreadable | Head::InTables => {}
            }
            prop_assert!(pointer == "HEAD" || git.head == Head::Branch(b"refs/heads/x".to_vec()));
            let ours = bytes.starts_with(b"in furlough's trash as ");
            prop_assert_eq!(git.locked.is_some(), pointer == "locked" && !ours);
        }

        #[test]
        fn a_reference_is_never_an_option_a_pattern_or_a_way_out(name in collection::vec(any::<u8>(), 0..20)) {
            let name = [b"refs/".to_vec(), name].concat();
            if is_reference(&name) {
                prop_assert!(!name.iter().any(|byte| b"*?[\\ \0\n".contains(byte)));
                prop_assert!(!name.windows(2).any(|pair| pair == b".."));
            }
        }
    }

    #[test]
    fn a_reference_is_what_git_allows() {
        for good in ["refs/heads/main", "refs/heads/openhands/0a-1", "refs/heads/@x", "refs/heads/ä", "refs/x"] {
            assert!(is_reference(good.as_bytes()), "{good}");
        }
        let bad = "refs refs/ main --all -refs/heads/x refs/heads/ refs//x refs/heads/.x refs/heads/x. refs/heads/a..b \
                   refs/heads/a.lock refs/heads/a@{1 refs/heads/@ refs/heads/a* refs/heads/a? refs/heads/[a refs/heads/a^ \
                   refs/heads/a~1 refs/heads/a:b refs/heads/a\\b";
        for bad in bad.split(' ').chain(["", "refs/heads/a b", "refs/heads/a\n"]) {
            assert!(!is_reference(bad.as_bytes()), "{bad}");
        }
    }
}
