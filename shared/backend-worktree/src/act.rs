//! Acts on one worktree: what is looked at again, saved, and moved, in this order.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use backend::{BackendError, Bounds, Deleted, ErrorKind, Outcome, Shed, Target};
use lifecycle::{Busy, Loss, Observation, RuntimeId, State, Tier, Time, policy::WorkspaceRule};

use crate::{
    blocking,
    conversations::Signs,
    fault,
    inspect::{self, Detail},
    layout,
    look::{Head, Looked, Worktree, look},
    measure, observe,
    place::Place,
    roles::Worktrees,
    save,
    tiers::TierFolder,
    trash::{self, GitNote, Halt, Moved, Moving, Note, Yard},
    yards,
};

/// How long is waited between two tries for a trash that another process works in.
const RETRY: Duration = Duration::from_millis(25);

/// What stands at an id, looked at for an act.
enum Aim {
    /// What the target names.
    Hit(Box<Detail>),
    /// Something else, which is the answer.
    Miss(Miss),
}

/// Why an act is not begun.
enum Miss {
    Gone,
    Moved(lifecycle::Incarnation),
    Refused(String),
}

impl Miss {
    fn outcome<T>(self) -> Outcome<T> {
        match self {
            Self::Gone => Outcome::Gone,
            Self::Moved(incarnation) => Outcome::Moved { incarnation, state: State::Running },
            Self::Refused(why) => Outcome::Refused(why.into()),
        }
    }
}

impl Worktrees {
    /// Looks again, in detail, at what an act is aimed at.
    async fn aim(&self, target: &Target, verb: &str, bounds: Bounds) -> Result<Aim, BackendError> {
        let left = bounds.left(self.options.clock.now())?;
        let miss = |miss| Ok(Aim::Miss(miss));
        let Some(looked) = self.look_at(&target.id).await? else { return miss(Miss::Gone) };
        let (worktree, listed) = match looked {
            (Looked::Vanished, _) => return miss(Miss::Gone),
            (Looked::Other(what), _) => return miss(Miss::Refused(format!("not a worktree of ours: {what}"))),
            (Looked::Worktree(worktree), listed) => (*worktree, listed),
        };
        if worktree.incarnation != target.incarnation || target.state != State::Running {
            return miss(Miss::Moved(worktree.incarnation));
        }
        let Some(listed) = listed else { return miss(Miss::Gone) };
        let signs = self.signs(&worktree);
        if let Some(why) = in_use(&signs) {
            return miss(Miss::Refused(format!("not to {verb} now: {why}")));
        }
        let detail = inspect::detail(&self.git(left), worktree, listed, &signs, self.options.clock.now()).await;
        Ok(Aim::Hit(Box::new(detail.map_err(|why| BackendError::new(ErrorKind::Local, why))?)))
    }

    /// What is left of the time; the save may have taken it all.
    fn left(&self, bounds: Bounds) -> Result<Duration, Halt> {
        bounds.left(self.options.clock.now()).map_err(Halt::Fault)
    }

    /// The answer, unless it came of the worktree going meanwhile: that is the answer then.
    pub(crate) async fn or_gone<T: Send>(
        &self,
        target: &Target,
        answer: Result<Outcome<T>, BackendError>,
    ) -> Result<Outcome<T>, BackendError> {
        if !matches!(answer, Ok(Outcome::Refused(_)) | Err(_)) {
            return answer;
        }
        match self.look_at(&target.id).await {
            Ok(None | Some((Looked::Vanished, _))) => Ok(Outcome::Gone),
            _ => answer,
        }
    }

    /// Whether it was worked in since it was looked at.
    async fn moved_since(&self, detail: &Detail) -> Result<Option<Miss>, BackendError> {
        let place = detail.worktree.place.clone();
        let path = place.path.clone();
        let trust_times = self.options.trust_times;
        let looked = blocking(move || look(place, trust_times)).await.map_err(|e| fault::at("look at", &path, &e))?;
        let Looked::Worktree(now) = looked else { return Ok(Some(Miss::Gone)) };
        if now.incarnation != detail.worktree.incarnation {
            return Ok(Some(Miss::Moved(now.incarnation)));
        }
        let signs = self.signs(&now);
        if let Some(why) = in_use(&signs) {
            return Ok(Some(Miss::Refused(why)));
        }
        let at = self.options.clock.now();
        let told = observe::git_activity(&now, at).join(signs.newest);
        let worked_in = told.print != detail.signs.print || written_since(detail, at).await;
        Ok(worked_in.then(|| Miss::Refused("it was worked in while it was looked at; it is kept".into())))
    }

