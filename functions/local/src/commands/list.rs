//! `furlough list`.

use std::collections::HashMap;

use lifecycle::{Activity, Item, Kept, Plan, RuntimeId, State, Subject, Time, Verdict, report::Bytes};
use serde_json::{Value, json};

use super::explain::about;
use crate::{
    answer::{Answer, Exit, Fault, to_json},
    names::{Names, named},
    notes::Notes,
    parts::{Plant, pass_fault},
    render::{
        grid::{Cell, Grid, in_style, plain},
        plan::{idle, style, troubles},
        words::{ago, safe},
    },
    terminal::{Style, Terminal},
};

/// Every runtime, with what a plan made now says of it.
pub(crate) async fn command(plant: &Plant) -> Result<Answer, Fault> {
    let pass = plant.looking().await?;
    let survey = pass.survey().await.map_err(|error| pass_fault(&error))?;
    let plan = &survey.plan;
    let notes = Notes::of(&pass, &survey.snapshot, &plan.backends, plan.made_at).await?;
    let subjects = survey.snapshot.units.iter().flat_map(lifecycle::UnitSnapshot::subjects);
    // Tombstones are records of what is no more; `history` tells of them.
    let there = subjects.filter(|subject| state(subject) != Some(State::Gone));
    let verdicts = Verdicts::of(plan);
    let rows: Vec<_> = there.map(|subject| (subject, verdicts.on(&subject.id))).collect();
    let runtimes: Vec<_> = rows.iter().map(|(subject, verdict)| document(subject, verdict.as_ref(), &notes)).collect();
    let json = json!({
        "headline": plan.headline,
        "backends": plan.backends,
        "pauses": notes.pauses(),
        "runtimes": runtimes,
    });
    let unread = plan.backends.iter().any(|note| note.listing.error.is_some());
    let exit = if unread { Exit::Failed } else { Exit::Done };
    Ok(Answer { text: text(&rows, plan, &notes, plant.terminal), json, exit })
}

/// The verdicts of a plan, by runtime.
struct Verdicts<'a> {
    items: HashMap<&'a RuntimeId, &'a Item>,
    kept: HashMap<&'a RuntimeId, &'a Kept>,
}

impl<'a> Verdicts<'a> {
    fn of(plan: &'a Plan) -> Self {
        let items = plan.items.iter().map(|item| (&item.runtime, item)).collect();
        Self { items, kept: plan.kept.iter().map(|kept| (&kept.runtime, kept)).collect() }
    }

    fn on(&self, id: &RuntimeId) -> Option<Verdict> {
        let act = self.items.get(id).map(|item| (item.action, item.reason.clone(), item.evidence.clone()));
        let act = act.map(|(action, reason, evidence)| Verdict::Act(action, reason, evidence));
        act.or_else(|| self.kept.get(id).map(|kept| Verdict::Keep(kept.reason.clone(), kept.next_check)))
    }
}

type Row<'a> = (&'a Subject, Option<Verdict>);

fn text(rows: &[Row<'_>], plan: &Plan, notes: &Notes, terminal: Terminal) -> String {
    let names = Names::new(rows.iter().map(|(subject, _)| &subject.id));
    let mut grid = Grid::new(terminal, &["RUNTIME", "STATE", "ACTIVE", "SIZE", "VERDICT"]).right(3);
    for (subject, verdict) in rows {
        let size = subject.seen.as_ref().and_then(|seen| seen.files.total);
        grid.row([
            in_style(Style::Bold, named(&names.of(&subject.id), &about(subject))),
            plain(state(subject).map_or("–".to_owned(), |state| state.to_string())),
            plain(last_active(subject).map_or("–".to_owned(), |at| ago(at, plan.made_at))),
            plain(size.map_or("–".to_owned(), |bytes| Bytes(bytes).to_string())),
            told(subject, verdict.as_ref(), plan, notes),
        ]);
    }
    let mut parts = vec![idle(&plan.headline, terminal)];
    parts.extend(troubles(plan.backends.iter(), notes, plan.made_at, terminal));
    parts.push(if grid.is_empty() { "No runtimes here.".to_owned() } else { grid.text(0) });
    parts.join("\n\n")
}

fn told(subject: &Subject, verdict: Option<&Verdict>, plan: &Plan, notes: &Notes) -> Cell {
    match verdict {
        Some(Verdict::Act(action, reason, evidence)) => {
            let why = reason.with(evidence, plan.made_at);
            in_style(style(*action), format!("{action}: {}", safe(&why)))
        }
        Some(Verdict::Keep(reason, _)) => plain(format!("keep: {}", notes.sentence(&subject.id, reason, plan.made_at))),
        None => plain("–"),
    }
}

fn state(subject: &Subject) -> Option<lifecycle::State> {
    subject.seen.as_ref().map(|seen| seen.state).or(subject.record.as_ref().map(|record| record.state))
}

fn last_active(subject: &Subject) -> Option<Time> {
    let seen = subject.seen.as_ref().and_then(|seen| match seen.activity {
        Activity::At(at) => Some(at),
        Activity::Unknown | Activity::Frozen => None,
    });
    seen.max(subject.record.as_ref().and_then(|record| record.last_active))
}

fn document(subject: &Subject, verdict: Option<&Verdict>, notes: &Notes) -> Value {
    json!({
        "runtime": subject.id,
        "about": about(subject),
        "state": state(subject),
        "last_active": last_active(subject),
        "bytes": subject.seen.as_ref().and_then(|seen| seen.files.total),
        "conversations": subject.seen.as_ref().map(|seen| seen.sharers),
        "hold": notes.hold(&subject.id),
        "verdict": verdict.map(to_json),
    })
}
