//! What the conversations' own files tell: who uses a worktree, when each was last active, and whether one runs.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use lifecycle::{Busy, Time, activity::MAX_BUSY};
use serde::Deserialize;

use crate::{
    look::{absent, read_limited, time},
    place::Place,
};

/// The longest `meta.json` or `base_state.json` that is read. They hold settings, not history.
const MAX_STATE_BYTES: u64 = 8 << 20;

/// The conversations of one agent server, by the folder that they work in.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    folder: Option<PathBuf>,
    known: Mutex<Known>,
}

/// What was read so far. A conversation's folder of work is written once, so it is read once.
#[derive(Debug, Default)]
struct Known {
    stamps: BTreeMap<OsString, Stamp>,
    works_in: BTreeMap<PathBuf, Vec<OsString>>,
    /// The real paths of the folders that worktrees lie in.
    yards: BTreeMap<PathBuf, PathBuf>,
}

/// Tells an unchanged `meta.json` without reading it: inode, size, seconds and nanoseconds of its writing.
type Stamp = (u64, u64, i64, i64);

/// What the conversations of one worktree tell, all of them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signs {
    /// How many there are.
    pub count: u32,
    /// The newest activity of any.
    pub newest: Option<Time>,
    /// Whether one of them works.
    pub busy: Busy,
    /// The one that works or can't be read.
    pub who: Option<String>,
}

#[derive(Deserialize)]
struct State {
    workspace: Option<Workspace>,
    execution_status: Option<String>,
}

#[derive(Deserialize)]
struct Workspace {
    working_dir: Option<PathBuf>,
}

impl Conversations {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, known: Mutex::default() }
    }

    /// Reads which conversations there are, and where those that are new or changed work.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let Some(entries) = absent(fs::read_dir(folder))? else { return Ok(()) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.yards.clear();
        let mut seen = BTreeMap::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(stamp) = absent(stamp(&folder.join(&name)))? {
                seen.insert(name, stamp);
            }
        }
        if seen == known.stamps {
            return Ok(());
        }
        let changed: Vec<_> =
            seen.iter().filter(|(name, stamp)| known.stamps.get(*name) != Some(*stamp)).map(|(name, _)| name).collect();
        for names in known.works_in.values_mut() {
            names.retain(|name| seen.contains_key(name) && !changed.contains(&name));
        }
        known.works_in.retain(|_, names| !names.is_empty());
        for name in changed {
            if let Some(place) = works_in(&folder.join(name)) {
                known.works_in.entry(place).or_default().push(name.clone());
            }
        }
        known.stamps = seen;
        Ok(())
    }

    /// What the conversations that work in `place` tell, and the one that its name says it is of.
    pub(crate) fn signs(&self, place: &Place, now: Time) -> Signs {
        let mut signs = Signs { count: 0, newest: None, busy: Busy::No, who: None };
        let Some(folder) = &self.folder else { return signs };
        for name in self.of(place) {
            add(&mut signs, &folder.join(&name), &name, now);
        }
        signs
    }

    fn of(&self, place: &Place) -> Vec<OsString> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A worktree of ours has no link below its yard, so that the yard's real path is enough, once a listing.
        let resolve = || fs::canonicalize(&place.yard).unwrap_or_else(|_| place.yard.clone());
        let yard = known.yards.entry(place.yard.clone()).or_insert_with(resolve);
        let real = place.path.strip_prefix(&place.yard).map_or_else(|_| place.path.clone(), |below| yard.join(below));
        let inside = known.works_in.range(real.clone()..).take_while(|(place, _)| place.starts_with(&real));
        let mut names: Vec<_> = inside.flat_map(|(_, names)| names.iter().cloned()).collect();
        names.extend(place.conversation.as_ref().map(OsString::from));
        names.sort();
        names.dedup();
        names
    }
}

fn stamp(conversation: &Path) -> io::Result<Stamp> {
    let meta =
        fs::metadata(conversation.join("meta.json")).or_else(|_| fs::metadata(conversation.join("base_state.json")))?;
    Ok((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

/// The folder that a conversation works in, with links resolved as far as it still exists.
fn works_in(conversation: &Path) -> Option<PathBuf> {
    let named = ["meta.json", "base_state.json"].iter().find_map(|file| {
        let state = read_state(&conversation.join(file)).ok()?;
        state.workspace?.working_dir
    });
    if named.is_none() {
        tracing::warn!(conversation = %conversation.display(), "a conversation does not say where it works");
    }
    named.map(|place| fs::canonicalize(&place).unwrap_or(place))
}

fn read_state(path: &Path) -> io::Result<State> {
    Ok(serde_json::from_slice(&read_limited(path, MAX_STATE_BYTES)?)?)
}

fn add(signs: &mut Signs, conversation: &Path, name: &OsStr, now: Time) {
    let changed = |file: &str| absent(fs::metadata(conversation.join(file)).and_then(|meta| meta.modified()));
    let times = [changed("base_state.json"), changed("events"), changed("meta.json")];
    let unread = times.iter().any(Result::is_err);
    let newest = times.into_iter().flatten().flatten().map(time).max();
    if newest.is_none() && !unread {
        return;
    }
    signs.count += 1;
    signs.newest = signs.newest.max(newest);
    let busy = if unread { Busy::Unread } else { busy(conversation, newest, now) };
    if rank(busy) > rank(signs.busy) {
        signs.busy = busy;
        signs.who = Some(name.to_string_lossy().into_owned());
    }
}

/// `running` can be a lie for ever (a killed server), so it counts for [`MAX_BUSY`] after the last change.
fn busy(conversation: &Path, newest: Option<Time>, now: Time) -> Busy {
    let Some(newest) = newest else { return Busy::Unread };
    let until = newest.min(now).plus(MAX_BUSY);
    if until <= now {
        return Busy::No;
    }
    let mut running = false;
    for file in ["base_state.json", "meta.json"] {
        match absent(read_state(&conversation.join(file))) {
            Ok(state) => running |= state.is_some_and(|s| s.execution_status.as_deref() == Some("running")),
            Err(_) => return Busy::Unread,
        }
    }
    if running { Busy::Until(until) } else { Busy::No }
}

fn rank(busy: Busy) -> (u8, Option<Time>) {
    match busy {
        Busy::No => (0, None),
        Busy::Until(until) => (1, Some(until)),
        Busy::Unread => (2, None),
    }
}
