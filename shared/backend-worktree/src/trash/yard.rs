//! A folder that holds a trash, and the trash in it: opened without following a link, made 0700, locked while it changes.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, fsync, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{
    Halt,
    moves::{forget_worktree, remove_empty_parent},
    note::{MAX_NOTE_BYTES, Note},
    remove,
};
use crate::{
    fault,
    look::lock_reason,
    place::TRASH,
    walk::{FOLDER, names, open_folder},
};

/// What was moved, in an entry.
pub(crate) const CONTENT: &CStr = c"content";
/// The note, in an entry.
pub(crate) const NOTE: &CStr = c"note.json";
const NOTE_BEGUN: &CStr = c"note.json.part";
/// Ends the name of an entry that was given up and is being removed.
const CONDEMNED: &str = ".emptying";

/// An opened trash.
#[derive(Debug)]
pub(crate) struct Yard {
    /// The folder that holds it.
    pub path: PathBuf,
    /// The same, opened.
    pub folder: OwnedFd,
    /// The trash, opened.
    pub trash: OwnedFd,
}

impl Yard {
    /// Opens the trash in `path`, if it is there. `Refused`: what is there is not a trash of ours.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Halt> {
        let error = |error: io::Error| Halt::Fault(fault::at("open the trash in", path, &error));
        let folder = match open_folder(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            folder => folder.map_err(error)?,
        };
        let trash = match openat(&folder, TRASH, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(planted(path, "is a link or no folder")),
            trash => trash.map_err(|errno| error(errno.into()))?,
        };
        let (stat, outer) = (fstat(&trash).map_err(io::Error::from), fstat(&folder).map_err(io::Error::from));
        let (stat, outer) = (stat.map_err(error)?, outer.map_err(error)?);
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(planted(path, "belongs to another user"));
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(planted(path, "is open to other users (its mode must be 0700)"));
        }
        if stat.st_dev != outer.st_dev {
            return Err(planted(path, "lies on another filesystem"));
        }
        Ok(Some(Self { path: path.to_owned(), folder, trash }))
    }

    /// The same, and makes it where it is missing.
    pub(crate) fn make(path: &Path) -> Result<Self, Halt> {
        let error = |error: io::Error| Halt::Fault(fault::at("make the trash in", path, &error));
        let folder = open_folder(path).map_err(error)?;
        match mkdirat(&folder, TRASH, Mode::RWXU) {
            Ok(()) => fsync(&folder).map_err(|errno| error(errno.into()))?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(error(errno.into())),
        }
        Self::open(path)?.ok_or_else(|| planted(path, "vanished as soon as it was made"))
    }

    /// Takes the trash for one act. Freed when the result is dropped.
    pub(crate) fn lock(&self) -> Result<OwnedFd, Halt> {
        let error = |errno: Errno| Halt::Fault(fault::at("lock the trash in", &self.path, &errno.into()));
        let lock = openat(&self.trash, ".", FOLDER, Mode::empty()).map_err(error)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Halt::Occupied),
            Err(errno) => return Err(error(errno)),
        }
        Ok(lock)
    }

    /// Ends what a killed act left: notes without content, entries given up, empty folders of conversations.
    /// Under the lock.
    ///
    /// What can't be tidied (a mount in it, a note that somebody forged) stays, and is told: it is in no act's way.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        for name in names(&self.trash)? {
            let text = name.to_str().unwrap_or_default();
            let (entry, condemned) = text.strip_suffix(CONDEMNED).map_or((text, false), |entry| (entry, true));
            if !is_entry(entry) {
                continue;
            }
            if let Err(error) = self.tidy_entry(&name, entry, condemned) {
                tracing::warn!(entry, trash = %self.path.display(), "something left in the trash stays: {error}");
            }
        }
        Ok(())
    }

    fn tidy_entry(&self, name: &CStr, entry: &str, condemned: bool) -> io::Result<()> {
        let Ok(folder) = openat(&self.trash, name, FOLDER, Mode::empty()) else { return Ok(()) };
        let note = read_note(&folder).ok();
        let empty = is_empty(&folder);
        match note {
            Some(Note { git: Some(git), .. }) if condemned => forget_worktree(&git.admin, entry)?,
            Some(note) if !condemned && !empty => remove_empty_parent(self, &note),
            _ => {}
        }
        if condemned {
            remove::remove(&self.trash, name)
        } else if empty {
            self.forget(entry, &folder)
        } else {
            Ok(())
        }
    }

    /// Removes an entry without content: our lock first, then the note, so that a kill in between leaves the note to tell.
    /// One with content is never touched: without its note nobody could take it back.
    pub(crate) fn forget(&self, entry: &str, folder: &OwnedFd) -> io::Result<()> {
        if !is_empty(folder) {
            return Ok(());
        }
        if let Ok(Some(git)) = read_note(folder).map(|note| note.git) {
            unlock(&git.admin, entry)?;
        }
        for name in [NOTE, NOTE_BEGUN] {
            gone(unlinkat(folder, name, AtFlags::empty()))?;
        }
        // Something else in it is not ours to remove: the entry stays, and is not listed.
        match unlinkat(&self.trash, entry, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => Ok(()),
            removed => gone(removed),
        }
    }

    /// Makes an entry's folder.
    pub(crate) fn begin(&self, entry: &str) -> io::Result<OwnedFd> {
        mkdirat(&self.trash, entry, Mode::RWXU)?;
        Ok(openat(&self.trash, entry, FOLDER, Mode::empty())?)
    }

    /// Opens an entry's folder.
    pub(crate) fn entry(&self, entry: &str) -> io::Result<Option<OwnedFd>> {
        if !is_entry(entry) {
            return Ok(None);
        }
        match openat(&self.trash, entry, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            folder => Ok(Some(folder?)),
        }
    }

    /// Whether the trash has such an entry.
    pub(crate) fn has(&self, entry: &str) -> io::Result<bool> {
        Ok(self.entry(entry)?.is_some())
    }

    /// Gives an entry up: from here on it can't be taken back.
    pub(crate) fn condemn(&self, entry: &str) -> io::Result<CString> {
        let condemned = CString::new([entry, CONDEMNED].concat()).map_err(io::Error::other)?;
        renameat(&self.trash, entry, &self.trash, &condemned)?;
        fsync(&self.trash)?;
        Ok(condemned)
    }
}

