//! The layer as it grows: frames in, parts out.

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use crate::{
    error::Error,
    frame::Frame,
    key::Key,
    manifest::{FrameRow, Layer, LongFile},
    member::Member,
};

/// Takes frames in order, and sends parts.
pub(crate) struct Sink {
    parts: Sender<Bytes>,
    part: Vec<u8>,
    part_bytes: usize,
    hasher: blake3::Hasher,
    rows: Vec<FrameRow>,
    bytes: u64,
    pub(crate) hot: usize,
    pub(crate) members: u64,
}

impl Sink {
    pub(crate) fn new(parts: Sender<Bytes>, part_bytes: usize) -> Self {
        Self {
            parts,
            part: Vec::new(),
            part_bytes,
            hasher: blake3::Hasher::new(),
            rows: Vec::new(),
            bytes: 0,
            hot: 0,
            members: 0,
        }
    }

    /// How many frames it has taken.
    pub(crate) fn frames(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn frame(&mut self, frame: &Frame) -> Result<(), Error> {
        let bounded = |length: usize| u32::try_from(length).map_err(|_| Error::Cancelled);
        self.rows.push(FrameRow {
            packed: bounded(frame.packed.len())?,
            raw: bounded(frame.raw)?,
            digest: frame.digest,
        });
        self.hasher.update(&frame.packed);
        self.bytes += frame.packed.len() as u64;
        let mut rest = &frame.packed[..];
        while !rest.is_empty() {
            let room = self.part_bytes - self.part.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.part.extend_from_slice(now);
            rest = later;
            if self.part.len() == self.part_bytes {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        // As large as a part will be: one that grows by doubling would take twice that.
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(self.part_bytes));
        // Nobody takes parts any more: the push was given up.
        self.parts.blocking_send(part.into()).map_err(|_| Error::Cancelled)
    }

    /// The layer, when all of it was sent.
    pub(crate) fn finish(
        mut self,
        key: Key,
        long: Vec<LongFile>,
        deleted: Vec<Member>,
        replaced: Vec<Member>,
    ) -> Result<Layer, Error> {
        if !self.part.is_empty() {
            self.send()?;
        }
        Ok(Layer {
            key,
            bytes: self.bytes,
            blake3: self.hasher.finalize().to_hex().to_string(),
            members: self.members,
            hot: self.hot,
            frames: self.rows,
            long,
            deleted,
            replaced,
        })
    }
}
