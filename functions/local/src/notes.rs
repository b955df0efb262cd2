//! What people know a runtime by, and what they left word of: who holds it and why, who paused its backend and why, who
//! is at work on it.

use std::{collections::BTreeMap, sync::Arc};

use ledger::Pause;
use lifecycle::{
    BackendName, Claim, Fate, Kept, Reason, Report, RuntimeId, Snapshot, Subject, Time, UnitSnapshot,
    plan::BackendNote, policy::HOLD_LABEL, record::Hold,
};
use pass::Pass;
use serde::Serialize;

use crate::{
    answer::{Fault, to_json},
    parts::ledger_fault,
    render::words::{ago, clock, safe},
};

/// At most so many holds are asked for their story; of further ones only the end is told.
const MAX_HOLDS: usize = 1_000;

/// A hold and its story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HoldNote {
    /// Until when.
    pub(crate) hold: Hold,
    /// Who holds it; `None`: its label does, or the record does not tell.
    pub(crate) by: Option<String>,
    /// Why, where somebody said so.
    pub(crate) why: Option<String>,
    /// Since when, where that is known.
    pub(crate) at: Option<Time>,
    /// The label that holds it; `None`: `furlough hold` did.
    pub(crate) label: Option<&'static str>,
}

/// What people know runtimes by, and what they left word of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    abouts: BTreeMap<RuntimeId, Arc<str>>,
    holds: BTreeMap<RuntimeId, HoldNote>,
    claims: BTreeMap<RuntimeId, Claim>,
    pauses: BTreeMap<BackendName, Pause>,
}

impl Notes {
    /// All that concerns these runtimes and backends.
    pub(crate) async fn of(pass: &Pass, snapshot: &Snapshot, notes: &[BackendNote], now: Time) -> Result<Self, Fault> {
        let mut all = Self::default();
        let paused = notes.iter().filter(|note| note.paused).map(|note| &note.backend);
        all.add_pauses(pass, paused).await?;
        let subjects = snapshot.units.iter().flat_map(UnitSnapshot::subjects);
        let about = |subject: &Subject| Some((subject.id.clone(), subject.seen.as_ref()?.about.clone()));
        all.abouts = subjects.clone().filter_map(about).collect();
        for subject in subjects {
            all.add_subject(pass, subject, now).await?;
        }
        Ok(all)
    }

    /// What stood in the way of a pass: of its backends as they are now, and of what was refused.
    pub(crate) async fn of_report(pass: &Pass, report: &Report) -> Result<Self, Fault> {
        let mut all = Self::default();
        all.add_pauses(pass, report.backends.iter().map(|backend| &backend.note.backend)).await?;
        let refused = report.entries.iter().filter(|entry| entry.fate == Fate::Refused);
        for entry in refused.take(MAX_HOLDS) {
            let record = pass.ledger.get(&entry.runtime).await.map_err(ledger_fault)?.map(Box::new);
            let subject = Subject { id: entry.runtime.clone(), seen: None, record, probe: None };
            all.add_subject(pass, &subject, pass.clock.now()).await?;
        }
        Ok(all)
    }

    async fn add_pauses(&mut self, pass: &Pass, backends: impl Iterator<Item = &BackendName>) -> Result<(), Fault> {
        for backend in backends {
            let pause = pass.ledger.paused(backend).await.map_err(ledger_fault)?;
            self.pauses.extend(pause.map(|pause| (backend.clone(), pause)));
        }
        Ok(())
    }

    async fn add_subject(&mut self, pass: &Pass, subject: &Subject, now: Time) -> Result<(), Fault> {
        let claim = subject.record.as_ref().and_then(|record| record.claim.clone());
        self.claims.extend(claim.map(|claim| (subject.id.clone(), claim)));
        let Some(hold) = held(subject, now) else { return Ok(()) };
        let asked = self.holds.len() < MAX_HOLDS;
        let note = if asked { story(pass, subject, hold).await? } else { hold };
        self.holds.insert(subject.id.clone(), note);
        Ok(())
    }

    /// One line about a runtime: its path or image.
    pub(crate) fn about(&self, id: &RuntimeId) -> &str {
        self.abouts.get(id).map_or("", |about| about)
    }

    /// The hold on a runtime.
    pub(crate) fn hold(&self, id: &RuntimeId) -> Option<&HoldNote> {
        self.holds.get(id)
    }

    /// Why a runtime is kept; of a hold, all that is known.
    pub(crate) fn why_kept(&self, kept: &Kept, now: Time) -> String {
        self.sentence(&kept.runtime, &kept.reason, now)
    }

    /// The same for a runtime of which only the reason is at hand.
    pub(crate) fn sentence(&self, id: &RuntimeId, reason: &Reason, now: Time) -> String {
        match (reason, self.hold(id), self.claims.get(id)) {
            (Reason::Held { .. } | Reason::HoldUnreadable, Some(note), _) => note.sentence(now),
            (Reason::Claimed { .. }, _, Some(claim)) => at_work(claim),
            (Reason::BackingOff { .. }, ..) => format!("{reason}; `furlough history` tells which"),
            _ => safe(&reason.to_string()).into_owned(),
        }
    }

