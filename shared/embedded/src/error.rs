//! Why a database can't be opened, and what to do.

use std::path::{Path, PathBuf};

use dynoxide::DynoxideError;
use rusqlite::ErrorCode;

/// A database that can't be opened. Says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The folder can't be made or read.
    #[error("the data folder `{path}` can't be used; choose another, or make it writable")]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Some other program's file stands there. Nothing was written to it.
    #[error("`{path}` is not a database of ours ({why}); move it away, or choose another data folder")]
    Foreign {
        /// Which.
        path: PathBuf,
        /// How it was recognised.
        why: String,
    },
    /// The file is damaged.
    #[error("`{path}` is damaged ({why}); restore it, or move it away to begin with an empty one")]
    Corrupt {
        /// Which.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// It, or its folder, can't be written.
    #[error("`{path}` can't be written ({why}); make it and its folder writable, or choose another data folder")]
    ReadOnly {
        /// Which.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// No space is left.
    #[error("no space is left for `{path}` ({why}); free some and try again")]
    Full {
        /// Which.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// Other processes kept it for longer than we wait.
    #[error("`{path}` is kept busy by another process ({why}); try again when that one is done")]
    Busy {
        /// Which.
        path: PathBuf,
        /// What it was.
        why: String,
    },
    /// Something else, such as a file of a newer version.
    #[error("`{path}` can't be opened: {why}")]
    Other {
        /// Which.
        path: PathBuf,
        /// What was said.
        why: String,
    },
}

/// Names a refusal by what the caller can do about it.
pub(crate) fn refused(path: &Path, cause: DynoxideError) -> EmbeddedError {
    match cause {
        DynoxideError::SqliteError(cause) => sqlite(path, &cause),
        other if other.to_string().contains("not a valid SQLite database") => {
            EmbeddedError::Foreign { path: path.to_owned(), why: "it has no SQLite header".to_owned() }
        }
        other => EmbeddedError::Other { path: path.to_owned(), why: other.to_string() },
    }
}

pub(crate) fn sqlite(path: &Path, cause: &rusqlite::Error) -> EmbeddedError {
    let (path, why) = (path.to_owned(), cause.to_string());
    match cause.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => EmbeddedError::Foreign { path, why },
        Some(ErrorCode::DatabaseCorrupt) => EmbeddedError::Corrupt { path, why },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            EmbeddedError::ReadOnly { path, why }
        }
        Some(ErrorCode::DiskFull) => EmbeddedError::Full { path, why },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => EmbeddedError::Busy { path, why },
        _ => EmbeddedError::Other { path, why },
    }
}