    pub(crate) async fn delete_it(
        &self,
        target: &Target,
        rule: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let detail = match self.aim(target, "delete", bounds).await? {
            Aim::Miss(miss) => return Ok(miss.outcome()),
            Aim::Hit(detail) => detail,
        };
        if let Some(why) = detail.against.first() {
            return Ok(Outcome::Refused(why.as_str().into()));
        }
        // Fails early on a trash that can't be used, before time is spent on a save.
        if let Some(answer) = self.check_yard(&detail.worktree.place.yard).await? {
            return Ok(answer);
        }
        let saved = if rule == WorkspaceRule::Save && detail.observation.loss != Loss::Nothing {
            match self.save_it(&target.id, &detail, bounds).await {
                Ok(saved) => Some(saved),
                Err(halt) => return stopped(halt),
            }
        } else {
            None
        };
        let deleted = self.trash_it(target, &detail, saved.as_deref(), bounds).await;
        // Killed at a step of the trash, a process would have left the save.
        let kept = matches!(deleted, Ok(Outcome::Done(_)) | Err(Ended::Killed(_)));
        if let (false, Some(saved)) = (kept, saved) {
            blocking(move || save::discard(&saved)).await;
        }
        deleted.or_else(Ended::answer)
    }

    async fn save_it(&self, id: &RuntimeId, detail: &Detail, bounds: Bounds) -> Result<PathBuf, Halt> {
        let saving = save::Saving {
            git: &self.git(self.left(bounds)?),
            folder: &self.options.saves,
            clock: &self.options.clock,
            deadline: bounds.deadline,
            interrupt: &self.options.interrupt,
        };
        save::save(&saving, id, detail).await
    }

