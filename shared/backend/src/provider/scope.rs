//! Whose a sandbox is.

use std::collections::BTreeMap;

use lifecycle::{Ownership, policy::Pattern};

/// Which sandboxes are ours. Every kind of condition that is given must hold; none given: no sandbox is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Each of these labels is there, with a value that matches.
    pub labels: BTreeMap<String, Pattern>,
    /// The name begins with one of these. Blank ones are left out, since they would match everything.
    pub name_prefixes: Vec<String>,
}

impl Scope {
    /// Whose the sandbox is that has this name and these labels. One that carries our labels with other values
    /// is somebody else's; any other of the account is unlabelled, and is reported as such.
    pub fn ownership(&self, name: &str, labels: &BTreeMap<String, String>) -> Ownership {
        let mut prefixes = self.name_prefixes.iter().filter(|prefix| !prefix.is_empty()).peekable();
        let by_name = prefixes.peek().is_some();
        let has = |(key, pattern): (&String, &Pattern)| labels.get(key).is_some_and(|value| pattern.matches(value));
        let other = |(key, pattern): (&String, &Pattern)| labels.get(key).is_some_and(|value| !pattern.matches(value));
        if self.labels.iter().any(other) {
            return Ownership::Foreign;
        }
        let named = !by_name || prefixes.any(|prefix| name.starts_with(prefix.as_str()));
        let anything = by_name || !self.labels.is_empty();
        if anything && named && self.labels.iter().all(has) { Ownership::Ours } else { Ownership::Unlabelled }
    }
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
            assert_eq!(blank.ownership("db", &labels(&[("a", "b")])), Ownership::Unlabelled, "{blank:?}");
        }
    }

    #[test]
    fn every_condition_that_is_given_must_hold() {
        let scope = scope(&[("team", "*"), ("by", "furlough")], &["dev-", "ci-"]);
        let both = labels(&[("team", "x"), ("by", "furlough")]);
        assert_eq!(scope.ownership("ci-1", &both), Ownership::Ours);
        assert_eq!(scope.ownership("other-ci-1", &both), Ownership::Unlabelled, "a prefix is anchored");
        assert_eq!(scope.ownership("ci-1", &labels(&[("team", "x")])), Ownership::Unlabelled);
        assert_eq!(scope.ownership("ci-1", &labels(&[("team", "x"), ("by", "other")])), Ownership::Foreign);
    }
}
