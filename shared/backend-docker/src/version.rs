//! Which version of the Engine API is spoken.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// The newest version that this crate was written for. Later ones stay compatible until an engine drops it.
const NEWEST: Version = Version(1, 51);
/// The oldest that has all that is asked here.
const OLDEST: Version = Version(1, 25);

/// A version of the Engine API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u16, u16);

/// What an engine says of itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Said {
    #[serde(rename = "ApiVersion")]
    newest: String,
    #[serde(rename = "MinAPIVersion", default)]
    oldest: Option<String>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed =
            text.split_once('.').and_then(|(major, minor)| Some(Self(major.parse().ok()?, minor.parse().ok()?)));
        parsed.ok_or_else(|| "its API version is not a number like `1.41`".to_owned())
    }
}

/// The newest version that both sides speak.
pub(crate) fn agree(said: &Said) -> Result<Version, String> {
    let newest: Version = said.newest.parse()?;
    let oldest = said.oldest.as_deref().filter(|text| !text.is_empty()).map_or(Ok(OLDEST), Version::from_str)?;
    if newest < OLDEST {
        return Err(format!("it speaks the API up to {newest}, and {OLDEST} is needed: update the engine"));
    }
    if oldest > NEWEST {
        return Err(format!("it speaks the API from {oldest}, and furlough up to {NEWEST}: update furlough"));
    }
    Ok(newest.min(NEWEST))
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;

    fn with(newest: &str, oldest: Option<&str>) -> Result<String, String> {
        agree(&Said { newest: newest.to_owned(), oldest: oldest.map(str::to_owned) }).map(|version| version.to_string())
    }

    #[test]
    fn the_newest_version_that_both_speak_is_taken() {
        assert_eq!(with("1.41", Some("1.12")), Ok("1.41".to_owned()), "Docker 20.10");
        assert_eq!(with("1.41", Some("1.24")), Ok("1.41".to_owned()), "podman 4.3");
        assert_eq!(with("1.56", Some("1.44")), Ok("1.51".to_owned()), "Docker 29");
        assert_eq!(with("1.41", None), Ok("1.41".to_owned()));
        assert_eq!(with("1.41", Some("")), Ok("1.41".to_owned()));
    }

    #[test]
    fn an_engine_that_is_too_old_or_too_new_says_which_side_to_update() {
        assert_eq!(
            with("1.24", None),
            Err("it speaks the API up to 1.24, and 1.25 is needed: update the engine".to_owned())
        );
        assert_eq!(
            with("1.99", Some("1.60")),
            Err("it speaks the API from 1.60, and furlough up to 1.51: update furlough".to_owned())
        );
        assert_eq!(with("<html>", None), Err("its API version is not a number like `1.41`".to_owned()));
    }

    proptest! {
        /// Whatever an engine says of itself, what is spoken is a version that this crate was written for, or nothing.
        #[test]
        fn any_words_of_an_engine_are_a_version_of_ours_or_a_reason(newest in version(), oldest in proptest::option::of(version())) {
            match agree(&Said { newest: newest.clone(), oldest }) {
                Ok(agreed) => prop_assert!(agreed >= OLDEST && agreed <= NEWEST && agreed <= newest.parse().unwrap()),
                Err(why) => prop_assert!(!why.is_empty() && why.len() < 200, "{}", why),
            }
        }

        #[test]
        fn any_bytes_are_what_an_engine_says_or_a_fault(bytes in collection::vec(any::<u8>(), 0..100)) {
            if let Ok(said) = serde_json::from_slice::<Said>(&bytes) {
                let _ = agree(&said);
            }
        }
    }

    /// A version, or something like one.
    fn version() -> impl Strategy<Value = String> {
        prop_oneof![
            (0u16..3, 0u16..70).prop_map(|(major, minor)| format!("{major}.{minor}")),
            "[0-9.v+-]{0,8}",
            ".{0,8}",
        ]
    }
}
