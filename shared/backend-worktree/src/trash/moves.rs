//! Into the trash, out of it, and away for ever.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use lifecycle::Tier;
use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, fsync, mkdirat, openat, renameat, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    Halt, Note, Yard, entry_name, is_our_lock, lock_text,
    note::GitNote,
    remove,
    yard::{CONTENT, c_name, gone, is_empty, read_note, unlock, write_note},
};
use crate::{
    fault,
    look::{absent, lock_reason},
    options::{Interrupt, Step},
    walk::{FOLDER, descend, open_folder, parent_and_name},
};

/// The most entries that one runtime can get within one millisecond.
const MAX_SAME_NAME: u32 = 1_000;
/// The longest lock or way back that git's folder has: a path and a word.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// What is to be moved into a trash.
#[derive(Debug, Clone)]
pub(crate) struct Moving {
    pub yard: PathBuf,
    pub note: Note,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It is in the trash, under this name.
    Entry(String),
    /// It was not there.
    Gone,
}

/// One rename into the trash; what is needed to take it back is on disk before it.
pub(crate) fn move_in(yard: &Yard, moving: &Moving, interrupt: &Interrupt) -> Result<Moved, Halt> {
    let fault =
        |verb: &str, error: io::Error| Halt::Fault(fault::at(verb, &moving.yard.join(&moving.note.origin), &error));
    interrupt.at(Step::TrashEntry).map_err(Halt::Killed)?;
    let (entry, folder) = begin(yard, &moving.note).map_err(|e| fault("make a place in the trash for", e))?;
    let moved = fill(yard, &entry, &folder, moving, interrupt);
    match &moved {
        Ok(Moved::Entry(_)) | Err(Halt::Killed(_)) => {}
        // Nothing was moved: leave nothing behind.
        _ => yard.forget(&entry, &folder).map_err(|e| fault("tidy the trash after", e))?,
    }
    moved
}

fn begin(yard: &Yard, note: &Note) -> io::Result<(String, OwnedFd)> {
    for n in 0..MAX_SAME_NAME {
        let entry = entry_name(note.at, &note.runtime, n);
        match yard.begin(&entry) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            folder => return Ok((entry, folder?)),
        }
    }
    Err(io::Error::other(format!("{MAX_SAME_NAME} entries have its name already")))
}

fn fill(yard: &Yard, entry: &str, folder: &OwnedFd, moving: &Moving, interrupt: &Interrupt) -> Result<Moved, Halt> {
    let origin = &moving.note.origin;
    let shown = moving.yard.join(origin);
    let fault = |verb: &str, error: io::Error| Halt::Fault(fault::at(verb, &shown, &error));
    interrupt.at(Step::TrashNote).map_err(Halt::Killed)?;
    write_note(folder, &moving.note).map_err(|e| fault("note where it was,", e))?;
    fsync(&yard.trash).map_err(|e| fault("note where it was,", e.into()))?;
    if let Some(git) = &moving.note.git {
        interrupt.at(Step::TrashLock).map_err(Halt::Killed)?;
        lock(&git.admin, entry)?;
    }
    interrupt.at(Step::TrashMove).map_err(Halt::Killed)?;
    let Some((parent, name)) = parent_and_name(origin) else { return Ok(Moved::Gone) };
    let from = match descend(&yard.folder, &parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Moved::Gone),
        from => from.map_err(|e| fault("reach", e))?,
    };
    match rename_in(&from, name, folder) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Moved::Gone),
        Err(errno @ (Errno::XDEV | Errno::BUSY)) => {
            let why =
                format!("`{}` can't be moved by one rename ({errno}): a filesystem is mounted there", shown.display());
            return Err(Halt::Refused(why));
        }
        Err(errno) => return Err(fault("move to the trash", errno.into())),
    }
    // From here on it is in the trash, whatever else fails.
    for handle in [folder, &from] {
        if let Err(errno) = fsync(handle) {
            tracing::warn!(entry, "moved to the trash, but not yet on the disk for certain: {errno}");
        }
    }
    interrupt.at(Step::TrashTidy).map_err(Halt::Killed)?;
    remove_empty_parent(yard, &moving.note);
    Ok(Moved::Entry(entry.to_owned()))
}

/// The entry is new and ours alone, so where the filesystem can't promise not to replace, there is nothing to replace.
fn rename_in(from: &OwnedFd, name: &OsStr, folder: &OwnedFd) -> Result<(), Errno> {
    match renameat_with(from, name, folder, CONTENT, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => renameat(from, name, folder, CONTENT),
        renamed => renamed,
    }
}

/// `<uuid>` goes with the last worktree in it. One that is not empty stays, whatever came into it.
pub(crate) fn remove_empty_parent(yard: &Yard, note: &Note) {
    let mut parts = note.origin.components();
    if let (Tier::Runtime, Some(top), Some(_), None) = (note.tier, parts.next(), parts.next(), parts.next()) {
        let _ = unlinkat(&yard.folder, top.as_os_str(), AtFlags::REMOVEDIR);
    }
}

