//! Whose a container is.

use std::collections::BTreeMap;

use lifecycle::{Ownership, policy::Pattern};

/// Which containers are ours. Every kind of condition that is given must hold; none given: no container is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Each of these labels is there, with a value that matches.
    pub labels: BTreeMap<String, Pattern>,
    /// The name begins with one of these. Blank ones are left out, since they would match everything.
    pub name_prefixes: Vec<String>,
}

impl Scope {
    fn names(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let mut prefixes = self.name_prefixes.iter().filter(|prefix| !prefix.is_empty()).peekable();
        let by_name = prefixes.peek().is_some();
        if self.labels.is_empty() && !by_name {
            return false;
        }
        let labelled = |(key, pattern): (&String, &Pattern)| labels.get(key).is_some_and(|text| pattern.matches(text));
        self.labels.iter().all(labelled) && (!by_name || prefixes.any(|prefix| name.starts_with(prefix.as_str())))
    }

    /// Whose the container is that has this name (without the leading `/`) and these labels.
    pub(crate) fn ownership(&self, openhands: bool, name: &str, labels: &BTreeMap<String, String>) -> Ownership {
        let recognised = is_openhands(name, labels);
        if self.names(name, labels) || (openhands && recognised) {
            Ownership::Ours
        } else if recognised {
            Ownership::Unlabelled
        } else {
            Ownership::Foreign
        }
    }
}

/// Whether OpenHands made it: its app server's sandboxes and its agent server's container per conversation.
/// Both the name and the label must say so: either alone is easily somebody else's.
/// Source: openhands-ai 1.11.0 `docker_sandbox_service.py`, openhands-agent-server 1.58.2.
pub(crate) fn is_openhands(name: &str, labels: &BTreeMap<String, String>) -> bool {
    let made = |prefix: &str, label: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()) && labels.contains_key(label)
    };
    made("oh-agent-server-", "sandbox_spec_id") || made("agent-server-conversation-", "ai.openhands.runtime-owner")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn scope(pairs: &[(&str, &str)], prefixes: &[&str]) -> Scope {
        Scope {
            labels: pairs.iter().map(|(key, text)| ((*key).to_owned(), Pattern::new(*text))).collect(),
            name_prefixes: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
        }
    }

    #[test]
    fn a_blank_scope_names_nothing() {
        for blank in [scope(&[], &[]), scope(&[], &["", ""])] {
            assert_eq!(blank.ownership(true, "db", &labels(&[("a", "b")])), Ownership::Foreign, "{blank:?}");
        }
    }

    #[test]
    fn every_condition_that_is_given_must_hold() {
        let scope = scope(&[("team", "*"), ("by", "furlough")], &["dev-", "ci-"]);
        let both = labels(&[("team", "x"), ("by", "furlough")]);
        assert_eq!(scope.ownership(false, "ci-1", &both), Ownership::Ours);
        assert_eq!(scope.ownership(false, "db", &both), Ownership::Foreign);
        assert_eq!(scope.ownership(false, "other-ci-1", &both), Ownership::Foreign, "a prefix is anchored");
        assert_eq!(scope.ownership(false, "ci-1", &labels(&[("team", "x")])), Ownership::Foreign);
    }

    #[test]
    fn openhands_is_recognised_by_name_and_label_together() {
        let sandbox = labels(&[("sandbox_spec_id", "ghcr.io/openhands/agent-server:x")]);
        let owned = labels(&[("ai.openhands.runtime-owner", "0123")]);
        let nobody = Scope::default();
        let cases = [
            ("oh-agent-server-4fGh", &sandbox, Ownership::Ours, Ownership::Unlabelled),
            ("agent-server-conversation-9e1f", &owned, Ownership::Ours, Ownership::Unlabelled),
            ("oh-agent-server-4fGh", &owned, Ownership::Foreign, Ownership::Foreign),
            ("other-oh-agent-server-4fGh", &sandbox, Ownership::Foreign, Ownership::Foreign),
            ("oh-agent-server-", &sandbox, Ownership::Foreign, Ownership::Foreign),
        ];
        for (name, labels, on, off) in cases {
            assert_eq!(nobody.ownership(true, name, labels), on, "{name}");
            assert_eq!(nobody.ownership(false, name, labels), off, "{name}");
        }
    }
}
