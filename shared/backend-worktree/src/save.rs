//! Saving the work of a worktree before it goes: the commits as a bundle, the files as a tar, both read back.
//!
//! ```text
//! <saves>/<encoded id>/<milliseconds>-<n>/   commits.bundle   tree.tar.zst   README.txt
//! ```
//!
//! Written under a name that ends in `.part`, which is locked as long as its process lives, and given its own name when
//! complete and on disk. A save that fails leaves nothing; what a killed process left of one is removed by a later one.

mod bundle;
mod readme;
mod tree;

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use backend::Clock;
use lifecycle::{RuntimeId, Time};
use rustix::fs::{FlockOperation, flock};

use crate::{
    blocking,
    git::Git,
    inspect::Detail,
    look::absent,
    options::{Interrupt, Step},
    trash::Halt,
    walk::open_folder,
};

/// How a begun save's name ends.
const BEGUN: &str = ".part";
/// How old a begun save is before somebody who saves something else removes it.
const ABANDONED: Duration = Duration::from_hours(1);
/// The most saves that one runtime can get within one millisecond.
const MAX_SAME_NAME: u32 = 1_000;

/// What a save needs to know.
pub(crate) struct Saving<'a> {
    pub git: &'a Git,
    pub folder: &'a Path,
    pub clock: &'a Clock,
    pub deadline: Time,
    pub interrupt: &'a Interrupt,
}

/// Saves, verifies, and gives the folder of the save. An error means that nothing was saved and nothing is left.
pub(crate) async fn save(saving: &Saving<'_>, id: &RuntimeId, detail: &Detail) -> Result<PathBuf, Halt> {
    saving.interrupt.at(Step::SaveBegin).map_err(Halt::Killed)?;
    let at = saving.clock.now();
    let begun = begin(&saving.folder.join(id.encoded()), at).map_err(|e| failed(saving.folder, &e))?;
    let saved = fill(saving, id, detail, &begun.part, at).await;
    let published = match saved {
        Ok(()) => publish(saving, &begun.part, &begun.whole),
        Err(halt) => Err(halt),
    };
    match published {
        Ok(()) => Ok(begun.whole),
        Err(halt @ Halt::Killed(_)) => Err(halt),
        Err(halt) => {
            let _ = fs::remove_dir_all(&begun.part);
            Err(halt)
        }
    }
}

/// Removes a save whose worktree did not go after all.
pub(crate) fn discard(save: &Path) {
    if let Err(error) = fs::remove_dir_all(save) {
        tracing::warn!(save = %save.display(), "a save that is not needed could not be removed: {error}");
    }
}

/// Removes for ever the saves in `folder` that were made before `before`, and the folders that are empty then. Their
/// age is in their name. Says which it removed; what does not bear a save's name is left alone.
pub(crate) fn forget(folder: &Path, before: Time) -> io::Result<Vec<Arc<str>>> {
    let mut forgotten = Vec::new();
    for runtime in folders(folder)? {
        for save in folders(&runtime)? {
            if made_at(&save).is_some_and(|at| at < before) {
                fs::remove_dir_all(&save)?;
                forgotten.push(save.display().to_string().into());
            }
        }
        // Fails as long as another save is in it, which is what is wanted.
        let _ = fs::remove_dir(&runtime);
    }
    Ok(forgotten)
}

/// The folders in `folder`, no links among them, sorted; none when it is not there.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// When a save was made, by the name that [`begin`] gives.
fn made_at(save: &Path) -> Option<Time> {
    let (millis, n) = save.file_name()?.to_str()?.split_once('-')?;
    n.parse::<u32>().ok()?;
    millis.parse().ok().map(Time::from_millis)
}

