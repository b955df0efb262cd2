//! A record as an item, and back. What can't be read is an error, never a default that looks idle or free.

use std::{str::FromStr, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::{
    BackendName, Incarnation, Record, RuntimeId, Signal, State, Tier, Time,
    record::{Claim, Epoch, Hold, Token},
};

use crate::{
    LedgerError, MAX_INCARNATION_BYTES, MAX_OWNER_BYTES,
    attribute::{self, Item, number, stored, text, time},
};

/// The format that this Furlough writes.
pub(crate) const VERSION: u32 = 1;

/// What stands for a hold without an end.
const FOREVER: &str = "forever";

/// The partition key of a runtime.
pub(crate) fn key(id: &RuntimeId) -> String {
    format!("runtime/{id}")
}

/// What the partition keys of a backend's runtimes begin with.
pub(crate) fn prefix(backend: &BackendName) -> String {
    format!("runtime/{backend}/")
}

/// The runtime of a partition key.
pub(crate) fn runtime(key: &str) -> Option<RuntimeId> {
    RuntimeId::from_str(key.strip_prefix("runtime/")?).ok()
}

/// Reads the attributes of one item by their words.
pub(crate) struct Reader<'a> {
    item: &'a Item,
    name: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(name: &'a str, item: &'a Item) -> Self {
        Self { item, name }
    }

    pub(crate) fn malformed(&self, word: &str, why: impl Into<String>) -> LedgerError {
        LedgerError::Malformed { item: self.name.to_owned(), attribute: word.to_owned(), why: why.into() }
    }

    fn value(&self, word: &str) -> Option<&'a AttributeValue> {
        self.item.get(stored(word))
    }

    pub(crate) fn text(&self, word: &str) -> Result<Option<&'a str>, LedgerError> {
        match self.value(word) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(other) => Err(self.malformed(word, format!("a text was expected, not {}", kind(other)))),
        }
    }

    pub(crate) fn number<N: FromStr>(&self, word: &str) -> Result<Option<N>, LedgerError> {
        match self.value(word) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => match digits.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.malformed(word, format!("`{digits}` is out of range or not whole"))),
            },
            Some(other) => Err(self.malformed(word, format!("a number was expected, not {}", kind(other)))),
        }
    }

    pub(crate) fn time(&self, word: &str) -> Result<Option<Time>, LedgerError> {
        let Some(millis) = self.number::<i64>(word)? else { return Ok(None) };
        if (1..=Time::MAX.millis()).contains(&millis) {
            return Ok(Some(Time::from_millis(millis)));
        }
        Err(self.malformed(word, format!("`{millis}` is no time in milliseconds since 1970")))
    }

    pub(crate) fn needed<T>(&self, word: &str, read: Option<T>) -> Result<T, LedgerError> {
        read.ok_or_else(|| self.malformed(word, "it is missing"))
    }

    fn one_of<T: Copy>(&self, word: &str, known: &[(&str, T)]) -> Result<Option<T>, LedgerError> {
        let Some(text) = self.text(word)? else { return Ok(None) };
        let found = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.map(Some).ok_or_else(|| self.malformed(word, format!("`{text}` is not a known word")))
    }

    /// Unreadable is a value here: it holds.
    fn hold(&self) -> Option<Hold> {
        Some(match self.value("hold_until")? {
            AttributeValue::S(text) if text == FOREVER => Hold::Forever,
            AttributeValue::N(digits) => {
                // A part of a millisecond counts as a whole one: as the write's condition takes it.
                let (whole, part) = digits.split_once('.').map_or((&**digits, 0), |(whole, _)| (whole, 1));
                match whole.parse::<i64>() {
                    Ok(millis) if millis >= 1 => Hold::Until(Time::from_millis(millis.saturating_add(part))),
                    _ => Hold::Unreadable,
                }
            }
            _ => Hold::Unreadable,
        })
    }

    pub(crate) fn claim(&self) -> Result<Option<Claim>, LedgerError> {
        match (self.text("claim_owner")?, self.time("claim_until")?) {
            (None, None) => Ok(None),
            (Some(owner), Some(until)) => Ok(Some(Claim { owner: Arc::from(owner), until })),
            (None, Some(_)) => Err(self.malformed("claim_owner", "it is missing")),
            (Some(_), None) => Err(self.malformed("claim_until", "it is missing")),
        }
    }

    /// The format; 0 before there was one. A newer one is an error.
    pub(crate) fn version(&self) -> Result<u32, LedgerError> {
        let found = self.number::<u64>("v")?.unwrap_or(0);
        match u32::try_from(found) {
            Ok(v) if v <= VERSION => Ok(v),
            _ => Err(LedgerError::Newer { item: self.name.to_owned(), found, known: VERSION }),
        }
    }
}

fn kind(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "a text",
        AttributeValue::N(_) => "a number",
        AttributeValue::Bool(_) => "true or false",
        AttributeValue::Null(_) => "null",
        AttributeValue::M(_) => "a map",
        AttributeValue::L(_) => "a list",
        AttributeValue::B(_) | AttributeValue::Bs(_) => "bytes",
        _ => "a set",
    }
}

const SIGNALS: [(&str, Signal); 3] = [
    (Signal::Heartbeat.as_str(), Signal::Heartbeat),
    (Signal::Provider.as_str(), Signal::Provider),
    (Signal::Probe.as_str(), Signal::Probe),
];

const TIERS: [(&str, Tier); 3] = [
    (Tier::Caches.as_str(), Tier::Caches),
    (Tier::Dependencies.as_str(), Tier::Dependencies),
    (Tier::Runtime.as_str(), Tier::Runtime),
];

