//! Frames: independent zstd frames of about 1 MiB, the unit of packing, fetching and checking.

use zstd::bulk::{Compressor, Decompressor};

use crate::{entry::first16, limits::MAX_FRAME_BYTES};

/// The digest of a packed frame: the first half of its BLAKE3.
pub(crate) type FrameDigest = [u8; 16];

/// A packed frame.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) packed: Vec<u8>,
    pub(crate) raw: usize,
    pub(crate) digest: FrameDigest,
}

/// Why a packed frame is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// What was fetched is not what the manifest describes.
    #[error("its digest is not the one in the manifest")]
    Digest,
    /// It does not unpack, or not to the length that the manifest states.
    #[error("it does not unpack to the length in the manifest")]
    Unpack,
}

pub(crate) fn digest(packed: &[u8]) -> FrameDigest {
    first16(blake3::hash(packed).as_bytes())
}

/// Packs frames at one level, with one context.
pub(crate) struct Packer(Compressor<'static>);

impl Packer {
    pub(crate) fn new(level: i32) -> std::io::Result<Self> {
        let mut compressor = Compressor::new(level)?;
        compressor.include_checksum(true)?;
        compressor.include_contentsize(true)?;
        Ok(Self(compressor))
    }

    pub(crate) fn pack(&mut self, raw: &[u8]) -> std::io::Result<Frame> {
        let packed = self.0.compress(raw)?;
        let digest = digest(&packed);
        Ok(Frame { packed, raw: raw.len(), digest })
    }
}

/// Unpacks frames, with one context.
pub(crate) struct Unpacker(Decompressor<'static>);

impl Unpacker {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self(Decompressor::new()?))
    }

    /// The content of a frame into `out`, after its digest was found to be `digest`. Whatever the frame says, no more is
    /// unpacked than `raw` bytes need.
    pub(crate) fn unpack(
        &mut self,
        packed: &[u8],
        raw: usize,
        digest: FrameDigest,
        out: &mut Vec<u8>,
    ) -> Result<(), BadFrame> {
        if self::digest(packed) != digest {
            return Err(BadFrame::Digest);
        }
        if raw > MAX_FRAME_BYTES {
            return Err(BadFrame::Unpack);
        }
        out.clear();
        out.reserve(raw);
        let unpacked = self.0.decompress_to_buffer(packed, out).map_err(|_| BadFrame::Unpack)?;
        if unpacked == raw { Ok(()) } else { Err(BadFrame::Unpack) }
    }
}
