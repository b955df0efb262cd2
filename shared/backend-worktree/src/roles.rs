//! The roles that a worktree backend has: it lists, inspects, sheds, deletes and takes back. It never suspends, since a
//! worktree runs nothing of its own.

use std::{
    collections::HashSet,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use backend::{
    BackendError, Bounds, Deletable, Deleted, ErrorKind, FileReclaimable, Inspectable, Listable, Outcome, Page,
    PageToken, Recoverable, Shed, Sighting, Target, Trashed,
};
use lifecycle::{RuntimeId, Tier, Time, policy::WorkspaceRule, snapshot::Disk};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::{
    act::Ended,
    blocking,
    conversations::{Conversations, Signs},
    fault,
    git::Git,
    inspect,
    layout::{self, Found},
    look::{Looked, Worktree, look},
    options::Options,
    place::split,
    save,
    trash::{self, Halt, Note, Yard},
    yards,
};

/// The backend. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Worktrees {
    pub options: Arc<Options>,
    pub conversations: Arc<Conversations>,
    /// One act in the trash at a time.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    /// The trashes that were tidied since this process began.
    pub tidied: Arc<Mutex<HashSet<PathBuf>>>,
    /// Set when all of them were, and the saves.
    pub tidied_all: Arc<tokio::sync::OnceCell<()>>,
}

impl Worktrees {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            conversations: Arc::new(Conversations::new(options.conversations.clone())),
            options: Arc::new(options),
            turn: Arc::default(),
            tidied: Arc::default(),
            tidied_all: Arc::default(),
        }
    }

    /// Git, each run of which ends within `at_most`.
    pub(crate) fn git(&self, at_most: Duration) -> Git {
        let options = &self.options;
        let timeout = options.git_timeout.min(at_most);
        Git { program: options.git.clone(), timeout, scratch: options.scratch.clone() }
    }

    pub(crate) fn signs(&self, worktree: &Worktree) -> Signs {
        self.conversations.signs(&worktree.place, self.options.clock.now())
    }

    pub(crate) fn conversations_fault(&self, error: &io::Error) -> BackendError {
        let folder = self.options.conversations.as_deref().unwrap_or(Path::new(""));
        fault::at("read the conversations in", folder, error)
    }

    fn root(&self) -> Option<&Path> {
        self.options.root.as_ref().map(crate::options::Root::path)
    }

    /// A page, and where the next begins.
    fn page(&self, from: &Cursor) -> Result<Page, BackendError> {
        let after = from.after.as_deref();
        let mut page = Page { seen: Vec::new(), unreadable: Vec::new(), next: None };
        let found = match from.section.checked_sub(1) {
            // A root that is missing hides no repository: what can be listed is, and the listing is partial.
            None => match self.root_section(after) {
                Err(error) if !self.options.repositories.is_empty() => unreadable(error),
                found => found?,
            },
            Some(index) => match self.options.repositories.get(index) {
                None => Found::default(),
                Some(repository) => layout::repository_page(repository, self.root(), after).unwrap_or_else(unreadable),
            },
        };
        self.look_through(found, from.section, &mut page);
        Ok(page)
    }

    fn root_section(&self, after: Option<&[u8]>) -> Result<Found, BackendError> {
        let Some(root) = &self.options.root else { return Ok(Found::default()) };
        if !layout::check_root(root)? {
            return Ok(Found::default());
        }
        layout::root_page(root.path(), after).map_err(|e| fault::at("list worktree root", root.path(), &e))
    }

    fn look_through(&self, found: Found, section: usize, page: &mut Page) {
        page.unreadable.extend(found.unreadable.into_iter().map(Arc::from));
        let mut tell = |place: &crate::place::Place, looked: io::Result<Looked>| {
            let shown = place.path.display();
            if let Err(error) = place.id(&self.options.name) {
                page.unreadable.push(format!("`{shown}`: {error}").into());
                return;
            }
            match looked {
                Ok(looked) => page.seen.extend(self.observation(place, &looked)),
                Err(error) => page.unreadable.push(format!("`{shown}`: {error}").into()),
            }
        };
        for place in found.places {
            let looked = look(place.clone(), self.options.trust_times);
            tell(&place, looked);
        }
        for (place, what) in found.strays {
            tell(&place, Ok(Looked::Other(what.into_owned())));
        }
        let next = match found.last {
            Some(last) => Some(Cursor { section, after: Some(last) }),
            None if section < self.options.repositories.len() => Some(Cursor { section: section + 1, after: None }),
            None => None,
        };
        page.next = next.map(|cursor| cursor.token());
    }

    /// Whether a note can be of this backend, and lies beside what it describes.
    fn fits(&self, yard: &Yard, note: &Note) -> bool {
        if *note.runtime.backend() != self.options.name {
            return false;
        }
        let key = note.runtime.provider_id();
        if self.root() == Some(&yard.path) {
            return is_of(note, Path::new(OsStr::from_bytes(&key)));
        }
        let Some((first, second)) = split(&key) else { return false };
        let remembered = || yards::remembered(&self.options.saves).contains(&yard.path);
        let Some(repository) = self.options.repositories.iter().find(|repository| *first == *repository.name) else {
            // Taken out of the configuration since.
            return remembered();
        };
        let Ok(common) = layout::common_folder(repository) else { return remembered() };
        match layout::repository_place(repository, &common.join("worktrees"), &second) {
            Ok(Some(place)) => {
                let below = place.path.strip_prefix(&yard.path);
                place.yard == yard.path && below.is_ok_and(|below| is_of(note, below))
            }
            // Git has forgotten it since.
            Ok(None) | Err(_) => remembered(),
        }
    }

    /// The trashes that there are. One that was planted beside a repository's worktrees hides no other; the root's is an
    /// error, which somebody has to look at.
    pub(crate) fn yards(&self) -> impl Iterator<Item = Result<Yard, Halt>> {
        yards::all(&self.options).into_iter().filter_map(|path| match Yard::open(&path) {
            Err(Halt::Refused(why)) if self.root() != Some(&path) => {
                tracing::warn!("{why}");
                None
            }
            opened => opened.transpose(),
        })
    }
}

