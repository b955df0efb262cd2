//! Expressions: words in, the SDK's names and values out.
//!
//! A text has `#word` for an attribute and `:word` for a value. DynamoDB refuses a request that defines
//! more or fewer of them than its texts use, so both maps are made from the texts.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::Time;

use crate::attribute;

/// Values that texts may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values(BTreeMap<&'static str, AttributeValue>);

impl Values {
    pub(crate) fn with(mut self, word: &'static str, value: AttributeValue) -> Self {
        self.0.insert(word, value);
        self
    }

    pub(crate) fn text(self, word: &'static str, text: impl Into<String>) -> Self {
        self.with(word, attribute::text(text))
    }

    pub(crate) fn number(self, word: &'static str, number: impl std::fmt::Display) -> Self {
        self.with(word, attribute::number(number))
    }

    pub(crate) fn time(self, word: &'static str, time: Time) -> Self {
        self.with(word, attribute::time(time))
    }

    /// Those that the texts use.
    pub(crate) fn used(&self, texts: &[&str]) -> Option<HashMap<String, AttributeValue>> {
        let used: HashMap<_, _> = texts
            .iter()
            .flat_map(|text| words(text, ':'))
            .filter_map(|word| self.0.get(word).map(|value| (format!(":{word}"), value.clone())))
            .collect();
        (!used.is_empty()).then_some(used)
    }
}

/// The names that the texts use.
pub(crate) fn names(texts: &[&str]) -> Option<HashMap<String, String>> {
    let names: HashMap<_, _> = texts
        .iter()
        .flat_map(|text| words(text, '#'))
        .map(|word| (format!("#{word}"), attribute::stored(word).to_owned()))
        .collect();
    (!names.is_empty()).then_some(names)
}

/// The words after each `sigil` in `text`.
fn words(text: &str, sigil: char) -> impl Iterator<Item = &str> {
    text.split(sigil).skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_defines_exactly_what_its_texts_use() {
        let values = Values::default().number("one", 1).text("unused", "x");
        let texts = ["#token = :one AND attribute_exists(#claim_until)", "SET #pk2=:one"];
        assert_eq!(values.used(&texts).unwrap().into_keys().collect::<Vec<_>>(), [":one"]);
        let mut names: Vec<_> = names(&texts).unwrap().into_iter().collect();
        names.sort();
        let expected = [("#claim_until", "cu"), ("#pk2", "pk2"), ("#token", "tk")];
        assert_eq!(names, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(values.used(&["attribute_exists(#pk)"]), None);
    }
}
