//! What is left out by rule, and which of the rest is cold.

use crate::manifest::Exclusion;

/// A rule would leave out what nobody can make again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// Not the last components of a path.
    #[error("`{0}` is no rule: one to four plain names, joined by `/`, are one")]
    Form(String),
    /// Work, or secrets that are nowhere else.
    #[error("`{0}` may hold what can't be made again, and is never left out")]
    Protected(String),
}

/// The names that OpenHands gives the lease of a conversation's owner. Restored elsewhere, it would lock the conversation.
const LEASES: [&str; 2] = ["owner_lease.json", ".owner_lease.lock"];

const PROTECTED: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Folders whose content tools make again, and that nobody reads first.
const COLD: [&[u8]; 16] = [
    b"node_modules",
    b"target",
    b".venv",
    b"venv",
    b".tox",
    b".nox",
    b"__pycache__",
    b"site-packages",
    b".next",
    b".nuxt",
    b".turbo",
    b".cache",
    b".gradle",
    b".yarn",
    b".pnpm-store",
    b"vendor",
];

/// Whether what is in a folder of this name is cold.
pub(crate) fn is_cold(name: &[u8]) -> bool {
    COLD.contains(&name)
}

/// The rules of a push.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<Exclusion>);

impl Rules {
    /// These, and always the leases of OpenHands' conversations.
    pub fn new(rules: impl IntoIterator<Item = Exclusion>) -> Result<Self, BadRule> {
        let lease = |name: &str| Exclusion {
            names: name.to_owned(),
            why: "a lease belongs to the server that runs, not to its files".to_owned(),
        };
        let mut all: Vec<_> = LEASES.iter().map(|name| lease(name)).collect();
        for rule in rules {
            check(&rule.names)?;
            all.push(rule);
        }
        all.sort();
        all.dedup();
        Ok(Self(all))
    }

    /// Them, as the manifest has them.
    pub fn exclusions(&self) -> &[Exclusion] {
        &self.0
    }

    /// Whether a member is left out: its name, and `above` the names above it, the nearest first.
    pub(crate) fn leaves_out<'a>(&self, name: &[u8], above: impl Fn(usize) -> Option<&'a [u8]>) -> bool {
        self.0.iter().any(|rule| {
            let mut names = rule.names.rsplit('/');
            names.next().is_some_and(|last| last.as_bytes() == name)
                && names.enumerate().all(|(depth, wanted)| above(depth) == Some(wanted.as_bytes()))
        })
    }
}

fn check(names: &str) -> Result<(), BadRule> {
    let parts: Vec<_> = names.split('/').collect();
    let plain = |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains('\0');
    if parts.len() > 4 || !parts.iter().all(plain) {
        return Err(BadRule::Form(names.to_owned()));
    }
    let protected = |part: &&str| PROTECTED.contains(part) || part.starts_with(".env");
    if parts.iter().any(protected) { Err(BadRule::Protected(names.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &str) -> Exclusion {
        Exclusion { names: names.to_owned(), why: "made again by its tool".to_owned() }
    }

    #[test]
    fn work_and_secrets_are_never_left_out() {
        for names in [".env", ".env.local", ".git", "a/.git/objects"] {
            assert_eq!(Rules::new([rule(names)]).unwrap_err(), BadRule::Protected(names.to_owned()));
        }
        for names in ["", "/a", "a//b", "../a", "a/b/c/d/e"] {
            assert_eq!(Rules::new([rule(names)]).unwrap_err(), BadRule::Form(names.to_owned()));
        }
    }

    #[test]
    fn a_rule_names_the_last_components() {
        let rules = Rules::new([rule("node_modules/.cache")]).unwrap();
        let above = |names: &'static [&'static [u8]]| move |depth: usize| names.get(depth).copied();
        assert!(rules.leaves_out(b".cache", above(&[b"node_modules", b"project"])));
        assert!(!rules.leaves_out(b".cache", above(&[b"project"])));
        assert!(!rules.leaves_out(b"node_modules", above(&[b"project"])));
        assert!(rules.leaves_out(b"owner_lease.json", above(&[b"0f3a", b"conversations"])));
    }
}
