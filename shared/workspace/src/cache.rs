//! The stat cache: what the last snapshot of this place had, member by member, in the tree's order.
//!
//! **Invariants.** It is used whole or not at all: a digest at its end covers it. It is used only for the roots that it was
//! made of (device and inode) and the manifest that they descend from. Losing it costs a full push and nothing else.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    entry::{Identity, Kind},
    error::{Asked as _, Error, raw},
    key::Key,
    limits::MAX_PATH_BYTES,
    manifest::Exclusion,
    member::Member,
    place::Place,
    stat::Fingerprint,
};

const MAGIC: &[u8; 16] = b"furlough-cache-1";
const MAX_HEAD_BYTES: usize = 1 << 20;
const FIXED: usize = 1 + 1 + 8 + 16 + 16;
const DIGEST: usize = 32;

/// What a cache was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    pub(crate) manifest: Key,
    roots: Vec<RootOrigin>,
    exclusions: Vec<Exclusion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RootOrigin {
    name: Member,
    device: u64,
    inode: u64,
}

impl Origin {
    pub(crate) fn exclusions(&self) -> &[Exclusion] {
        &self.exclusions
    }

    pub(crate) fn of(place: &Place, manifest: &Key, exclusions: &[Exclusion]) -> Result<Self, Error> {
        let root = |root: &crate::place::RootPath| {
            let metadata = std::fs::metadata(&root.path).asked("look at", raw(&root.path))?;
            Ok(RootOrigin { name: root.name.clone(), device: metadata.dev(), inode: metadata.ino() })
        };
        let roots = place.roots.iter().map(root).collect::<Result<_, Error>>()?;
        Ok(Self { manifest: manifest.clone(), roots, exclusions: exclusions.to_vec() })
    }
}

/// What the last snapshot had at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) racy: bool,
    pub(crate) quick: u64,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) identity: Identity,
}

/// Writes a cache, member by member.
pub(crate) struct CacheWriter {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    last: Vec<u8>,
    record: Vec<u8>,
}

const fn code(kind: Kind) -> u8 {
    match kind {
        Kind::File => 0,
        Kind::Directory => 1,
        Kind::Symlink => 2,
        Kind::HardLink => 3,
        Kind::Whiteout => 4,
    }
}

fn kind(code: u8) -> Option<Kind> {
    [Kind::File, Kind::Directory, Kind::Symlink, Kind::HardLink].into_iter().find(|kind| self::code(*kind) == code)
}

impl CacheWriter {
    pub(crate) fn create(path: &Path, origin: &Origin) -> io::Result<Self> {
        let mut writer = Self {
            out: BufWriter::with_capacity(1 << 18, File::create(path)?),
            hasher: blake3::Hasher::new(),
            last: Vec::new(),
            record: Vec::new(),
        };
        let head = serde_json::to_vec(origin)?;
        writer.record.extend_from_slice(MAGIC);
        writer.record.extend_from_slice(&u32::try_from(head.len()).map_err(io::Error::other)?.to_le_bytes());
        writer.record.extend_from_slice(&head);
        writer.flush_record()?;
        Ok(writer)
    }

    fn flush_record(&mut self) -> io::Result<()> {
        self.hasher.update(&self.record);
        self.out.write_all(&self.record)?;
        self.record.clear();
        Ok(())
    }

    pub(crate) fn row(&mut self, path: &[u8], row: &RowValues) -> io::Result<()> {
        let common = self.last.iter().zip(path).take_while(|(a, b)| a == b).count();
        for length in [common, path.len() - common] {
            let length = u16::try_from(length).map_err(io::Error::other)?;
            self.record.extend_from_slice(&length.to_le_bytes());
        }
        self.record.extend_from_slice(&path[common..]);
        self.record.extend_from_slice(&[code(row.kind), u8::from(row.racy)]);
        self.record.extend_from_slice(&row.quick.to_le_bytes());
        self.record.extend_from_slice(&row.fingerprint);
        self.record.extend_from_slice(&row.identity);
        self.last.clear();
        self.last.extend_from_slice(path);
        self.flush_record()
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        let digest = self.hasher.finalize();
        self.out.write_all(digest.as_bytes())?;
        self.out.flush()
    }
}

/// A row without its path.
pub(crate) struct RowValues {
    pub(crate) kind: Kind,
    pub(crate) racy: bool,
    pub(crate) quick: u64,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) identity: Identity,
}

/// Reads a cache that was found whole.
pub(crate) struct CacheReader {
    input: io::Take<BufReader<File>>,
    pub(crate) origin: Origin,
    path: Vec<u8>,
}

impl CacheReader {
    /// Nothing where there is no cache, or what is there is not whole.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let body = whole(path).ok()?;
        let file = File::open(path).ok()?;
        let mut input = BufReader::with_capacity(1 << 18, file).take(body);
        let mut fixed = [0; MAGIC.len() + 4];
        input.read_exact(&mut fixed).ok()?;
        let (magic, length) = fixed.split_at(MAGIC.len());
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        if magic != MAGIC || length > MAX_HEAD_BYTES {
            return None;
        }
        let mut head = vec![0; length];
        input.read_exact(&mut head).ok()?;
        let origin = serde_json::from_slice(&head).ok()?;
        Some(Self { input, origin, path: Vec::new() })
    }

    /// The next row, in the tree's order; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        if self.input.limit() == 0 {
            return Ok(None);
        }
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a row of the cache is wrong");
        let mut lengths = [0; 4];
        self.input.read_exact(&mut lengths)?;
        let common = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let rest = usize::from(u16::from_le_bytes([lengths[2], lengths[3]]));
        if common > self.path.len() || common + rest > MAX_PATH_BYTES {
            return Err(wrong());
        }
        self.path.resize(common + rest, 0);
        self.input.read_exact(&mut self.path[common..])?;
        let mut fixed = [0; FIXED];
        self.input.read_exact(&mut fixed)?;
        let sixteen = |from: usize| fixed[from..from + 16].try_into().map_err(|_| wrong());
        Ok(Some(Row {
            path: self.path.clone(),
            kind: kind(fixed[0]).ok_or_else(wrong)?,
            racy: fixed[1] != 0,
            quick: u64::from_le_bytes(fixed[2..10].try_into().map_err(|_| wrong())?),
            fingerprint: sixteen(10)?,
            identity: sixteen(26)?,
        }))
    }
}

/// How long the file is without its digest, if that matches.
fn whole(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let body = file.metadata()?.len().checked_sub(DIGEST as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut input = BufReader::with_capacity(1 << 18, file);
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut (&mut input).take(body), &mut hasher)?;
    let mut digest = [0; DIGEST];
    input.read_exact(&mut digest)?;
    if hasher.finalize() == digest { Ok(body) } else { Err(io::ErrorKind::InvalidData.into()) }
}
