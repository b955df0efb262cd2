//! The OpenHands agent server's webhooks, as they are.
//!
//! `events/{conversation}` carries a JSON array of events, each with `kind`, `id`, `timestamp` and `source`;
//! `conversations` carries one conversation. Nothing is signed and nothing is numbered; a batch may come twice, or
//! late. The server stamps naive local time: its clock orders its own events and says nothing of ours.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// How long a conversation that says it runs is taken to be at work. It says so when a run begins and nothing
/// while a long tool call is under way; and of a crash it says nothing either.
pub const RUNNING_FOR: Duration = Duration::from_hours(1);

/// The most events of a delivery that are looked at: the agent server sends five.
const MAX_EVENTS: usize = 1_000;

/// What a delivery says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The id of its newest event, by which a repeated delivery is known. `None`: it has no event with an id.
    pub newest: Option<String>,
    /// A run is under way.
    pub running: bool,
}

/// An event, as far as it concerns us.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Value,
}

impl Event {
    /// What it says of the run, if it says anything.
    fn status(&self) -> Option<&str> {
        match self.key.as_deref()? {
            "execution_status" => self.value.as_str(),
            _ => self.value.get("execution_status")?.as_str(),
        }
    }
}

/// Reads a delivery of events. What is no event is passed over: a kind that we don't know is activity too.
pub fn events(bytes: &[u8]) -> Result<Delivery, serde_json::Error> {
    let values: Vec<Value> = serde_json::from_slice(bytes)?;
    let events = values.into_iter().take(MAX_EVENTS).filter_map(|value| serde_json::from_value::<Event>(value).ok());
    let mut events: Vec<_> = events.collect();
    // Stable: events without a time, or with the same, stay in the order of the delivery.
    events.sort_by(|a, b| a.timestamp.cmp(&b.timestamp));
    let running = events.iter().rev().find_map(Event::status) == Some("running");
    let newest = events.into_iter().rev().find_map(|event| event.id).filter(|id| !id.is_empty());
    Ok(Delivery { newest, running })
}

/// Reads a conversation.
pub fn conversation(bytes: &[u8]) -> Result<Delivery, serde_json::Error> {
    let value: Value = serde_json::from_slice(bytes)?;
    let running = value.get("execution_status").and_then(Value::as_str) == Some("running");
    Ok(Delivery { newest: None, running })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(events_sent: &Value) -> (Option<String>, bool) {
        let Delivery { newest, running } = events(events_sent.to_string().as_bytes()).unwrap();
        (newest, running)
    }

    #[test]
    fn the_newest_event_is_that_with_the_latest_time_not_the_last_to_come() {
        let sent = json!([
            { "kind": "MessageEvent", "id": "b", "timestamp": "2026-11-30T10:00:02.000001", "source": "agent" },
            { "kind": "ActionEvent", "id": "a", "timestamp": "2026-11-30T10:00:01.000000", "source": "agent" },
        ]);
        assert_eq!(read(&sent), (Some("b".to_owned()), false));
        assert_eq!(read(&json!([])), (None, false));
        assert_eq!(read(&json!([{ "kind": "X" }, 5, null])), (None, false));
    }

    #[test]
    fn a_run_is_under_way_when_the_last_word_on_it_says_so() {
        let said = |second: u32, value: &str| {
            json!({
                "kind": "ConversationStateUpdateEvent", "id": second.to_string(), "source": "environment",
                "timestamp": format!("2026-11-30T10:00:0{second}.000000"), "key": "execution_status", "value": value,
            })
        };
        assert_eq!(read(&json!([said(1, "running")])), (Some("1".to_owned()), true));
        assert_eq!(read(&json!([said(2, "finished"), said(1, "running")])), (Some("2".to_owned()), false));
        assert_eq!(read(&json!([said(1, "idle"), said(2, "running")])), (Some("2".to_owned()), true));
        let full = json!([{ "id": "1", "key": "full_state", "value": { "execution_status": "running" } }]);
        assert_eq!(read(&full), (Some("1".to_owned()), true));
        assert!(conversation(br#"{"id":"x","execution_status":"running"}"#).unwrap().running);
        assert!(!conversation(br#"{"id":"x","execution_status":"deleting"}"#).unwrap().running);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (events(&bytes).is_ok(), conversation(&bytes).is_ok());
        }
    }
}
