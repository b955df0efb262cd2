//! The names of the attributes, and values as DynamoDB writes them.
//!
//! A heartbeat costs one write unit as long as the record has at most 1,024 bytes, names included, and a
//! runtime's key alone can take 521 (a backend's name of 128 and an id of 128 that is percent-encoded to 384).
//! With the words of the design as names the largest legal record would have 1,166 bytes; with these it has 985
//! (measured by a test).
//! Expressions are written with the words; [`stored`] gives the name.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::Time;

/// An item as the SDK has it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// The word in expressions and in the design, and the stored name.
const NAMES: [(&str, &str); 32] = [
    ("epoch", "ep"),
    ("incarnation", "ic"),
    ("state", "st"),
    ("state_since", "ss"),
    ("first_seen", "fs"),
    ("idle_from", "if"),
    ("last_active", "la"),
    ("last_source", "ls"),
    ("frozen_since", "fz"),
    ("busy_until", "bu"),
    ("running_since", "rs"),
    ("idle_ms", "im"),
    ("cap_at", "ca"),
    ("armed", "ar"),
    ("hold_until", "hu"),
    ("wanted_at", "wa"),
    ("absent_since", "ab"),
    ("attempts", "at"),
    ("shed", "sh"),
    ("condemned_at", "cd"),
    ("noticed_at", "no"),
    ("saved_as_of", "sv"),
    ("claim_owner", "co"),
    ("claim_until", "cu"),
    ("token", "tk"),
    ("mark", "mk"),
    ("swept_under", "pol"),
    ("manifest", "mf"),
    ("digest", "dg"),
    ("generation", "ge"),
    ("as_of", "ao"),
    ("bytes", "sz"),
];

/// The name under which `word` is stored; a word that is not in the table is its own name.
pub(crate) fn stored(word: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == word).map_or(word, |(_, name)| name)
}

pub(crate) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Milliseconds since the Unix epoch, at least 1: 0 is never a time here.
pub(crate) fn time(time: Time) -> AttributeValue {
    number(time.millis().max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_words_share_a_name() {
        let names: BTreeSet<_> = NAMES.iter().map(|(_, name)| name).collect();
        let words: BTreeSet<_> = NAMES.iter().map(|(word, _)| word).collect();
        assert_eq!((names.len(), words.len()), (NAMES.len(), NAMES.len()));
        assert!(NAMES.iter().all(|(known, name)| stored(known) == *name));
    }
}
