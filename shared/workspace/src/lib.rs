//! Workspaces: push a tree to object storage and pull it back, in a format that tar can read.
//!
//! ```text
//! push:  walk ─► against the cache ─► read, pack (all cores) ─► parts ─► manifest ─► Commit (conditional)
//! pull:  manifest ─► ranged reads, hot first ─► check, unpack, write (all cores) ─► links, directories ─► rename
//!                        │
//!        Signer, Wire (a sandbox, no credentials)   Blobs (the host)   Commit (the keeper of records)
//! ```
//!
//! **Invariants.** A head changes only under the token of the lease that is current, and from the generation that the
//! writer knew; a stale writer's objects have names of their own and harm nothing. A pull of a push gives the same tree:
//! names, bytes, modes, mtimes, links, empty directories; what can't be kept is named at the push. Nothing is written
//! outside the roots, and no link is followed, whatever an archive says and whoever changes the tree meanwhile. A frame
//! is unpacked after its digest was found right, and a tree is published after all of them were. What was there stays
//! whole until then. A cache that is lost, foreign or broken costs a full push, and nothing else. Memory has a bound that
//! does not depend on the sizes of files, and grows with their number by some 100 bytes each.
//!
//! **Must never know**: which ledger keeps the records, which provider runs the sandbox, what time it is or what is random
//! (both are arguments).
//!
//! **Why not a filesystem in user space.** Mounting takes milliseconds, but then every first read pays; a full read took
//! five times as long as extracting everything, renames across the mount fail, and a daemon that dies takes the workspace
//! with it. A tree of plain files, the hot ones first, is usable as early and stays one.
//!
//! The format is in [`mod@format`]. A store is a folder ([`blobs::directory`]) or, with the features `s3` and `http`, a bucket:
//! the host's part needs credentials and an SDK, the sandbox's neither. What a sandbox asks to have signed goes through
//! [`blobs::bound`].

pub mod archive;
mod beneath;
pub mod blobs;
mod cache;
pub mod collect;
pub mod commit;
mod diff;
pub mod entry;
mod error;
pub mod exclude;
pub mod format;
mod frame;
pub mod key;
pub mod limits;
pub mod manifest;
pub mod member;
mod place;
pub mod pull;
pub mod push;
mod source;
mod stat;
pub mod time;
mod transfer;
mod tree;
pub mod verify;
mod walk;
mod watched;

pub use error::Error;
pub use format::RESTORE;
pub use frame::BadFrame;
pub use place::{Place, RootPath};
pub use pull::{Local, Owner, Pull, Pulled, Ready, Way, pull};
pub use push::{Basis, Push, Pushed, manifest_in, manifest_of, push};
pub use transfer::Store;
pub use verify::{Verified, verify};
pub use watched::{Progress, Watched};
