//! A machine with OpenHands on it: a remote, a repository, worktrees in its layout, conversations.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use backend::{Backend, Bounds, Clock, Deleted, Outcome, Sighting, Target};
use backend_worktree::{Options, Root};
use lifecycle::{BackendName, Observation, RuntimeId, Time, policy::WorkspaceRule};
use tempfile::TempDir;

/// The time of a test's clock at its beginning: later than any file that a test makes.
pub(super) fn start() -> Time {
    "2100-01-01T00:00:00Z".parse().unwrap()
}

/// A machine.
pub(super) struct World {
    pub(super) folder: TempDir,
    pub(super) root: PathBuf,
    pub(super) conversations: PathBuf,
    pub(super) repository: PathBuf,
    pub(super) saves: PathBuf,
    pub(super) scratch: PathBuf,
    now: Arc<AtomicI64>,
}

/// A worktree of it.
pub(super) struct Tree {
    pub(super) uuid: String,
    pub(super) path: PathBuf,
    pub(super) id: RuntimeId,
}

impl Tree {
    pub(super) fn hex(&self) -> String {
        self.uuid.replace('-', "")
    }

    /// `<repository>/.git/worktrees/<name>`.
    pub(super) fn admin(&self) -> PathBuf {
        let text = fs::read_to_string(self.path.join(".git")).unwrap();
        PathBuf::from(text.trim().strip_prefix("gitdir: ").unwrap())
    }
}

pub(super) fn name() -> BackendName {
    BackendName::new("worktrees").unwrap()
}

/// The runtime of a key.
pub(super) fn runtime(key: impl AsRef<[u8]>) -> RuntimeId {
    RuntimeId::new(&name(), key.as_ref()).unwrap()
}

/// A conversation's id, by number.
pub(super) fn uuid(n: u32) -> String {
    format!("{n:08x}-0000-4000-8000-000000000000")
}

impl World {
    pub(super) fn new() -> Self {
        Self::made(&[])
    }

    /// One whose repository keeps its references in reftables; `None`: this git is older than 2.45 and can't make such.
    pub(super) fn in_tables() -> Option<Self> {
        let format = "--ref-format=reftable";
        let probe = TempDir::new().unwrap();
        try_git(probe.path(), &["init", "-q", format]).ok().map(|_| Self::made(&[format]))
    }