/// Reads a record. An older format is read as what it means today; [`Record::v`] says what was stored.
pub(crate) fn record(id: &RuntimeId, item: &Item) -> Result<Record, LedgerError> {
    let name = id.to_string();
    let read = Reader::new(&name, item);
    let v = read.version()?;
    let state_since = read.needed("state_since", read.time("state_since")?)?;
    let first_seen = match read.time("first_seen")? {
        None if v == 0 => state_since,
        first_seen => read.needed("first_seen", first_seen)?,
    };
    let states = State::ALL.map(|state| (state.as_str(), state));
    let (due_at, shard) = (read.time("due_at")?, read.text("due_shard")?);
    Ok(Record {
        v,
        epoch: read.needed("epoch", read.number::<Epoch>("epoch")?)?,
        incarnation: read.text("incarnation")?.map(Incarnation::new),
        state: read.needed("state", read.one_of("state", &states)?)?,
        state_since,
        first_seen,
        idle_from: read.needed("idle_from", read.time("idle_from")?)?,
        last_active: read.time("last_active")?,
        last_source: read.one_of("last_source", &SIGNALS)?,
        frozen_since: read.time("frozen_since")?,
        busy_until: read.time("busy_until")?,
        running_since: read.time("running_since")?,
        idle_ms: read.number("idle_ms")?,
        cap_at: read.time("cap_at")?,
        armed: read.time("armed")?,
        hold_until: read.hold(),
        wanted_at: read.time("wanted_at")?,
        absent_since: read.time("absent_since")?,
        attempts: read.number("attempts")?.unwrap_or(0),
        shed: read.one_of("shed", &TIERS)?,
        condemned_at: read.time("condemned_at")?,
        noticed_at: read.time("noticed_at")?,
        saved_as_of: read.time("saved_as_of")?,
        claim: read.claim()?,
        token: read.needed("token", read.number::<Token>("token")?)?,
        due_at: shard.and(due_at),
    })
}

/// Writes a record, without its key and its place in the index.
pub(crate) fn attributes(record: &Record) -> Item {
    let times = [
        ("state_since", Some(record.state_since)),
        ("first_seen", Some(record.first_seen)),
        ("idle_from", Some(record.idle_from)),
        ("last_active", record.last_active),
        ("frozen_since", record.frozen_since),
        ("busy_until", record.busy_until),
        ("running_since", record.running_since),
        ("cap_at", record.cap_at),
        ("armed", record.armed),
        ("wanted_at", record.wanted_at),
        ("absent_since", record.absent_since),
        ("condemned_at", record.condemned_at),
        ("noticed_at", record.noticed_at),
        ("saved_as_of", record.saved_as_of),
        ("claim_until", record.claim.as_ref().map(|claim| claim.until)),
        ("due_at", record.due_at),
    ];
    let others = [
        ("v", Some(number(VERSION))),
        ("epoch", Some(number(record.epoch))),
        ("token", Some(number(record.token))),
        ("state", Some(text(record.state.as_str()))),
        ("incarnation", record.incarnation.as_ref().map(|run| text(run.as_str()))),
        ("last_source", record.last_source.map(|signal| text(signal.as_str()))),
        ("shed", record.shed.map(|tier| text(tier.as_str()))),
        ("idle_ms", record.idle_ms.map(number)),
        ("attempts", (record.attempts > 0).then(|| number(record.attempts))),
        ("hold_until", record.hold_until.map(hold)),
        ("claim_owner", record.claim.as_ref().map(|claim| text(&*claim.owner))),
    ];
    let times = times.into_iter().filter_map(|(word, at)| Some((word, time(at?))));
    let others = others.into_iter().filter_map(|(word, value)| Some((word, value?)));
    times.chain(others).map(|(word, value)| (stored(word).to_owned(), value)).collect()
}

/// A hold as it is stored. One that can't be read can't be wished for either: it holds for ever.
pub(crate) fn hold(hold: Hold) -> AttributeValue {
    match hold {
        Hold::Until(until) => time(until),
        Hold::Forever | Hold::Unreadable => text(FOREVER),
    }
}

/// A run that a record can hold.
pub(crate) fn check_run(id: &RuntimeId, run: &Incarnation) -> Result<(), LedgerError> {
    check_length(id, "incarnation", run.as_str(), MAX_INCARNATION_BYTES)
}

/// An owner that a record can hold.
pub(crate) fn check_owner(id: &RuntimeId, owner: &str) -> Result<(), LedgerError> {
    check_length(id, "owner", owner, MAX_OWNER_BYTES)
}

fn check_length(id: &RuntimeId, what: &'static str, text: &str, limit: usize) -> Result<(), LedgerError> {
    let bytes = text.len();
    if bytes <= limit {
        return Ok(());
    }
    Err(LedgerError::TooLong { item: id.to_string(), what, bytes, limit })
}

/// The index partition of a runtime: `<backend>/<shard>`, or a digest in place of a backend's name of more
/// than 32 bytes, so that the largest record stays under 1,000. `#` is in no backend's name.
pub(crate) fn shard_name(backend: &BackendName, shard: u32) -> String {
    match backend.as_str() {
        name if name.len() <= 32 => format!("{name}/{shard}"),
        name => format!("#{}/{shard}", &blake3::hash(name.as_bytes()).to_hex()[..16]),
    }
}

/// A number that is a runtime's own and the same in every process.
pub(crate) fn digest(id: &RuntimeId) -> u64 {
    let hash = blake3::hash(id.to_string().as_bytes());
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The key of a page's end.
pub(crate) fn page_key(pk: &str, sk: &str) -> Item {
    Item::from([("pk".to_owned(), attribute::text(pk)), ("sk".to_owned(), attribute::text(sk))])
}