    /// The same for what a report says of a refusal, which is a sentence already.
    pub(crate) fn refusal(&self, id: &RuntimeId, said: &str, now: Time) -> String {
        let of_hold = said.contains("held") || said.contains("hold that can't be read");
        match (self.hold(id), self.claims.get(id)) {
            (Some(note), _) if of_hold => note.sentence(now),
            (_, Some(claim)) if *said == (Reason::Claimed { until: claim.until }).to_string() => at_work(claim),
            _ => safe(said).into_owned(),
        }
    }

    /// That a backend is paused, by whom, since when, why, and what ends it; `None`: nobody is known to have paused it.
    pub(crate) fn paused(&self, backend: &BackendName, now: Time) -> Option<String> {
        let pause = self.pauses.get(backend)?;
        let ends =
            pause.backend.as_ref().map_or("furlough unpause".to_owned(), |own| format!("furlough unpause {own}"));
        let told = told(Some(&pause.by), pause.at, Some(&pause.why), now);
        Some(format!("is paused{told}; `{ends}` lets it go on"))
    }

    /// The holds as JSON has them.
    pub(crate) fn holds(&self) -> serde_json::Value {
        let document = |(runtime, note): (&RuntimeId, &HoldNote)| {
            let mut document = to_json(note);
            document["runtime"] = serde_json::json!(runtime);
            document
        };
        self.holds.iter().map(document).collect()
    }

    /// The pauses as JSON has them.
    pub(crate) fn pauses(&self) -> serde_json::Value {
        let document = |(backend, pause): (&BackendName, &Pause)| {
            let all = pause.backend.is_none();
            serde_json::json!({ "backend": backend, "by": pause.by, "why": pause.why, "at": pause.at, "all": all })
        };
        self.pauses.iter().map(document).collect()
    }
}

impl HoldNote {
    /// `held until 2026-12-30 14:49 UTC by ada, 3d ago: the release needs it`.
    pub(crate) fn sentence(&self, now: Time) -> String {
        let end = match self.hold {
            Hold::Until(until) => format!("held until {}", clock(until)),
            Hold::Forever => "held for ever, until `furlough release`".to_owned(),
            Hold::Unreadable => "held by what can't be read, which holds".to_owned(),
        };
        match self.label {
            Some(label) => format!("{end}; its label `{label}` says so"),
            None => end + &told(self.by.as_deref(), self.at, self.why.as_deref(), now),
        }
    }
}

/// Who has a claim, living or dead, and when it is over with.
fn at_work(claim: &Claim) -> String {
    format!(
        "`{}` is at work on it, or was killed at it; free at {} at the latest",
        safe(&claim.owner),
        clock(claim.until)
    )
}

/// ` by ada, 3d ago: the release needs it`, as much of it as is known.
fn told(by: Option<&str>, at: Option<Time>, why: Option<&str>, now: Time) -> String {
    let some = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| safe(text).into_owned());
    let by = some(by).map_or(String::new(), |by| format!(" by {by}"));
    let at = at.map_or(String::new(), |at| match ago(at, now).as_str() {
        "now" => ", just now".to_owned(),
        past => format!(", {past}"),
    });
    let why = some(why).map_or(String::new(), |why| format!(": {why}"));
    by + &at + &why
}

/// The hold that a verdict tells of: of the record's and the label's the one that holds for longer.
fn held(subject: &Subject, now: Time) -> Option<HoldNote> {
    let record = subject.record.as_ref().and_then(|record| record.hold_until);
    let label = subject.seen.as_ref().and_then(|seen| seen.labels.get(HOLD_LABEL));
    let label = label.map(|text| text.parse().map_or(Hold::Unreadable, Hold::Until));
    let strength = |hold: Hold| match hold {
        Hold::Until(until) => until,
        Hold::Forever | Hold::Unreadable => Time::MAX,
    };
    let holds = [(record, None), (label, Some(HOLD_LABEL))];
    let holds = holds.into_iter().filter_map(|(hold, label)| Some((hold.filter(|hold| hold.holds(now))?, label)));
    let (hold, label) = holds.max_by_key(|(hold, _)| strength(*hold))?;
    Some(HoldNote { hold, by: None, why: None, at: None, label })
}

async fn story(pass: &Pass, subject: &Subject, note: HoldNote) -> Result<HoldNote, Fault> {
    if note.label.is_some() {
        return Ok(note);
    }
    let detail = pass.ledger.detail(&subject.id).await.map_err(ledger_fault)?.unwrap_or_default();
    let why = detail.hold_why.filter(|why| !why.is_empty());
    Ok(HoldNote { by: detail.hold_by, why, at: detail.hold_at, ..note })
}
