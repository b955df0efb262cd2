//! Looks into an agent server: which conversations run, which commands have no exit code yet, and whether a
//! conversation has moved.
//!
//! **Invariants.** What was running when the server was handed over is what a killed one has left: it counts when it
//! moves. What says that it runs and does not move is believed for 12 hours. A server that does not answer is
//! believed to do what it did.

use std::{collections::HashMap, time::Duration};

use lifecycle::Time;
use serde_json::Value;

use crate::{
    activity::Seen,
    agent::{Agent, Asked},
};

/// How long something that does not move is believed to run.
const BELIEVED: Duration = Duration::from_hours(12);
/// The most that is read of each at once: what the agent server gives.
const MOST: usize = 100;

/// Something that says that it runs, and what changes when it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What: a conversation's or a command's id.
    pub id: String,
    /// What changes.
    pub mark: String,
}

/// What was seen before.
#[derive(Debug, Default)]
pub struct Sightings {
    /// What runs: its mark, and since when it has that.
    running: HashMap<String, (String, Time)>,
    /// The conversation that moved last.
    newest: Option<Sight>,
}

impl Sightings {
    /// Whether something runs.
    fn runs(&mut self, running: impl IntoIterator<Item = Sight>, now: Time) -> bool {
        let mut before = std::mem::take(&mut self.running);
        for Sight { id, mark } in running {
            let since = before.remove(&id).filter(|(known, _)| *known == mark).map_or(now, |(_, since)| since);
            self.running.insert(id, (mark, since));
        }
        self.still_runs(now)
    }

    fn still_runs(&self, now: Time) -> bool {
        self.running.values().any(|(_, since)| now.since(*since) < BELIEVED)
    }

    /// Whether a conversation has moved since the last look.
    fn moved(&mut self, newest: Option<Sight>) -> bool {
        let moved = self.newest.is_some() && newest.is_some() && self.newest != newest;
        self.newest = newest.or(self.newest.take());
        moved
    }
}

/// A look. A server that knows neither conversations nor commands shows nothing.
pub(crate) async fn look(agent: &Agent, key: &str, sightings: &mut Sightings) -> Seen {
    let now = settings::system::now();
    let newest = agent.ask("/api/conversations/search?sort_order=UPDATED_AT_DESC&limit=1", key).await;
    let worked = match &newest {
        Asked::Told(page) => sightings.moved(conversations(page).into_iter().next()),
        Asked::Nothing | Asked::Silent => false,
    };
    let busy = match running(agent, key).await {
        Some(running) => sightings.runs(running.into_iter().filter(|sight| !agent.had(sight)), now),
        None => sightings.still_runs(now),
    };
    Seen { worked, busy }
}

/// What says that it runs; `None`: the server does not answer.
pub(crate) async fn running(agent: &Agent, key: &str) -> Option<Vec<Sight>> {
    let page = |asked: Asked| match asked {
        Asked::Told(page) => Some(page),
        Asked::Nothing => Some(Value::Null),
        Asked::Silent => None,
    };
    let run = page(agent.ask(&format!("/api/conversations/search?status=running&limit={MOST}"), key).await)?;
    let events = format!("/api/bash/bash_events/search?sort_order=TIMESTAMP_DESC&limit={MOST}");
    let events = page(agent.ask(&events, key).await)?;
    Some([conversations(&run), commands(&events)].concat())
}

fn items(page: &Value) -> impl Iterator<Item = &Value> {
    page.get("items").and_then(Value::as_array).into_iter().flatten().take(MOST)
}

fn text<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    item.get(name)?.as_str()
}

/// The conversations of a page; each moves with its time.
fn conversations(page: &Value) -> Vec<Sight> {
    let sight = |item: &Value| {
        let mark = text(item, "updated_at").unwrap_or_default().to_owned();
        Some(Sight { id: text(item, "id")?.to_owned(), mark })
    };
    items(page).filter_map(sight).collect()
}

/// The commands of a page, newest first, that have no exit code; each moves with its output.
fn commands(page: &Value) -> Vec<Sight> {
    let mut found: Vec<(&str, &str, bool)> = Vec::new();
    for item in items(page) {
        let id = text(item, "id").unwrap_or_default();
        let command = text(item, "command_id").unwrap_or(id);
        let ended = item.get("exit_code").is_some_and(|code| !code.is_null());
        match found.iter_mut().find(|(known, ..)| *known == command) {
            Some((.., known)) => *known |= ended,
            None => found.push((command, id, ended)),
        }
    }
    let running = found.into_iter().filter(|(command, _, ended)| !ended && !command.is_empty());
    running.map(|(command, newest, _)| Sight { id: command.to_owned(), mark: newest.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(hours: u64) -> Time {
        Time::from_millis(1_764_500_000_000).plus(Duration::from_hours(hours))
    }

    fn sight(id: &str, mark: &str) -> Sight {
        Sight { id: id.to_owned(), mark: mark.to_owned() }
    }

    #[test]
    fn a_command_without_an_exit_code_runs() {
        let page = json!({ "items": [
            { "kind": "BashOutput", "id": "o3", "command_id": "c2", "exit_code": null },
            { "kind": "BashOutput", "id": "o2", "command_id": "c1", "exit_code": 0 },
            { "kind": "BashCommand", "id": "c2", "command": "sleep 9" },
            { "kind": "BashOutput", "id": "o1", "command_id": "c1", "exit_code": null },
            { "kind": "BashCommand", "id": "c1", "command": "true" },
            { "kind": "BashCommand", "id": "c0", "command": "sleep 8" },
        ] });
        assert_eq!(commands(&page), [sight("c2", "o3"), sight("c0", "c0")]);
    }

    #[test]
    fn what_does_not_move_is_believed_for_so_long() {
        let mut seen = Sightings::default();
        assert!(seen.runs([sight("a", "1")], at(0)));
        assert!(seen.runs([sight("a", "1")], at(11)));
        assert!(!seen.runs([sight("a", "1")], at(12)), "a run that was killed says so for ever");
        assert!(seen.runs([sight("a", "2")], at(13)), "it has moved");
        assert!(seen.still_runs(at(24)) && !seen.still_runs(at(25)), "a server that is silent does what it did");
        assert!(!seen.runs([], at(26)));
    }

    #[test]
    fn a_conversation_that_moves_is_a_sign_and_the_first_look_is_none() {
        let mut seen = Sightings::default();
        let moves: Vec<_> = [Some("1"), Some("1"), None, Some("2"), Some("2")]
            .map(|mark| seen.moved(mark.map(|mark| sight("a", mark))))
            .into();
        assert_eq!(moves, [false, false, false, true, false]);
    }

    proptest! {
        #[test]
        fn any_page_is_read(body in "\\PC{0,80}", id in "\\PC{0,8}", code in any::<Option<i64>>()) {
            for page in [serde_json::from_str(&body).unwrap_or(Value::Null), json!({ "items": [{ "id": id, "exit_code": code }, body] })] {
                let _ = (conversations(&page), commands(&page));
            }
        }
    }
}