    /// With its repository made with these arguments too.
    fn made(arguments: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        // Without links in it, as git writes paths.
        let top = folder.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for name in ["conversation-worktrees", "conversations", "scratch", "shop", "remote.git"] {
            fs::create_dir(at(name)).unwrap();
        }
        git(&at("remote.git"), &["init", "-q", "--bare"]);
        let repository = at("shop");
        git(&repository, &[&["init", "-q", "-b", "main"], arguments].concat());
        write(&repository.join(".gitignore"), "node_modules/\n.cache/\ntarget\ndata/\n.env\n*.log\n");
        write(&repository.join("prices.py"), "def total(): return 0\n");
        write(&repository.join("README.md"), "# Shop\n");
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "-qm", "a shop"]);
        git(&repository, &["remote", "add", "origin", at("remote.git").to_str().unwrap()]);
        git(&repository, &["push", "-q", "origin", "main"]);
        Self {
            root: at("conversation-worktrees"),
            conversations: at("conversations"),
            saves: at("saves"),
            scratch: at("scratch"),
            repository,
            folder,
            now: Arc::new(AtomicI64::new(start().millis())),
        }
    }

    pub(super) fn now(&self) -> Time {
        Time::from_millis(self.now.load(Ordering::SeqCst))
    }

    pub(super) fn pass(&self, by: Duration) {
        self.now.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Sets the clock, backwards too.
    pub(super) fn set(&self, now: Time) {
        self.now.store(now.millis(), Ordering::SeqCst);
    }

    pub(super) fn options(&self) -> Options {
        let now = self.now.clone();
        let clock = Clock::new(move || Time::from_millis(now.load(Ordering::SeqCst)));
        let mut options = Options::new(name(), clock, self.saves.clone(), self.scratch.clone());
        options.root = Some(Root::Configured(self.root.clone()));
        options.conversations = Some(self.conversations.clone());
        options
    }

    pub(super) fn backend(&self) -> Backend {
        backend_worktree::backend(self.options())
    }

    /// What OpenHands does for a conversation with a worktree.
    pub(super) fn tree(&self, n: u32) -> Tree {
        let uuid = uuid(n);
        let path = self.root.join(&uuid).join("shop");
        fs::create_dir_all(self.root.join(&uuid)).unwrap();
        let branch = format!("openhands/{uuid}");
        git(&self.repository, &["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap(), "main"]);
        let id = runtime(format!("{uuid}/shop"));
        Tree { uuid, path, id }
    }

    /// One whose work is all pushed, with files in both tiers.
    pub(super) fn furnished(&self, n: u32) -> Tree {
        let tree = self.tree(n);
        write(&tree.path.join(".cache/pip/wheel"), "a wheel");
        write(&tree.path.join("node_modules/left-pad/index.js"), "module.exports");
        tree
    }

    /// A conversation that works in `place`, with this status.
    pub(super) fn converse(&self, hex: &str, place: &Path, status: &str) -> PathBuf {
        let folder = self.conversations.join(hex);
        let workspace = serde_json::json!({ "kind": "LocalWorkspace", "working_dir": place });
        let meta = serde_json::json!({ "id": hex, "title": "a task", "workspace": workspace });
        let state = serde_json::json!({ "id": hex, "workspace": workspace, "execution_status": status });
        write(&folder.join("meta.json"), &meta.to_string());
        write(&folder.join("base_state.json"), &state.to_string());
        write(&folder.join("events/event-00000-x.json"), "{}");
        folder
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds { deadline: self.now().plus(Duration::from_mins(5)) }
    }

    pub(super) async fn see(&self, id: &RuntimeId) -> Observation {
        see(&self.backend(), id).await
    }

    pub(super) async fn delete(&self, id: &RuntimeId, rule: WorkspaceRule) -> Outcome<Deleted> {
        let backend = self.backend();
        let target = Target::of(&see(&backend, id).await);
        backend.delete.unwrap().delete(&target, rule, self.bounds()).await.unwrap()
    }

    /// Deletes it, and gives what that did.
    pub(super) async fn deleted(&self, id: &RuntimeId, rule: WorkspaceRule) -> Deleted {
        match self.delete(id, rule).await {
            Outcome::Done(deleted) => deleted,
            other => panic!("the deletion of {id} answered {other:?}"),
        }
    }
}

pub(super) async fn see(backend: &Backend, id: &RuntimeId) -> Observation {
    match backend.inspect.inspect(id).await.unwrap() {
        Sighting::Seen(seen) => *seen,
        Sighting::NotThere => panic!("{id} is not there"),
    }
}

/// The whole listing, with what was unreadable.
pub(super) async fn list(backend: &Backend) -> (Vec<Observation>, Vec<Arc<str>>) {
    let (mut seen, mut unreadable, mut token) = (Vec::new(), Vec::new(), None);
    loop {
        let page = backend.list.list(token.as_ref()).await.unwrap();
        assert!(page.seen.len() <= 1_000, "{} on a page", page.seen.len());
        seen.extend(page.seen);
        unreadable.extend(page.unreadable);
        match page.next {
            Some(next) => token = Some(next),
            None => return (seen, unreadable),
        }
    }
}

pub(super) fn refusal<T: std::fmt::Debug>(outcome: &Outcome<T>) -> &str {
    match outcome {
        Outcome::Refused(why) => why,
        other => panic!("it should be refused, but answered {other:?}"),
    }
}

/// Runs git as a person would, without this machine's settings.
pub(super) fn git(folder: &Path, args: &[&str]) -> String {
    try_git(folder, args).unwrap_or_else(|error| panic!("git {args:?}: {error}"))
}

pub(super) fn try_git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "agent").env(format!("GIT_{who}_EMAIL"), "agent@example.com");
    }
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

pub(super) fn commit(tree: &Tree, file: &str) {
    write(&tree.path.join(file), file);
    git(&tree.path, &["add", file]);
    git(&tree.path, &["commit", "-qm", file]);
}

pub(super) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every path below, with what it holds: bytes, a link's target, or nothing for a folder.
pub(super) fn content(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    each(top, &mut |path, meta| {
        let bytes = if meta.is_symlink() {
            [b"-> ", fs::read_link(path).unwrap().as_os_str().as_bytes()].concat()
        } else if meta.is_file() {
            fs::read(path).unwrap()
        } else {
            Vec::new()
        };
        found.insert(path.strip_prefix(top).unwrap().to_owned(), bytes);
    });
    found
}

/// Every path below, with what a look could change: its inode, size, mode, and when it was written and changed.
pub(super) fn stamps(top: &Path) -> BTreeMap<PathBuf, [i64; 6]> {
    let mut found = BTreeMap::new();
    each(top, &mut |path, meta| {
        let whole = |n: u64| i64::try_from(n).unwrap();
        let stamp = [
            whole(meta.ino()),
            whole(meta.size()),
            i64::from(meta.mode()),
            meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
            meta.ctime() * 1_000_000_000 + meta.ctime_nsec(),
            whole(meta.nlink()),
        ];
        found.insert(path.to_owned(), stamp);
    });
    found
}

fn each(path: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let meta = fs::symlink_metadata(path).unwrap();
    visit(path, &meta);
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            each(&entry.unwrap().path(), visit);
        }
    }
}

/// Sets when a path and all below it were written.
pub(super) fn age(path: &Path, at: Time) {
    each(path, &mut |path, _| {
        let time = filetime::FileTime::from_unix_time(at.millis().div_euclid(1_000), 0);
        filetime::set_symlink_file_times(path, time, time).unwrap();
    });
}

pub(super) fn bytes(text: &[u8]) -> &OsStr {
    OsStr::from_bytes(text)
}
