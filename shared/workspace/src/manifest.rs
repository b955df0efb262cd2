//! The manifest: what a generation of a workspace consists of. Its form is described in FORMAT.md.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    frame::FrameDigest,
    key::{Key, Name, Sort},
    limits::{MAX_FRAME_BYTES, MAX_LAYERS, MAX_MANIFEST_BYTES, MAX_MEMBERS, MAX_ROOTS, PIECE_BYTES},
    member::Member,
};

/// The version of the format that is written, and the only one that is read.
pub const FORMAT: u32 = 1;

/// One generation of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// What wrote it.
    pub tool: String,
    /// Whose it is.
    pub workspace: Name,
    /// Counted from 1.
    pub generation: u64,
    /// The token of the lease under which it was made.
    pub token: u64,
    /// The manifest that it was made from.
    pub parent: Option<Key>,
    /// When the scan began: what changed later may be missing. Milliseconds since 1970.
    pub as_of_ms: i64,
    /// The trees in it.
    pub roots: Vec<Root>,
    /// What was left out by rule.
    pub exclusions: Vec<Exclusion>,
    /// What the tree has, after all layers.
    pub counts: Counts,
    /// What could not be kept.
    pub left_out: Vec<Note>,
    /// What kept changing while it was read: kept as it was read, which may be a mixture.
    pub torn: Vec<Member>,
    /// The layers, the base first.
    pub layers: Vec<Layer>,
}

/// A tree of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// The first component of its members' paths.
    pub name: Member,
    /// Where it was when it was pushed, in text form.
    pub path: String,
}

/// A rule by which something was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// The last components of the paths that it names.
    pub names: String,
    /// Why they may be left out.
    pub why: String,
}

/// Something that was not kept, or not whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What.
    pub path: Member,
    /// Why.
    pub why: String,
}

pub(crate) const FIFO: &str = "a FIFO has no content";
pub(crate) const SOCKET: &str = "a socket belongs to a process";
pub(crate) const DEVICE: &str = "a device is never kept";
pub(crate) const SET_ID_BITS: &str = "its set-user and set-group bits are kept, and not restored";

/// What can't be kept, and is nobody's work.
const NO_WORK: [&str; 4] = [FIFO, SOCKET, DEVICE, SET_ID_BITS];

/// What a tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Regular files; further names of one are in `hard_links`.
    pub files: u64,
    /// Directories, the roots included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// The content of all files, in bytes.
    pub bytes: u64,
}

impl Counts {
    /// All members.
    pub const fn members(&self) -> u64 {
        self.files.saturating_add(self.directories).saturating_add(self.symlinks).saturating_add(self.hard_links)
    }
}

/// A layer: one `.tar.zst`, of independent frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Its object.
    pub key: Key,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The BLAKE3 of the whole object, in hexadecimal.
    pub blake3: String,
    /// How many members it has, whiteouts included.
    pub members: u64,
    /// How many frames, from the first, are of the hot class.
    pub hot: usize,
    /// Its frames, in order: they follow one another without a gap.
    pub frames: Vec<FrameRow>,
    /// Files of more than one piece: each piece is a frame of its own.
    pub long: Vec<LongFile>,
    /// Paths that this layer removes, with all that is below them, before its members are added.
    pub deleted: Vec<Member>,
    /// Paths of members of this layer that an earlier layer has too.
    pub replaced: Vec<Member>,
}

/// A frame: packed length, unpacked length, and the first half of the BLAKE3 of its packed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRow {
    /// Packed, in bytes.
    pub packed: u32,
    /// Unpacked, in bytes.
    pub raw: u32,
    /// Of the packed bytes.
    pub digest: FrameDigest,
}

/// A file in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongFile {
    /// Which.
    pub path: Member,
    /// Its size, in bytes.
    pub size: u64,
    /// The frame with its header and its first piece; the others follow.
    pub frame: usize,
}

impl LongFile {
    /// How many pieces it has.
    pub fn pieces(&self) -> usize {
        usize::try_from(self.size.div_ceil(PIECE_BYTES as u64)).unwrap_or(usize::MAX)
    }
}

impl Layer {
    /// What its frames hold unpacked, in bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.raw)).sum()
    }
}

