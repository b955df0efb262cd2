//! The document of keys: what sandboxes' tokens are signed with and secret keys are kept under, and who a host is.
//!
//! ```json
//! { "workspace_keys": ["NEWEST", "PREVIOUS"], "hosts": [{ "name": "ada", "token_sha256": "64 hexadecimal digits" }] }
//! ```
//!
//! How keys rotate and hosts are known is for every such document the same: [`tokens::document`]. A key may be dropped
//! when each workspace was initialised under a newer one: what it keeps in cipher can be opened by nothing else.

use serde::Deserialize;
use tokens::document::{Digest, Written, check_hosts};

/// The keys that are good now.
#[derive(Debug)]
pub struct Keys {
    /// Signs tokens; what secret keys are kept under is derived from it.
    pub signing: tokens::Keys,
    hosts: Vec<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    workspace_keys: Written,
    #[serde(default)]
    hosts: Vec<HostEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    /// For people.
    #[serde(rename = "name")]
    _name: String,
    token_sha256: String,
}

impl Keys {
    /// Reads the document. What is wrong with it is said without any of its values.
    pub fn read(text: &str) -> Result<Self, String> {
        // serde's own words can quote a value.
        let document: Document = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("the keys of workspaces are no valid document: line {line}, column {column}")
        })?;
        check_hosts(document.hosts.len())?;
        let signing = document.workspace_keys.keys("workspace_keys")?;
        let hosts = document.hosts.into_iter().enumerate().map(|(at, host)| Digest::read(at, &host.token_sha256));
        Ok(Self { signing, hosts: hosts.collect::<Result<_, _>>()? })
    }

    /// Whether this is a host's token. Looks through all of them, whichever it is.
    pub fn host(&self, token: &str) -> bool {
        let digest = Digest::of(token);
        self.hosts.iter().fold(false, |known, host| known | host.is(&digest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_document_that_is_not_safe_is_refused_without_its_values() {
        let key = "k".repeat(32);
        let read = |text: &str| Keys::read(text).map(|keys| keys.host("t"));
        let host = |digest: String| {
            format!(r#"{{"workspace_keys":"{key}","hosts":[{{"name":"a","token_sha256":"{digest}"}}]}}"#)
        };
        assert_eq!(read(&host(Digest::of("t").to_string())), Ok(true));
        assert_eq!(read(&host(Digest::of("u").to_string())), Ok(false));
        assert!(read(&host(Digest::of("").to_string())).is_err(), "nothing would be a token");
        let short = r#"{"workspace_keys":["hush"]}"#;
        assert_eq!(
            read(short),
            Err("a key of `workspace_keys` is blank or has less than 32 bytes: it has 4".to_owned())
        );
        let unknown = format!(r#"{{"workspace_keys":"{key}","hush":1}}"#);
        let told = read(&unknown).unwrap_err();
        assert!(!told.contains("hush") && told.contains("line 1"), "{told}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,120}") {
            let _ = Keys::read(&text);
        }
    }
}
