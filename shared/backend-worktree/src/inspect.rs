//! One worktree in detail: what git tells, what the files tell, what a deletion would lose, and what stands against it.

use std::{path::PathBuf, sync::Arc};

use lifecycle::{Activity, Cannot, FileSizes, Loss, Observation, Role, Time};

use crate::{
    commits::{self, Commits},
    conversations::Signs,
    git::{Git, GitFault},
    look::{self, Admin, Head, Worktree, read_small},
    measure::{self, Measure},
    observe,
    status::{self, Status},
    tiers::{self, TierFolder},
    walk,
    written::Newest,
};

/// What was found out about one worktree.
#[derive(Debug)]
pub(crate) struct Detail {
    pub worktree: Worktree,
    pub observation: Observation,
    /// What git's and the conversations' files told of activity, to be compared before the move.
    pub signs: Newest,
    /// The newest writing of a file, to be compared before the move.
    pub files: Newest,
    /// What git told; `None`: it could not tell.
    pub status: Option<Status>,
    /// What can be shed.
    pub tiers: Vec<TierFolder>,
    /// What must be bundled; `None`: git could not tell.
    pub commits: Option<Commits>,
    /// Whether the index holds what no commit has.
    pub staged: bool,
    /// Why it can't be deleted, by anybody.
    pub against: Vec<String>,
}

/// What git told.
struct Told {
    status: Status,
    hidden: Vec<PathBuf>,
    commits: Commits,
}

/// Looks at one worktree with git. `listed` is what the cheap look told of it.
pub(crate) async fn detail(
    git: &Git,
    worktree: Worktree,
    listed: Observation,
    signs: &Signs,
    now: Time,
) -> Result<Detail, String> {
    let mut detail = Detail {
        signs: observe::git_activity(&worktree, now).join(signs.newest.clone()),
        worktree,
        observation: listed,
        files: Newest::default(),
        status: None,
        tiers: Vec::new(),
        commits: None,
        staged: false,
        against: Vec::new(),
    };
    let told = match detail.worktree.git.clone() {
        None => None,
        Some(admin) => match ask(git, &detail.worktree, admin).await {
            Ok((admin, told)) => {
                detail.worktree.git = Some(admin.clone());
                Some((admin, told))
            }
            Err(fault) => {
                detail.against.push(format!("git can't tell what is in it: {fault}"));
                None
            }
        },
    };
    let path = detail.worktree.place.path.clone();
    let status = told.as_ref().map(|(_, told)| told.status.clone());
    detail.status.clone_from(&status);
    let walked = crate::blocking(move || {
        let top = walk::open_folder(&path)?;
        let tiers = status.as_ref().map_or_else(Vec::new, |status| tiers::classify(&top, &status.ignored_folders));
        let measure = measure::measure(&path, status.as_ref(), &tiers, now)?;
        Ok::<_, std::io::Error>((tiers, measure))
    });
    let (tiers, measure) = walked.await.map_err(|error| format!("could not read it: {error}"))?;
    detail.tiers = tiers;
    detail.fill(told, &measure);
    Ok(detail)
}

impl Detail {
    fn fill(&mut self, told: Option<(Admin, Told)>, measure: &Measure) {
        self.files = measure.newest.clone();
        if let Some(newest) = measure.newest.at
            && let Activity::At(at) = self.observation.activity
        {
            self.observation.activity = Activity::At(at.max(newest));
        }
        self.observation.about =
            observe::about(&self.worktree, self.signs.ahead.as_ref().or(self.files.ahead.as_ref()));
        self.obstacles(measure);
        self.observation.files = measure.sizes;
        self.observation.loss = match told {
            Some((admin, told)) => {
                let hidden = told.hidden.iter().filter(|path| exists(&self.worktree, path)).count() as u64;
                let losses = observe::losses(
                    &admin,
                    &told.status,
                    hidden,
                    &told.commits,
                    measure,
                    look::under_way(&self.worktree.admin),
                );
                self.staged = told.status.staged || told.status.conflicts > 0;
                self.commits = Some(told.commits);
                if losses.is_empty() { Loss::Nothing } else { Loss::Work(losses) }
            }
            None if self.worktree.git.is_none() => Loss::Work(observe::orphan_loss(&self.worktree)),
            None => {
                self.observation.files = FileSizes { caches: None, dependencies: None, ..measure.sizes };
                // What git ignores is not known either. Of a repository that is gone, the listing said so already.
                let why = self.against.first().map_or("git can't tell what is in it", String::as_str).into();
                self.observation.cannot.push(Cannot { role: Role::Files, why });
                Loss::Unknown
            }
        };
        for why in &self.against {
            if !self.observation.cannot.iter().any(|cannot| cannot.role == Role::Delete) {
                self.observation.cannot.push(Cannot { role: Role::Delete, why: Arc::from(why.as_str()) });
            }
        }
    }