/// Why a manifest is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    /// Larger than [`MAX_MANIFEST_BYTES`].
    #[error("it has more than {MAX_MANIFEST_BYTES} bytes")]
    TooLarge,
    /// Written by a newer Furlough. Nothing is done to it.
    #[error("its format is {0}, and this Furlough reads {FORMAT}")]
    Format(u32),
    /// Not JSON, or not of this form.
    #[error("it can't be read: {0}")]
    Unreadable(String),
    /// Its parts contradict one another, or pass a limit.
    #[error("{0}")]
    Wrong(&'static str),
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Manifest {
    /// From the bytes of its object, whole and within the limits.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadManifest> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(BadManifest::TooLarge);
        }
        let unreadable = |error: serde_json::Error| BadManifest::Unreadable(error.to_string());
        let version: Version = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version.format != FORMAT {
            return Err(BadManifest::Format(version.format));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The bytes of its object.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BadManifest> {
        let bytes = serde_json::to_vec(self).map_err(|error| BadManifest::Unreadable(error.to_string()))?;
        if bytes.len() > MAX_MANIFEST_BYTES { Err(BadManifest::TooLarge) } else { Ok(bytes) }
    }

    /// Whether all work in the trees is kept: nothing is torn, and what was left out is nobody's work. What is left out by
    /// rule is made again by its tool.
    pub fn keeps_all_work(&self) -> bool {
        self.torn.is_empty() && self.left_out.iter().all(|note| NO_WORK.contains(&&*note.why))
    }

    fn check(&self) -> Result<(), BadManifest> {
        let wrong = |holds: bool, why: &'static str| if holds { Ok(()) } else { Err(BadManifest::Wrong(why)) };
        wrong((1..=MAX_ROOTS).contains(&self.roots.len()), "it has no root, or too many")?;
        let names: BTreeSet<_> = self.roots.iter().map(|root| &root.name).collect();
        wrong(names.len() == self.roots.len(), "two roots have one name")?;
        wrong(self.roots.iter().all(|root| root.name.split().0.is_none()), "a root's name has a slash")?;
        wrong((1..=MAX_LAYERS).contains(&self.layers.len()), "it has no layer, or too many")?;
        wrong(self.counts.members() <= MAX_MEMBERS, "it has too many members")?;
        let keys: BTreeSet<_> = self.layers.iter().map(|layer| &layer.key).collect();
        wrong(keys.len() == self.layers.len(), "one layer is in it twice")?;
        wrong(self.layers[0].deleted.is_empty() && self.layers[0].replaced.is_empty(), "its base removes something")?;
        for layer in &self.layers {
            layer.check(&names)?;
        }
        Ok(())
    }
}

impl Layer {
    fn check(&self, roots: &BTreeSet<&Member>) -> Result<(), BadManifest> {
        let wrong = |holds: bool, why: &'static str| if holds { Ok(()) } else { Err(BadManifest::Wrong(why)) };
        wrong(self.key.sort == Sort::Layer, "a layer's key is not one of a layer")?;
        wrong(!self.frames.is_empty(), "a layer has no frame")?;
        wrong(self.hot <= self.frames.len(), "a layer has more hot frames than frames")?;
        let packed: u64 = self.frames.iter().map(|frame| u64::from(frame.packed)).sum();
        wrong(packed == self.bytes, "a layer's frames don't add up to its size")?;
        let bounded =
            |frame: &FrameRow| frame.raw as usize <= MAX_FRAME_BYTES && frame.packed as usize <= 2 * MAX_FRAME_BYTES;
        wrong(self.frames.iter().all(bounded), "a frame is larger than frames may be")?;
        let mut free = 0;
        for long in &self.long {
            wrong(long.size > PIECE_BYTES as u64 && long.frame >= free, "long files overlap, or one is short")?;
            let end = long.frame.checked_add(long.pieces());
            free = end
                .filter(|end| *end <= self.frames.len())
                .ok_or(BadManifest::Wrong("a long file ends after its layer"))?;
        }
        let in_a_root = |path: &&Member| {
            let first = path.bytes().split(|byte| *byte == b'/').next().unwrap_or_default();
            roots.iter().any(|root| root.bytes() == first)
        };
        let long = self.long.iter().map(|long| &long.path);
        wrong(long.chain(&self.deleted).chain(&self.replaced).all(|path| in_a_root(&path)), "a path is in no root")
    }
}

impl Serialize for FrameRow {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digest = blake3_hex(&self.digest);
        (self.packed, self.raw, digest).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameRow {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (packed, raw, digest) = <(u32, u32, String)>::deserialize(deserializer)?;
        let digest =
            parse_hex(&digest).ok_or_else(|| serde::de::Error::custom("a digest has 32 hexadecimal digits"))?;
        Ok(Self { packed, raw, digest })
    }
}

fn blake3_hex(digest: &FrameDigest) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::with_capacity(32), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn parse_hex(text: &str) -> Option<FrameDigest> {
    let digits = text.as_bytes();
    if digits.len() != 32 || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    Some(u128::from_str_radix(text, 16).ok()?.to_be_bytes())
}
