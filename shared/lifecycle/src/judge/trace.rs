//! Listens to a judgement, for `explain`; for `plan` nobody does.

use std::time::Duration;

use serde::Serialize;

use super::Ruling;
use crate::{Action, Reason, Subject, Time};

/// One rule in an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The rule, in the words of the policy.
    pub rule: &'static str,
    /// The value that it saw, for people.
    pub saw: String,
    /// How old that value was.
    #[serde(skip_serializing_if = "Option::is_none", with = "age")]
    pub age: Option<Duration>,
    /// What it said.
    pub said: Said,
    /// When it could next fire, by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}

mod age {
    use std::time::Duration;

    use serde::Serializer;

    #[expect(clippy::ref_option, reason = "serde's `with` passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(age: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match age {
            Some(age) => crate::duration::text::serialize(age, serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// What a rule said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It does not concern this runtime.
    Pass,
    /// Not now, for this reason.
    Wait(Reason),
    /// Keep it, whatever else holds.
    Keep(Reason),
    /// Act.
    Act(Action, Reason),
}

/// A value that a rule looked at.
pub(crate) struct Saw {
    pub(crate) text: String,
    pub(crate) age: Option<Duration>,
}

impl Saw {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), age: None }
    }

    /// A point in time, and how long ago it was.
    pub(crate) fn at(what: &str, at: Option<Time>, now: Time) -> Self {
        match at {
            Some(at) => Self { text: format!("{what} {at}"), age: Some(now.since(at)) },
            None => Self::new(format!("{what} not known")),
        }
    }

    /// Whose a runtime is, and whether it is there.
    pub(crate) fn of(subject: &Subject) -> Self {
        Self::new(match &subject.seen {
            Some(seen) => format!("ownership {}", seen.ownership),
            None => "not in the listing".to_owned(),
        })
    }
}

/// Something that listens, or not.
pub(crate) trait Trace: Sized + 'static {
    /// Whether the rules after the one that decides are run too.
    const FULL: bool;
    /// What the rule that runs now looks at.
    fn saw(&mut self, saw: impl FnOnce() -> Saw);
    /// What it said.
    fn ruled(&mut self, rule: &'static str, ruling: &Ruling);
    /// Both at once.
    fn step(&mut self, rule: &'static str, ruling: &Ruling, saw: impl FnOnce() -> Saw) {
        self.saw(saw);
        self.ruled(rule, ruling);
    }
}

/// Nobody listens.
pub(crate) struct Silent;

impl Trace for Silent {
    const FULL: bool = false;
    fn saw(&mut self, _: impl FnOnce() -> Saw) {}
    fn ruled(&mut self, _: &'static str, _: &Ruling) {}
}

/// Writes down every step.
#[derive(Default)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    saw: Option<Saw>,
}

impl Trace for Steps {
    const FULL: bool = true;

    fn saw(&mut self, saw: impl FnOnce() -> Saw) {
        self.saw = Some(saw());
    }

    fn ruled(&mut self, rule: &'static str, ruling: &Ruling) {
        let Saw { text: saw, age } = self.saw.take().unwrap_or(Saw::new("nothing set"));
        let (said, next) = match ruling {
            Ruling::Pass => (Said::Pass, None),
            Ruling::Wait(reason, next) => (Said::Wait(reason.clone()), *next),
            Ruling::Veto(reason, next) => (Said::Keep(reason.clone()), *next),
            Ruling::Act(action, reason) => (Said::Act(*action, reason.clone()), None),
        };
        self.steps.push(Step { rule, saw, age, said, next });
    }
}
