//! Where a runtime lies, and what its id is.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use lifecycle::{BackendName, IdError, RuntimeId};

/// The trash's name, in a worktree root and beside the worktrees of a configured repository.
pub(crate) const TRASH: &str = ".furlough-trash";

/// Where a runtime lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The id within the backend: `<uuid>/<repository>`, or `<repository's name>/<administrative name>`.
    pub key: Vec<u8>,
    /// The folder that holds the trash for it.
    pub yard: PathBuf,
    /// Its own folder.
    pub path: PathBuf,
    /// The conversation that OpenHands names in the path, as hex without dashes.
    pub conversation: Option<String>,
    /// The administrative folder that says so, of a worktree of a configured repository.
    pub admin: Option<PathBuf>,
}

impl Place {
    /// `<root>/<uuid>/<repository>`.
    pub(crate) fn in_root(root: &Path, uuid: &OsStr, repository: &OsStr) -> Self {
        Self {
            key: join(uuid.as_bytes(), repository.as_bytes()),
            yard: root.to_owned(),
            path: root.join(uuid).join(repository),
            conversation: uuid_hex(uuid),
            admin: None,
        }
    }

    /// Something directly in the root, which is no worktree of the layout.
    pub(crate) fn stray(root: &Path, name: &OsStr) -> Self {
        let (key, path) = (name.as_bytes().to_vec(), root.join(name));
        Self { key, yard: root.to_owned(), path, conversation: None, admin: None }
    }

    /// A linked worktree of a configured repository, as its administrative folder says.
    pub(crate) fn of_repository(name: &str, admin: PathBuf, path: PathBuf) -> Self {
        let yard = path.parent().unwrap_or(&path).to_owned();
        let key = join(name.as_bytes(), admin.file_name().unwrap_or_default().as_bytes());
        Self { key, yard, path, conversation: None, admin: Some(admin) }
    }

    /// The runtime's id. Fails on one longer than an id can be.
    pub(crate) fn id(&self, backend: &BackendName) -> Result<RuntimeId, IdError> {
        RuntimeId::new(backend, &self.key)
    }
}

fn join(first: &[u8], second: &[u8]) -> Vec<u8> {
    [first, b"/", second].concat()
}

/// The two parts of an id, neither of which can leave its folder.
pub(crate) fn split(key: &[u8]) -> Option<(OsString, OsString)> {
    let slash = key.iter().position(|b| *b == b'/')?;
    let (first, second) = (&key[..slash], &key[slash + 1..]);
    let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&b'/') && !part.contains(&0);
    (plain(first) && plain(second)).then(|| (OsStr::from_bytes(first).into(), OsStr::from_bytes(second).into()))
}

/// A UUID with dashes, as OpenHands names a conversation's folder: its hex without dashes, in lower case.
pub(crate) fn uuid_hex(name: &OsStr) -> Option<String> {
    let text = name.to_str()?;
    let groups: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    let hex = text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    (lengths == [8, 4, 4, 4, 12] && hex).then(|| groups.concat().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_with_dashes_names_a_conversation() {
        let hex = |text: &str| uuid_hex(OsStr::new(text));
        assert_eq!(hex("0A1b2c3d-0000-4000-8000-00000000000f").as_deref(), Some("0a1b2c3d00004000800000000000000f"));
        for other in ["", "0a1b2c3d00004000800000000000000f", "0a1b2c3d-0000-4000-8000-00000000000g", "-", "lost+found"]
        {
            assert_eq!(hex(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_cannot_leave_its_folder() {
        for bad in ["", "a", "a/", "/b", "a/b/c", "../b", "a/..", "./b", "a/.", "a/b\0"] {
            assert_eq!(split(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(split(b"a/\xff"), Some(("a".into(), OsStr::from_bytes(b"\xff").into())));
    }
}
