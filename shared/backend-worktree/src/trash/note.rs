//! The note beside what lies in the trash. An agent may have written it: it is read strictly.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use lifecycle::{RuntimeId, Tier, Time};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

use crate::place::TRASH;

/// The longest note.
pub(crate) const MAX_NOTE_BYTES: u64 = 64 << 10;
/// The deepest origin below the folder that holds the trash.
const MAX_ORIGIN_DEPTH: usize = 64;
/// The format that is written, and the only one that is read.
const FORMAT: u32 = 1;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'-').remove(b'/');

/// Where something in the trash came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub runtime: RuntimeId,
    pub tier: Tier,
    pub at: Time,
    /// From the folder that holds the trash; never out of it.
    pub origin: PathBuf,
    pub bytes: u64,
    /// Of a worktree: its administrative folder.
    pub git: Option<GitNote>,
}

/// What git keeps of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitNote {
    pub admin: PathBuf,
    /// Its HEAD, for people, should git lose it.
    pub head: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    v: u32,
    runtime: RuntimeId,
    tier: Tier,
    at: Time,
    origin: String,
    bytes: u64,
    git: Option<WireGit>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireGit {
    admin: String,
    head: String,
}

/// Why a note is not taken at its word.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoteFault {
    #[error("its note can't be read: {0}")]
    Json(String),
    #[error("its note has format {0}; this furlough reads {FORMAT}")]
    Format(u32),
    #[error("its note says that it came from `{0}`, which is no path below the trash's folder")]
    Origin(String),
    #[error("its note names `{0}` as git's folder, which is no worktree's")]
    Admin(String),
}

impl Note {
    pub(crate) fn write(&self) -> Vec<u8> {
        let wire = Wire {
            v: FORMAT,
            runtime: self.runtime.clone(),
            tier: self.tier,
            at: self.at,
            origin: encode(&self.origin),
            bytes: self.bytes,
            git: self.git.as_ref().map(|git| WireGit { admin: encode(&git.admin), head: git.head.clone() }),
        };
        let mut bytes = serde_json::to_vec_pretty(&wire).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NoteFault> {
        let wire: Wire = serde_json::from_slice(bytes).map_err(|error| NoteFault::Json(error.to_string()))?;
        if wire.v != FORMAT {
            return Err(NoteFault::Format(wire.v));
        }
        let origin = decode(&wire.origin);
        if !below(&origin) {
            return Err(NoteFault::Origin(wire.origin));
        }
        let git = wire.git.map(|git| match decode(&git.admin) {
            admin if is_admin(&admin) => Ok(GitNote { admin, head: git.head }),
            _ => Err(NoteFault::Admin(git.admin)),
        });
        let Wire { runtime, tier, at, bytes, .. } = wire;
        Ok(Self { runtime, tier, at, origin, bytes, git: git.transpose()? })
    }
}

/// A path of plain names, not into the trash.
fn below(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    let names = || text.split(|b| *b == b'/');
    let plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && name != TRASH.as_bytes();
    names().all(plain) && names().count() <= MAX_ORIGIN_DEPTH
}

/// `…/worktrees/<name>`, absolute, without `..`.
fn is_admin(path: &Path) -> bool {
    let mut parts = path.components().rev();
    let named = matches!(parts.next(), Some(Component::Normal(_)));
    let parent = parts.next() == Some(Component::Normal(OsStr::new("worktrees")));
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    named && parent && plain && path.is_absolute() && !path.as_os_str().as_bytes().contains(&0)
}

fn encode(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), ENCODED).to_string()
}

fn decode(text: &str) -> PathBuf {
    OsString::from_vec(percent_decode_str(text).collect()).into()
}

#[cfg(test)]
mod tests {
    use lifecycle::BackendName;
    use proptest::prelude::*;

    use super::*;

    fn note(origin: &[u8]) -> Note {
        Note {
            runtime: RuntimeId::new(&BackendName::new("w").unwrap(), b"u/r").unwrap(),
            tier: Tier::Runtime,
            at: Time::from_millis(1_764_500_000_123),
            origin: PathBuf::from(OsStr::from_bytes(origin)),
            bytes: 7,
            git: Some(GitNote { admin: "/r/.git/worktrees/r".into(), head: "ref: refs/heads/x".into() }),
        }
    }

    proptest! {
        #[test]
        fn a_note_that_is_read_never_leads_out(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let read = Note::read(&note(&bytes).write());
            match read {
                Ok(read) => {
                    prop_assert_eq!(&read, &note(&bytes));
                    let normal = |part: Component<'_>| matches!(part, Component::Normal(name) if name != TRASH);
                    prop_assert!(read.origin.components().all(normal));
                    prop_assert!(read.origin.components().count() > 0);
                }
                Err(fault) => prop_assert!(matches!(fault, NoteFault::Origin(_)), "{}", fault),
            }
        }

        #[test]
        fn any_bytes_are_a_note_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Note::read(&bytes);
        }

        #[test]
        fn an_edited_note_is_refused_or_stays_below(at in 0usize..400, byte in any::<u8>()) {
            let mut text = note(b"u/r").write();
            let at = at % text.len();
            text[at] = byte;
            if let Ok(read) = Note::read(&text) {
                prop_assert!(below(&read.origin));
                prop_assert!(read.git.is_none_or(|git| is_admin(&git.admin)));
            }
        }
    }

    #[test]
    fn an_origin_that_leads_out_is_refused() {
        for bad in ["", "/etc", "../x", "a/../../x", "a//b", "./a", "a/.", ".furlough-trash/1-0-0/content", "a\0b"] {
            let read = Note::read(&note(bad.as_bytes()).write());
            assert!(matches!(read, Err(NoteFault::Origin(_))), "{bad:?}: {read:?}");
        }
    }

    #[test]
    fn a_git_folder_that_is_no_worktrees_is_refused() {
        for bad in ["/etc", "/r/worktrees/..", "r/worktrees/x", "/r/../worktrees/x", "/worktrees"] {
            let mut edited = note(b"u/r");
            edited.git = Some(GitNote { admin: bad.into(), head: String::new() });
            assert_eq!(Note::read(&edited.write()), Err(NoteFault::Admin(bad.into())));
        }
    }

    #[test]
    fn another_format_and_unknown_keys_are_refused() {
        let text = String::from_utf8(note(b"u/r").write()).unwrap();
        assert_eq!(Note::read(text.replace("\"v\": 1", "\"v\": 2").as_bytes()), Err(NoteFault::Format(2)));
        let unknown = text.replace("\"v\": 1", "\"v\": 1, \"follow\": true");
        assert!(matches!(Note::read(unknown.as_bytes()), Err(NoteFault::Json(_))));
    }
}
