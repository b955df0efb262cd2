//! A user's files in the sandbox: whether a place is free, and how it is emptied.
//!
//! **Invariants.** Nothing is followed out of a folder that is emptied. A folder is empty when it is said to be.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use crate::keeper::Failed;

/// The first of these folders that has something in it.
pub fn occupied<'a>(folders: impl IntoIterator<Item = &'a PathBuf>) -> Result<Option<&'a PathBuf>, Failed> {
    for folder in folders {
        match fs::read_dir(folder) {
            Ok(mut entries) => match entries.next() {
                None => {}
                Some(_) => return Ok(Some(folder)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", folder, &error)),
        }
    }
    Ok(None)
}

/// What the sidecar has in its own folder: what is known of the workspace's places, and a folder for each server.
pub const PLACE: &str = "place";
/// What the names of servers' folders begin with.
pub const SERVER: &str = "server-";

/// Makes the sidecar's own folder: others may pass through it, to folders that are theirs, and see nothing of it. What a
/// sidecar before this one has left in it is removed, and nothing else that is there.
pub fn make_private(folder: &Path) -> Result<(), Failed> {
    let made = fs::create_dir_all(folder).and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o711)));
    made.map_err(|error| failed("make", folder, &error))?;
    for entry in entries(folder)? {
        let name = entry.file_name();
        if name == PLACE || name.as_encoded_bytes().starts_with(SERVER.as_bytes()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes the folder that a root is in; with `whole`, the root too, as this user's.
pub fn make(root: &Path, user: Option<u32>, whole: bool) -> Result<(), Failed> {
    let folder = if whole { Some(root) } else { root.parent() };
    let Some(folder) = folder else { return Ok(()) };
    let made = fs::create_dir_all(folder).and_then(|()| if whole { chown(folder, user, user) } else { Ok(()) });
    made.map_err(|error| failed("make", folder, &error))
}

/// Removes what is in a root, what interrupted pulls have left beside it, and itself where it is no mount.
pub fn empty(root: &Path) -> Result<(), Failed> {
    let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else { return Ok(()) };
    let beside = [b".", name.as_encoded_bytes(), b".furlough-"].concat();
    for entry in entries(parent)? {
        if entry.file_name().as_encoded_bytes().starts_with(&beside) {
            remove(&entry.path())?;
        }
    }
    if fs::symlink_metadata(root).is_ok_and(|about| about.is_symlink()) {
        return remove(root);
    }
    for entry in entries(root)? {
        remove(&entry.path())?;
    }
    match fs::remove_dir(root) {
        // A mount stays, empty.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", root, &error)),
        _ => Ok(()),
    }
}

/// Removes what is this user's from a folder that is everybody's.
pub fn sweep(folder: &Path, user: u32) -> Result<(), Failed> {
    for entry in entries(folder)? {
        if entry.metadata().is_ok_and(|about| about.uid() == user) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, or a folder with all that is in it, whatever their modes. What is not there is removed.
pub fn remove(path: &Path) -> Result<(), Failed> {
    let removed = match removed(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            self::removed(path)
        }
        other => other,
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, &error)),
        _ => Ok(()),
    }
}

fn removed(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// A folder that may not be written to can't be emptied. Nobody runs any more who could put a link in its place.
fn open_up(path: &Path) {
    if !fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
        return;
    }
    _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Failed> {
    match fs::read_dir(folder).and_then(Iterator::collect) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries.map_err(|error| failed("read", folder, &error)),
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failed {
    Failed(format!("could not {what} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emptied_is_empty_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        for made in [&root.join("a/b"), &other, &folder.path().join(".root.furlough-0a/x")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(other.join("kept"), "kept").unwrap();
        fs::write(root.join("a/b/file"), "gone").unwrap();
        std::os::unix::fs::symlink(&other, root.join("a/link")).unwrap();
        std::os::unix::fs::symlink(&other, root.join("link")).unwrap();
        fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();

        assert_eq!(occupied([&root]), Ok(Some(&root)));
        assert_eq!(empty(&root), Ok(()));
        assert_eq!(empty(&root), Ok(()), "done again, it is done");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["other"]);
        assert_eq!(fs::read_to_string(other.join("kept")).unwrap(), "kept");
        assert_eq!(occupied([&root]), Ok(None));
    }

    #[test]
    fn of_the_sidecar_s_own_folder_only_its_own_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["place", "server-1", "of somebody"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(make_private(folder.path()), Ok(()));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["of somebody"]);
    }

    #[test]
    fn a_root_that_became_a_link_is_removed_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(&other, &root).unwrap();
        assert_eq!(empty(&root), Ok(()));
        assert!(fs::symlink_metadata(&root).is_err());
        assert_eq!(fs::read_to_string(other.join("kept")).unwrap(), "kept");
    }
}
