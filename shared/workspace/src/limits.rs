//! Every bound of the format and the engine, in one place. What passes one is refused by name.

use std::time::Duration;

/// The longest member path, in bytes, root's name included.
pub const MAX_PATH_BYTES: usize = 4096;
/// The longest component of a path, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// The deepest member.
pub const MAX_DEPTH: usize = 256;
/// The longest target of a symlink, in bytes.
pub const MAX_LINK_BYTES: usize = 4096;
/// All extended attributes of one member, names and values, in bytes.
pub const MAX_XATTR_BYTES: usize = 256 << 10;
/// The longest extension header, in bytes.
pub const MAX_PAX_BYTES: usize = 1 << 20;

/// A file longer than this is cut into pieces of this many bytes, each a frame of its own.
pub const PIECE_BYTES: usize = 1 << 20;
/// A frame of small members is closed once it holds this many bytes.
pub const FRAME_BYTES: usize = 1 << 20;
/// The most that a frame may hold unpacked, in bytes.
pub const MAX_FRAME_BYTES: usize = 8 << 20;
/// The largest manifest, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 64 << 20;
/// The most members that a snapshot may have.
pub const MAX_MEMBERS: u64 = 20_000_000;
/// The most roots that a snapshot may have.
pub const MAX_ROOTS: usize = 16;
/// The most layers in a chain: a base and sixteen deltas.
pub const MAX_LAYERS: usize = 17;

/// The longest owner of a lease, in bytes.
pub const MAX_OWNER_BYTES: usize = 128;

/// A part of an upload, in bytes, as long as the object stays below [`MAX_PARTS`] of them.
pub const PART_BYTES: usize = 8 << 20;
/// The most parts that one upload may have; S3 takes 10,000.
pub const MAX_PARTS: u32 = 9_000;
/// The largest part, in bytes: S3's bound.
pub const MAX_PART_BYTES: u64 = 5 << 30;
/// The most objects that one listing may have.
pub const MAX_LISTED: usize = 1_000_000;

/// A delta chain is replaced by a new base when the deltas hold more than this, whatever the base's size, in bytes …
pub const DELTA_FLOOR_BYTES: u64 = 16 << 20;
/// … and more than this share of the base, in percent.
pub const DELTA_PERCENT: u64 = 30;
/// A chain is replaced when more than this share of what its layers hold is no longer in the tree, in percent.
pub const DEAD_PERCENT: u64 = 30;
/// A delta that would name more deleted and replaced paths than this becomes a base instead.
pub const MAX_DELTA_PATHS: usize = 200_000;

/// How often a file that changes while it is read is read again.
pub const READS: u32 = 2;
/// How often a push packs anew because a long file changed under it.
pub const ATTEMPTS: u32 = 3;
/// How often one request to the store is tried.
pub const TRIES: u32 = 5;
/// A signed URL is asked for again when it ends sooner than this.
pub const URL_MARGIN: Duration = Duration::from_secs(30);
