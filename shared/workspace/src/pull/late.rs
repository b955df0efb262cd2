//! What comes last: further names of files, then directories, the deepest first.

use std::{collections::HashSet, os::fd::AsFd};

use rustix::{
    fs::{AtFlags, FileType, Mode, linkat},
    io::Errno,
};

use super::write::{Seen, Target, restored, times};
use crate::{
    beneath::{Beneath, Cursor},
    entry::{Entry, Kind},
    error::{Asked as _, Error},
    member::Member,
    stat::Stat,
};

/// Finishes a tree whose files are all written.
pub(super) fn finish(target: &Target<'_>) -> Result<(), Error> {
    let mut late = std::mem::take(&mut target.gathered().late);
    late.sort_by(|(_, a), (_, b)| a.path.cmp(&b.path));
    let mut cursor = Cursor::default();
    for (layer, entry) in late.iter().filter(|(_, entry)| entry.kind == Kind::HardLink) {
        let seen = link(target, &mut cursor, *layer, entry)?;
        target.gathered().seen.push(seen);
    }
    let mut dressed = HashSet::new();
    for (layer, entry) in late.iter().rev().filter(|(_, entry)| entry.kind == Kind::Directory) {
        if !dressed.insert(entry.path.bytes()) {
            let key = target.layer(*layer).key.to_string();
            return Err(Error::Contradiction { key, path: entry.path.clone(), why: "it is there twice" });
        }
        let seen = directory(target, *layer, entry)?;
        target.gathered().seen.push(seen);
    }
    undress(target, &dressed)
}

/// The file must be one of this restore's own, or of the tree that it is done to: it is opened without following anything.
fn link(target: &Target<'_>, cursor: &mut Cursor, layer: usize, entry: &Entry) -> Result<Seen, Error> {
    let wrong = |why| Error::Contradiction { key: target.layer(layer).key.to_string(), path: entry.path.clone(), why };
    let path = entry.path.bytes();
    let first = Member::new(&entry.target).map_err(|_| wrong("it names no member"))?;
    let located = target.place.locate_in(first.bytes()).filter(|(.., name)| !name.is_empty());
    let (root, below, first_name) = located.ok_or_else(|| wrong("it names what is in no root"))?;
    let from = target.roots[root].directory(below).map_err(|_| wrong("it names what is not there"))?;
    match Stat::at(&from, first_name) {
        Ok(stat) if stat.file_type() == FileType::RegularFile => {}
        _ => return Err(wrong("it names what is no file")),
    }
    let (parent, name) = target.parent(cursor, layer, &entry.path)?;
    match linkat(&from, first_name, parent, name, AtFlags::empty()) {
        Err(Errno::EXIST) => return Err(wrong("it is there twice")),
        linked => linked.asked("link", path)?,
    }
    let stat = Stat::at(parent, name).asked("look at", path)?;
    let entry = restored(entry.clone());
    Ok(Target::see(&Entry { size: 0, ..entry }, None, &stat, false))
}

fn directory(target: &Target<'_>, layer: usize, entry: &Entry) -> Result<Seen, Error> {
    let wrong = |why| Error::Contradiction { key: target.layer(layer).key.to_string(), path: entry.path.clone(), why };
    let path = entry.path.bytes();
    let (root, below) = target.place.locate(path).ok_or_else(|| wrong("it is in no root"))?;
    let handle = match target.roots[root].made(below) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(wrong("something else is there too")),
        made => made.asked("make", path)?,
    };
    let mode = Stat::of(&handle).asked("look at", path)?.permissions();
    target.dress(&handle, entry, mode)?;
    let stat = Stat::of(&handle).asked("look at", path)?;
    Ok(Target::see(entry, None, &stat, false))
}

/// Gives directories that the snapshot has as they were back what writing in them changed.
fn undress(target: &Target<'_>, dressed: &HashSet<&[u8]>) -> Result<(), Error> {
    let touched = std::mem::take(&mut target.gathered().touched);
    for (path, was) in touched.iter().filter(|(path, _)| !dressed.contains(path.as_slice())) {
        let Some((root, below)) = target.place.locate(path) else { continue };
        let handle = match target.roots[root].directory(below) {
            Err(Errno::NOENT) => continue,
            opened => opened.asked("open", path)?,
        };
        if Stat::of(&handle).asked("look at", path)?.permissions() != was.mode {
            rustix::fs::fchmod(&handle, Mode::from_raw_mode(was.mode)).asked("change the mode of", path)?;
        }
        rustix::fs::futimens(&handle, &times(was.mtime)).asked("set the time of", path)?;
    }
    Ok(())
}

/// Removes from a tree what later layers have deleted or replaced in it.
pub(super) fn clear(target: &Target<'_>, paths: &[(usize, &Member)]) -> Result<(), Error> {
    for (layer, path) in paths {
        let Some((root, below, name)) = target.place.locate_in(path.bytes()) else { continue };
        if name.is_empty() {
            // A root's own mode or time: there is nothing to remove.
            continue;
        }
        let parent = match target.roots[root].directory(below) {
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            opened => opened.asked("open the directory of", path.bytes())?,
        };
        if is_kept(&parent, name, target, *layer, path) {
            continue;
        }
        target.touch(&parent, root, below).asked("look at", path.bytes())?;
        crate::beneath::remove(&parent, name).asked("remove", path.bytes())?;
    }
    Ok(())
}

/// A directory that is only replaced gets another mode or time, and keeps what is in it.
fn is_kept(parent: impl AsFd, name: &[u8], target: &Target<'_>, layer: usize, path: &Member) -> bool {
    let replaced = target.layer(layer).replaced.binary_search(path).is_ok();
    replaced && Stat::at(parent, name).is_ok_and(|stat| stat.file_type() == FileType::Directory)
}

/// The mask of this process, so that most files need no `fchmod`; everything where it can't be told.
pub(super) fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o777)
}

/// Whether there is anything in a directory.
pub(super) fn is_empty(root: &Beneath) -> Result<bool, Errno> {
    let handle = root.directory(b"")?;
    for entry in rustix::fs::Dir::read_from(&handle)? {
        let name = entry?;
        if name.file_name().to_bytes() != b"." && name.file_name().to_bytes() != b".." {
            return Ok(false);
        }
    }
    Ok(true)
}
