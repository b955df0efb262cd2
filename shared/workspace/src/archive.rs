//! The tar form of a member: written one way only, and read only when it is written that way.
//!
//! Ustar headers, preceded by a PAX header where ustar can't say it (nanoseconds, long paths and links, sizes
//! from 8 GiB, extended attributes).
//!
//! **Why the reader writes.** Archives that two readers understand differently are the root of a whole class of
//! attacks: a PAX size against a ustar size, doubled records, leading zeros, numbers in base 256. The reader here
//! takes the fields, writes the header that they would have, and refuses the archive if that is not byte for byte what
//! it read. So there is one reading, and it is the writer's.

mod pax;
mod read;
mod write;

pub use read::{Reader, Refused};
pub use write::{Unwritable, header, trailer};

/// Tar's unit.
pub const BLOCK: usize = 512;

/// How many zeros follow content of this length.
pub fn padding(size: u64) -> usize {
    let block = BLOCK as u64;
    usize::try_from((block - size % block) % block).unwrap_or(0)
}

const PAX_NAME: &[u8] = b"././@PaxHeader";
/// The largest size that a ustar header says, and one more.
const USTAR_SIZES: u64 = 1 << 33;
/// The largest number of an owner that a ustar header says, and one more.
const USTAR_IDS: u32 = 1 << 21;
/// The largest time that a ustar header says, and one more.
const USTAR_TIMES: i64 = 1 << 33;
const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const UID: std::ops::Range<usize> = 108..116;
const GID: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const TIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const USTAR: &[u8; 8] = b"ustar\x0000";

fn checksum(block: &[u8; BLOCK]) -> u32 {
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    let own: u32 = block[CHECKSUM].iter().map(|byte| u32::from(*byte)).sum();
    sum - own + 8 * u32::from(b' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        entry::{Entry, Kind, Mtime},
        member::Member,
    };

    prop_compose! {
        fn entries()(
            names in proptest::collection::vec(proptest::collection::vec(1_u8.., 1..80), 1..8),
            kind in prop_oneof![Just(Kind::File), Just(Kind::Directory), Just(Kind::Symlink), Just(Kind::HardLink), Just(Kind::Whiteout)],
            mode in 0_u32..0o10000,
            ids in any::<(u32, u32)>(),
            seconds in any::<i64>(),
            nanos in 0_u32..1_000_000_000,
            size in prop_oneof![0_u64..10_000, any::<u64>().prop_map(|size| size >> 1)],
            target in proptest::collection::vec(1_u8.., 1..200),
            xattrs in proptest::collection::btree_map("user\\.[a-z]{1,9}", proptest::collection::vec(any::<u8>(), 0..40), 0..3),
        ) -> Option<Entry> {
            let path = names.join(&b'/');
            let target = match kind {
                Kind::Symlink => target,
                Kind::HardLink => b"root/target".to_vec(),
                _ => Vec::new(),
            };
            let whiteout = kind == Kind::Whiteout;
            Some(Entry {
                path: Member::new(&path).ok()?,
                kind,
                mode: if whiteout { 0 } else { mode },
                uid: if whiteout { 0 } else { ids.0 },
                gid: if whiteout { 0 } else { ids.1 },
                mtime: if whiteout { Mtime::default() } else { Mtime { seconds, nanos } },
                size: if kind == Kind::File { size } else { 0 },
                target,
                xattrs: if matches!(kind, Kind::File | Kind::Directory) {
                    xattrs.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect()
                } else {
                    Vec::new()
                },
            })
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entry in entries().prop_filter_map("no member's path", |entry| entry)) {
            let mut raw = Vec::new();
            header(&entry, &mut raw).unwrap();
            prop_assert_eq!(raw.len() % BLOCK, 0);
            let mut reader = Reader::new(&raw);
            prop_assert_eq!(reader.header().unwrap(), Some(entry));
            prop_assert_eq!(reader.header().unwrap(), None);
        }

        #[test]
        fn one_flipped_bit_is_refused_or_changes_what_is_read(
            entry in entries().prop_filter_map("no member's path", |entry| entry),
            at in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let mut raw = Vec::new();
            header(&entry, &mut raw).unwrap();
            let at = at.index(raw.len());
            raw[at] ^= 1_u8 << bit;
            match Reader::new(&raw).header() {
                Err(_) => {}
                Ok(read) => prop_assert_ne!(read, Some(entry)),
            }
        }
    }
}
