//! Reading one object of an answer, field by field. What is wrong is told by the field's name alone: its value may
//! be anything, a secret too.

use std::{collections::BTreeMap, fmt};

use lifecycle::Time;
use serde_json::{Map, Value};

/// One JSON object.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a>(&'a Map<String, Value>);

/// What can't be read, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) String);

impl Unread {
    fn field(name: &str, expected: &str) -> Self {
        Self(format!("`{name}` is not {expected}"))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> Row<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, Unread> {
        value.as_object().map(Self).ok_or_else(|| Unread("it is no object".to_owned()))
    }

    /// The field, unless it is left out or null.
    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn maybe_text(self, name: &str) -> Result<Option<&'a str>, Unread> {
        let text = |value: &'a Value| value.as_str().ok_or_else(|| Unread::field(name, "a text"));
        self.get(name).map(text).transpose()
    }

    /// A text that must be there and not be empty.
    pub(crate) fn text(self, name: &str) -> Result<&'a str, Unread> {
        let text = self.maybe_text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| Unread(format!("`{name}` is missing")))
    }

    pub(crate) fn maybe_time(self, name: &str) -> Result<Option<Time>, Unread> {
        let time = |text: &str| text.parse().map_err(|_| Unread::field(name, "a time"));
        self.maybe_text(name)?.map(time).transpose()
    }

    /// A time that must be there.
    pub(crate) fn time(self, name: &str) -> Result<Time, Unread> {
        self.maybe_time(name)?.ok_or_else(|| Unread(format!("`{name}` is missing")))
    }

    pub(crate) fn maybe_whole(self, name: &str) -> Result<Option<i64>, Unread> {
        let whole = |value: &Value| value.as_i64().ok_or_else(|| Unread::field(name, "a whole number"));
        self.get(name).map(whole).transpose()
    }

    pub(crate) fn maybe_row(self, name: &str) -> Result<Option<Self>, Unread> {
        let row = |value: &'a Value| value.as_object().map(Self).ok_or_else(|| Unread::field(name, "an object"));
        self.get(name).map(row).transpose()
    }

    /// A list that must be there.
    pub(crate) fn list(self, name: &str) -> Result<&'a [Value], Unread> {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| Unread::field(name, "a list"))
    }

    /// Texts by name; left out: none.
    pub(crate) fn labels(self, name: &str) -> Result<BTreeMap<String, String>, Unread> {
        let Some(row) = self.maybe_row(name)? else { return Ok(BTreeMap::new()) };
        let label = |(key, value): (&String, &Value)| {
            let value = value.as_str().ok_or_else(|| Unread::field(name, "texts alone"))?;
            Ok((key.clone(), value.to_owned()))
        };
        row.0.iter().map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_the_field_and_never_by_its_value() {
        let value = json!({
            "n": "15", "t": "hush", "x": 7, "l": {"a": 1}, "e": "", "null": null, "f": 1.5, "big": 1e300, "o": [],
        });
        let row = Row::of(&value).unwrap();
        let told = [
            row.maybe_whole("n").unwrap_err(),
            row.maybe_whole("f").unwrap_err(),
            row.maybe_whole("big").unwrap_err(),
            row.maybe_time("t").unwrap_err(),
            row.maybe_text("x").unwrap_err(),
            row.text("e").unwrap_err(),
            row.text("none").unwrap_err(),
            row.labels("l").unwrap_err(),
            row.list("t").unwrap_err(),
            row.list("none").unwrap_err(),
        ];
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`n` is not a whole number",
                "`f` is not a whole number",
                "`big` is not a whole number",
                "`t` is not a time",
                "`x` is not a text",
                "`e` is missing",
                "`none` is missing",
                "`l` is not texts alone",
                "`t` is not a list",
                "`none` is not a list",
            ]
        );
        assert_eq!((row.maybe_text("null"), row.labels("none")), (Ok(None), Ok(BTreeMap::new())));
        assert!(Row::of(&json!([1])).is_err() && row.maybe_row("o").is_err());
    }
}
