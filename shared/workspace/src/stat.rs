//! What the filesystem says of a member, and the fingerprint by which a change is seen without reading.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::entry::{Mtime, first16};

/// What is looked at. Everything that moves when content or metadata do, whoever hides what: a writer can set
/// mtime back, but not ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Mtime,
    pub(crate) ctime: Mtime,
}

/// A digest of a [`Stat`].
pub(crate) type Fingerprint = [u8; 16];

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "the fields' widths and signs differ between platforms; their values fit"
)]
impl From<rustix::fs::Stat> for Stat {
    fn from(stat: rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            mtime: Mtime { seconds: stat.st_mtime as i64, nanos: stat.st_mtime_nsec as u32 },
            ctime: Mtime { seconds: stat.st_ctime as i64, nanos: stat.st_ctime_nsec as u32 },
        }
    }
}

impl Stat {
    pub(crate) fn of(fd: impl AsFd) -> rustix::io::Result<Self> {
        rustix::fs::fstat(fd).map(Self::from)
    }

    /// Of what has this name in a directory, itself and not what it points to.
    pub(crate) fn at(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<Self> {
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(Self::from)
    }

    pub(crate) fn file_type(&self) -> FileType {
        #[allow(
            clippy::unnecessary_fallible_conversions,
            clippy::useless_conversion,
            reason = "16 bits on some platforms"
        )]
        FileType::from_raw_mode(self.mode.try_into().unwrap_or_default())
    }

    /// The permission bits.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut bytes = [0_u8; 72];
        let words = [
            self.device,
            self.inode,
            u64::from(self.mode) << 32 | u64::from(self.uid),
            u64::from(self.gid) << 32 | u64::from(self.mtime.nanos),
            self.links,
            self.size,
            self.mtime.seconds.cast_unsigned(),
            self.ctime.seconds.cast_unsigned(),
            u64::from(self.ctime.nanos),
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        first16(blake3::hash(&bytes).as_bytes())
    }

    /// Of size, mtime and mode alone: where these differ, no reading is needed to know that the member does.
    pub(crate) fn quick(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.size.to_le_bytes());
        hasher.update(&self.mtime.seconds.to_le_bytes());
        hasher.update(&self.mtime.nanos.to_le_bytes());
        hasher.update(&self.mode.to_le_bytes());
        let mut word = [0; 8];
        word.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(word)
    }
}

/// The filesystem's own time, by which its files' ctimes are judged: no other clock is sure to agree with it.
pub(crate) fn filesystem_now(directory: impl AsFd, spare: impl AsFd) -> rustix::io::Result<Mtime> {
    let mode = Mode::RUSR | Mode::WUSR;
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::openat(&directory, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        return Stat::of(file).map(|stat| stat.ctime);
    }
    _ = directory;
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(spare, "clock", flags, mode)?;
    rustix::io::write(&file, b".")?;
    Stat::of(file).map(|stat| stat.ctime)
}

/// Whether something could have changed after it was looked at, at `seen`, without its ctime showing it.
///
/// A ctime moves in the filesystem's steps: a few milliseconds, or whole seconds where no nanoseconds are kept.
pub(crate) fn is_racy(ctime: Mtime, seen: Mtime) -> bool {
    let step: i128 = if ctime.nanos.is_multiple_of(1_000_000) { 2_000_000_000 } else { 20_000_000 };
    let nanos = |time: Mtime| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    nanos(ctime) + step >= nanos(seen)
}
