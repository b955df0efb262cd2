//! What the conversations' own files tell: who uses a worktree, when each was last active, and whether one runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use lifecycle::{Busy, Time, activity::MAX_BUSY};
use serde::Deserialize;

use crate::{
    look::{absent, read_limited},
    place::Place,
    written::{Newest, Stamps},
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
    stamps: BTreeMap<OsString, Option<Stamp>>,
    works_in: BTreeMap<PathBuf, Vec<OsString>>,
    /// Those of which it can't be read where they work: it may be anywhere.
    lost: BTreeSet<OsString>,
    /// The one of them that was active last.
    doubt: Option<Doubt>,
    /// The real paths of the folders that worktrees lie in.
    yards: BTreeMap<PathBuf, PathBuf>,
}

/// A conversation that may work in any worktree.
#[derive(Debug, Clone)]
struct Doubt {
    who: OsString,
    /// When it was active; `None`: that can't be read either.
    newest: Option<Time>,
}

/// Where a conversation works.
enum Work {
    In(PathBuf),
    /// It does not say; nowhere on this machine's disk, then.
    Nowhere,
    /// What it says can't be read.
    Unread,
}

/// Tells an unchanged `meta.json` without reading it: inode, size, seconds and nanoseconds of its writing.
type Stamp = (u64, u64, i64, i64);

/// What the conversations of one worktree tell, all of them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signs {
    /// How many there are.
    pub count: u32,
    /// The newest activity of any.
    pub newest: Newest,
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
    pub(crate) fn refresh(&self, now: Time) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let Some(entries) = absent(fs::read_dir(folder))? else { return Ok(()) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.yards.clear();
        let mut seen = BTreeMap::new();
        for entry in entries {
            let name = entry?.file_name();
            match absent(stamp(&folder.join(&name))) {
                Ok(None) => {}
                stamp => drop(seen.insert(name, stamp.ok().flatten())),
            }
        }
        if seen != known.stamps {
            known.take(folder, seen);
        }
        known.doubt = doubt(folder, &known.lost, now);
        Ok(())
    }

    /// What the conversations that work in `place` tell, and the one that its name says it is of.
    pub(crate) fn signs(&self, place: &Place, now: Time) -> Signs {
        let mut signs = Signs { count: 0, newest: Newest::default(), busy: Busy::No, who: None };
        let Some(folder) = &self.folder else { return signs };
        let (names, doubt) = self.of(place);
        for name in names {
            add(&mut signs, &folder.join(&name), &name, now);
        }
        if let Some(Doubt { who, newest }) = doubt
            && newest.is_none_or(|newest| newest.plus(MAX_BUSY) > now)
        {
            signs.busy_with(Busy::Unread, &who);
        }
        signs
    }

    fn of(&self, place: &Place) -> (Vec<OsString>, Option<Doubt>) {
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
        (names, known.doubt.clone())
    }
}

impl Known {
    /// Reads anew where those work that are new or changed.
    fn take(&mut self, folder: &Path, seen: BTreeMap<OsString, Option<Stamp>>) {
        let changed: Vec<_> =
            seen.iter().filter(|(name, stamp)| self.stamps.get(*name) != Some(*stamp)).map(|(name, _)| name).collect();
        let stays = |name: &OsString| seen.contains_key(name) && changed.binary_search(&name).is_err();
        for names in self.works_in.values_mut() {
            names.retain(stays);
        }
        self.works_in.retain(|_, names| !names.is_empty());
        self.lost.retain(stays);
        for name in changed {
            match works_in(&folder.join(name)) {
                Work::In(place) => self.works_in.entry(place).or_default().push(name.clone()),
                Work::Nowhere => {}
                Work::Unread => drop(self.lost.insert(name.clone())),
            }
        }
        self.stamps = seen;
    }
}

/// The one of the lost conversations that was active last, or whose activity can't be read.
fn doubt(folder: &Path, lost: &BTreeSet<OsString>, now: Time) -> Option<Doubt> {
    let doubts = lost.iter().map(|who| Doubt {
        who: who.clone(),
        newest: activity(&folder.join(who), now).ok().and_then(|newest| newest.at),
    });
    doubts.max_by_key(|doubt| doubt.newest.unwrap_or(Time::MAX))
}

