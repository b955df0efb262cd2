//! What can't be done, and what the caller must do about it.

use std::{io, path::PathBuf};

use crate::{
    archive::{Refused, Unwritable},
    blobs::StoreError,
    commit::CommitError,
    frame::BadFrame,
    manifest::BadManifest,
    member::{BadMember, Member, escape},
};

/// A push, pull or check that could not be done. What was there before is whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filesystem did not do what it was asked to.
    #[error("could not {what} `{path}`")]
    Local {
        /// What was asked.
        what: &'static str,
        /// Of what.
        path: String,
        /// What it said.
        source: io::Error,
    },
    /// The store did not.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The keeper of records could not be asked. Nothing is known about a commit that was under way: push again.
    #[error("the commit could not be asked for")]
    Commit(#[from] CommitError),
    /// A manifest is not used.
    #[error("the manifest `{key}` is refused")]
    Manifest {
        /// Which.
        key: String,
        /// Why.
        source: BadManifest,
    },
    /// A frame of a layer is not used.
    #[error("frame {frame} of `{key}`, bytes {from} to {to}, is refused")]
    Frame {
        /// Which layer.
        key: String,
        /// Which frame.
        frame: usize,
        /// Its first byte.
        from: u64,
        /// The byte after it.
        to: u64,
        /// Why.
        source: BadFrame,
    },
    /// A layer says something that push would not have written.
    #[error("`{key}` is refused in frame {frame}")]
    Archive {
        /// Which layer.
        key: String,
        /// In which frame.
        frame: usize,
        /// Why.
        source: Refused,
    },
    /// A layer's members contradict its manifest or one another.
    #[error("`{key}` is refused: {why} (`{path}`)")]
    Contradiction {
        /// Which layer.
        key: String,
        /// About which member.
        path: Member,
        /// How.
        why: &'static str,
    },
    /// A snapshot restores to something else than its manifest counts.
    #[error("what was restored is not what the manifest counts: {0}")]
    Counts(String),
    /// The restored tree would be larger than it may be.
    #[error("the workspace has {bytes} bytes, and {limit} are allowed")]
    Quota {
        /// How large.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// Something kept changing in ways that could not be kept, also when it was tried again. Stop the writer.
    #[error("`{0}` kept changing while it was read")]
    Unsettled(Member),
    /// A member can't be written to an archive.
    #[error("`{path}` can't be kept")]
    Unwritable {
        /// Which.
        path: Member,
        /// Why.
        source: Unwritable,
    },
    /// A name of a root, or a path, is none.
    #[error("`{path}` is no member's path")]
    Member {
        /// Which.
        path: String,
        /// Why.
        source: BadMember,
    },
    /// The roots are wrong: nested, doubled, too many or none, or not the snapshot's.
    #[error("{0}")]
    Roots(String),
    /// Another push or pull uses this state folder.
    #[error("another push or pull is using `{0}`")]
    InUse(PathBuf),
    /// It was given up before it ended.
    #[error("it was given up before it ended")]
    Cancelled,
}

/// Says what was asked of the filesystem, and of what.
pub(crate) trait Asked<T> {
    fn asked(self, what: &'static str, path: impl AsRef<[u8]>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Asked<T> for Result<T, E> {
    fn asked(self, what: &'static str, path: impl AsRef<[u8]>) -> Result<T, Error> {
        self.map_err(|error| Error::Local { what, path: escape(path.as_ref()), source: error.into() })
    }
}

/// The bytes of a path.
pub(crate) fn raw(path: &std::path::Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}
