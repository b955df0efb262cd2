//! From errors of the machine to what the caller is told.

use std::{io, path::Path};

use backend::{BackendError, ErrorKind};

/// "could not `verb` `path`: why".
pub(crate) fn at(verb: &str, path: &Path, error: &io::Error) -> BackendError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Local,
    };
    BackendError::new(kind, format!("could not {verb} `{}`: {}", path.display(), reason(error)))
}

/// What the error is, and what to do about it where that is known.
pub(crate) fn reason(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; nothing was moved: free some space",
        io::ErrorKind::ReadOnlyFilesystem => "; nothing was moved: mount it writable",
        _ => "",
    };
    format!("{error}{advice}")
}
