//! The database file: whose it is, opening it, and copying it without a trace.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use dynoxide::{Database, storage_backend};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

use crate::{
    FILE,
    error::{EmbeddedError, refused, sqlite},
};

/// How often a copy is begun again because somebody wrote meanwhile.
const COPY_ROUNDS: u32 = 10;

/// What stands as itself in the path of a SQLite URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'_').remove(b'-').remove(b'~');

/// Makes the folder and the file where needed and opens the database.
pub(crate) fn open(folder: &Path) -> Result<(Database, Gate), EmbeddedError> {
    let unusable = |source| EmbeddedError::Folder { path: folder.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
    let folder = fs::canonicalize(folder).map_err(unusable)?;
    let path = folder.join(FILE);
    let gate = Gate(Some(folder.as_path().into()));
    let _closed = gate.close().map_err(unusable)?;
    check_ours(&path)?;
    let database = Database::new(&uri(&path, "mode=rwc")).map_err(|cause| refused(&path, cause))?;
    Ok((database, gate))
}

/// Lets one process at a time make or change tables: a lock on the folder itself, so that no file is needed.
///
/// SQLite's own lock guards a single write, but a table is made in several: of two processes that make it at
/// once, one would fail in the middle. A lock ends with its process, however that ends.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) Option<Arc<Path>>);

impl Gate {
    /// Waits for its turn, which lasts as long as what is returned. `None`: nobody else can be there.
    pub(crate) fn close(&self) -> io::Result<Option<File>> {
        let Some(path) = &self.0 else { return Ok(None) };
        let file = File::open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                tracing::info!("another process is setting up `{}`; waiting for it", path.display());
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Some(file))
    }
}

/// A copy in memory; `None` where no file is, or one that was only begun: the disk was full, its process killed.
pub(crate) fn copy(folder: &Path) -> Result<Option<Database>, EmbeddedError> {
    for _ in 0..COPY_ROUNDS {
        let Some(before) = Stamp::of(folder)? else { return Ok(None) };
        let made = check_ours(&before.path)? || (before.pending && has_tables(&before.path, "mode=ro")?);
        if !made {
            return Ok(None);
        }
        let database = Database::memory().map_err(|cause| refused(&before.path, cause))?;
        // With writes pending in the log, SQLite's locks are needed to read them; without any, the file is
        // read as it lies, so that no file is made beside it.
        let how = if before.pending { "mode=ro" } else { "mode=ro&immutable=1" };
        let copied = database.restore_from(&uri(&before.path, how));
        if before.pending || Stamp::of(folder)?.as_ref() == Some(&before) {
            return match copied {
                Ok(()) => Ok(Some(database)),
                Err(cause) => Err(refused(&before.path, cause)),
            };
        }
    }
    let why = format!("it changed during each of {COPY_ROUNDS} attempts to copy it");
    Err(EmbeddedError::Busy { path: folder.join(FILE), why })
}

/// What changes when somebody writes.
#[derive(PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    /// The write-ahead log has something in it.
    pending: bool,
}

impl Stamp {
    fn of(folder: &Path) -> Result<Option<Self>, EmbeddedError> {
        let unusable = |source| EmbeddedError::Folder { path: folder.to_owned(), source };
        let folder = match fs::canonicalize(folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        let path = folder.join(FILE);
        match fs::metadata(&path) {
            Ok(file) => {
                let (bytes, modified, pending) = (file.len(), file.modified().ok(), pending(&path));
                Ok(Some(Self { path, bytes, modified, pending }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(error)),
        }
    }
}

/// Whether the log beside the file has something in it.
fn pending(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Refuses a file of another program before anything is written to it. Says whether there are tables in it.
///
/// Reads the file as it lies: no lock, no log. A database whose first tables are still in its log has none
/// here, and passes.
fn check_ours(path: &Path) -> Result<bool, EmbeddedError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(EmbeddedError::Foreign { path: path.to_owned(), why: "it is not a file".to_owned() });
        }
        Ok(found) if found.len() > 0 => {}
        _ => return Ok(false),
    }
    // A log that is being moved into the file, or was when its process was killed or the disk was full, leaves a
    // file that looks damaged as it lies and is whole together with its log: then SQLite is asked, with its locks.
    // Without a log it is not asked, since it would make one beside the file.
    let found = tables(path, "mode=ro&immutable=1");
    let found = if found.is_err() && pending(path) { tables(path, "mode=ro") } else { found };
    let found = found.map_err(|cause| sqlite(path, &cause))?;
    match found.first() {
        None => Ok(false),
        Some(_) if found.iter().any(|name| name == "_tables") => Ok(true),
        Some(other) => Err(EmbeddedError::Foreign { path: path.to_owned(), why: format!("it has a table `{other}`") }),
    }
}

fn has_tables(path: &Path, how: &str) -> Result<bool, EmbeddedError> {
    tables(path, how).map(|found| !found.is_empty()).map_err(|cause| sqlite(path, &cause))
}

fn tables(path: &Path, how: &str) -> rusqlite::Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path, how), flags)?;
    let mut statement = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The file as a SQLite URI, which takes names that are not UTF-8.
fn uri(path: &Path, how: &str) -> String {
    format!("file:{}?{how}", percent_encode(path.as_os_str().as_bytes(), PATH))
}

/// A clock for the removal of what has expired.
pub(crate) struct Clock<F>(pub(crate) F);

impl<F: Fn() -> u64 + Send + Sync> storage_backend::Clock for Clock<F> {
    fn now_unix_secs(&self) -> u64 {
        (self.0)()
    }

    fn now_unix_secs_f64(&self) -> f64 {
        std::time::Duration::from_secs((self.0)()).as_secs_f64()
    }
}
