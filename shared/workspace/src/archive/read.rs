//! Reading headers back: fields, then the proof that the writer would have written them so.

use super::{BLOCK, CHECKSUM, GID, LINK, MODE, NAME, SIZE, TIME, TYPE, UID, checksum, padding, pax, write};
use crate::{
    entry::{Entry, Kind, Mtime},
    limits::MAX_PAX_BYTES,
    member::{BadMember, Member},
};

/// Why an archive is not read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It ends in the middle of a member.
    #[error("it ends in the middle of a member")]
    Short,
    /// A header's checksum does not match it.
    #[error("a header's checksum does not match")]
    Checksum,
    /// A device, a FIFO, a global header, or another type that push never writes.
    #[error("a member has the type `{}`", char::from(*.0).escape_default())]
    Type(u8),
    /// A field says something, but not in the form that push writes.
    #[error("a header is not in the one form that push writes")]
    Form,
    /// An extension header with more than [`MAX_PAX_BYTES`].
    #[error("an extension header has more than {MAX_PAX_BYTES} bytes")]
    LongExtension,
    /// A path that leads out of the root, or is none.
    #[error("a member's path is refused")]
    Path(#[from] BadMember),
    /// The archive's end is not there, or something follows it.
    #[error("the archive's end is missing, or something follows it")]
    End,
}

/// Reads the members of a frame, one after another.
#[derive(Debug)]
pub struct Reader<'a> {
    raw: &'a [u8],
    at: usize,
    again: Vec<u8>,
}

#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u32>,
    gid: Option<u32>,
    mtime: Option<Mtime>,
    whiteout: bool,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<'a> Reader<'a> {
    /// Over what a frame unpacked to.
    pub fn new(raw: &'a [u8]) -> Self {
        Self { raw, at: 0, again: Vec::new() }
    }

    /// The next member; none at the end of the frame.
    pub fn header(&mut self) -> Result<Option<Entry>, Refused> {
        if self.at == self.raw.len() {
            return Ok(None);
        }
        let start = self.at;
        let mut block = self.block()?;
        let mut extended = Extended::default();
        if block[TYPE] == b'x' {
            extended = self.extension(block)?;
            block = self.block()?;
        }
        let entry = entry(block, extended)?;
        self.again.clear();
        write::header(&entry, &mut self.again).map_err(|_| Refused::Form)?;
        if self.again == self.raw[start..self.at] { Ok(Some(entry)) } else { Err(Refused::Form) }
    }

    /// The content that follows the header just read, all of it, and its padding.
    pub fn content(&mut self, size: u64) -> Result<&'a [u8], Refused> {
        let size = usize::try_from(size).map_err(|_| Refused::Short)?;
        let content = self.take(size)?;
        self.zeros(padding(size as u64))?;
        Ok(content)
    }

    /// What is left of the frame.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.raw[self.at..];
        self.at = self.raw.len();
        rest
    }

    /// Whether the archive's end is what comes next, and nothing follows it.
    pub fn is_end(&self) -> bool {
        self.raw.len() - self.at == 2 * BLOCK && self.raw[self.at..].iter().all(|byte| *byte == 0)
    }

    fn zeros(&mut self, count: usize) -> Result<(), Refused> {
        if self.take(count)?.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(Refused::Form) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Refused> {
        let end = self.at.checked_add(count).ok_or(Refused::Short)?;
        let taken = self.raw.get(self.at..end).ok_or(Refused::Short)?;
        self.at = end;
        Ok(taken)
    }

    fn block(&mut self) -> Result<&'a [u8; BLOCK], Refused> {
        let block: &[u8; BLOCK] = self.take(BLOCK)?.try_into().map_err(|_| Refused::Short)?;
        if octal(&block[CHECKSUM.start..CHECKSUM.end - 1])? == u64::from(checksum(block)) {
            Ok(block)
        } else {
            Err(Refused::Checksum)
        }
    }

    fn extension(&mut self, block: &[u8; BLOCK]) -> Result<Extended, Refused> {
        let size = octal(&block[SIZE])?;
        if size > MAX_PAX_BYTES as u64 {
            return Err(Refused::LongExtension);
        }
        let mut records = self.content(size)?;
        let mut extended = Extended::default();
        while !records.is_empty() {
            let (key, value, rest) = pax::split(records).ok_or(Refused::Form)?;
            records = rest;
            extended.set(key, value)?;
        }
        Ok(extended)
    }
}

impl Extended {
    /// Doubled and unknown records are seen when the header is written again.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let text = || std::str::from_utf8(value).map_err(|_| Refused::Form);
        match key {
            b"hdrcharset" => {}
            b"comment" => self.whiteout = true,
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(text()?.parse().map_err(|_| Refused::Form)?),
            b"uid" => self.uid = Some(text()?.parse().map_err(|_| Refused::Form)?),
            b"gid" => self.gid = Some(text()?.parse().map_err(|_| Refused::Form)?),
            b"mtime" => self.mtime = Some(pax::parse_time(text()?).ok_or(Refused::Form)?),
            _ => {
                let name = key.strip_prefix(b"SCHILY.xattr.").ok_or(Refused::Form)?;
                self.xattrs.push((name.to_vec(), value.to_vec()));
            }
        }
        Ok(())
    }
}

fn entry(block: &[u8; BLOCK], extended: Extended) -> Result<Entry, Refused> {
    let kind = match block[TYPE] {
        b'0' if extended.whiteout => Kind::Whiteout,
        b'0' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::Symlink,
        b'5' => Kind::Directory,
        other => return Err(Refused::Type(other)),
    };
    let path = extended.path.unwrap_or_else(|| text(&block[NAME]).to_vec());
    let size = extended.size.map_or_else(|| octal(&block[SIZE]), Ok)?;
    if kind != Kind::File && size != 0 {
        return Err(Refused::Form);
    }
    let seconds = i64::try_from(octal(&block[TIME])?).map_err(|_| Refused::Form)?;
    let id = |extended: Option<u32>, field: &[u8]| match extended {
        Some(id) => Ok(id),
        None => u32::try_from(octal(field)?).map_err(|_| Refused::Form),
    };
    let target = extended.link.unwrap_or_else(|| text(&block[LINK]).to_vec());
    if kind == Kind::HardLink {
        Member::new(&target)?;
    }
    Ok(Entry {
        path: member(kind, &path)?,
        kind,
        mode: u32::try_from(octal(&block[MODE])?).ok().filter(|mode| *mode <= 0o7777).ok_or(Refused::Form)?,
        uid: id(extended.uid, &block[UID])?,
        gid: id(extended.gid, &block[GID])?,
        mtime: extended.mtime.unwrap_or(Mtime { seconds, nanos: 0 }),
        size,
        target,
        xattrs: extended.xattrs,
    })
}

fn member(kind: Kind, path: &[u8]) -> Result<Member, Refused> {
    match kind {
        Kind::Directory => Ok(Member::new(path.strip_suffix(b"/").ok_or(Refused::Form)?)?),
        Kind::Whiteout => {
            let (directory, name) = crate::member::split(path);
            let name = name.strip_prefix(b".wh.").ok_or(Refused::Form)?;
            let path = directory.map_or_else(|| name.to_vec(), |directory| [directory, b"/", name].concat());
            Ok(Member::new(&path)?)
        }
        _ => Ok(Member::new(path)?),
    }
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

fn octal(field: &[u8]) -> Result<u64, Refused> {
    let digits = field.strip_suffix(&[0]).ok_or(Refused::Form)?;
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => Ok(value << 3 | u64::from(digit - b'0')),
        _ => Err(Refused::Form),
    })
}
