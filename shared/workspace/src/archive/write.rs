//! Headers, the one way they are written.

use super::{
    BLOCK, CHECKSUM, GID, LINK, MAGIC, MODE, NAME, PAX_NAME, SIZE, TIME, TYPE, UID, USTAR, USTAR_IDS, USTAR_SIZES,
    USTAR_TIMES, checksum, padding, pax,
};
use crate::{
    entry::{Entry, Kind},
    limits::{MAX_LINK_BYTES, MAX_PAX_BYTES, MAX_XATTR_BYTES},
};

/// Why a member can't be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// Its link's target is empty, has a NUL byte, or is longer than [`MAX_LINK_BYTES`].
    #[error("its target is empty, has a NUL byte or more than {MAX_LINK_BYTES} bytes")]
    Target,
    /// Its extended attributes have more than [`MAX_XATTR_BYTES`] in all, or a name that tar can't say.
    #[error("its extended attributes have more than {MAX_XATTR_BYTES} bytes, or a name with `=` or NUL")]
    Xattrs,
}

/// Appends the header of a member, PAX header included, to `out`.
pub fn header(entry: &Entry, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    check(entry)?;
    let path = tar_path(entry);
    let records = records(entry, &path);
    if !records.is_empty() {
        let name = Field { name: PAX_NAME, link: b"", mode: 0o644, uid: 0, gid: 0, time: 0 };
        block(&name, records.len() as u64, b'x', out);
        out.extend_from_slice(&records);
        out.resize(out.len() + padding(records.len() as u64), 0);
    }
    let type_flag = match entry.kind {
        Kind::File | Kind::Whiteout => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::Directory => b'5',
    };
    let field = Field {
        name: &path,
        link: &entry.target,
        mode: entry.mode,
        uid: fits(entry.uid),
        gid: fits(entry.gid),
        time: if (0..USTAR_TIMES).contains(&entry.mtime.seconds) { entry.mtime.seconds.unsigned_abs() } else { 0 },
    };
    block(&field, if entry.size < USTAR_SIZES { entry.size } else { 0 }, type_flag, out);
    Ok(())
}

/// What ends an archive.
pub fn trailer(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * BLOCK, 0);
}

fn check(entry: &Entry) -> Result<(), Unwritable> {
    let linked = matches!(entry.kind, Kind::Symlink | Kind::HardLink);
    if linked && (entry.target.is_empty() || entry.target.len() > MAX_LINK_BYTES || entry.target.contains(&0)) {
        return Err(Unwritable::Target);
    }
    let bytes: usize = entry.xattrs.iter().map(|(name, value)| name.len() + value.len()).sum();
    let odd = entry.xattrs.iter().any(|(name, _)| name.contains(&b'=') || name.contains(&0));
    if odd || bytes > MAX_XATTR_BYTES { Err(Unwritable::Xattrs) } else { Ok(()) }
}

/// A directory's path ends in a slash; a whiteout's name begins with `.wh.`.
fn tar_path(entry: &Entry) -> Vec<u8> {
    let path = entry.path.bytes();
    match entry.kind {
        Kind::Directory => [path, b"/"].concat(),
        Kind::Whiteout => match entry.path.split() {
            (Some(directory), name) => [directory, b"/.wh.", name].concat(),
            (None, name) => [b".wh.", name].concat(),
        },
        _ => path.to_vec(),
    }
}

fn records(entry: &Entry, path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let long_path = path.len() > NAME.len();
    let long_link = entry.target.len() > LINK.len();
    let binary = |long: bool, bytes: &[u8]| long && std::str::from_utf8(bytes).is_err();
    if binary(long_path, path) || binary(long_link, &entry.target) {
        pax::record(b"hdrcharset", b"BINARY", &mut out);
    }
    if entry.kind == Kind::Whiteout {
        pax::record(b"comment", b"whiteout", &mut out);
    }
    if long_path {
        pax::record(b"path", path, &mut out);
    }
    if long_link {
        pax::record(b"linkpath", &entry.target, &mut out);
    }
    if entry.size >= USTAR_SIZES {
        pax::record(b"size", entry.size.to_string().as_bytes(), &mut out);
    }
    for (key, id) in [(b"uid", entry.uid), (b"gid", entry.gid)] {
        if id >= USTAR_IDS {
            pax::record(key, id.to_string().as_bytes(), &mut out);
        }
    }
    if entry.mtime.nanos != 0 || !(0..USTAR_TIMES).contains(&entry.mtime.seconds) {
        pax::record(b"mtime", pax::time(entry.mtime).as_bytes(), &mut out);
    }
    for (name, value) in &entry.xattrs {
        pax::record(&[b"SCHILY.xattr.", name.as_slice()].concat(), value, &mut out);
    }
    debug_assert!(out.len() <= MAX_PAX_BYTES);
    out
}

fn fits(id: u32) -> u32 {
    if id < USTAR_IDS { id } else { 0 }
}

struct Field<'a> {
    name: &'a [u8],
    link: &'a [u8],
    mode: u32,
    uid: u32,
    gid: u32,
    time: u64,
}

fn block(field: &Field<'_>, size: u64, type_flag: u8, out: &mut Vec<u8>) {
    let mut block = [0_u8; BLOCK];
    text(&mut block[NAME], field.name);
    octal(&mut block[MODE], u64::from(field.mode));
    octal(&mut block[UID], u64::from(field.uid));
    octal(&mut block[GID], u64::from(field.gid));
    octal(&mut block[SIZE], size);
    octal(&mut block[TIME], field.time);
    block[TYPE] = type_flag;
    text(&mut block[LINK], field.link);
    block[MAGIC].copy_from_slice(USTAR);
    let sum = checksum(&block);
    octal(&mut block[CHECKSUM.start..CHECKSUM.end - 1], u64::from(sum));
    block[CHECKSUM.end - 1] = b' ';
    out.extend_from_slice(&block);
}

fn text(field: &mut [u8], value: &[u8]) {
    let length = value.len().min(field.len());
    field[..length].copy_from_slice(&value[..length]);
}

/// Octal digits with leading zeros, and a NUL.
fn octal(field: &mut [u8], mut value: u64) {
    let end = field.len() - 1;
    for digit in field[..end].iter_mut().rev() {
        *digit = b'0' + (value & 7) as u8;
        value >>= 3;
    }
}
