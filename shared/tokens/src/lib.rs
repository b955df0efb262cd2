//! Tokens that nothing has to store: a name, a number, and a code over both under a key.
//!
//! ```text
//! PREFIX NUMBER . MAC        MAC = HMAC-SHA256(key, domain \0 name \0 number), in hexadecimal digits
//! ```
//!
//! **Invariants.** A token is good for one purpose, one name and one number; codes are compared in constant time. The
//! newest key signs, and the one before it is good too: a rotation refuses nobody. One token has one text. Neither a key
//! nor a token can be printed by accident.
//!
//! **Must never know**: what is named, who asks, where keys are kept.

pub mod document;

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const MAC_BYTES: usize = 32;

/// The shortest key, in bytes: as long as the code that it makes.
pub const MIN_KEY_BYTES: usize = 32;

/// What a token is for, so that no other token under the same key can be taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// What its text begins with.
    pub prefix: &'static str,
    /// What its code begins with.
    pub domain: &'static str,
}

/// What tokens are signed with. It can't be printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A key, unless it is blank or has less than [`MIN_KEY_BYTES`].
    pub fn new(secret: &str) -> Option<Self> {
        let strong = secret.len() >= MIN_KEY_BYTES && !secret.trim().is_empty();
        Hmac::new_from_slice(secret.as_bytes()).ok().filter(|_| strong).map(Self)
    }

    /// No name has a NUL, so that no two pairs of name and number are the same bytes.
    fn code(&self, purpose: Purpose, name: &str, number: u64) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        code.update(purpose.domain.as_bytes());
        code.update(b"\0");
        code.update(name.as_bytes());
        code.update(b"\0");
        code.update(&number.to_be_bytes());
        code
    }

    /// A key for something else, which tells nothing about this one.
    pub fn derived(&self, domain: &'static str) -> [u8; 32] {
        self.code(Purpose { prefix: "", domain }, "", 0).finalize().into_bytes().into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The newest key, and in a rotation the one before it.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Signs.
    pub newest: Key,
    /// Is good too.
    pub previous: Option<Key>,
}

/// A token as it was presented. Nothing is proved yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The number that it names.
    pub number: u64,
    mac: [u8; MAC_BYTES],
}

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token: those look like `{0}NUMBER.` and 64 hexadecimal digits")]
pub struct NotAToken(&'static str);

impl Keys {
    /// The token of this name and number.
    pub fn sign(&self, purpose: Purpose, name: &str, number: u64) -> Token {
        Token { number, mac: self.newest.code(purpose, name, number).finalize().into_bytes().into() }
    }

    /// Whether the token is of this name. Takes as long whatever is wrong with it.
    pub fn proves(&self, purpose: Purpose, token: &Token, name: &str) -> bool {
        let under = |key: &Key| key.code(purpose, name, token.number).verify_slice(&token.mac).is_ok();
        let (newest, previous) = (under(&self.newest), self.previous.as_ref().is_some_and(under));
        newest | previous
    }
}

impl Token {
    /// Reads one.
    pub fn read(purpose: Purpose, text: &str) -> Result<Self, NotAToken> {
        let wrong = NotAToken(purpose.prefix);
        let (number, mac) = text.strip_prefix(purpose.prefix).and_then(|rest| rest.split_once('.')).ok_or(wrong)?;
        let read: u64 = number.parse().map_err(|_| wrong)?;
        // One token, one text: no signs and no zeros before it.
        if read.to_string() != number {
            return Err(wrong);
        }
        Ok(Self { number: read, mac: unhex(mac).ok_or(wrong)? })
    }

    /// The token itself, for its bearer alone.
    pub fn reveal(&self, purpose: Purpose) -> String {
        format!("{}{}.{}", purpose.prefix, self.number, hex(&self.mac))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, …)", self.number)
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Bytes of lower-case hexadecimal digits, exactly so many.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THIS: Purpose = Purpose { prefix: "ft1.", domain: "a test of tokens 1" };
    const OTHER: Purpose = Purpose { prefix: "ft1.", domain: "another test of tokens 1" };

    fn keys(newest: &str, previous: Option<&str>) -> Keys {
        let key = |text: &str| Key::new(&format!("{text} key that is long enough, surely")).unwrap();
        Keys { newest: key(newest), previous: previous.map(key) }
    }

    #[test]
    fn a_token_is_good_for_one_purpose_one_name_one_number_and_two_keys() {
        let old = keys("an old", None);
        let token = old.sign(THIS, "w", 3);
        assert!(old.proves(THIS, &token, "w"));
        assert!(keys("a new", Some("an old")).proves(THIS, &token, "w"), "in a rotation");
        assert!(!keys("a new", Some("another")).proves(THIS, &token, "w"));
        assert!(!old.proves(OTHER, &token, "w"));
        assert!(!old.proves(THIS, &token, "v"));
        assert!(!old.proves(THIS, &Token { number: 4, ..token.clone() }, "w"));
        assert_eq!(format!("{token:?} {old:?}"), "Token(3, …) Keys { newest: Key(…), previous: None }");
    }

    #[test]
    fn a_weak_key_is_none() {
        assert!(Key::new(&"k".repeat(MIN_KEY_BYTES - 1)).is_none() && Key::new(&" ".repeat(64)).is_none());
        let key = Key::new(&"k".repeat(MIN_KEY_BYTES)).unwrap();
        assert!(key.derived("a") != key.derived("b"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in any::<u64>(), name in "[a-z0-9._~-]{1,40}") {
            let keys = keys("a", None);
            let token = keys.sign(THIS, &name, number);
            prop_assert_eq!(Token::read(THIS, &token.reveal(THIS)), Ok(token));
        }

        #[test]
        fn any_text_is_read_or_refused_and_only_one_text_is_a_token(text in "(ft1\\.)?\\PC{0,90}") {
            if let Ok(token) = Token::read(THIS, &text) {
                prop_assert_eq!(token.reveal(THIS), text);
            }
        }

        #[test]
        fn a_changed_digit_proves_nothing(at in 6_usize..70, digit in "[0-9a-f]") {
            let keys = keys("a", None);
            let mut text = keys.sign(THIS, "w", 3).reveal(THIS);
            prop_assume!(text[at..=at] != digit);
            text.replace_range(at..=at, &digit);
            prop_assert!(!keys.proves(THIS, &Token::read(THIS, &text).unwrap(), "w"));
        }
    }
}
