//! What git tells of a worktree: what `git status --porcelain=v2 -z` and `git ls-files -v -z` write, read strictly.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

/// What differs from the commit that is checked out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Tracked files that differ, staged or not.
    pub modified: u64,
    /// Whether the index differs from the commit.
    pub staged: bool,
    /// Files with a conflict.
    pub conflicts: u64,
    /// Submodules that are in the index.
    pub submodules: u64,
    /// Untracked files, and folders in which all is untracked.
    pub untracked: Vec<PathBuf>,
    /// Ignored files, and links.
    pub ignored_files: Vec<PathBuf>,
    /// Folders in which all is ignored.
    pub ignored_folders: Vec<PathBuf>,
}

/// Arguments whose output [`Status::read`] reads.
pub(crate) const STATUS: [&str; 6] =
    ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=all"];

/// The same, but with ignored folders as the patterns name them, not the ones above them in which nothing else is.
pub(crate) const MATCHING: [&str; 6] =
    ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all"];

/// Arguments whose output [`hidden`] reads.
pub(crate) const FLAGS: [&str; 4] = ["ls-files", "-v", "-z", "--cached"];

/// Arguments whose output [`submodules`] reads.
pub(crate) const STAGE: [&str; 3] = ["ls-files", "--stage", "-z"];

impl Status {
    /// Reads it. `None`: something that this format does not have.
    pub(crate) fn read(output: &[u8]) -> Option<Self> {
        let mut status = Self::default();
        let mut entries = output.split(|b| *b == 0);
        while let Some(entry) = entries.next() {
            match entry {
                [b'1', b' ', staged, _, ..] => status.change(*staged),
                [b'2', b' ', staged, _, ..] => {
                    status.change(*staged);
                    entries.next()?;
                }
                [b'u', b' ', ..] => status.conflicts += 1,
                [b'?', b' ', path @ ..] => status.untracked.push(path_of(path)),
                [b'!', b' ', path @ .., b'/'] => status.ignored_folders.push(path_of(path)),
                [b'!', b' ', path @ ..] => status.ignored_files.push(path_of(path)),
                [] | [b'#', ..] => {}
                _ => return None,
            }
        }
        Some(status)
    }

    fn change(&mut self, staged: u8) {
        self.modified += 1;
        self.staged |= staged != b'.';
    }
}

/// The files that git was told not to look at (`assume-unchanged`, `skip-worktree`).
pub(crate) fn hidden(output: &[u8]) -> Option<Vec<PathBuf>> {
    let mut hidden = Vec::new();
    for entry in output.split(|b| *b == 0).filter(|entry| !entry.is_empty()) {
        let [tag, b' ', path @ ..] = entry else { return None };
        if tag.is_ascii_lowercase() || *tag == b'S' {
            hidden.push(path_of(path));
        }
    }
    Some(hidden)
}

/// How many entries of the index are submodules.
pub(crate) fn submodules(output: &[u8]) -> u64 {
    output.split(|b| *b == 0).filter(|entry| entry.starts_with(b"160000 ")).count() as u64
}

fn path_of(bytes: &[u8]) -> PathBuf {
    let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample::select};

    use super::*;

    /// A path as git writes one: no zero byte, not empty, not a folder's unless that is said.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        collection::vec(1..=u8::MAX, 1..12).prop_filter("a folder", |name| !name.ends_with(b"/"))
    }

    fn entry() -> impl Strategy<Value = (&'static [u8], Vec<u8>)> {
        let kinds: [&[u8]; 5] = [b"1 .M N... 1 1 1 a a ", b"2 R. N... 1 1 1 a a R1 ", b"u UU N... ", b"? ", b"! "];
        (select(kinds.to_vec()), name())
    }

    proptest! {
        /// A file that is not counted would be lost without a word.
        #[test]
        fn every_line_is_counted_once_whatever_its_name(entries in collection::vec(entry(), 0..12)) {
            let mut output = Vec::new();
            for (kind, name) in &entries {
                output.extend([*kind, name, b"\0"].concat());
                if kind.starts_with(b"2") {
                    output.extend([name, &b"\0"[..]].concat());
                }
            }
            let status = Status::read(&output).unwrap();
            let of = |kind: u8| entries.iter().filter(move |(line, _)| line[0] == kind);
            let paths = |kind: u8| of(kind).map(|(_, name)| path_of(name)).collect::<Vec<_>>();
            let expected = Status {
                modified: (of(b'1').count() + of(b'2').count()) as u64,
                staged: of(b'2').count() > 0,
                conflicts: of(b'u').count() as u64,
                submodules: 0,
                untracked: paths(b'?'),
                ignored_files: paths(b'!'),
                ignored_folders: Vec::new(),
            };
            prop_assert_eq!(status, expected);
        }

        #[test]
        fn any_bytes_are_read_or_no_answer(bytes in collection::vec(any::<u8>(), 0..200)) {
            let entries = bytes.split(|b| *b == 0).filter(|entry| !entry.is_empty()).count() as u64;
            if let Some(read) = Status::read(&bytes) {
                let named = read.untracked.len() + read.ignored_files.len() + read.ignored_folders.len();
                prop_assert!(read.modified + read.conflicts + named as u64 <= entries);
            }
            prop_assert!(hidden(&bytes).is_none_or(|hidden| hidden.len() as u64 <= entries));
            prop_assert!(submodules(&bytes) <= entries);
        }
    }

    #[test]
    fn every_kind_of_line_is_read() {
        let output = b"# branch.oid x\x001 .M N... 1 1 1 a a f\x002 R. N... 1 1 1 a a R100 new\0old\0u UU N... m\0? n\xff\0? d/\0! .env\0! t/\0";
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let expected = Status {
            modified: 2,
            staged: true,
            conflicts: 1,
            submodules: 0,
            untracked: vec![path(b"n\xff"), path(b"d")],
            ignored_files: vec![path(b".env")],
            ignored_folders: vec![path(b"t")],
        };
        assert_eq!(Status::read(output), Some(expected));
    }

    #[test]
    fn what_the_format_does_not_have_is_no_answer() {
        for strange in [&b"M  f"[..], b"1", b"2 R. N... 1 1 1 a a R100 new", b"\xff"] {
            assert_eq!(Status::read(strange), None, "{strange:?}");
        }
        assert_eq!(hidden(b"Hx\0"), None);
        assert_eq!(hidden(b"H a\0S b\0h c\0"), Some(vec!["b".into(), "c".into()]));
    }
}
