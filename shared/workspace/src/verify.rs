//! Verify: every frame of a generation is read, checked, unpacked and parsed, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::{Reader, Refused, padding},
    commit::Head,
    entry::Kind,
    error::Error,
    frame::Unpacker,
    manifest::{Counts, Layer, Manifest},
    member::Member,
    pull::{Voids, piece, piece_bytes},
    push::manifest_of,
    transfer::{Reading, Store},
};

/// How much of a layer is read at once, in bytes.
const STRETCH: u64 = 8 << 20;

/// What a generation was found to be. A fault is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The manifest.
    pub manifest: Manifest,
    /// How many frames were checked.
    pub frames: usize,
    /// How many bytes were read.
    pub bytes: u64,
}

/// Verifies the generation of a head: all layers whole, every member one that push writes, and the counts right.
pub async fn verify(store: &Store, head: &Head) -> Result<Verified, Error> {
    let manifest = manifest_of(store, head).await?;
    let mut counts = Counts::default();
    let (mut frames, mut bytes) = (0, 0);
    for (number, layer) in manifest.layers.iter().enumerate() {
        let mut check = Check::new(&manifest, number)?;
        let reading = Reading::new(layer.key.to_string());
        let mut hasher = blake3::Hasher::new();
        let (mut at, mut offset) = (0, 0);
        while at < layer.frames.len() {
            let (count, length) = stretch(layer, at);
            let packed = store.get(&reading, offset..offset + length).await?;
            hasher.update(&packed);
            check.frames(at, count, &packed)?;
            (at, offset) = (at + count, offset + length);
        }
        if hasher.finalize().to_hex().as_str() != layer.blake3 {
            let source = crate::manifest::BadManifest::Wrong("the digest of a layer is another one");
            return Err(Error::Manifest { key: head.manifest.to_string(), source });
        }
        add(&mut counts, &check.counts);
        frames += at;
        bytes += offset;
    }
    if counts != manifest.counts {
        return Err(Error::Counts(format!("{counts:?} instead of {:?}", manifest.counts)));
    }
    Ok(Verified { manifest, frames, bytes })
}

/// How many frames from this one on are read at once, and their length.
fn stretch(layer: &Layer, at: usize) -> (usize, u64) {
    let mut length = 0;
    let mut count = 0;
    for frame in &layer.frames[at..] {
        if count > 0 && length + u64::from(frame.packed) > STRETCH {
            break;
        }
        length += u64::from(frame.packed);
        count += 1;
    }
    (count, length)
}

fn add(all: &mut Counts, some: &Counts) {
    all.files += some.files;
    all.directories += some.directories;
    all.symlinks += some.symlinks;
    all.hard_links += some.hard_links;
    all.bytes += some.bytes;
}

struct Check<'a> {
    layer: &'a Layer,
    number: usize,
    voids: Voids<'a>,
    unpacker: Unpacker,
    raw: Vec<u8>,
    /// The paths that were seen once, by their hashes.
    seen: BTreeSet<[u8; 16]>,
    counts: Counts,
    long: BTreeMap<usize, bool>,
}

impl<'a> Check<'a> {
    fn new(manifest: &'a Manifest, number: usize) -> Result<Self, Error> {
        use crate::error::Asked as _;
        Ok(Self {
            layer: &manifest.layers[number],
            number,
            voids: Voids::of(manifest),
            unpacker: Unpacker::new().asked("start", b"the decompressor")?,
            raw: Vec::new(),
            seen: BTreeSet::new(),
            counts: Counts::default(),
            long: BTreeMap::new(),
        })
    }

    fn frames(&mut self, first: usize, count: usize, packed: &[u8]) -> Result<(), Error> {
        let mut rest = packed;
        for at in first..first + count {
            let row = self.layer.frames[at];
            let (frame, after) = rest.split_at(row.packed as usize);
            rest = after;
            let mut raw = std::mem::take(&mut self.raw);
            self.unpacker.unpack(frame, row.raw as usize, row.digest, &mut raw).map_err(|source| {
                let from: u64 = self.layer.frames[..at].iter().map(|frame| u64::from(frame.packed)).sum();
                let to = from + u64::from(row.packed);
                Error::Frame { key: self.layer.key.to_string(), frame: at, from, to, source }
            })?;
            self.frame(at, &raw)?;
            self.raw = raw;
        }
        Ok(())
    }

    fn refused(&self, frame: usize, source: Refused) -> Error {
        Error::Archive { key: self.layer.key.to_string(), frame, source }
    }

    fn frame(&mut self, at: usize, raw: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(raw);
        if let Some((file, index)) = piece(self.layer, at) {
            return self.piece(at, file, index, &mut reader);
        }
        let is_last = at + 1 == self.layer.frames.len();
        loop {
            if is_last && reader.is_end() {
                return Ok(());
            }
            let Some(entry) = reader.header().map_err(|source| self.refused(at, source))? else { break };
            reader.content(entry.size).map_err(|source| self.refused(at, source))?;
            self.member(&entry.path, entry.kind, entry.size)?;
        }
        if is_last { Err(self.refused(at, Refused::End)) } else { Ok(()) }
    }

    fn piece(&mut self, at: usize, file: usize, index: usize, reader: &mut Reader<'_>) -> Result<(), Error> {
        let long = &self.layer.long[file];
        let wrong = |why| Error::Contradiction { key: self.layer.key.to_string(), path: long.path.clone(), why };
        if index == 0 {
            let entry = reader.header().map_err(|source| self.refused(at, source))?;
            let right = entry.is_some_and(|entry| entry.path == long.path && entry.size == long.size);
            if !right {
                return Err(wrong("its first frame has another member"));
            }
        }
        let is_last = index + 1 == long.pieces();
        let padded = piece_bytes(long.size, index) + if is_last { padding(long.size) } else { 0 };
        if reader.rest().len() != padded {
            return Err(wrong("a frame of it has another length"));
        }
        if is_last && self.long.insert(file, true).is_none() {
            self.member(&long.path, Kind::File, long.size)?;
        }
        Ok(())
    }

    fn member(&mut self, path: &Member, kind: Kind, size: u64) -> Result<(), Error> {
        if kind == Kind::Whiteout || self.voids.has(self.number, path) {
            return Ok(());
        }
        if !self.seen.insert(crate::entry::first16(blake3::hash(path.bytes()).as_bytes())) {
            let key = self.layer.key.to_string();
            return Err(Error::Contradiction { key, path: path.clone(), why: "it is there twice" });
        }
        match kind {
            Kind::File => {
                self.counts.files += 1;
                self.counts.bytes += size;
            }
            Kind::Directory => self.counts.directories += 1,
            Kind::Symlink => self.counts.symlinks += 1,
            _ => self.counts.hard_links += 1,
        }
        Ok(())
    }
}
