//! Where a text that is read again and again lies: a file, an object, a secret.
//!
//! Files are read here; the rest is another crate's, behind [`Origin`], since an SDK is heavy.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use async_trait::async_trait;

use crate::{SettingsError, load};

/// The longest address, in bytes: an ARN has at most 2,048.
const MAX_ADDRESS_BYTES: usize = 2_048;

/// The address of a text.
///
/// `s3://BUCKET/KEY`; a secret's ARN; anything else is a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A file.
    File(PathBuf),
    /// An object of S3.
    Object {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
    },
    /// A secret of Secrets Manager, by ARN.
    Secret(String),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address: {why}; write a path, `s3://BUCKET/KEY`, or a secret's ARN")]
pub struct AddressError {
    /// What was read.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |why| Err(AddressError { text: text.to_owned(), why });
        if text.trim().is_empty() {
            return refused("it is blank");
        }
        if text.len() > MAX_ADDRESS_BYTES {
            return refused("it has more than 2,048 bytes");
        }
        if text.contains(char::is_control) {
            return refused("it has a control character");
        }
        if let Some(object) = text.strip_prefix("s3://") {
            return match object.split_once('/') {
                Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                    Ok(Self::Object { bucket: bucket.to_owned(), key: key.to_owned() })
                }
                _ => refused("a bucket and a key are needed"),
            };
        }
        if text.starts_with("arn:") {
            return match text.split(':').nth(2) {
                Some("secretsmanager") => Ok(Self::Secret(text.to_owned())),
                _ => refused("it is the ARN of no secret"),
            };
        }
        if text.contains("://") {
            return refused("of addresses with `://` only `s3://` is known");
        }
        Ok(Self::File(text.into()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Object { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::Secret(arn) => f.write_str(arn),
        }
    }
}

/// A text, and which version of it that is.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// The text itself. It may be a secret.
    pub text: String,
    /// What tells this version from another: an ETag, a number. `None`: only the text itself does.
    pub version: Option<String>,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes, version {:?})", self.text.len(), self.version)
    }
}

/// A text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can't read `{place}`: {why}")]
pub struct OriginError {
    /// Where it should be.
    pub place: String,
    /// What was said, without the text.
    pub why: String,
}

/// A place that a text is read from.
#[async_trait]
pub trait Origin: Send + Sync {
    /// The text as it is now; `None`: it is still the version that is `known`.
    async fn read(&self, known: Option<&str>) -> Result<Option<Text>, OriginError>;
}

/// A file as an [`Origin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOrigin(pub PathBuf);

#[async_trait]
impl Origin for FileOrigin {
    async fn read(&self, _known: Option<&str>) -> Result<Option<Text>, OriginError> {
        let text = load::read(&self.0, "the environment").map_err(|error| unread(&self.0, &error))?;
        Ok(Some(Text { text, version: None }))
    }
}

fn unread(path: &Path, error: &SettingsError) -> OriginError {
    let why = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    OriginError { place: path.display().to_string(), why }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Address, &'static str> {
        text.parse().map_err(|error: AddressError| error.why)
    }

    #[test]
    fn each_kind_is_told_by_how_it_begins() {
        let object = Address::Object { bucket: "b".to_owned(), key: "x/y.toml".to_owned() };
        let secret = "arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:furlough/keys-AbCdEf";
        assert_eq!(read("s3://b/x/y.toml"), Ok(object));
        assert_eq!(read(secret), Ok(Address::Secret(secret.to_owned())));
        assert_eq!(read("conf/furlough.toml"), Ok(Address::File("conf/furlough.toml".into())));
    }

    #[test]
    fn what_is_half_an_address_is_refused() {
        assert_eq!(read(" "), Err("it is blank"));
        assert_eq!(read("s3://b"), Err("a bucket and a key are needed"));
        assert_eq!(read("s3:///key"), Err("a bucket and a key are needed"));
        assert_eq!(read("arn:aws:s3:::bucket/key"), Err("it is the ARN of no secret"));
        assert_eq!(read("https://example.com/x"), Err("of addresses with `://` only `s3://` is known"));
        assert_eq!(read("a\nb"), Err("it has a control character"));
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_that_reads_back_or_is_refused(text in "\\PC{0,60}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
            }
        }
    }
}
