//! A runtime's token: proof of which registration its bearer belongs to, good for that runtime's heartbeats alone.
//!
//! `fr1.EPOCH.MAC`, where MAC is HMAC-SHA256, in hex, over the runtime's name and the epoch. Nothing is stored: whoever
//! has the key can check it. A later registration supersedes it, and so does a rotated key.

use std::{fmt, str::FromStr};

use lifecycle::{RuntimeId, record::Epoch};
use tokens::{Keys, Purpose};

/// What the code is for, so that no other code under the same key can be taken for one.
const PURPOSE: Purpose = Purpose { prefix: "fr1.", domain: "furlough runtime token 1" };

/// A token as it was presented. Nothing is proved yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(tokens::Token);

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a runtime's token: those look like `fr1.EPOCH.` and 64 hexadecimal digits")]
pub struct NotAToken;

impl Token {
    /// The token of this registration.
    pub fn new(keys: &Keys, id: &RuntimeId, epoch: Epoch) -> Self {
        Self(keys.sign(PURPOSE, &id.to_string(), epoch))
    }

    /// The registration that it names.
    pub const fn epoch(&self) -> Epoch {
        self.0.number
    }

    /// Whether it is this runtime's. Takes as long whatever is wrong with it.
    pub fn proves(&self, keys: &Keys, id: &RuntimeId) -> bool {
        keys.proves(PURPOSE, &self.0, &id.to_string())
    }

    /// The token itself, for its runtime alone.
    pub fn reveal(&self) -> String {
        self.0.reveal(PURPOSE)
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        tokens::Token::read(PURPOSE, text).map(Self).map_err(|_| NotAToken)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(epoch {}, …)", self.epoch())
    }
}

#[cfg(test)]
mod tests {
    use tokens::Key;

    use super::*;

    fn keys(text: &str) -> Keys {
        Keys { newest: Key::new(text).unwrap(), previous: None }
    }

    fn id(text: &str) -> RuntimeId {
        text.parse().unwrap()
    }

    #[test]
    fn it_is_the_published_code_over_the_published_bytes() {
        // From another implementation of RFC 2104 (Python's hmac), over the bytes that the module's text names.
        let token = Token::new(&keys("0123456789abcdef0123456789abcdef"), &id("docker/abc"), 7);
        let known = include_str!("../tests/token.txt").trim();
        assert_eq!(token.reveal(), known);
        assert_eq!(known.parse(), Ok(token));
    }

    #[test]
    fn it_is_good_for_one_runtime_and_one_key() {
        let (this, other) = (keys("a key that is long enough, surely"), keys("another key that is long enough, too"));
        let token = Token::new(&this, &id("docker/a"), 3);
        assert!(token.proves(&this, &id("docker/a")));
        assert!(!token.proves(&this, &id("docker/b")));
        assert!(!token.proves(&this, &id("docke/ra")));
        assert!(!token.proves(&other, &id("docker/a")));
    }

    #[test]
    fn it_can_t_be_printed_by_accident() {
        let token = Token::new(&keys("a key that is long enough, surely"), &id("docker/a"), 3);
        assert_eq!(format!("{token:?}"), "Token(epoch 3, …)");
    }
}
