//! One member of a tree: what is kept of it, and the identity by which two of them are the same.

use crate::member::Member;

/// A time of a file. Nanoseconds count up from the second, before 1970 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mtime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds after that, below 10⁹.
    pub nanos: u32,
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, to `target`, which is never followed nor judged.
    Symlink,
    /// Another name of the member `target`.
    HardLink,
    /// A sign for readers without the manifest that something here is deleted.
    Whiteout,
}

/// A member, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub path: Member,
    /// What.
    pub kind: Kind,
    /// The permission bits, at most `0o7777`.
    pub mode: u32,
    /// The owner, as a number. It is kept, and restored only by somebody who is asked to.
    pub uid: u32,
    /// The group, as a number.
    pub gid: u32,
    /// When its content last changed.
    pub mtime: Mtime,
    /// How many bytes of content follow.
    pub size: u64,
    /// Where a link points; of a hard link, the path of an earlier member.
    pub target: Vec<u8>,
    /// Extended attributes of the `user.` name space, in the order of their names.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What two members have in common when nothing about them needs to be kept again.
pub(crate) type Identity = [u8; 16];

/// The digest of a file's content: of its bytes, or of its pieces' digests when it has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(pub(crate) [u8; 32]);

impl Content {
    pub(crate) fn whole(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    pub(crate) fn pieces(digests: &[Self]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for digest in digests {
            hasher.update(&digest.0);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

impl Entry {
    /// Owner and group are left out, and so is whatever a copy can't have: inode, ctime, number of links.
    pub(crate) fn identity(&self, content: Option<Content>) -> Identity {
        let mut hasher = blake3::Hasher::new();
        let kind = match self.kind {
            Kind::File => b'f',
            Kind::Directory => b'd',
            Kind::Symlink => b'l',
            Kind::HardLink => b'h',
            Kind::Whiteout => b'w',
        };
        hasher.update(&[kind]);
        if self.kind != Kind::HardLink {
            let mode = if self.kind == Kind::Symlink { 0 } else { self.mode };
            hasher.update(&mode.to_le_bytes());
            hasher.update(&self.mtime.seconds.to_le_bytes());
            hasher.update(&self.mtime.nanos.to_le_bytes());
        }
        hasher.update(&self.size.to_le_bytes());
        for text in [&self.target].into_iter().chain(self.xattrs.iter().flat_map(|(name, value)| [name, value])) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        if let Some(content) = content {
            hasher.update(&content.0);
        }
        first16(hasher.finalize().as_bytes())
    }
}

/// The first half of a digest.
pub(crate) fn first16(digest: &[u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}