fn planted(path: &Path, what: &str) -> Halt {
    Halt::Refused(format!("the trash `{}` {what}; remove it, and look who made it", path.join(TRASH).display()))
}

/// Whether an entry has a folder and a note at most, because an act was killed before its rename.
pub(crate) fn is_empty(entry: &OwnedFd) -> bool {
    statat(entry, CONTENT, AtFlags::SYMLINK_NOFOLLOW).is_err_and(|errno| errno == Errno::NOENT)
}

/// The entries of a trash with their notes, read without changing anything.
pub(crate) fn listed(yard: &Yard) -> io::Result<Vec<(String, Note)>> {
    let mut entries = Vec::new();
    for name in names(&yard.trash)? {
        let Some(entry) = name.to_str().ok().filter(|name| is_entry(name)) else { continue };
        let Ok(folder) = openat(&yard.trash, &name, FOLDER, Mode::empty()) else { continue };
        if statat(&folder, CONTENT, AtFlags::SYMLINK_NOFOLLOW).is_err() {
            continue;
        }
        match read_note(&folder) {
            Ok(note) => entries.push((entry.to_owned(), note)),
            Err(why) => {
                tracing::warn!(entry, trash = %yard.path.display(), "something in the trash is left alone: {why}");
            }
        }
    }
    Ok(entries)
}

/// Writes the note so that it is there whole or not at all.
pub(crate) fn write_note(folder: &OwnedFd, note: &Note) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, NOTE_BEGUN, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = std::fs::File::from(file);
    io::Write::write_all(&mut file, &note.write())?;
    file.sync_all()?;
    renameat(folder, NOTE_BEGUN, folder, NOTE)?;
    fsync(folder)?;
    Ok(())
}

/// Reads the note of an entry, if it is a plain file of ours.
pub(crate) fn read_note(folder: &OwnedFd) -> Result<Note, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        openat(folder, NOTE, flags, Mode::empty()).map_err(|errno| format!("its note can't be read: {errno}"))?;
    let mut bytes = Vec::new();
    let mut file = io::Read::take(std::fs::File::from(file), MAX_NOTE_BYTES + 1);
    io::Read::read_to_end(&mut file, &mut bytes).map_err(|error| format!("its note can't be read: {error}"))?;
    if bytes.len() as u64 > MAX_NOTE_BYTES {
        return Err(format!("its note has more than {MAX_NOTE_BYTES} bytes"));
    }
    Note::read(&bytes).map_err(|fault| fault.to_string())
}

/// Removes git's lock on a worktree if it is the one that `entry` set.
pub(crate) fn unlock(admin: &Path, entry: &str) -> io::Result<()> {
    match lock_reason(admin) {
        Ok(Some(reason)) if reason == super::lock_text(entry) => {
            let folder = open_folder(admin)?;
            gone(unlinkat(&folder, "locked", AtFlags::empty()))?;
            fsync(&folder)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `<milliseconds>-<8 hex of the runtime's hash>-<n>`: sorts by time, and needs no randomness.
pub(crate) fn entry_name(at: lifecycle::Time, runtime: &lifecycle::RuntimeId, n: u32) -> String {
    let hash = blake3::hash(runtime.to_string().as_bytes()).to_hex();
    format!("{:014}-{}-{n}", at.millis().max(0), &hash[..8])
}

/// Whether a name is one that [`entry_name`] gives.
pub(crate) fn is_entry(name: &str) -> bool {
    let parts: Vec<_> = name.split('-').collect();
    let digits = |part: &str, most: usize| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let hex = |part: &str| part.len() == 8 && part.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.as_slice(), [at, hash, n] if digits(at, 20) && hex(hash) && digits(n, 10))
}

/// That it is not there is a success.
pub(crate) fn gone(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => Ok(result?),
    }
}

/// A name as the system calls want it.
pub(crate) fn c_name(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(io::Error::other)
}
