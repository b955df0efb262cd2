//! Names of workspaces, and the keys of their objects.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a workspace: 1 to 128 of `A-Z a-z 0-9 . _ ~ -`, and neither `.` nor `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A text is no name of a workspace, or no key of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// No name.
    #[error("`{0}` is no workspace's name: 1 to 128 of A-Z a-z 0-9 . _ ~ - are one")]
    Name(String),
    /// No key.
    #[error("`{0}` is no key of a workspace's object")]
    Key(String),
}

impl Name {
    /// From a text.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        if (1..=128).contains(&text.len()) && text.bytes().all(plain) && text != "." && text != ".." {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadKey::Name(text.to_owned()))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What all keys of this workspace begin with.
    pub fn prefix(&self) -> String {
        format!("{WORKSPACES}/{}/", self.0)
    }

    /// The key of the text that says how it is restored without Furlough.
    pub fn restore_key(&self) -> String {
        format!("{}RESTORE.txt", self.prefix())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        Self::new(text)
    }
}

const WORKSPACES: &str = "workspaces";

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A manifest.
    Manifest,
    /// A layer.
    Layer,
}

/// The key of an immutable object: of one workspace, written under one token, never written twice.
///
/// `workspaces/<name>/layers/<generation>-<token>-<nonce>.tar.zst`, or `manifests/….json`. The numbers have leading zeros,
/// so that a listing is in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Whose.
    pub workspace: Name,
    /// What.
    pub sort: Sort,
    /// The generation that it was made for.
    pub generation: u64,
    /// The token of the lease that it was made under.
    pub token: u64,
    /// What tells two tries of one push apart.
    pub nonce: u64,
}

impl Sort {
    const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Manifest => ("manifests", ".json"),
            Self::Layer => ("layers", ".tar.zst"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, ending) = self.sort.parts();
        let Self { workspace, generation, token, nonce, .. } = self;
        write!(f, "{WORKSPACES}/{workspace}/{folder}/{generation:08}-{token:014}-{nonce:016x}{ending}")
    }
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let parsed = || {
            let mut parts = text.split('/');
            if parts.next()? != WORKSPACES {
                return None;
            }
            let workspace = Name::new(parts.next()?).ok()?;
            let folder = parts.next()?;
            let sort = [Sort::Manifest, Sort::Layer].into_iter().find(|sort| sort.parts().0 == folder)?;
            let mut numbers = parts.next()?.strip_suffix(sort.parts().1)?.split('-');
            let generation = numbers.next()?.parse().ok()?;
            let token = numbers.next()?.parse().ok()?;
            let nonce = u64::from_str_radix(numbers.next()?, 16).ok()?;
            Some(Self { workspace, sort, generation, token, nonce })
        };
        // One text for one key: what would be written otherwise is none.
        parsed().filter(|key| key.to_string() == text).ok_or_else(|| BadKey::Key(text.to_owned()))
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(Name);
as_text!(Key);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_text_and_its_order_is_the_order_of_generations() {
        let key = |generation| Key {
            workspace: Name::new("w.1").unwrap(),
            sort: Sort::Layer,
            generation,
            token: 1_764_500_000_123,
            nonce: 0xab,
        };
        assert_eq!(key(7).to_string(), "workspaces/w.1/layers/00000007-01764500000123-00000000000000ab.tar.zst");
        assert_eq!(key(7).to_string().parse(), Ok(key(7)));
        assert!(key(9).to_string() < key(10).to_string());
        for bad in [
            "workspaces/w.1/layers/7-01764500000123-00000000000000ab.tar.zst",
            "workspaces/../layers/00000007-01764500000123-00000000000000ab.tar.zst",
            "workspaces/w.1/layers/00000007-01764500000123-00000000000000AB.tar.zst",
            "workspaces/w.1/manifests/00000007-01764500000123-00000000000000ab.tar.zst",
            "workspaces/w.1/layers/00000007-01764500000123-00000000000000ab.tar.zst/x",
        ] {
            assert_eq!(bad.parse::<Key>(), Err(BadKey::Key(bad.to_owned())));
        }
    }
}