    /// What can be neither moved nor saved as it is.
    fn obstacles(&mut self, measure: &Measure) {
        if let Some(reason) = self.worktree.git.as_ref().and_then(|git| git.locked.as_ref()) {
            self.against.push(observe::locked(reason));
        }
        if let Some(mount) = measure.mounts.first() {
            self.against.push(format!("a filesystem is mounted in it, at `{}`; unmount it first", mount.display()));
        }
        for dot_git in &measure.repositories {
            if leads_out(&self.worktree, dot_git) {
                let at = dot_git.parent().unwrap_or(dot_git).display();
                self.against.push(format!("another worktree lies in it, at `{at}`; move or remove that one first"));
            }
        }
        if let Some(what) = measure.unreadable.first() {
            self.against.push(format!("not all of it can be read: {what}"));
        }
    }
}

/// What git tells, and the administrative folder with what is checked out, of which files alone may not tell.
async fn ask(git: &Git, worktree: &Worktree, mut admin: Admin) -> Result<(Admin, Told), GitFault> {
    let view = git.worktree(&admin.common, &worktree.admin, &worktree.place.path).await?;
    let strange =
        |verb: &str| GitFault::Failed { verb: verb.into(), complaint: "it wrote what this format has not".into() };
    let answer = git.run(&view, status::STATUS, &[]).await?;
    let mut told = Status::read(&answer).ok_or_else(|| strange("status"))?;
    // `web/`, in which there is only `node_modules/`: the latter is what the pattern names.
    let unnamed = |path: &&PathBuf| tiers::named(path).is_none();
    let above: Vec<_> = told.ignored_folders.iter().filter(unnamed).cloned().collect();
    if !above.is_empty() {
        let answer = git.run(&view, status::MATCHING, &[]).await?;
        let matching = Status::read(&answer).ok_or_else(|| strange("status"))?.ignored_folders;
        let inside = |path: &PathBuf| above.iter().any(|above| path != above && path.starts_with(above));
        told.ignored_folders.extend(matching.into_iter().filter(inside));
    }
    let hidden = status::hidden(&git.run(&view, status::FLAGS, &[]).await?).ok_or_else(|| strange("ls-files"))?;
    told.submodules = status::submodules(&git.run(&view, status::STAGE, &[]).await?);
    let mut own = Vec::new();
    if admin.head == Head::InTables {
        (admin.head, own) = commits::in_tables(git, &view).await?;
    }
    drop(view);
    let view = git.repository(&admin.common).await?;
    let commits = commits::commits(git, &view, &admin, &worktree.admin, own).await?;
    Ok((admin, Told { status: told, hidden, commits }))
}

fn exists(worktree: &Worktree, path: &std::path::Path) -> bool {
    worktree.place.path.join(path).symlink_metadata().is_ok()
}

/// Whether a `.git` inside is a file that leads to a folder which neither lies in the worktree nor goes with it.
fn leads_out(worktree: &Worktree, dot_git: &std::path::Path) -> bool {
    let path = worktree.place.path.join(dot_git);
    if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return false;
    }
    let Ok(text) = read_small(&path) else { return true };
    let Some(target) = text.strip_prefix(b"gitdir: ") else { return true };
    let target = path
        .with_file_name("")
        .join(std::ffi::OsStr::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(target)));
    let real = |path: &std::path::Path| std::fs::canonicalize(path).ok();
    let homes = [real(&worktree.place.path), real(&worktree.admin)];
    let Some(target) = real(&target) else { return false };
    !homes.into_iter().flatten().any(|home| target.starts_with(home))
}
