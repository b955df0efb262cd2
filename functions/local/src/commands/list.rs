//! `furlough list`.

use lifecycle::{Activity, Plan, Subject, Time, Verdict, report::Bytes};
use serde_json::{Value, json};

use super::explain::about;
use crate::{
    answer::{Answer, Exit, Fault, to_json},
    names::Names,
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
    let survey = plant.looking().await?.survey().await.map_err(|error| pass_fault(&error))?;
    let subjects: Vec<_> = survey.snapshot.units.iter().flat_map(lifecycle::UnitSnapshot::subjects).collect();
    let runtimes: Vec<_> = subjects.iter().map(|subject| document(subject, &survey.plan)).collect();
    let json = json!({ "headline": survey.plan.headline, "backends": survey.plan.backends, "runtimes": runtimes });
    let unread = survey.plan.backends.iter().any(|note| note.listing.error.is_some());
    let exit = if unread { Exit::Failed } else { Exit::Done };
    Ok(Answer { text: text(&subjects, &survey.plan, plant.terminal), json, exit })
}

fn text(subjects: &[&Subject], plan: &Plan, terminal: Terminal) -> String {
    let names = Names::new(subjects.iter().map(|subject| &subject.id));
    let mut grid = Grid::new(terminal, &["RUNTIME", "STATE", "ACTIVE", "SIZE", "VERDICT"]).right(3);
    for subject in subjects {
        let size = subject.seen.as_ref().and_then(|seen| seen.files.total);
        grid.row([
            in_style(Style::Bold, names.of(&subject.id)),
            plain(state(subject).map_or("–".to_owned(), |state| state.to_string())),
            plain(last_active(subject).map_or("–".to_owned(), |at| ago(at, plan.made_at))),
            plain(size.map_or("–".to_owned(), |bytes| Bytes(bytes).to_string())),
            verdict(subject, plan),
        ]);
    }
    let mut parts = vec![idle(&plan.headline, terminal)];
    parts.extend(troubles(plan.backends.iter(), terminal));
    parts.push(if grid.is_empty() { "No runtimes here.".to_owned() } else { grid.text(0) });
    parts.join("\n\n")
}

fn verdict(subject: &Subject, plan: &Plan) -> Cell {
    match plan.verdict(&subject.id) {
        Some(Verdict::Act(action, reason, evidence)) => {
            let why = reason.with(&evidence, plan.made_at);
            in_style(style(action), format!("{action}: {}", safe(&why)))
        }
        Some(Verdict::Keep(reason, _)) => plain(format!("keep: {}", safe(&reason.to_string()))),
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

fn document(subject: &Subject, plan: &Plan) -> Value {
    json!({
        "runtime": subject.id,
        "about": about(subject),
        "state": state(subject),
        "last_active": last_active(subject),
        "bytes": subject.seen.as_ref().and_then(|seen| seen.files.total),
        "conversations": subject.seen.as_ref().map(|seen| seen.sharers),
        "hold": subject.record.as_ref().and_then(|record| record.hold_until),
        "verdict": plan.verdict(&subject.id).map(to_json),
    })
}
