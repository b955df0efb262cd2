//! What is fetched, in which order; and which members of a layer a later one has made void.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use crate::{
    limits::PIECE_BYTES,
    manifest::{Layer, Manifest},
    member::Member,
};

/// The length of a fetch, in bytes: short while somebody waits for the hot members.
const HOT_FETCH: u64 = 2 << 20;
const COLD_FETCH: u64 = 4 << 20;

/// Frames that follow one another, fetched as one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) layer: usize,
    pub(super) frames: Range<usize>,
    pub(super) bytes: Range<u64>,
    pub(super) hot: bool,
}

/// What later layers have removed or replaced: of each path, the last layer that did.
#[derive(Debug, Default)]
pub(crate) struct Voids<'a> {
    exactly: HashMap<&'a [u8], usize>,
    below: HashMap<&'a [u8], usize>,
}

impl<'a> Voids<'a> {
    pub(crate) fn of(manifest: &'a Manifest) -> Self {
        let mut voids = Self::default();
        for (number, layer) in manifest.layers.iter().enumerate() {
            voids.exactly.extend(layer.replaced.iter().map(|path| (path.bytes(), number)));
            voids.below.extend(layer.deleted.iter().map(|path| (path.bytes(), number)));
        }
        voids
    }

    /// Whether what this layer has at a path is void.
    pub(crate) fn has(&self, layer: usize, path: &Member) -> bool {
        let path = path.bytes();
        let is_void = |by: Option<&usize>| by.is_some_and(|by| *by > layer);
        if is_void(self.exactly.get(path)) {
            return true;
        }
        if self.below.is_empty() {
            return false;
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        slashes.chain([path.len()]).any(|end| is_void(self.below.get(&path[..end])))
    }
}

/// The fetches for the layers from number `from` on: all that is hot, then the rest.
pub(super) fn fetches(manifest: &Manifest, voids: &Voids<'_>, from: usize) -> Vec<Fetch> {
    let mut hot = Vec::new();
    let mut cold = Vec::new();
    for (number, layer) in manifest.layers.iter().enumerate().skip(from) {
        let skipped = skipped(number, layer, voids);
        let mut offset = 0;
        for (at, frame) in layer.frames.iter().enumerate() {
            let bytes = offset..offset + u64::from(frame.packed);
            offset = bytes.end;
            if skipped.contains(&at) {
                continue;
            }
            let is_hot = at < layer.hot;
            let (list, most) = if is_hot { (&mut hot, HOT_FETCH) } else { (&mut cold, COLD_FETCH) };
            add(list, Fetch { layer: number, frames: at..at + 1, bytes, hot: is_hot }, most);
        }
    }
    hot.append(&mut cold);
    hot
}

fn add(list: &mut Vec<Fetch>, fetch: Fetch, most: u64) {
    match list.last_mut() {
        Some(before)
            if before.layer == fetch.layer
                && before.frames.end == fetch.frames.start
                && fetch.bytes.end - before.bytes.start <= most =>
        {
            before.frames.end = fetch.frames.end;
            before.bytes.end = fetch.bytes.end;
        }
        _ => list.push(fetch),
    }
}

/// The frames of long files that are void.
fn skipped(number: usize, layer: &Layer, voids: &Voids<'_>) -> HashSet<usize> {
    let long = layer.long.iter().filter(|long| voids.has(number, &long.path));
    long.flat_map(|long| long.frame..long.frame + long.pieces()).collect()
}

/// Which piece of which long file a frame is.
pub(crate) fn piece(layer: &Layer, frame: usize) -> Option<(usize, usize)> {
    let at = layer.long.partition_point(|long| long.frame <= frame).checked_sub(1)?;
    let index = frame - layer.long[at].frame;
    (index < layer.long[at].pieces()).then_some((at, index))
}

/// How many bytes a piece has.
pub(crate) fn piece_bytes(size: u64, index: usize) -> usize {
    let from = index as u64 * PIECE_BYTES as u64;
    usize::try_from(size.saturating_sub(from)).map_or(PIECE_BYTES, |rest| rest.min(PIECE_BYTES))
}
