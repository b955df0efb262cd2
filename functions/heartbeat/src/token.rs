//! A runtime's token: proof of which registration its bearer belongs to, good for that runtime's heartbeats alone.
//!
//! `fr1.EPOCH.MAC`, where MAC is HMAC-SHA256, in hex, over the runtime's name and the epoch. Nothing is stored: whoever
//! has the key can check it. A later registration supersedes it, and so does a rotated key.

use std::{fmt, str::FromStr};

use hmac::{Hmac, KeyInit, Mac};
use lifecycle::{RuntimeId, record::Epoch};
use sha2::Sha256;

const PREFIX: &str = "fr1.";

/// What the code is for, so that no other code under the same key can be taken for one.
const DOMAIN: &[u8] = b"furlough runtime token 1\0";

const MAC_BYTES: usize = 32;

/// The shortest key, in bytes: as long as the code that it makes.
pub const MIN_KEY_BYTES: usize = 32;

/// What tokens are signed with. It can't be printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A key, unless it is blank or has less than [`MIN_KEY_BYTES`].
    pub fn new(secret: &str) -> Option<Self> {
        let strong = secret.len() >= MIN_KEY_BYTES && !secret.trim().is_empty();
        Hmac::new_from_slice(secret.as_bytes()).ok().filter(|_| strong).map(Self)
    }

    /// A runtime's name has no NUL, so that no two pairs of name and epoch are the same bytes.
    fn code(&self, id: &RuntimeId, epoch: Epoch) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        code.update(DOMAIN);
        code.update(id.to_string().as_bytes());
        code.update(b"\0");
        code.update(&epoch.to_be_bytes());
        code
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A token as it was presented. Nothing is proved yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The registration that it names.
    pub epoch: Epoch,
    mac: [u8; MAC_BYTES],
}

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a runtime's token: those look like `fr1.EPOCH.` and 64 hexadecimal digits")]
pub struct NotAToken;

impl Token {
    /// The token of this registration under `key`.
    pub fn new(key: &Key, id: &RuntimeId, epoch: Epoch) -> Self {
        Self { epoch, mac: key.code(id, epoch).finalize().into_bytes().into() }
    }

    /// Whether it is this runtime's under `key`. Takes as long whatever is wrong with it.
    pub fn proves(&self, key: &Key, id: &RuntimeId) -> bool {
        key.code(id, self.epoch).verify_slice(&self.mac).is_ok()
    }

    /// The token itself, for its runtime alone.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}.{}", self.epoch, hex(&self.mac))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Bytes of lower-case hexadecimal digits, exactly so many.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (epoch, mac) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(NotAToken)?;
        let number: Epoch = epoch.parse().map_err(|_| NotAToken)?;
        // One token, one text: no signs and no zeros before it.
        if number.to_string() != epoch {
            return Err(NotAToken);
        }
        Ok(Self { epoch: number, mac: unhex(mac).ok_or(NotAToken)? })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(epoch {}, …)", self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn id(text: &str) -> RuntimeId {
        text.parse().unwrap()
    }

    #[test]
    fn it_is_the_published_code_over_the_published_bytes() {
        // From another implementation of RFC 2104 (Python's hmac), over the bytes that the module's text names.
        let token = Token::new(&key("0123456789abcdef0123456789abcdef"), &id("docker/abc"), 7);
        let known = include_str!("../tests/token.txt").trim();
        assert_eq!(token.reveal(), known);
    }

    #[test]
    fn it_is_good_for_one_runtime_one_registration_and_one_key() {
        let (this, other) = (key("a key that is long enough, surely"), key("another key that is long enough, too"));
        let token = Token::new(&this, &id("docker/a"), 3);
        assert!(token.proves(&this, &id("docker/a")));
        assert!(!token.proves(&this, &id("docker/b")));
        assert!(!token.proves(&this, &id("docke/ra")));
        assert!(!token.proves(&other, &id("docker/a")));
        assert!(!Token { epoch: 4, ..token }.proves(&this, &id("docker/a")));
    }

    #[test]
    fn it_can_t_be_printed_by_accident() {
        let token = Token::new(&key("a key that is long enough, surely"), &id("docker/a"), 3);
        assert_eq!(format!("{token:?}"), "Token(epoch 3, …)");
        assert_eq!(format!("{:?}", key("a key that is long enough, surely")), "Key(…)");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(epoch in any::<u64>(), secret in "[ -~]{32,64}", name in "[a-z0-9._~-]{1,40}") {
            let token = Token::new(&key(&format!("k{secret}")), &id(&format!("b/{name}")), epoch);
            prop_assert_eq!(token.reveal().parse::<Token>(), Ok(token));
        }

        #[test]
        fn any_text_is_read_or_refused_and_only_one_text_is_a_token(text in "(fr1\\.)?\\PC{0,90}") {
            if let Ok(token) = text.parse::<Token>() {
                prop_assert_eq!(token.reveal(), text);
            }
        }

        #[test]
        fn a_changed_digit_proves_nothing(at in 6_usize..70, digit in "[0-9a-f]") {
            let secret = key("a key that is long enough, surely");
            let mut text = Token::new(&secret, &id("docker/a"), 3).reveal();
            prop_assume!(text[at..=at] != digit);
            text.replace_range(at..=at, &digit);
            prop_assert!(!text.parse::<Token>().unwrap().proves(&secret, &id("docker/a")));
        }
    }
}
