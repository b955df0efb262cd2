//! Paths of a snapshot's members, as bytes; and how they are written in JSON.

use std::{cmp::Ordering, fmt, fmt::Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{MAX_DEPTH, MAX_NAME_BYTES, MAX_PATH_BYTES};

/// A member's path: its root's name, then the components below that root, joined by `/`.
///
/// Bytes, as the filesystem has them. Text form (JSON, messages): UTF-8 as it is, a backslash doubled, any
/// control character and any byte that is not UTF-8 as `\xNN`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Member(Box<[u8]>);

/// Why some bytes are no member's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMember {
    /// Nothing.
    #[error("the path is empty")]
    Empty,
    /// Longer than [`MAX_PATH_BYTES`].
    #[error("the path has more than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_DEPTH`] components.
    #[error("the path has more than {MAX_DEPTH} components")]
    TooDeep,
    /// A component longer than [`MAX_NAME_BYTES`].
    #[error("a component of the path has more than {MAX_NAME_BYTES} bytes")]
    LongName,
    /// An empty, `.` or `..` component, also by a leading or trailing slash.
    #[error("a component of the path is empty, `.` or `..`")]
    NotPlain,
    /// A NUL byte.
    #[error("the path has a NUL byte")]
    Nul,
    /// The text has a `\` that begins no escape.
    #[error("the path has a backslash that begins no escape")]
    Escape,
}

impl Member {
    /// From the bytes of a path.
    pub fn new(bytes: &[u8]) -> Result<Self, BadMember> {
        check(bytes)?;
        Ok(Self(bytes.into()))
    }

    /// From the text form.
    pub fn parse(text: &str) -> Result<Self, BadMember> {
        Self::new(&unescape(text)?)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The directory that it is in, and its name there. A root has no directory.
    pub fn split(&self) -> (Option<&[u8]>, &[u8]) {
        split(&self.0)
    }

    /// Whether `self` is `above`, or lies below it.
    pub fn is_within(&self, above: &[u8]) -> bool {
        self.0.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }
}

/// The directory part of a path, and the name in it.
pub(crate) fn split(path: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
        None => (None, path),
    }
}

pub(crate) fn check(bytes: &[u8]) -> Result<(), BadMember> {
    if bytes.is_empty() {
        return Err(BadMember::Empty);
    }
    if bytes.len() > MAX_PATH_BYTES {
        return Err(BadMember::TooLong);
    }
    if bytes.contains(&0) {
        return Err(BadMember::Nul);
    }
    let mut depth = 0;
    for name in bytes.split(|byte| *byte == b'/') {
        depth += 1;
        match name {
            b"" | b"." | b".." => return Err(BadMember::NotPlain),
            name if name.len() > MAX_NAME_BYTES => return Err(BadMember::LongName),
            _ => {}
        }
    }
    if depth > MAX_DEPTH { Err(BadMember::TooDeep) } else { Ok(()) }
}

/// A tree's own order: a directory before what is in it, and all of that before its next sibling.
pub(crate) fn tree_order(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    let rank = |path: &[u8], at: usize| path.get(at).map(|byte| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 });
    match common {
        Some(at) => rank(a, at).cmp(&rank(b, at)),
        None => a.len().cmp(&b.len()),
    }
}

/// The text form of bytes.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                control if control.is_ascii_control() => _ = write!(text, "\\x{:02x}", u32::from(control)),
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes of a text form.
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, BadMember> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match rest {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.push(digits.ok_or(BadMember::Escape)?);
                rest = after;
            }
            _ => return Err(BadMember::Escape),
        }
    }
    Ok(bytes)
}

impl PartialOrd for Member {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Member {
    fn cmp(&self, other: &Self) -> Ordering {
        tree_order(&self.0, &other.0)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({self})")
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_would_leave_the_root_is_no_member() {
        let cases: [(&[u8], BadMember); 9] = [
            (b"", BadMember::Empty),
            (b"/etc/passwd", BadMember::NotPlain),
            (b"a/../b", BadMember::NotPlain),
            (b"a/./b", BadMember::NotPlain),
            (b"a//b", BadMember::NotPlain),
            (b"a/", BadMember::NotPlain),
            (b"..", BadMember::NotPlain),
            (b".", BadMember::NotPlain),
            (b"a\0b", BadMember::Nul),
        ];
        for (bytes, why) in cases {
            assert_eq!(Member::new(bytes), Err(why), "{}", escape(bytes));
        }
        assert_eq!(Member::new(&[b'a'; 256]), Err(BadMember::LongName));
        assert_eq!(Member::new(&b"a/".repeat(2048)[..4097 - 2]), Err(BadMember::TooDeep));
        assert_eq!(Member::new(&vec![b'a'; 4097]), Err(BadMember::TooLong));
    }

    #[test]
    fn a_directory_comes_before_what_is_in_it_and_that_before_its_next_sibling() {
        let mut paths: Vec<&[u8]> = vec![b"a.b", b"a", b"a/z", b"a b", b"a/b/c", b"a/b", b"\x01"];
        paths.sort_by(|a, b| tree_order(a, b));
        assert_eq!(paths, [b"\x01".as_slice(), b"a", b"a/b", b"a/b/c", b"a/z", b"a b", b"a.b"]);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_from_their_text(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(unescape(&escape(&bytes)), Ok(bytes));
        }
    }
}