/// Locks git's worktree, so that nobody's prune drops what git knows of it.
fn lock(admin: &Path, entry: &str) -> Result<(), Halt> {
    let fault = |error: io::Error| Halt::Fault(fault::at("lock git's worktree", admin, &error));
    let folder = open_folder(admin).map_err(fault)?;
    match lock_reason(admin).map_err(fault)? {
        Some(reason) if !is_our_lock(&reason) => return Err(Halt::Refused(crate::observe::locked(&reason))),
        // Left by a pass that was killed: the worktree still stands where it was.
        Some(_) => gone(unlinkat(&folder, "locked", AtFlags::empty())).map_err(fault)?,
        None => {}
    }
    let write = || -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let mut file = std::fs::File::from(openat(&folder, "locked", flags, mode)?);
        io::Write::write_all(&mut file, lock_text(entry).as_bytes())?;
        file.sync_all()?;
        Ok(fsync(&folder)?)
    };
    write().map_err(fault)
}

/// Puts an entry back. `None`: there is no such entry. The text is what people should know besides.
pub(crate) fn undo(
    yard: &Yard,
    entry: &str,
    fits: &dyn Fn(&Note) -> bool,
    interrupt: &Interrupt,
) -> Result<Option<(Note, Option<String>)>, Halt> {
    let fault = |error: io::Error| Halt::Fault(fault::at("take back from the trash in", &yard.path, &error));
    let Some(folder) = yard.entry(entry).map_err(fault)? else { return Ok(None) };
    if is_empty(&folder) {
        yard.forget(entry, &folder).map_err(fault)?;
        return Ok(None);
    }
    let note = note_of(&folder, entry, fits)?;
    interrupt.at(Step::UndoMove).map_err(Halt::Killed)?;
    put_back(yard, &folder, &note)?;
    interrupt.at(Step::UndoUnlock).map_err(Halt::Killed)?;
    let said = note.git.as_ref().and_then(|git| git_says(git, entry));
    if let Some(git) = &note.git {
        unlock(&git.admin, entry).map_err(fault)?;
    }
    interrupt.at(Step::UndoTidy).map_err(Halt::Killed)?;
    yard.forget(entry, &folder).map_err(fault)?;
    Ok(Some((note, said)))
}

fn put_back(yard: &Yard, folder: &OwnedFd, note: &Note) -> Result<(), Halt> {
    let shown = yard.path.join(&note.origin);
    let fault = |error: io::Error| Halt::Fault(fault::at("put back", &shown, &error));
    let Some((parent, name)) = parent_and_name(&note.origin) else {
        return Err(Halt::Refused("its note names no origin".into()));
    };
    let to = match (descend(&yard.folder, &parent), note.tier) {
        (Err(error), Tier::Runtime) if error.kind() == io::ErrorKind::NotFound => {
            make_folders(&yard.folder, &parent).map_err(fault)?
        }
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
            let why = format!("`{}` is not there to take it: take that back first", yard.path.join(&parent).display());
            return Err(Halt::Refused(why));
        }
        (to, _) => to.map_err(fault)?,
    };
    match renameat_with(folder, CONTENT, &to, name, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST | Errno::NOTEMPTY) => {
            return Err(Halt::Refused(format!("something new stands at `{}`; move it away first", shown.display())));
        }
        Err(Errno::INVAL | Errno::NOSYS) => {
            let why = "this filesystem can't rename without replacing; move the entry's `content` back by hand";
            return Err(Halt::Refused(why.into()));
        }
        Err(errno) => return Err(fault(errno.into())),
    }
    for handle in [folder, &to] {
        if let Err(errno) = fsync(handle) {
            tracing::warn!(path = %shown.display(), "put back, but not yet on the disk for certain: {errno}");
        }
    }
    Ok(())
}

