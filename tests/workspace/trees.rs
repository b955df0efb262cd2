//! Trees, and what agents do to them.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{FileExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use filetime::{FileTime, set_file_times, set_symlink_file_times};
use proptest::{collection::vec, prelude::*, sample::Index};

use super::picture::path;

/// Names that filesystems take and tools stumble over. Some meet, so that kinds change under one path.
const NAMES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"src",
    b"node_modules",
    b".git",
    b"target",
    b"a b",
    b"a.b",
    "\u{e9}".as_bytes(),
    b"e\xcc\x81",
    b"new\nline",
    b"back\\slash",
    b"not-utf8-\xff\xfe",
    b".wh.whiteout",
];

/// One thing that is done to a tree.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    Write { at: Vec<Index>, size: usize, seed: u8 },
    WriteBack { pick: Index, seed: u8 },
    Append { pick: Index },
    Sparse { at: Vec<Index>, holes: u8 },
    Directory { at: Vec<Index>, mode: u32 },
    Symlink { at: Vec<Index>, to: Vec<u8> },
    HardLink { pick: Index, at: Vec<Index> },
    Remove { pick: Index },
    Rename { pick: Index, at: Vec<Index> },
    Mode { pick: Index, mode: u32 },
    Time { pick: Index, seconds: i64, nanos: u32 },
    Attribute { pick: Index, value: u8 },
}

fn place() -> impl Strategy<Value = Vec<Index>> {
    vec(any::<Index>(), 1..4)
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0_usize..600,
        2 => 600_usize..70_000,
        1 => Just(512),
        1 => Just(1 << 20),
        1 => (1_usize << 20)..(3 << 20) + 1,
    ]
}

/// Any edit.
pub(super) fn edits(count: usize) -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        8 => (place(), sizes(), any::<u8>()).prop_map(|(at, size, seed)| Edit::Write { at, size, seed }),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(pick, seed)| Edit::WriteBack { pick, seed }),
        2 => any::<Index>().prop_map(|pick| Edit::Append { pick }),
        1 => (place(), any::<u8>()).prop_map(|(at, holes)| Edit::Sparse { at, holes }),
        2 => (place(), prop_oneof![Just(0o755), Just(0o555), Just(0o700), Just(0o1777)]).prop_map(|(at, mode)| Edit::Directory { at, mode }),
        2 => (place(), prop_oneof![Just(b"a".to_vec()), Just(b"/etc/passwd".to_vec()), Just(b"../../out".to_vec()), Just(b"gone\xff".to_vec()), Just(vec![b'x'; 300])])
            .prop_map(|(at, to)| Edit::Symlink { at, to }),
        2 => (any::<Index>(), place()).prop_map(|(pick, at)| Edit::HardLink { pick, at }),
        3 => any::<Index>().prop_map(|pick| Edit::Remove { pick }),
        2 => (any::<Index>(), place()).prop_map(|(pick, at)| Edit::Rename { pick, at }),
        2 => (any::<Index>(), prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o664), Just(0o444), Just(0o000)])
            .prop_map(|(pick, mode)| Edit::Mode { pick, mode }),
        2 => (any::<Index>(), prop_oneof![Just(-1_i64), Just(0), Just(1_700_000_000), Just(9_000_000_000)], prop_oneof![Just(0_u32), Just(1), Just(999_999_999)])
            .prop_map(|(pick, seconds, nanos)| Edit::Time { pick, seconds, nanos }),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(pick, value)| Edit::Attribute { pick, value }),
    ];
    vec(edit, 0..count)
}

/// Does edits to the tree at `root`. One that makes no sense there is not done.
pub(super) fn apply(root: &Path, edits: &[Edit]) {
    for edit in edits {
        // A directory that can't be written in, a name that is taken: the edit is not done.
        _ = one(root, edit);
    }
}

fn one(root: &Path, edit: &Edit) -> std::io::Result<()> {
    match edit {
        Edit::Write { at, size, seed } => fs::write(made(root, at)?, content(*size, *seed)),
        Edit::WriteBack { pick, seed } => write_back(&pick_file(root, *pick)?, *seed),
        Edit::Append { pick } => fs::OpenOptions::new().append(true).open(pick_file(root, *pick)?)?.write_all(b"more"),
        Edit::Sparse { at, holes } => {
            let file = fs::File::create(made(root, at)?)?;
            file.set_len(u64::from(*holes) * 50_000)?;
            file.write_all_at(b"island", u64::from(*holes) * 20_000)
        }
        Edit::Directory { at, mode } => {
            let path = made(root, at)?;
            fs::create_dir(&path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))
        }
        Edit::Symlink { at, to } => symlink(path(to), made(root, at)?),
        Edit::HardLink { pick, at } => fs::hard_link(pick_file(root, *pick)?, made(root, at)?),
        Edit::Remove { pick } => {
            let path = pick_any(root, *pick)?;
            if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        }
        Edit::Rename { pick, at } => fs::rename(pick_any(root, *pick)?, made(root, at)?),
        Edit::Mode { pick, mode } => fs::set_permissions(pick_file(root, *pick)?, fs::Permissions::from_mode(*mode)),
        Edit::Time { pick, seconds, nanos } => {
            let (path, time) = (pick_any(root, *pick)?, FileTime::from_unix_time(*seconds, *nanos));
            set_symlink_file_times(path, time, time)
        }
        Edit::Attribute { pick, value } => {
            let value = vec![*value; usize::from(*value)];
            let flags = rustix::fs::XattrFlags::empty();
            Ok(rustix::fs::setxattr(pick_file(root, *pick)?, "user.tag", &value, flags)?)
        }
    }
}

/// Other content of the same length, with the old time set again: only ctime tells.
fn write_back(path: &Path, seed: u8) -> std::io::Result<()> {
    let metadata = path.metadata()?;
    let time = FileTime::from_last_modification_time(&metadata);
    fs::write(path, content(usize::try_from(metadata.len()).unwrap(), seed))?;
    set_file_times(path, time, time)
}

/// Bytes that do not all compress, and that say which they are.
pub(super) fn content(size: usize, seed: u8) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let random = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 { seed } else { state.to_le_bytes()[5] }
    };
    (0..size).map(random).collect()
}

/// The path of these names, with the directories above it.
fn made(root: &Path, at: &[Index]) -> std::io::Result<PathBuf> {
    let names = at.iter().map(|index| path(NAMES[index.index(NAMES.len())]));
    let whole = names.fold(root.to_path_buf(), |path, name| path.join(name));
    let parent = whole.parent().unwrap();
    // Never through a link.
    let mut above = root.to_path_buf();
    for name in parent.strip_prefix(root).unwrap() {
        above.push(name);
        if above.is_symlink() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
    }
    if whole.is_symlink() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    fs::create_dir_all(parent)?;
    Ok(whole)
}

fn all(root: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root) else { return };
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        found.push(path.clone());
        if path.symlink_metadata().unwrap().is_dir() {
            all(&path, found);
        }
    }
}

fn pick_any(root: &Path, pick: Index) -> std::io::Result<PathBuf> {
    let mut found = Vec::new();
    all(root, &mut found);
    if found.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(pick.get(&found).clone()) }
}

fn pick_file(root: &Path, pick: Index) -> std::io::Result<PathBuf> {
    let mut found = Vec::new();
    all(root, &mut found);
    found.retain(|path| path.symlink_metadata().unwrap().is_file());
    if found.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(pick.get(&found).clone()) }
}
