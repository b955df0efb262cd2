//! The agent server's secret key of a workspace: made once, kept with it, in cipher.
//!
//! `workspaces/<name>/secret-key` is a nonce of 24 bytes and the key under XChaCha20-Poly1305, with the workspace's name
//! as what it is bound to. It is written while nobody else holds the lease. What was written under the key before the
//! newest one is read, and written anew under the newest.

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use tokens::{Key, Keys};
use workspace::{
    blobs::{Blobs, StoreError},
    key::Name,
};

const DOMAIN: &str = "furlough workspace secret 1";
const NONCE_BYTES: usize = 24;
const MAX_KEPT_BYTES: u64 = 1024;

/// Why a workspace's secret key can't be told.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The store could not be asked.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// It was made under keys that are no longer known. A new one would cost what was stored under the old one.
    #[error(
        "the secret key of workspace `{0}` opens under none of the keys: bring back the one that it was made under"
    )]
    Sealed(Name),
    /// No randomness.
    #[error("no random key could be made: {0}")]
    Random(String),
}

/// It, made if there is none.
pub async fn secret_key(blobs: &dyn Blobs, keys: &Keys, name: &Name) -> Result<String, SecretError> {
    let at = format!("{}secret-key", name.prefix());
    let kept = match blobs.get(&at, MAX_KEPT_BYTES).await {
        Ok(kept) => kept,
        Err(StoreError::Missing(_)) => {
            let key = settings::system::random().map_err(|error| SecretError::Random(error.to_string()))?;
            blobs.put(&at, &sealed(&keys.newest, name, &key)?).await?;
            return Ok(key);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(key) = opened(&keys.newest, name, &kept) {
        return Ok(key);
    }
    let key = keys.previous.as_ref().and_then(|previous| opened(previous, name, &kept));
    let key = key.ok_or_else(|| SecretError::Sealed(name.clone()))?;
    blobs.put(&at, &sealed(&keys.newest, name, &key)?).await?;
    Ok(key)
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&key.derived(DOMAIN).into())
}

fn sealed(key: &Key, name: &Name, secret: &str) -> Result<Vec<u8>, SecretError> {
    let random = settings::system::random().map_err(|error| SecretError::Random(error.to_string()))?;
    let nonce: [u8; NONCE_BYTES] = tokens::unhex(&random[..2 * NONCE_BYTES])
        .ok_or_else(|| SecretError::Random("it is not in hexadecimal digits".to_owned()))?;
    let payload = Payload { msg: secret.as_bytes(), aad: name.as_str().as_bytes() };
    let cipher = cipher(key).encrypt(&XNonce::from(nonce), payload);
    let cipher = cipher.map_err(|_| SecretError::Random("the cipher took nothing".to_owned()))?;
    Ok([&nonce[..], &cipher].concat())
}

fn opened(key: &Key, name: &Name, kept: &[u8]) -> Option<String> {
    let (nonce, cipher_text) = kept.split_at_checked(NONCE_BYTES)?;
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload { msg: cipher_text, aad: name.as_str().as_bytes() };
    String::from_utf8(cipher(key).decrypt(&XNonce::from(nonce), payload).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        Key::new(&format!("{text} key that is long enough, surely")).unwrap()
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn it_opens_for_its_workspace_under_its_key_alone() {
        let kept = sealed(&key("a"), &name("w"), "hush").unwrap();
        assert!(!kept.windows(4).any(|bytes| bytes == b"hush"));
        assert_eq!(opened(&key("a"), &name("w"), &kept).as_deref(), Some("hush"));
        assert_eq!(opened(&key("a"), &name("v"), &kept), None);
        assert_eq!(opened(&key("b"), &name("w"), &kept), None);
        assert_ne!(kept, sealed(&key("a"), &name("w"), "hush").unwrap(), "a nonce is used once");
    }

    proptest! {
        #[test]
        fn any_bytes_open_or_not(kept in proptest::collection::vec(any::<u8>(), 0..120)) {
            prop_assert_eq!(opened(&key("a"), &name("w"), &kept), None);
        }
    }
}
