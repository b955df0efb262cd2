//! What the backend is built from: plain data, given by whoever reads the settings.

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use backend::Clock;
use lifecycle::BackendName;

/// Everything that the backend needs to know. Nothing here is read from the environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The backend's configured name.
    pub name: BackendName,
    /// Tells the time; used for the trash, the saves and the bound of "busy".
    pub clock: Clock,
    /// OpenHands' worktree root, `<root>/<uuid>/<repository>`.
    pub root: Option<Root>,
    /// OpenHands' `conversations_path`, `<id hex>/{meta.json,base_state.json,events/}`.
    pub conversations: Option<PathBuf>,
    /// Repositories whose linked worktrees are ours; never the main one.
    pub repositories: Vec<Repository>,
    /// Whether a worktree is as old as its files say although they were made later: after a move to another disk
    /// or a restore. Off, it is as new as the copy, so that a full idle period passes after it.
    pub trust_times: bool,
    /// Where work is saved before a worktree goes: `<encoded id>/<time>-<n>/`. Made when first needed.
    pub saves: PathBuf,
    /// A folder for throw-away files while git looks (the system's temporary folder). Must exist.
    pub scratch: PathBuf,
    /// The git program: a path, or a name to be found in [`crate::git::PATH`].
    pub git: PathBuf,
    /// The longest that one run of git may take.
    pub git_timeout: Duration,
    /// Called before each step of an act; tests make it fail there.
    pub interrupt: Interrupt,
}

impl Options {
    /// Nothing found and nothing configured: a base to change.
    pub fn new(name: BackendName, clock: Clock, saves: PathBuf, scratch: PathBuf) -> Self {
        Self {
            name,
            clock,
            root: None,
            conversations: None,
            repositories: Vec::new(),
            trust_times: false,
            saves,
            scratch,
            git: PathBuf::from("git"),
            git_timeout: Duration::from_mins(2),
            interrupt: Interrupt::default(),
        }
    }
}

/// Where the worktree root's path comes from, which decides what its absence means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A person wrote it down: a root that is missing is an error (a disk not mounted, a typo).
    Configured(PathBuf),
    /// We looked in the usual place: a root that is missing is nothing there.
    Detected(PathBuf),
}

impl Root {
    /// The path.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Configured(path) | Self::Detected(path) => path,
        }
    }
}

/// A repository of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The first part of its worktrees' ids.
    pub name: String,
    /// The repository: a work tree, a bare repository, or a `.git` folder.
    pub path: PathBuf,
}

/// A step of an act, in order. Between any two the process may be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Before the folder of a save is made.
    SaveBegin,
    /// Before the commits are bundled.
    SaveBundle,
    /// Before the tree is packed.
    SaveTree,
    /// Before what was saved is read back.
    SaveVerify,
    /// Before the save gets its final name.
    SavePublish,
    /// Before the trash entry's folder is made.
    TrashEntry,
    /// Before the note is written.
    TrashNote,
    /// Before git's worktree is locked.
    TrashLock,
    /// Before the rename into the trash.
    TrashMove,
    /// After that rename, before what is left over is tidied.
    TrashTidy,
    /// Before the rename out of the trash.
    UndoMove,
    /// After that rename, before our git lock is removed.
    UndoUnlock,
    /// Before the note and the entry's folder are removed.
    UndoTidy,
    /// Before an entry is given up for ever.
    EmptyCondemn,
    /// Before git's administrative folder of it is removed.
    EmptyAdmin,
    /// Before its files are removed.
    EmptyFiles,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 16] = [
        Self::SaveBegin,
        Self::SaveBundle,
        Self::SaveTree,
        Self::SaveVerify,
        Self::SavePublish,
        Self::TrashEntry,
        Self::TrashNote,
        Self::TrashLock,
        Self::TrashMove,
        Self::TrashTidy,
        Self::UndoMove,
        Self::UndoUnlock,
        Self::UndoTidy,
        Self::EmptyCondemn,
        Self::EmptyAdmin,
        Self::EmptyFiles,
    ];
}

/// Whoever may stop an act before a step, as a full disk or a killed process would.
type Stops = dyn Fn(Step) -> io::Result<()> + Send + Sync;

/// Stops an act before a step. The default never does.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<Stops>>);

impl Interrupt {
    /// From whoever decides. An error ends the act there, without the tidying that the code would
    /// do on an error of its own, as if the process had been killed.
    pub fn new(stops: impl Fn(Step) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stops)))
    }

    pub(crate) fn at(&self, step: Step) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |stops| stops(step))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}
