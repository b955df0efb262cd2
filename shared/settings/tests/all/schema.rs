//! The JSON Schema takes what the reader takes, as far as a schema can say it, and no other key.

use proptest::{prelude::*, string::string_regex};
use serde_json::Value;
use settings::{BUILT_IN, parse, schema};

use crate::EXAMPLE;

/// The part of JSON Schema that ours uses, and no more: another keyword is an error.
fn valid(schema: &Value, value: &Value) -> bool {
    let Value::Object(rules) = schema else { return schema.as_bool().unwrap_or(false) };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        // The patterns are held to the reader by `what_a_pattern_allows_is_read`.
        "$schema" | "title" | "description" | "examples" | "pattern" => true,
        "type" => has_type(rule.as_str().unwrap(), value),
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "not" => !valid(rule, value),
        "anyOf" => rule.as_array().unwrap().iter().any(|schema| valid(schema, value)),
        "oneOf" => rule.as_array().unwrap().iter().filter(|schema| valid(schema, value)).count() == 1,
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| valid(rule, item))),
        "required" => value
            .as_object()
            .is_none_or(|table| rule.as_array().unwrap().iter().all(|key| table.contains_key(key.as_str().unwrap()))),
        "properties" => value.as_object().is_none_or(|table| {
            table.iter().all(|(key, value)| rule.get(key).is_none_or(|schema| valid(schema, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|table| {
            let known = |key: &String| rules.get("properties").is_some_and(|known| known.get(key).is_some());
            table.iter().filter(|(key, _)| !known(key)).all(|(_, value)| valid(rule, value))
        }),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
        "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|number| number <= rule.as_i64().unwrap()),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap()),
        "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= rule.as_u64().unwrap()),
        other => panic!("`{other}` is not known to this test"),
    })
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        other => panic!("`{other}` is not known to this test"),
    }
}

fn json(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

#[test]
fn the_examples_are_valid() {
    for text in [EXAMPLE, BUILT_IN, ""] {
        assert!(valid(&schema(), &json(text)));
    }
}

/// Every place where a table stands, with an unknown key put into it.
fn with_an_unknown_key(value: &Value) -> Vec<(String, Value)> {
    let mut changed = Vec::new();
    match value {
        Value::Object(table) => {
            let mut here = table.clone();
            here.insert("unknown-key".to_owned(), 1.into());
            changed.push((String::new(), Value::Object(here)));
            for (key, below) in table {
                for (path, below) in with_an_unknown_key(below) {
                    let mut here = table.clone();
                    here.insert(key.clone(), below);
                    changed.push((format!("{key}.{path}"), Value::Object(here)));
                }
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                for (path, below) in with_an_unknown_key(below) {
                    let mut here = items.clone();
                    here[index] = below;
                    changed.push((format!("{index}.{path}"), Value::Array(here)));
                }
            }
        }
        _ => {}
    }
    changed
}

#[test]
fn an_unknown_key_is_refused_in_every_table_by_schema_and_reader() {
    let changed = with_an_unknown_key(&json(EXAMPLE));
    assert!(changed.len() > 30, "{} tables", changed.len());
    for (path, value) in changed {
        // A number is no label's value, so that labels refuse it too.
        assert!(!valid(&schema(), &value), "{path}");
        assert!(parse(&toml::Value::try_from(&value).unwrap().to_string(), "t").is_err(), "{path}");
    }
}

#[test]
fn a_wrong_type_is_refused_for_every_key() {
    fn leaves(value: &Value) -> Vec<Value> {
        let wrong = || Value::from(1.5);
        match value {
            Value::Object(table) => table
                .iter()
                .flat_map(|(key, below)| {
                    leaves(below).into_iter().map(|below| {
                        let mut here = table.clone();
                        here.insert(key.clone(), below);
                        Value::Object(here)
                    })
                })
                .collect(),
            Value::Array(items) => (0..items.len())
                .flat_map(|index| {
                    leaves(&items[index]).into_iter().map(move |below| {
                        let mut here = items.clone();
                        here[index] = below;
                        Value::Array(here)
                    })
                })
                .collect(),
            _ => vec![wrong()],
        }
    }
    let changed = leaves(&json(EXAMPLE));
    assert!(changed.len() > 60, "{} values", changed.len());
    for value in changed {
        assert!(!valid(&schema(), &value), "{value}");
        assert!(parse(&toml::Value::try_from(&value).unwrap().to_string(), "t").is_err(), "{value}");
    }
}

#[test]
fn every_key_is_described() {
    fn check(path: &str, schema: &Value) {
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            assert!(below["description"].as_str().is_some_and(|text| text.len() > 4), "{path}.{key}");
            check(&format!("{path}.{key}"), below);
        }
        for below in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)) {
            check(path, below);
        }
        for below in ["oneOf", "anyOf"].iter().flat_map(|key| schema[key].as_array().into_iter().flatten()) {
            check(path, below);
        }
    }
    check("", &schema());
}

/// The pattern of the key at `path` of the schema.
fn pattern(path: &[&str]) -> String {
    let schema = path.iter().fold(schema(), |schema, key| {
        let list = schema.get("items").cloned().unwrap_or(schema);
        let mut kinds = list["oneOf"].as_array().cloned().unwrap_or_default();
        kinds.push(list);
        kinds.into_iter().map(|kind| kind["properties"][key].clone()).find(|below| !below.is_null()).unwrap()
    });
    schema["pattern"].as_str().unwrap().trim_start_matches('^').trim_end_matches('$').to_owned()
}

proptest! {
    #[test]
    fn what_a_pattern_allows_is_read(
        share in string_regex(&pattern(&["policy", "disk", "budget"])).unwrap(),
        price in string_regex(&pattern(&["backend", "price", "running"])).unwrap(),
        rate in string_regex(&pattern(&["backend", "rate"])).unwrap(),
        days in string_regex(&pattern(&["policy", "windows", "days"])).unwrap(),
        hours in string_regex(&pattern(&["policy", "windows", "hours"])).unwrap(),
        arn in string_regex(&pattern(&["notify", "secret", "arn"])).unwrap(),
    ) {
        let read = |text: String| parse(&text, "t").map(drop).map_err(|faults| faults.to_string());
        prop_assert_eq!(read(format!("[notify]\nurl = \"https://h/x\"\nsecret.arn = {arn:?}")), Ok(()));
        let policy = |line: String| read(format!("[[policy]]\nname = \"a\"\n{line}"));
        let backend = |line: String| read(format!("[[backend]]\nname = \"a\"\nkind = \"docker\"\n{line}"));
        prop_assert_eq!(policy(format!("disk.budget = {share:?}")), Ok(()));
        prop_assert_eq!(backend(format!("price.running = {price:?}")), Ok(()));
        prop_assert_eq!(backend(format!("rate = {rate:?}")), Ok(()));
        prop_assert_eq!(policy(format!("windows = [{{ tz = \"UTC\", days = {days:?} }}]")), Ok(()));
        let read = policy(format!("windows = [{{ tz = \"UTC\", hours = {hours:?} }}]"));
        // That both ends are one, a pattern can't say.
        prop_assert!(read.as_ref().err().is_none_or(|told| told.contains("no time at all")), "{read:?}");
    }
}
