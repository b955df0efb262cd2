//! A record as it stands in the store, for its form.

use lifecycle::{State, Time};
use serde_json::Value;

/// What the auditor reads of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) token: u64,
    pub(crate) run: Option<String>,
    pub(crate) owner: Option<String>,
    /// The claim's end.
    pub(crate) until: Option<Time>,
    pub(crate) idle_from: Time,
    pub(crate) busy: Option<Time>,
    pub(crate) wanted: Option<Time>,
    pub(crate) absent: Option<Time>,
    pub(crate) condemned: Option<Time>,
    pub(crate) noticed: Option<Time>,
    pub(crate) hold: Option<String>,
    pub(crate) attempts: u64,
    /// `None`: it is in no index.
    pub(crate) due: Option<Time>,
}

impl Row {
    /// From the attributes of an item, by the names that they are stored under.
    pub(crate) fn of(item: &Value) -> Option<Self> {
        let text = |name: &str| Some(item.get(name)?.get("S")?.as_str()?.to_owned());
        let number = |name: &str| item.get(name)?.get("N")?.as_str()?.parse::<i64>().ok();
        let count = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
        let time = |name: &str| number(name).map(Time::from_millis);
        let state = text("st")?;
        Some(Self {
            state: State::ALL.into_iter().find(|known| known.as_str() == state)?,
            epoch: count("ep").unwrap_or(0),
            token: count("tk")?,
            run: text("ic"),
            owner: text("co"),
            until: time("cu"),
            idle_from: time("if")?,
            busy: time("bu"),
            wanted: time("wa"),
            absent: time("ab"),
            condemned: time("cd"),
            noticed: time("no"),
            hold: item.get("hu").map(ToString::to_string),
            attempts: count("at").unwrap_or(0),
            due: text("due_shard").and(time("due_at")),
        })
    }

    /// When its hold ends, where it has one that does.
    pub(crate) fn held_until(&self) -> Option<Time> {
        let hold: Value = serde_json::from_str(self.hold.as_deref()?).ok()?;
        Some(Time::from_millis(hold.get("N")?.as_str()?.parse().ok()?))
    }

    /// What differs between two, for people.
    pub(crate) fn changes(old: Option<&Self>, new: &Self) -> String {
        use super::super::trace::offset;
        let mut changes = Vec::new();
        let time = |time: Option<Time>| time.map_or("-".to_owned(), offset);
        let mut differs = |what: &str, before: Option<String>, after: String| {
            let blank = before.is_none() && ["-", "0", "None"].contains(&after.as_str());
            if before.as_ref() != Some(&after) && !blank {
                changes.push(format!("{what} {} → {after}", before.unwrap_or_default()));
            }
        };
        differs("state", old.map(|old| old.state.to_string()), new.state.to_string());
        differs("token", old.map(|old| old.token.to_string()), new.token.to_string());
        differs("epoch", old.map(|old| old.epoch.to_string()), new.epoch.to_string());
        differs("run", old.map(|old| format!("{:?}", old.run)), format!("{:?}", new.run));
        let claim = |row: &Self| {
            row.until.map(|until| format!("{} until {}", row.owner.as_deref().unwrap_or("?"), offset(until)))
        };
        differs("claim", old.map(|old| claim(old).unwrap_or("-".into())), claim(new).unwrap_or("-".into()));
        differs("idle from", old.map(|old| offset(old.idle_from)), offset(new.idle_from));
        let times = |row: &Self| {
            [
                ("busy", row.busy),
                ("wanted", row.wanted),
                ("absent", row.absent),
                ("condemned", row.condemned),
                ("noticed", row.noticed),
                ("due", row.due),
            ]
        };
        let before = old.map(times);
        for (number, (what, after)) in times(new).into_iter().enumerate() {
            differs(what, before.map(|before| time(before[number].1)), time(after));
        }
        differs("hold", old.map(|old| format!("{:?}", old.hold)), format!("{:?}", new.hold));
        differs("attempts", old.map(|old| old.attempts.to_string()), new.attempts.to_string());
        changes.join(", ")
    }
}