/// Whether a note is of what stood at `place`, or of something below it.
fn is_of(note: &Note, place: &Path) -> bool {
    note.origin.starts_with(place) && (note.tier != Tier::Runtime || note.origin == place)
}

/// A repository that can't be read makes the listing partial; the others are still shown.
fn unreadable(error: BackendError) -> Found {
    Found { unreadable: vec![error.message], ..Found::default() }
}

/// Where a page begins: section 0 is the root, the others are the repositories.
struct Cursor {
    section: usize,
    after: Option<Vec<u8>>,
}

impl Cursor {
    fn token(&self) -> PageToken {
        let after = self.after.as_deref().map(|key| percent_encode(key, NON_ALPHANUMERIC).to_string());
        PageToken(format!("{}:{}", self.section, after.unwrap_or_default()).into())
    }

    fn read(token: Option<&PageToken>) -> Result<Self, BackendError> {
        let Some(token) = token else { return Ok(Self { section: 0, after: None }) };
        let wrong = || BackendError::new(ErrorKind::Malformed, format!("`{}` is no page token of ours", token.0));
        let (section, after) = token.0.split_once(':').ok_or_else(wrong)?;
        let after: Vec<u8> = percent_decode_str(after).collect();
        Ok(Self { section: section.parse().map_err(|_| wrong())?, after: Some(after).filter(|key| !key.is_empty()) })
    }
}

#[async_trait]
impl Listable for Worktrees {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let cursor = Cursor::read(page)?;
        let first = page.is_none();
        let this = self.clone();
        blocking(move || {
            if first {
                this.conversations.refresh(this.options.clock.now()).map_err(|e| this.conversations_fault(&e))?;
            }
            this.page(&cursor)
        })
        .await
    }

    async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        let repositories = self.options.repositories.iter().map(|repository| repository.path.as_path());
        let Some(path) = self.root().into_iter().chain(repositories).find(|path| path.exists()) else {
            return Ok(None);
        };
        let path = path.to_owned();
        blocking(move || match rustix::fs::statvfs(&path) {
            Ok(fs) => {
                let total = fs.f_blocks.saturating_mul(fs.f_frsize);
                // What only the superuser may fill is not free: `df` says the same.
                let free = fs.f_bavail.saturating_mul(fs.f_frsize);
                let reserved = fs.f_bfree.saturating_sub(fs.f_bavail).saturating_mul(fs.f_frsize);
                let total = total.saturating_sub(reserved);
                Ok(Some(Disk { total, used: total.saturating_sub(free) }))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(fault::at("measure the filesystem of", &path, &errno.into())),
        })
        .await
    }
}

#[async_trait]
impl Inspectable for Worktrees {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let Some((looked, Some(listed))) = self.look_at(id).await? else { return Ok(Sighting::NotThere) };
        let Looked::Worktree(worktree) = looked else { return Ok(Sighting::Seen(Box::new(listed))) };
        let path = worktree.place.path.clone();
        let signs = self.signs(&worktree);
        match inspect::detail(&self.git(Duration::MAX), *worktree, listed, &signs, self.options.clock.now()).await {
            Ok(detail) => Ok(Sighting::Seen(Box::new(detail.observation))),
            Err(_) if !path.exists() => Ok(Sighting::NotThere),
            Err(why) => Err(BackendError::new(ErrorKind::Local, format!("`{}`: {why}", path.display()))),
        }
    }
}

