//! What every document of keys has: keys in a rotation, and digests of what hosts send.
//!
//! The first key signs, both are good: a rotation puts a new one before the old, and drops the old one when nothing is
//! under it any more. One key may stand without its list, as a generator of secrets writes it. Of a host's token only
//! the digest is kept. What is wrong is said without any value.

use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{Key, Keys, MIN_KEY_BYTES, hex, unhex};

/// The most hosts.
pub const MAX_HOSTS: usize = 1_000;

/// One key, or a list of them.
pub struct Written(Vec<String>);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMore {
            One(String),
            More(Vec<String>),
        }
        Ok(match OneOrMore::deserialize(deserializer)? {
            OneOrMore::One(key) => Self(vec![key]),
            OneOrMore::More(keys) => Self(keys),
        })
    }
}

impl Written {
    /// The keys, which stand in the document under `name`.
    pub fn keys(self, name: &str) -> Result<Keys, String> {
        let mut keys = self.0.into_iter().map(|text| key(name, text));
        match (keys.next(), keys.next(), keys.next()) {
            (Some(newest), previous, None) => Ok(Keys { newest: newest?, previous: previous.transpose()? }),
            (None, ..) => Err(format!("`{name}` is empty; it needs one key, or two in a rotation")),
            _ => Err(format!("`{name}` has more than two keys: the newest and the one before")),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is consumed: nothing keeps the text of a key")]
fn key(name: &str, text: String) -> Result<Key, String> {
    Key::new(&text).ok_or_else(|| {
        format!("a key of `{name}` is blank or has less than {MIN_KEY_BYTES} bytes: it has {}", text.len())
    })
}

/// The digest of a host's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// As the entry of host number `at` has it.
    pub fn read(at: usize, text: &str) -> Result<Self, String> {
        let digest = unhex(text).map(Self);
        let digest =
            digest.ok_or_else(|| format!("`token_sha256` of host {at} is not 64 lower-case hexadecimal digits"))?;
        // The digest of nothing would let everybody in.
        if digest == Self::of("") {
            return Err(format!("`token_sha256` of host {at} is the digest of an empty token"));
        }
        Ok(digest)
    }

    /// Whether it is that of another one's token. Takes as long whatever differs.
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Checks how many hosts there are.
pub fn check_hosts(hosts: usize) -> Result<(), String> {
    if hosts > MAX_HOSTS { Err(format!("there are {hosts} hosts; at most {MAX_HOSTS} are allowed")) } else { Ok(()) }
}