    async fn trash_it(
        &self,
        target: &Target,
        detail: &Detail,
        saved: Option<&Path>,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, Ended> {
        self.left(bounds)?;
        if let Some(miss) = self.moved_since(detail).await.map_err(Ended::Fault)? {
            return Ok(miss.outcome());
        }
        let bytes = detail.observation.files.total.unwrap_or(0);
        let moving = self.moving(&target.id, detail, Path::new(""), Tier::Runtime, bytes);
        let moved = self.move_in(moving, bounds).await?;
        Ok(match moved {
            Moved::Gone => Outcome::Gone,
            Moved::Entry(entry) => Outcome::Done(Deleted {
                saved: saved.map(|path| path.display().to_string().into()),
                undo: Some(entry.into()),
                kept: kept(&detail.worktree),
                bytes,
            }),
        })
    }

    pub(crate) async fn shed_it(
        &self,
        target: &Target,
        tier: Tier,
        bounds: Bounds,
    ) -> Result<Outcome<Shed>, BackendError> {
        if tier == Tier::Runtime {
            return Ok(Outcome::Refused("the runtime tier is not shed but deleted".into()));
        }
        let detail = match self.aim(target, "shed", bounds).await? {
            Aim::Miss(miss) => return Ok(miss.outcome()),
            Aim::Hit(detail) => detail,
        };
        let mut folders: Vec<TierFolder> = detail.tiers.iter().filter(|folder| folder.tier == tier).cloned().collect();
        folders.dedup();
        if let Some(why) = detail.against.iter().find(|_| detail.commits.is_none()) {
            return Ok(Outcome::Refused(why.as_str().into()));
        }
        let mut shed = Shed::default();
        for folder in &folders {
            let (path, now) = (detail.worktree.place.path.join(&folder.path), self.options.clock.now());
            let measured = blocking(move || measure::measure(&path, None, &[], now)).await.unwrap_or_default();
            let bytes = measured.sizes.total.unwrap_or(0);
            let moved = match measured.mounts.first() {
                // A rename would take the mount along, away from whoever uses it, and its files could never be freed.
                Some(mount) => Err(Ended::Refused(mounted(&folder.path.join(mount)))),
                None => self.move_in(self.moving(&target.id, &detail, &folder.path, tier, bytes), bounds).await,
            };
            match moved {
                Ok(Moved::Entry(entry)) => {
                    shed.undo.push(entry.into());
                    shed.bytes += bytes;
                }
                Ok(Moved::Gone) => {}
                Err(ended) if shed.undo.is_empty() => return ended.answer(),
                Err(ended) => {
                    tracing::warn!(runtime = %target.id, "not all was shed: {ended:?}");
                    break;
                }
            }
        }
        Ok(if shed.undo.is_empty() { Outcome::AlreadyDone } else { Outcome::Done(shed) })
    }

    fn moving(&self, id: &RuntimeId, detail: &Detail, below: &Path, tier: Tier, bytes: u64) -> Moving {
        let worktree = &detail.worktree;
        let place = &worktree.place;
        let origin = place.path.strip_prefix(&place.yard).unwrap_or(&place.path);
        // `join` with nothing would end in a slash.
        let origin = if below.as_os_str().is_empty() { origin.to_owned() } else { origin.join(below) };
        let git = worktree.git.as_ref().filter(|_| tier == Tier::Runtime).map(|git| GitNote {
            admin: absolute(&worktree.admin),
            head: match &git.head {
                Head::Branch(name) => format!("ref: {}", String::from_utf8_lossy(name)),
                Head::Detached(hash) => hash.clone(),
                Head::Unreadable | Head::InTables => "unreadable".into(),
            },
        });
        let note = Note { runtime: id.clone(), tier, at: self.options.clock.now(), origin, bytes, git };
        Moving { yard: place.yard.clone(), note }
    }

    /// Whether the trash can be used; else the answer why not.
    async fn check_yard<T>(&self, yard: &Path) -> Result<Option<Outcome<T>>, BackendError> {
        let yard = yard.to_owned();
        match blocking(move || Yard::open(&yard).map(|_| ())).await {
            Ok(()) => Ok(None),
            Err(halt) => stopped(halt).map(Some),
        }
    }

    async fn move_in(&self, moving: Moving, bounds: Bounds) -> Result<Moved, Ended> {
        let this = self.clone();
        self.in_turn(bounds.deadline, move || {
            let options = &this.options;
            let unwritten = |e| Halt::Fault(fault::at("note the trash's folder in", &options.saves, &e));
            yards::remember(options, &moving.yard).map_err(unwritten)?;
            let yard = Yard::make(&moving.yard)?;
            let _lock = yard.lock()?;
            this.tidy_once(&yard)?;
            trash::move_in(&yard, &moving, &options.interrupt)
        })
        .await
    }

    /// Does one thing in a trash, in turn with the others of this process, and waits for those of other processes.
    pub(crate) async fn in_turn<T: Send + 'static>(
        &self,
        deadline: Time,
        act: impl Fn() -> Result<T, Halt> + Clone + Send + 'static,
    ) -> Result<T, Ended> {
        self.tidy_all().await;
        let _turn = self.turn.lock().await;
        let left = deadline.since(self.options.clock.now()).min(MAX_WAIT);
        let tried = tokio::time::timeout(left, async {
            loop {
                let act = act.clone();
                match blocking(act).await {
                    Err(Halt::Occupied) => tokio::time::sleep(RETRY).await,
                    done => return done,
                }
            }
        });
        match tried.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(halt)) => Err(Ended::from(halt)),
            Err(_) => Err(Ended::from(Halt::Occupied)),
        }
    }
}

/// The longest wait for another process's act in the trash: each is a few renames.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Why an act ended early.
#[derive(Debug)]
pub(crate) enum Ended {
    Killed(std::io::Error),
    Refused(String),
    Fault(BackendError),
}