/// Removes the saves in `folder` that were begun long before `now` by processes that are no more.
pub(crate) fn sweep(folder: &Path, now: Time) -> io::Result<()> {
    for runtime in folders(folder)? {
        let mut swept = false;
        for part in folders(&runtime)? {
            if begun_at(&part).is_some_and(|at| at.plus(ABANDONED) < now) {
                swept |= remove_begun(&part)?;
            }
        }
        if swept {
            let _ = fs::remove_dir(&runtime);
        }
    }
    Ok(())
}

/// When a save was begun, by the name that [`begin`] gives it until it is whole.
fn begun_at(part: &Path) -> Option<Time> {
    made_at(Path::new(part.file_name()?.to_str()?.strip_suffix(BEGUN)?))
}

/// Removes what is left of a begun save, unless its process still works on it. Says whether it did.
fn remove_begun(part: &Path) -> io::Result<bool> {
    let Some(folder) = absent(open_folder(part))? else { return Ok(false) };
    if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    tracing::info!(save = %part.display(), "what a killed process left of a save is removed");
    fs::remove_dir_all(part).map(|()| true)
}

/// A save that is being made.
struct Begun {
    part: PathBuf,
    whole: PathBuf,
    /// Holds the lock that says so, where the filesystem has locks.
    _lock: OwnedFd,
}

fn begin(folder: &Path, at: Time) -> io::Result<Begun> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Left by a process that was killed in mid-save.
    for part in folders(folder)?.iter().filter(|part| begun_at(part).is_some()) {
        remove_begun(part)?;
    }
    for n in 0..MAX_SAME_NAME {
        let whole = folder.join(format!("{:014}-{n}", at.millis().max(0)));
        let part = whole.with_extension("part");
        if whole.exists() || part.exists() {
            continue;
        }
        fs::DirBuilder::new().mode(0o700).create(&part)?;
        let lock = open_folder(&part)?;
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        return Ok(Begun { part, whole, _lock: lock });
    }
    Err(io::Error::other(format!("{MAX_SAME_NAME} saves have its name already")))
}

async fn fill(saving: &Saving<'_>, id: &RuntimeId, detail: &Detail, part: &Path, at: Time) -> Result<(), Halt> {
    saving.interrupt.at(Step::SaveBundle).map_err(Halt::Killed)?;
    let bundle = bundle::bundle(saving.git, detail, part).await.map_err(Halt::Refused)?;
    saving.interrupt.at(Step::SaveTree).map_err(Halt::Killed)?;
    let source = tree::Source {
        top: detail.worktree.place.path.clone(),
        admin: detail.worktree.git.is_some().then(|| detail.worktree.admin.clone()),
        left_out: detail.tiers.iter().map(|folder| folder.path.clone()).collect(),
    };
    let file = part.join("tree.tar.zst");
    let (clock, deadline) = (saving.clock.clone(), saving.deadline);
    let target = file.clone();
    let packed = blocking(move || tree::pack(&source, &target, &|| clock.now() >= deadline));
    let packed = packed.await.map_err(|e| failed(&file, &e))?;
    let readme = readme::text(id, detail, at, &bundle, &packed);
    fs::write(part.join("README.txt"), readme).map_err(|e| failed(part, &e))?;
    saving.interrupt.at(Step::SaveVerify).map_err(Halt::Killed)?;
    blocking(move || tree::verify(&file, &packed)).await.map_err(|e| failed(part, &e))
}

fn publish(saving: &Saving<'_>, part: &Path, whole: &Path) -> Result<(), Halt> {
    let sync = || -> io::Result<()> {
        for entry in fs::read_dir(part)? {
            fs::File::open(entry?.path())?.sync_all()?;
        }
        fs::File::open(part)?.sync_all()
    };
    sync().map_err(|e| failed(part, &e))?;
    saving.interrupt.at(Step::SavePublish).map_err(Halt::Killed)?;
    let rename = || -> io::Result<()> {
        fs::rename(part, whole)?;
        whole.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    };
    rename().map_err(|e| failed(part, &e))
}

fn failed(at: &Path, error: &io::Error) -> Halt {
    Halt::Fault(crate::fault::at("save its work to", at, error))
}
