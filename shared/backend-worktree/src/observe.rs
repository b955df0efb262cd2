//! From what was read to what is told.

use std::{collections::BTreeMap, sync::Arc};

use lifecycle::{
    Activity, BackendName, Busy, Cannot, FileSizes, IdError, Incarnation, Loss, Observation, Ownership, Role, State,
    Time,
};

use crate::{
    commits::Commits,
    conversations::Signs,
    look::{Admin, Head, Worktree, absent, time},
    measure::Measure,
    options::Options,
    place::Place,
    status::Status,
    written::{Ahead, Newest, Stamps},
};

/// Files of the administrative folder of which every change by work changes one, and looking none. The last is the list of
/// a worktree's own reftables.
const TOUCHED: [&str; 4] = ["HEAD", "index", "logs/HEAD", "reftable/tables.list"];

/// The newest sign that git's own files give, never before the worktree was made. Writing times only:
/// a time of reading would be our own trace.
pub(crate) fn git_activity(worktree: &Worktree, now: Time) -> Newest {
    let mut newest = Newest::default();
    newest.add(&worktree.place.path.join(".git"), worktree.born, now);
    for file in TOUCHED {
        let path = worktree.admin.join(file);
        if let Ok(Some(meta)) = absent(path.symlink_metadata()) {
            newest.add(&path, Stamps::from(&meta), now);
        }
    }
    newest
}

/// What a listing tells of a worktree.
pub(crate) fn listed(options: &Options, worktree: &Worktree, signs: &Signs, now: Time) -> Result<Observation, IdError> {
    let newest = git_activity(worktree, now).join(signs.newest.clone());
    Ok(Observation {
        id: worktree.place.id(&options.name)?,
        incarnation: worktree.incarnation.clone(),
        state: State::Running,
        state_since: None,
        running_since: Some(worktree.born.believed(now)),
        activity: newest.at.map_or(Activity::Unknown, Activity::At),
        busy: signs.busy,
        ownership: Ownership::Ours,
        labels: labels(worktree),
        cannot: cannot_yet(worktree),
        loss: Loss::Unknown,
        files: FileSizes::default(),
        native: None,
        sharers: signs.count.max(1),
        about: about(worktree, newest.ahead.as_ref()),
    })
}

/// Its path, and what people should look at.
pub(crate) fn about(worktree: &Worktree, ahead: Option<&Ahead>) -> Arc<str> {
    let path = worktree.place.path.display();
    ahead.map_or_else(|| path.to_string(), |ahead| format!("{path}: {ahead}")).into()
}

/// What a listing tells of something that is not ours to touch.
pub(crate) fn stray(name: &BackendName, place: &Place, what: &str, now: Time) -> Result<Observation, IdError> {
    let meta = place.path.symlink_metadata().ok();
    let inode = meta.as_ref().map_or(0, std::os::unix::fs::MetadataExt::ino);
    let changed = meta.and_then(|meta| meta.modified().ok()).map(time);
    Ok(Observation {
        id: place.id(name)?,
        incarnation: Incarnation::new(format!("other:{inode}")),
        state: State::Running,
        state_since: None,
        running_since: None,
        activity: changed.map_or(Activity::Unknown, |at| Activity::At(at.min(now))),
        busy: Busy::No,
        ownership: Ownership::Unlabelled,
        labels: Arc::default(),
        cannot: Vec::new(),
        loss: Loss::Unknown,
        files: FileSizes::default(),
        native: None,
        sharers: 1,
        about: format!("{}: {what}", place.path.display()).into(),
    })
}

fn labels(worktree: &Worktree) -> lifecycle::observation::Labels {
    let mut labels = BTreeMap::new();
    if let Some(conversation) = &worktree.place.conversation {
        labels.insert("conversation".to_owned(), conversation.clone());
    }
    if let Some(git) = &worktree.git {
        labels.insert("repository".to_owned(), git.common.display().to_string());
        if let Head::Branch(name) = &git.head {
            let name = String::from_utf8_lossy(name);
            labels.insert("branch".to_owned(), name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        }
    }
    Arc::new(labels)
}

fn cannot_yet(worktree: &Worktree) -> Vec<Cannot> {
    let lacks = |role, why: String| Cannot { role, why: why.into() };
    match &worktree.git {
        None => vec![lacks(Role::Files, "its repository is gone: git can't tell which files it ignores".into())],
        Some(Admin { locked: Some(reason), .. }) => vec![lacks(Role::Delete, locked(reason))],
        Some(_) => Vec::new(),
    }
}

/// Why a locked worktree is kept.
pub(crate) fn locked(reason: &str) -> String {
    let said = if reason.is_empty() { "without a reason".to_owned() } else { format!("`{reason}`") };
    format!("locked by `git worktree lock`, {said}; `git worktree unlock` frees it")
}

/// What deleting it would lose, as sentences for people. Empty: nothing.
pub(crate) fn losses(
    git: &Admin,
    status: &Status,
    hidden: u64,
    commits: &Commits,
    measure: &Measure,
    under_way: Option<&str>,
) -> Vec<Arc<str>> {
    let mut losses = Vec::new();
    let mut add = |count: u64, one: &str, many: &str| {
        if count > 0 {
            losses.push(Arc::from(format!("{count} {}", if count == 1 { one } else { many })));
        }
    };
    add(status.modified, "modified file", "modified files");
    add(status.conflicts, "file with a conflict", "files with a conflict");
    add(measure.untracked, "untracked file", "untracked files");
    let example = measure.ignored_example.as_ref().map(|path| format!(", such as `{}`", path.display()));
    let example = example.unwrap_or_default();
    add(
        measure.ignored,
        &format!("ignored file outside of dependency folders{example}"),
        &format!("ignored files outside of dependency folders{example}"),
    );
    add(hidden, "file that git was told not to look at", "files that git was told not to look at");
    add(commits.alone, "commit that no branch has", "commits that no branch has");
    // Of a detached HEAD they are among those that no branch has.
    let unpushed = if matches!(git.head, Head::Branch(_)) { commits.unpushed } else { 0 };
    add(unpushed, "commit on no remote and no other branch", "commits on no remote and no other branch");
    add(measure.repositories.len() as u64, "repository inside", "repositories inside");
    if let Some(what) = under_way {
        losses.push(format!("a {what} under way").into());
    }
    losses
}

/// What a worktree whose repository is gone would lose.
pub(crate) fn orphan_loss(worktree: &Worktree) -> Vec<Arc<str>> {
    let admin = worktree.admin.display();
    vec![format!("all of its files: its repository's `{admin}` is gone, so git can't tell what is elsewhere").into()]
}