fn make_folders(top: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = top.try_clone()?;
    for part in path.components() {
        match mkdirat(&folder, part.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        folder = openat(&folder, part.as_os_str(), FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// What git can no longer do for a worktree that is back.
fn git_says(git: &GitNote, entry: &str) -> Option<String> {
    match lock_reason(&git.admin) {
        Ok(Some(reason)) if reason == lock_text(entry) => None,
        Ok(Some(_)) => Some("its git lock is another's now, and stays".into()),
        _ if git.admin.exists() => Some("somebody unlocked it meanwhile".into()),
        _ => {
            let admin = git.admin.display();
            Some(format!("the files are back, but its repository's `{admin}` is gone; HEAD was `{}`", git.head))
        }
    }
}

/// The note of an entry, if it can be believed.
fn note_of(folder: &OwnedFd, entry: &str, fits: &dyn Fn(&Note) -> bool) -> Result<Note, Halt> {
    let refused = |why: String| Halt::Refused(format!("entry `{entry}` is left alone: {why}"));
    let note = read_note(folder).map_err(refused)?;
    if !fits(&note) {
        return Err(refused(format!(
            "its note does not fit this backend (`{}`, `{}`)",
            note.runtime,
            note.origin.display()
        )));
    }
    Ok(note)
}

/// Gives an entry up, under the lock, and says under which name [`remove_condemned`] finds it. `None`: there is no
/// such entry.
pub(crate) fn empty(
    yard: &Yard,
    entry: &str,
    fits: &dyn Fn(&Note) -> bool,
    interrupt: &Interrupt,
) -> Result<Option<CString>, Halt> {
    let fault = |error: io::Error| Halt::Fault(fault::at("empty the trash in", &yard.path, &error));
    let Some(folder) = yard.entry(entry).map_err(fault)? else { return Ok(None) };
    let note = note_of(&folder, entry, fits)?;
    interrupt.at(Step::EmptyCondemn).map_err(Halt::Killed)?;
    let name = yard.condemn(entry).map_err(fault)?;
    interrupt.at(Step::EmptyAdmin).map_err(Halt::Killed)?;
    if let Some(git) = &note.git {
        forget_worktree(&git.admin, entry).map_err(fault)?;
    }
    Ok(Some(name))
}

/// Removes the files of an entry that was given up; needs no lock.
pub(crate) fn remove_condemned(yard: &Yard, name: &CString, interrupt: &Interrupt) -> Result<(), Halt> {
    interrupt.at(Step::EmptyFiles).map_err(Halt::Killed)?;
    let removed = remove::remove(&yard.trash, name);
    removed.map_err(|e| Halt::Fault(fault::at("empty the trash in", &yard.path, &e)))
}

/// Removes what git knows of a worktree that is gone for ever, as its own prune would, never a branch. The note may be
/// forged, so the folder itself must say that it is the one: by our lock for this entry, and a way back to nothing.
///
/// What says so and what is removed are reached through one handle: of a path, an agent may swap a part in between.
pub(crate) fn forget_worktree(admin: &Path, entry: &str) -> io::Result<()> {
    let Some((parent, name)) = parent_and_name(admin) else { return Ok(()) };
    let Some(parent) = absent(open_folder(&parent))? else { return Ok(()) };
    let name = c_name(name)?;
    let Some(folder) = absent(openat(&parent, &name, FOLDER, Mode::empty()).map_err(Into::into))? else {
        return Ok(());
    };
    let ours = pointer(&folder, c"locked").is_some_and(|reason| reason == lock_text(entry).as_bytes());
    let back = pointer(&folder, c"gitdir").map(|path| admin.join(OsStr::from_bytes(&path)));
    let dangling = back.is_some_and(|dot_git| absent(dot_git.symlink_metadata()).is_ok_and(|meta| meta.is_none()));
    if ours && dangling { remove::remove(&parent, &name) } else { Ok(()) }
}

/// A file of one line in git's folder, without its line end. `None`: it is no such file, so it says nothing.
fn pointer(folder: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, MAX_POINTER_BYTES + 1), &mut bytes).ok()?;
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    (bytes.len() as u64 <= MAX_POINTER_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "00000000000001-aaaaaaaa-0";

    /// An administrative folder of a worktree that lies in the trash.
    fn admin(folder: &Path) -> PathBuf {
        let admin = folder.join("worktrees/x");
        std::fs::create_dir_all(&admin).unwrap();
        std::fs::write(admin.join("locked"), lock_text(ENTRY)).unwrap();
        std::fs::write(admin.join("gitdir"), "/nonexistent/.git\n").unwrap();
        admin
    }

    #[test]
    fn what_git_knows_goes_where_it_says_that_it_is_the_one() {
        let folder = tempfile::tempdir().unwrap();
        let admin = admin(folder.path());
        forget_worktree(&admin, "00000000000002-aaaaaaaa-0").unwrap();
        assert!(admin.exists());
        forget_worktree(&admin, ENTRY).unwrap();
        assert!(!admin.exists());
    }

    #[test]
    fn a_lock_that_is_no_line_of_git_says_nothing_and_stops_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let admin = admin(folder.path());
        std::fs::write(admin.join("locked"), vec![0; 10_000]).unwrap();
        forget_worktree(&admin, ENTRY).unwrap();
        assert!(admin.exists());
    }

    #[test]
    fn a_path_that_changes_while_it_is_checked_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (bait, other) = (folder.path().join("bait"), folder.path().join("other"));
        let work = other.join("worktrees/x/work");
        std::fs::create_dir_all(&work).unwrap();
        let link = folder.path().join("link");
        let point = |to: &Path| {
            let new = folder.path().join("new");
            std::os::unix::fs::symlink(to, &new).unwrap();
            std::fs::rename(&new, &link).unwrap();
        };
        point(&bait);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    point(&other);
                    point(&bait);
                }
            });
            for _ in 0..1_000 {
                admin(&bait);
                let _ = forget_worktree(&link.join("worktrees/x"), ENTRY);
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(work.exists(), "somebody else's work is gone");
    }
}
