//! Which folders hold a trash: the root, the folders beside the worktrees of configured repositories, and those that were
//! written down when something was first moved there, since a repository may go before its worktree's trash does.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::{
    layout::common_folder,
    look::{absent, backlink, read_limited},
    options::Options,
};

/// The list's name, in the folder of the saves: a percent-encoded path a line.
const FILE: &str = "trash-folders";
/// The longest list that is read.
const MAX_LIST_BYTES: u64 = 4 << 20;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'-').remove(b'/');

/// Every folder that may hold a trash of ours. What can't be read is left out.
pub(crate) fn all(options: &Options) -> Vec<PathBuf> {
    let root = options.root.as_ref().map(crate::options::Root::path);
    let mut beside = BTreeSet::new();
    for repository in &options.repositories {
        let Ok(folder) = common_folder(repository) else { continue };
        let Ok(entries) = fs::read_dir(folder.join("worktrees")) else { continue };
        for entry in entries.flatten() {
            let dot_git = backlink(&entry.path()).ok().flatten();
            beside.extend(dot_git.and_then(|path| Some(path.parent()?.parent()?.to_owned())));
        }
    }
    beside.extend(remembered(&options.saves));
    let beside = beside.into_iter().filter(|path| Some(path.as_path()) != root);
    root.map(Path::to_owned).into_iter().chain(beside).collect()
}

/// Those that were written down; what does not look like one is left out.
pub(crate) fn remembered(saves: &Path) -> Vec<PathBuf> {
    let list = read_limited(&saves.join(FILE), MAX_LIST_BYTES).unwrap_or_default();
    let lines = list.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let paths = lines.map(|line| PathBuf::from(OsStr::from_bytes(&percent_decode_str(line).collect::<Vec<_>>())));
    paths.filter(|path| path.is_absolute()).collect()
}

/// Writes down that `yard` holds a trash, once. The root is known without.
pub(crate) fn remember(options: &Options, yard: &Path) -> io::Result<()> {
    let root = options.root.as_ref().map(crate::options::Root::path);
    if root == Some(yard) || remembered(&options.saves).iter().any(|known| known == yard) {
        return Ok(());
    }
    fs::create_dir_all(&options.saves)?;
    // A line that a full disk cut short must not swallow this one.
    let line = format!("\n{}\n", percent_encode(yard.as_os_str().as_bytes(), ENCODED));
    let mut file = fs::OpenOptions::new().create(true).append(true).open(options.saves.join(FILE))?;
    io::Write::write_all(&mut file, line.as_bytes())?;
    absent(file.sync_all())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use lifecycle::{BackendName, Time};
    use proptest::{collection, prelude::*};

    use super::*;

    fn options(saves: &Path) -> Options {
        let clock = backend::Clock::fixed(Time::default());
        Options::new(BackendName::new("w").unwrap(), clock, saves.to_owned(), saves.to_owned())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Whatever stands in the list, what is read of it are absolute paths, one a line at most, and what is written down
        /// later is found, once.
        #[test]
        fn any_bytes_are_a_list_and_a_folder_is_written_down_beside_them(
            bytes in collection::vec(any::<u8>(), 0..200),
            name in collection::vec(1u8.., 1..40),
        ) {
            let saves = tempfile::tempdir().unwrap();
            fs::write(saves.path().join(FILE), &bytes).unwrap();
            let read = remembered(saves.path());
            prop_assert!(read.iter().all(|path| path.is_absolute()));
            prop_assert!(read.len() <= bytes.split(|byte| *byte == b'\n').count());
            let yard = Path::new("/").join(OsStr::from_bytes(&name));
            let options = options(saves.path());
            for _ in 0..2 {
                remember(&options, &yard).unwrap();
            }
            let again = remembered(saves.path());
            prop_assert!(again.contains(&yard), "{:?}", again);
            prop_assert!(again.len() <= read.len() + 1);
        }
    }

    #[test]
    fn a_list_without_end_is_not_read_to_its_end() {
        let saves = tempfile::tempdir().unwrap();
        fs::File::create(saves.path().join(FILE)).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(remembered(saves.path()), Vec::<PathBuf>::new());
    }
}