fn stamp(conversation: &Path) -> io::Result<Stamp> {
    let meta = match absent(fs::metadata(conversation.join("meta.json")))? {
        Some(meta) => meta,
        None => fs::metadata(conversation.join("base_state.json"))?,
    };
    Ok((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

/// The folder that a conversation works in, with links resolved as far as it still exists.
fn works_in(conversation: &Path) -> Work {
    let mut unread = false;
    for file in ["meta.json", "base_state.json"] {
        match absent(read_state(&conversation.join(file))) {
            Ok(state) => {
                if let Some(place) = state.and_then(|state| state.workspace?.working_dir) {
                    return Work::In(fs::canonicalize(&place).unwrap_or(place));
                }
            }
            Err(_) => unread = true,
        }
    }
    let why = if unread { "can't be read" } else { "does not say where it works" };
    tracing::warn!(conversation = %conversation.display(), "a conversation {why}");
    if unread { Work::Unread } else { Work::Nowhere }
}

fn read_state(path: &Path) -> io::Result<State> {
    Ok(serde_json::from_slice(&read_limited(path, MAX_STATE_BYTES)?)?)
}

fn add(signs: &mut Signs, conversation: &Path, name: &OsStr, now: Time) {
    let (newest, busy) = match activity(conversation, now) {
        Ok(Newest { at: None, .. }) => return,
        Ok(newest @ Newest { at: Some(at), .. }) => (newest, busy(conversation, at, now)),
        Err(_) => (Newest::default(), Busy::Unread),
    };
    signs.count += 1;
    signs.newest = std::mem::take(&mut signs.newest).join(newest);
    signs.busy_with(busy, name);
}

/// What the times of a conversation's files tell.
fn activity(conversation: &Path, now: Time) -> io::Result<Newest> {
    let mut newest = Newest::default();
    for file in ["base_state.json", "events", "meta.json"] {
        let path = conversation.join(file);
        if let Some(meta) = absent(fs::metadata(&path))? {
            newest.add(&path, Stamps::from(&meta), now);
        }
    }
    Ok(newest)
}

impl Signs {
    /// Takes in what one conversation is at; what keeps for longer counts.
    fn busy_with(&mut self, busy: Busy, who: &OsStr) {
        if rank(busy) > rank(self.busy) {
            self.busy = busy;
            self.who = Some(who.to_string_lossy().into_owned());
        }
    }
}

/// `running` can be a lie for ever (a killed server), so it counts for [`MAX_BUSY`] after the last change.
fn busy(conversation: &Path, newest: Time, now: Time) -> Busy {
    let until = newest.plus(MAX_BUSY);
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

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample::select};
    use serde_json::{Value, json};

    use super::*;

    const OF_THE_PLACE: &str = "0a1b2c3d00004000800000000000000f";

    /// What an agent, a crash or a full disk might leave in one of a conversation's files.
    fn content() -> impl Strategy<Value = Vec<u8>> {
        let state = json!({"workspace": {"working_dir": "/srv/x"}, "execution_status": "running"}).to_string();
        let cut = (0..state.len()).prop_map({
            let state = state.clone();
            move |at| state.as_bytes()[..at].to_vec()
        });
        let edited = (0..state.len(), any::<u8>()).prop_map(move |(at, byte)| {
            let mut bytes = state.clone().into_bytes();
            bytes[at] = byte;
            bytes
        });
        let deep = select(vec![1usize, 200, 100_000]).prop_map(|depth| b"[".repeat(depth));
        let plain = select(vec!["{}", "null", "[]", "{\"workspace\":7}"]).prop_map(|text| text.as_bytes().to_vec());
        prop_oneof![collection::vec(any::<u8>(), 0..60), cut, edited, deep, plain]
    }

    fn signs(folder: &Path, now: Time) -> Signs {
        let conversations = Conversations::new(Some(folder.to_owned()));
        conversations.refresh(now).unwrap();
        let uuid = OsStr::new("0a1b2c3d-0000-4000-8000-00000000000f");
        conversations.signs(&Place::in_root(Path::new("/srv/trees"), uuid, OsStr::new("shop")), now)
    }

    fn active(conversation: &Path) -> Time {
        activity(conversation, Time::MAX).unwrap().at.unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Whatever is in its files, a conversation that was active lately frees its worktree only by saying, readably,
        /// that it does not run.
        #[test]
        fn any_bytes_free_no_worktree(file in select(vec!["base_state.json", "meta.json"]), bytes in content()) {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join(OF_THE_PLACE);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("base_state.json"), r#"{"execution_status": "finished"}"#).unwrap();
            fs::write(folder.join(file), &bytes).unwrap();
            let now = active(&folder);
            let signs = signs(top.path(), now);
            prop_assert_eq!((signs.count, signs.newest.at), (1, Some(now)));
            let said = serde_json::from_slice::<Value>(&bytes).ok();
            let status = said.as_ref().and_then(|said| said.get("execution_status")).and_then(Value::as_str);
            match signs.busy {
                Busy::No => prop_assert!(said.is_some() && status != Some("running")),
                Busy::Until(until) => prop_assert_eq!((status, until), (Some("running"), now.plus(MAX_BUSY))),
                Busy::Unread => {}
            }
        }

        /// Nor do those of one that may work anywhere: it keeps all, unless it says readably where it works, or that it works nowhere.
        #[test]
        fn a_conversation_that_cannot_be_read_is_in_every_place(bytes in content()) {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join("another");
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("meta.json"), &bytes).unwrap();
            let now = active(&folder);
            let read = serde_json::from_slice::<State>(&bytes).is_ok();
            prop_assert_eq!(signs(top.path(), now).busy, if read { Busy::No } else { Busy::Unread });
            prop_assert_eq!(signs(top.path(), now.plus(MAX_BUSY)).busy, Busy::No);
        }
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("endless");
        fs::create_dir(&folder).unwrap();
        fs::File::create(folder.join("meta.json")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(signs(top.path(), active(&folder)).busy, Busy::Unread);
    }
}
