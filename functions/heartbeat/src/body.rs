//! Bodies of ours. What has an unknown field is refused: a misspelt `busy_for` would let a busy runtime look idle.

use std::{collections::BTreeMap, fmt, marker::PhantomData, time::Duration};

use lifecycle::{RuntimeId, duration};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use workspace::key::Name;

use crate::{route, token::Token};

/// The most heartbeats in one request.
pub const MAX_BATCH: usize = 100;

/// The most labels of a registration, and the longest name or value of one, in bytes.
const MAX_LABELS: usize = 64;
const MAX_LABEL_BYTES: usize = 256;

/// `PUT /runtimes/{backend}/{id}`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Register {
    /// What policies match by.
    pub labels: BTreeMap<String, String>,
}

/// `POST /runtimes/{backend}/{id}/heartbeat`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Beat {
    /// Work is under way for that long.
    #[serde(deserialize_with = "span")]
    pub busy_for: Option<Duration>,
}

/// `POST /runtimes/{backend}/{id}/saved`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// The workspace that has the runtime's work.
    #[serde(deserialize_with = "workspace")]
    pub workspace: Name,
    /// In this generation, or a later one.
    pub generation: u64,
    /// How long ago its scan began.
    #[serde(deserialize_with = "age")]
    pub age: Duration,
}

/// `POST /heartbeats`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// One a runtime.
    #[serde(deserialize_with = "items")]
    pub heartbeats: Vec<Item>,
}

/// A heartbeat of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// `BACKEND/ID`.
    #[serde(deserialize_with = "name")]
    pub runtime: RuntimeId,
    /// Its token, where the request as a whole is not a host's.
    #[serde(default, deserialize_with = "token")]
    pub token: Option<Token>,
    /// Work is under way for that long.
    #[serde(default, deserialize_with = "span")]
    pub busy_for: Option<Duration>,
}

/// A body that is none: what is wrong, without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a body. None at all is the same as `{}`.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map(|Object(body)| body).map_err(|error| Malformed(plain(&error)))
}

/// What is written as an object. serde alone would take an array too, and its values by their places, so that an empty
/// one would be a heartbeat.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, fields: M) -> Result<Object<T>, M::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
    }
}

/// serde's words without what it quotes of the body, which may be a token.
fn plain(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let told = error.to_string();
    let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
    let safe = ["unknown field", "missing field", "trailing characters", "EOF while parsing", "expected"];
    let quotes = told.starts_with("invalid type: string") || told.starts_with("invalid value: string");
    let told = if !quotes && safe.iter().any(|known| told.contains(known)) { told } else { "it can't be read" };
    // An unknown field's name is the caller's own text, and as long as he likes.
    let told: String = told.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("the body is not what is expected here: {told}, at line {line}, column {column}")
}

impl Register {
    /// Whether the labels are within their limits.
    pub fn check(&self) -> Result<(), Malformed> {
        let labels = &self.labels;
        if labels.len() > MAX_LABELS {
            return Err(Malformed(format!("there are {} labels; at most {MAX_LABELS} are allowed", labels.len())));
        }
        let longest = labels.iter().map(|(name, value)| name.len().max(value.len())).max().unwrap_or(0);
        if longest > MAX_LABEL_BYTES {
            return Err(Malformed(format!("a label has {longest} bytes; at most {MAX_LABEL_BYTES} are allowed")));
        }
        if labels.keys().any(String::is_empty) {
            return Err(Malformed("a label has no name".to_owned()));
        }
        Ok(())
    }
}

impl Batch {
    /// Whether it is within its limit.
    pub fn check(&self) -> Result<(), Malformed> {
        match self.heartbeats.len() {
            0 => Err(Malformed("`heartbeats` is empty; it needs 1 to 100".to_owned())),
            1..=MAX_BATCH => Ok(()),
            many => Err(Malformed(format!("there are {many} heartbeats; at most {MAX_BATCH} are allowed"))),
        }
    }
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| duration::parse(&text).map_err(|_| no_duration())).transpose()
}

fn age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    span(deserializer)?.ok_or_else(no_duration)
}

fn no_duration<E: serde::de::Error>() -> E {
    E::custom("expected a duration with a unit, as \"90s\" or \"10m\"")
}

fn workspace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let text = String::deserialize(deserializer)?;
    Name::new(&text).map_err(|_| serde::de::Error::custom("expected a workspace's name"))
}

fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Item>, D::Error> {
    let items = Vec::<Object<Item>>::deserialize(deserializer)?;
    Ok(items.into_iter().map(|Object(item)| item).collect())
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuntimeId, D::Error> {
    let text = String::deserialize(deserializer)?;
    route::runtime(&text).map_err(|_| serde::de::Error::custom("expected a runtime as \"BACKEND/ID\""))
}

fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Token>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| serde::de::Error::custom("expected a runtime's token, as \"fr1.EPOCH.…\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused<T: DeserializeOwned + fmt::Debug>(body: &str) -> String {
        let told = read::<T>(body.as_bytes()).unwrap_err().0;
        told.strip_prefix("the body is not what is expected here: ").unwrap().to_owned()
    }

    #[test]
    fn no_body_and_an_empty_one_say_the_same() {
        assert_eq!(read::<Beat>(b""), Ok(Beat { busy_for: None }));
        assert_eq!(read::<Beat>(b"{}"), Ok(Beat { busy_for: None }));
        assert_eq!(read::<Beat>(br#"{"busy_for":null}"#), Ok(Beat { busy_for: None }));
        let busy = Beat { busy_for: Some(Duration::from_secs(90)) };
        assert_eq!(read::<Beat>(br#"{"busy_for":"1m30s"}"#), Ok(busy));
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        assert_eq!(
            refused::<Beat>(r#"{"bussy_for":"1m"}"#),
            "unknown field `bussy_for`, expected `busy_for`, at line 1, column 12"
        );
        assert!(refused::<Batch>(r#"{"heartbeats":[{"runtime":"b/i","x":1}]}"#).starts_with("unknown field `x`"));
        assert!(refused::<Register>(r#"{"label":{}}"#).starts_with("unknown field `label`"));
        assert!(refused::<Batch>("{}").starts_with("missing field `heartbeats`"));
        assert!(refused::<Beat>("{\"busy_for\":\"5\"}").starts_with("expected a duration with a unit"));
        assert!(refused::<Beat>("{").starts_with("EOF while parsing an object"));
        assert!(refused::<Beat>("{} {}").starts_with("trailing characters"));
        for array in ["[]", r#"["5m"]"#] {
            assert!(refused::<Beat>(array).starts_with("invalid type: sequence, expected an object"));
        }
        assert!(refused::<Batch>(r#"{"heartbeats":[["b/i"]]}"#).starts_with("invalid type: sequence"));
    }

    #[test]
    fn a_save_names_all_of_it() {
        let told = read::<Saved>(br#"{"workspace":"ada","generation":3,"age":"12s"}"#).unwrap();
        assert_eq!((told.workspace.as_str(), told.generation, told.age), ("ada", 3, Duration::from_secs(12)));
        for (body, why) in [
            (r#"{"generation":3,"age":"12s"}"#, "missing field `workspace`"),
            (r#"{"workspace":"ada","age":"12s"}"#, "missing field `generation`"),
            (r#"{"workspace":"ada","generation":3}"#, "missing field `age`"),
            (r#"{"workspace":"ada","generation":3,"age":null}"#, "expected a duration with a unit"),
            (r#"{"workspace":"ada","generation":3,"age":"12"}"#, "expected a duration with a unit"),
            (r#"{"workspace":"../a","generation":3,"age":"12s"}"#, "expected a workspace's name"),
            (r#"{"workspace":"ada","generation":3,"age":"12s","as_of":1}"#, "unknown field `as_of`"),
        ] {
            assert!(refused::<Saved>(body).starts_with(why), "{body}: {}", refused::<Saved>(body));
        }
    }

    #[test]
    fn nothing_that_could_be_a_token_is_quoted() {
        let secret = "fr1.1.deadbeef";
        for body in [
            format!(r#""{secret}""#),
            format!(r#"{{"heartbeats":"{secret}"}}"#),
            format!(r#"{{"heartbeats":[{{"runtime":"b/i","token":"{secret}"}}]}}"#),
            format!(r#"{{"heartbeats":[{{"runtime":"{secret}"}}]}}"#),
        ] {
            let told = refused::<Batch>(&body);
            assert!(!told.contains("deadbeef"), "{told}");
        }
    }

    #[test]
    fn labels_and_batches_have_limits() {
        let labels = |count: usize, bytes: usize| Register {
            labels: (0..count).map(|at| (at.to_string(), "v".repeat(bytes))).collect(),
        };
        assert_eq!(labels(64, 256).check(), Ok(()));
        let many = Malformed("there are 65 labels; at most 64 are allowed".to_owned());
        assert_eq!(labels(65, 1).check(), Err(many));
        let long = Malformed("a label has 257 bytes; at most 256 are allowed".to_owned());
        assert_eq!(labels(1, 257).check(), Err(long));
        let item = Item { runtime: "b/i".parse().unwrap(), token: None, busy_for: None };
        let batch = |count| Batch { heartbeats: vec![item.clone(); count] };
        assert_eq!((batch(1).check(), batch(100).check()), (Ok(()), Ok(())));
        assert!(batch(0).check().is_err() && batch(101).check().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read::<Beat>(&bytes).is_ok(), read::<Batch>(&bytes).is_ok(), read::<Register>(&bytes).is_ok());
            let _ = read::<Saved>(&bytes).is_ok();
        }

        #[test]
        fn any_json_near_a_batch_is_read_or_refused(
            runtime in "\\PC{0,20}", token in "\\PC{0,20}", busy in "\\PC{0,8}", extra in "[a-z]{0,3}",
        ) {
            let body = serde_json::json!({ "heartbeats": [{ "runtime": runtime, "token": token, "busy_for": busy, extra: 1 }] });
            prop_assert!(read::<Batch>(body.to_string().as_bytes()).is_err(), "the token or the extra field is wrong");
        }
    }
}