#[async_trait]
impl Deletable for Worktrees {
    fn saves_first(&self) -> bool {
        true
    }

    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let answer = self.delete_it(target, save, bounds).await;
        self.or_gone(target, answer).await
    }
}

#[async_trait]
impl FileReclaimable for Worktrees {
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        let answer = self.shed_it(target, tier, bounds).await;
        self.or_gone(target, answer).await
    }
}

#[async_trait]
impl Recoverable for Worktrees {
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError> {
        let this = self.clone();
        blocking(move || {
            let mut all = Vec::new();
            for yard in this.yards() {
                let yard = yard.map_err(|halt| Ended::from(halt).fault())?;
                let entries = trash::listed(&yard).map_err(|e| fault::at("list the trash in", &yard.path, &e))?;
                let ours = entries.into_iter().filter(|(_, note)| this.fits(&yard, note));
                all.extend(ours.map(|(entry, note)| trashed(&yard, entry, note, None)));
            }
            all.sort_by(|a, b| (b.at, &b.entry).cmp(&(a.at, &a.entry)));
            Ok(all)
        })
        .await
    }

    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError> {
        let (this, name) = (self.clone(), entry.to_owned());
        let undone = self.in_trash_of(entry, move |yard| {
            let undone = trash::undo(yard, &name, &|note| this.fits(yard, note), &this.options.interrupt)?;
            Ok(undone.map(|(note, said)| trashed(yard, name.clone(), note, said)))
        });
        Ok(match undone.await {
            Ok(Some(undone)) => Outcome::Done(undone),
            Ok(None) => Outcome::Gone,
            Err(ended) => return ended.answer(),
        })
    }

    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError> {
        let (this, name) = (self.clone(), entry.to_owned());
        let given_up = self.in_trash_of(entry, move |yard| {
            let fits = |note: &Note| this.fits(yard, note);
            let given_up = trash::empty(yard, &name, &fits, &this.options.interrupt)?;
            Ok(given_up.map(|condemned| (yard.path.clone(), condemned)))
        });
        let (path, condemned) = match given_up.await {
            Ok(Some(given_up)) => given_up,
            Ok(None) => return Ok(Outcome::Gone),
            Err(ended) => return ended.answer(),
        };
        let interrupt = self.options.interrupt.clone();
        let removed = blocking(move || match Yard::open(&path)? {
            Some(yard) => trash::remove_condemned(&yard, &condemned, &interrupt),
            None => Ok(()),
        });
        match removed.await {
            Ok(()) => Ok(Outcome::Done(())),
            Err(halt) => Ended::from(halt).answer(),
        }
    }

    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError> {
        self.tidy_all().await;
        let (folder, now) = (self.options.saves.clone(), self.options.clock.now());
        let forget = move || {
            // Another process may have been killed since this one began.
            save::sweep(&folder, now)?;
            save::forget(&folder, before)
        };
        let saves = self.options.saves.clone();
        blocking(move || forget().map_err(|e| fault::at("remove old saves in", &saves, &e))).await
    }
}

impl Worktrees {
    /// Does something with an entry in the trash that has it. `None`: no trash has it.
    async fn in_trash_of<T: Send + 'static>(
        &self,
        entry: &str,
        act: impl Fn(&Yard) -> Result<Option<T>, Halt> + Clone + Send + 'static,
    ) -> Result<Option<T>, Ended> {
        let (this, entry) = (self.clone(), entry.to_owned());
        let deadline = self.options.clock.now().plus(Duration::from_mins(1));
        self.in_turn(deadline, move || {
            for yard in this.yards() {
                let yard = yard?;
                if !yard.has(&entry).map_err(|e| Halt::Fault(fault::at("read the trash in", &yard.path, &e)))? {
                    continue;
                }
                let _lock = yard.lock()?;
                this.tidy_once(&yard)?;
                return act(&yard);
            }
            Ok(None)
        })
        .await
    }
}

fn trashed(yard: &Yard, entry: String, note: Note, said: Option<String>) -> Trashed {
    let origin = yard.path.join(&note.origin).display().to_string();
    let origin = said.map_or(origin.clone(), |said| format!("{origin} ({said})"));
    Trashed {
        entry: entry.into(),
        runtime: note.runtime,
        tier: note.tier,
        at: note.at,
        origin: origin.into(),
        bytes: note.bytes,
    }
}