impl From<Halt> for Ended {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Killed(error) => Self::Killed(error),
            Halt::Refused(why) => Self::Refused(why),
            Halt::Fault(error) => Self::Fault(error),
            Halt::Occupied => Self::Fault(BackendError::new(
                ErrorKind::Unreachable,
                format!(
                    "another process worked in the trash for longer than {MAX_WAIT:?}; nothing was moved: try again"
                ),
            )),
        }
    }
}

impl Ended {
    /// As an error, where there is nothing that can be refused.
    pub(crate) fn fault(self) -> BackendError {
        match self {
            Self::Fault(error) => error,
            Self::Refused(why) => BackendError::new(ErrorKind::Denied, why),
            Self::Killed(error) => BackendError::new(ErrorKind::Local, format!("stopped by a test: {error}")),
        }
    }

    /// What the caller is told.
    pub(crate) fn answer<T>(self) -> Result<Outcome<T>, BackendError> {
        match self {
            Self::Refused(why) => Ok(Outcome::Refused(why.into())),
            ended => Err(ended.fault()),
        }
    }
}

fn stopped<T>(halt: Halt) -> Result<Outcome<T>, BackendError> {
    Ended::from(halt).answer()
}

/// Why what holds a mount stays.
fn mounted(at: &Path) -> String {
    format!("a filesystem is mounted in it, at `{}`; unmount it first", at.display())
}

/// Whether a file of it came, went or was written since; what can't be read any more was touched too.
async fn written_since(detail: &Detail, now: Time) -> bool {
    let (path, status, tiers) = (detail.worktree.place.path.clone(), detail.status.clone(), detail.tiers.clone());
    let measured = blocking(move || measure::measure(&path, status.as_ref(), &tiers, now)).await;
    measured.map_or(true, |measure| measure.newest.print != detail.files.print)
}

/// Why it may be in use: one of its conversations runs, or could not be read.
fn in_use(signs: &Signs) -> Option<String> {
    let who = signs.who.as_deref().unwrap_or_default();
    match signs.busy {
        Busy::No => None,
        Busy::Until(until) => Some(format!("conversation `{who}` runs in it (believed until {until})")),
        Busy::Unread => Some(format!("conversation `{who}` could not be read")),
    }
}

fn kept(worktree: &Worktree) -> Vec<Arc<str>> {
    match worktree.git.as_ref().map(|git| (&git.head, &git.common)) {
        Some((Head::Branch(name), common)) => {
            let name = String::from_utf8_lossy(name);
            let short = name.strip_prefix("refs/heads/").unwrap_or(&name);
            vec![format!("branch `{short}` in `{}`", common.display()).into()]
        }
        _ => Vec::new(),
    }
}

/// Git writes it absolute, or from the worktree; a note needs it from nowhere.
fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Worktrees {
    /// Where an id leads, and what stands there, looked at cheaply. `None`: the configuration has no place for it.
    pub(crate) async fn look_at(&self, id: &RuntimeId) -> Result<Option<(Looked, Option<Observation>)>, BackendError> {
        if *id.backend() != self.options.name {
            return Ok(None);
        }
        let this = self.clone();
        let key = id.provider_id();
        blocking(move || {
            this.conversations.refresh(this.options.clock.now()).map_err(|e| this.conversations_fault(&e))?;
            let options = &this.options;
            let Some(place) = layout::find(options.root.as_ref(), &options.repositories, &key)? else {
                return Ok(None);
            };
            let looked = look(place.clone(), options.trust_times).map_err(|e| fault::at("look at", &place.path, &e))?;
            let seen = this.observation(&place, &looked);
            Ok(Some((looked, seen)))
        })
        .await
    }

    /// What is told of what stands at a place; `None`: nothing stands there.
    pub(crate) fn observation(&self, place: &Place, looked: &Looked) -> Option<Observation> {
        let (name, now) = (&self.options.name, self.options.clock.now());
        match looked {
            Looked::Worktree(worktree) => observe::listed(&self.options, worktree, &self.signs(worktree), now).ok(),
            Looked::Other(what) => observe::stray(name, place, what, now).ok(),
            Looked::Vanished => None,
        }
    }
}
