//! What a tree is, as far as a copy can be it.

use std::{
    collections::BTreeMap,
    ffi::{CStr, OsStr},
    fmt, fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
};

/// A member of a tree, and what a copy of it has to have.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Part {
    mode: u32,
    mtime: (i64, i64),
    content: Vec<u8>,
    /// The first name of the same file.
    first_name: Option<String>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The same, but for the times of directories that links are in.
pub(super) fn without_times_of_links_directories(mut picture: Picture) -> Picture {
    let links = picture.iter().filter(|(_, part)| part.mode == 0).map(|(path, _)| path);
    let directories: Vec<_> =
        links.filter_map(|path| path.rsplit_once('/')).map(|(above, _)| above.to_owned()).collect();
    for directory in directories {
        picture.get_mut(&directory).unwrap().mtime = (0, 0);
    }
    picture
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.content[..self.content.len().min(24)];
        write!(f, "{:o} {:?} {} bytes {}", self.mode, self.mtime, self.content.len(), start.escape_ascii())?;
        write!(f, " {:?} {:?}", self.first_name, self.xattrs)
    }
}

/// A tree by its members' paths, escaped, so that a failed comparison can be read.
pub(super) type Picture = BTreeMap<String, Part>;

/// The picture of a tree. The root is `.`.
pub(super) fn picture(root: &Path) -> Picture {
    let mut parts = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    add(root, b".", &mut parts, &mut inodes);
    parts
}

fn add(path: &Path, name: &[u8], parts: &mut Picture, inodes: &mut BTreeMap<u64, String>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let shown = name.escape_ascii().to_string();
    let first_name = (metadata.is_file() && metadata.nlink() > 1)
        .then(|| inodes.entry(metadata.ino()).or_insert_with(|| shown.clone()).clone());
    let content = match metadata.file_type() {
        kind if kind.is_file() => readable(path, || fs::read(path).unwrap()),
        kind if kind.is_symlink() => fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let mtime = (metadata.mtime(), metadata.mtime_nsec());
    let mode = if metadata.is_symlink() { 0 } else { metadata.mode() };
    parts.insert(shown, Part { mode, mtime, content, first_name, xattrs: xattrs(path, &metadata) });
    if metadata.is_dir() {
        let mut names: Vec<_> =
            readable(path, || fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect());
        names.sort();
        for child in names {
            add(&path.join(&child), &[name, b"/", child.as_bytes()].concat(), parts, inodes);
        }
    }
}

/// Reads what its mode may forbid to whoever is not root.
fn readable<T>(path: &Path, read: impl FnOnce() -> T) -> T {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(path).unwrap();
    if metadata.mode() & 0o500 == 0o500 || metadata.is_file() && metadata.mode() & 0o400 != 0 {
        return read();
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    let read = read();
    fs::set_permissions(path, metadata.permissions()).unwrap();
    read
}

fn xattrs(path: &Path, metadata: &fs::Metadata) -> BTreeMap<Vec<u8>, Vec<u8>> {
    if metadata.is_symlink() {
        return BTreeMap::new();
    }
    let mut names = vec![0; 64 << 10];
    let length = rustix::fs::listxattr(path, &mut names).unwrap_or(0);
    let names = names[..length].split_inclusive(|byte| *byte == 0).map(|name| CStr::from_bytes_with_nul(name).unwrap());
    let user = names.filter(|name| name.to_bytes().starts_with(b"user."));
    let value = |name: &CStr| {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::getxattr(path, name, &mut value).unwrap();
        (name.to_bytes().to_vec(), value[..length].to_vec())
    };
    user.map(value).collect()
}

/// Says what differs between two trees, and nothing else.
#[track_caller]
pub(super) fn assert_equal(one: &Path, other: &Path) {
    let (one, other) = (picture(one), picture(other));
    let mut differences = Vec::new();
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for path in paths {
        if one.get(path) != other.get(path) {
            differences.push(format!("{path}\n  {:?}\n  {:?}", one.get(path), other.get(path)));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// A path from bytes.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
