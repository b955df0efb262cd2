//! The document of keys: what tokens of runtimes are signed with, and who a host is.
//!
//! ```json
//! { "runtime_keys": ["NEWEST", "PREVIOUS"],
//!   "hosts": [{ "name": "ada", "token_sha256": "64 hexadecimal digits", "backends": ["docker-*"] }] }
//! ```
//!
//! How keys rotate and hosts are known is for every such document the same: [`tokens::document`].

use lifecycle::{BackendName, RuntimeId, policy::Pattern, record::Epoch};
use serde::Deserialize;
use tokens::document::{Digest, Written, check_hosts};

use crate::token::Token;

/// The keys that are good now.
#[derive(Debug)]
pub struct Keys {
    signing: tokens::Keys,
    hosts: Vec<Host>,
}

/// Somebody who may register runtimes and speak for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// For people.
    pub name: String,
    digest: Digest,
    backends: Vec<Pattern>,
}

impl Host {
    /// Whether it may speak for runtimes of `backend`.
    pub fn may(&self, backend: &BackendName) -> bool {
        self.backends.iter().any(|pattern| pattern.matches(backend.as_str()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    runtime_keys: Written,
    #[serde(default)]
    hosts: Vec<HostEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    name: String,
    token_sha256: String,
    backends: Vec<String>,
}

impl Keys {
    /// Reads the document. What is wrong with it is said without any of its values.
    pub fn read(text: &str) -> Result<Self, String> {
        // serde's own words can quote a value.
        let document: Document = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("the keys are no valid document: line {line}, column {column}")
        })?;
        check_hosts(document.hosts.len())?;
        let signing = document.runtime_keys.keys("runtime_keys")?;
        let hosts = document.hosts.into_iter().enumerate().map(|(at, entry)| host(at, entry));
        Ok(Self { signing, hosts: hosts.collect::<Result<_, _>>()? })
    }

    /// The token of a new registration.
    pub fn sign(&self, id: &RuntimeId, epoch: Epoch) -> Token {
        Token::new(&self.signing, id, epoch)
    }

    /// Whether `token` is this runtime's under a key that is good.
    pub fn proves(&self, token: &Token, id: &RuntimeId) -> bool {
        token.proves(&self.signing, id)
    }

    /// Whose token this is. Looks through all of them, whichever it is.
    pub fn host(&self, token: &str) -> Option<&Host> {
        let digest = Digest::of(token);
        let matching = self.hosts.iter().filter(|host| host.digest.is(&digest));
        matching.fold(None, |found, host| found.or(Some(host)))
    }
}

/// The digest under which a host's token is kept.
pub fn digest(token: &str) -> String {
    Digest::of(token).to_string()
}

fn host(at: usize, entry: HostEntry) -> Result<Host, String> {
    let HostEntry { name, token_sha256, backends } = entry;
    let digest = Digest::read(at, &token_sha256)?;
    if backends.is_empty() || backends.iter().any(String::is_empty) {
        return Err(format!("host {at} names no backend; `[\"*\"]` is every one"));
    }
    Ok(Host { name, digest, backends: backends.into_iter().map(Pattern::new).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an old key that is long enough, yes";
    const NEW: &str = "a new key that is long enough, truly";

    fn id(text: &str) -> RuntimeId {
        text.parse().unwrap()
    }

    fn keys(text: &str) -> Keys {
        Keys::read(text).unwrap()
    }

    #[test]
    fn in_a_rotation_two_keys_are_good_and_the_newest_signs() {
        let before = keys(&format!(r#"{{"runtime_keys":["{OLD}"]}}"#));
        let during = keys(&format!(r#"{{"runtime_keys":["{NEW}","{OLD}"]}}"#));
        let after = keys(&format!(r#"{{"runtime_keys":["{NEW}"]}}"#));
        let (old, new) = (before.sign(&id("b/i"), 1), during.sign(&id("b/i"), 1));
        assert!(before.proves(&old, &id("b/i")) && during.proves(&old, &id("b/i")));
        assert!(!after.proves(&old, &id("b/i")), "an expired key proves nothing");
        assert!(during.proves(&new, &id("b/i")) && after.proves(&new, &id("b/i")));
        assert!(!before.proves(&new, &id("b/i")));
    }

    #[test]
    fn a_key_that_was_generated_stands_alone() {
        let generated = keys(&format!(r#"{{"hosts":[],"runtime_keys":"{NEW}"}}"#));
        let listed = keys(&format!(r#"{{"runtime_keys":["{NEW}"]}}"#));
        assert!(listed.proves(&generated.sign(&id("b/i"), 1), &id("b/i")));
        assert!(Keys::read(r#"{"runtime_keys":"short"}"#).is_err());
    }

    #[test]
    fn a_host_is_known_by_its_token_and_bound_to_its_backends() {
        let text = format!(
            r#"{{"runtime_keys":["{NEW}"],"hosts":[
                {{"name":"ada","token_sha256":"{}","backends":["docker-*"]}},
                {{"name":"bob","token_sha256":"{}","backends":["*"]}}]}}"#,
            digest("ada's token"),
            digest("bob's token"),
        );
        let keys = keys(&text);
        let ada = keys.host("ada's token").unwrap();
        assert_eq!(ada.name, "ada");
        assert!(ada.may(&BackendName::new("docker-1").unwrap()) && !ada.may(&BackendName::new("e2b").unwrap()));
        assert!(keys.host("bob's token").unwrap().may(&BackendName::new("e2b").unwrap()));
        assert_eq!(keys.host("carl's token"), None);
        assert_eq!(keys.host(""), None);
    }

    #[test]
    fn a_document_that_is_not_safe_is_refused_without_its_values() {
        let refused = |text: &str| Keys::read(text).map(|_| ()).unwrap_err();
        assert_eq!(refused("{\"runtime_keys\": hush}"), "the keys are no valid document: line 1, column 18");
        assert_eq!(
            refused(r#"{"runtime_keys":[]}"#),
            "`runtime_keys` is empty; it needs one key, or two in a rotation"
        );
        assert_eq!(
            refused(r#"{"runtime_keys":["short"]}"#),
            "a key of `runtime_keys` is blank or has less than 32 bytes: it has 5"
        );
        let blank = format!(r#"{{"runtime_keys":["{}"]}}"#, " ".repeat(40));
        assert_eq!(refused(&blank), "a key of `runtime_keys` is blank or has less than 32 bytes: it has 40");
        let three = format!(r#"{{"runtime_keys":["{NEW}","{NEW}","{NEW}"]}}"#);
        assert_eq!(refused(&three), "`runtime_keys` has more than two keys: the newest and the one before");
        let unknown = format!(r#"{{"runtime_keys":["{NEW}"],"host":[]}}"#);
        assert!(refused(&unknown).starts_with("the keys are no valid document"));
        let host = |digest: &str, backends: &str| {
            format!(
                r#"{{"runtime_keys":["{NEW}"],"hosts":[{{"name":"a","token_sha256":"{digest}","backends":{backends}}}]}}"#
            )
        };
        let good = digest("t");
        assert_eq!(refused(&host(&good, "[]")), "host 0 names no backend; `[\"*\"]` is every one");
        assert_eq!(refused(&host(&good, r#"[""]"#)), "host 0 names no backend; `[\"*\"]` is every one");
        let upper = good.to_uppercase();
        assert_eq!(
            refused(&host(&upper, r#"["*"]"#)),
            "`token_sha256` of host 0 is not 64 lower-case hexadecimal digits"
        );
        let nothing = digest("");
        assert_eq!(refused(&host(&nothing, r#"["*"]"#)), "`token_sha256` of host 0 is the digest of an empty token");
    }
}
