//! `furlough explain RUNTIME`.

use ledger::{Detail, Ledger};
use lifecycle::{Explanation, Snapshot, Subject};
use serde_json::json;

use crate::{
    answer::{Answer, Fault, to_json},
    names::{Candidate, resolve},
    parts::{Plant, ledger_fault, pass_fault},
    render,
};

/// Every rule in order, the value that it saw, its age, and when it could next fire.
pub(crate) async fn command(plant: &Plant, name: &str) -> Result<Answer, Fault> {
    let pass = plant.looking().await?;
    let survey = pass.survey().await.map_err(|error| pass_fault(&error))?;
    let id = resolve(name, &candidates(&survey.snapshot))?;
    let subjects = survey.snapshot.units.iter().flat_map(|unit| unit.subjects().iter().map(move |seen| (unit, seen)));
    let found = subjects.into_iter().find(|(_, subject)| subject.id == id);
    let Some((unit, subject)) = found else {
        return Err(Fault::failed("unknown_runtime", format!("`{id}` vanished while it was looked at")));
    };
    let explanation = lifecycle::explain(subject, unit, &plant.settings.policy, survey.plan.made_at);
    let about = about(subject);
    let hold = hold(&pass.ledger, subject).await?;
    let text = render::explain::text(&explanation, &about, hold.as_ref().map(by_whom).as_deref(), plant.terminal);
    Ok(Answer::done(text, document(&explanation, &about, hold.as_ref())))
}

fn document(explanation: &Explanation, about: &str, hold: Option<&Detail>) -> serde_json::Value {
    let mut document = to_json(explanation);
    document["about"] = json!(about);
    document["hold"] = json!(hold.map(|hold| json!({ "why": hold.hold_why, "by": hold.hold_by })));
    document
}

/// What is told of a hold that its record has; a label tells nothing more.
async fn hold(ledger: &Ledger, subject: &Subject) -> Result<Option<Detail>, Fault> {
    if subject.record.as_ref().is_none_or(|record| record.hold_until.is_none()) {
        return Ok(None);
    }
    ledger.detail(&subject.id).await.map_err(ledger_fault)
}

fn by_whom(hold: &Detail) -> String {
    let by = hold.hold_by.as_deref().unwrap_or("someone");
    let why = hold.hold_why.as_deref().filter(|why| !why.is_empty());
    format!("held by {by}{}", why.map_or(String::new(), |why| format!(": {why}")))
}

/// The runtimes of a snapshot, to be named.
fn candidates(snapshot: &Snapshot) -> Vec<Candidate> {
    let subjects = snapshot.units.iter().flat_map(lifecycle::UnitSnapshot::subjects);
    subjects.map(|subject| Candidate { id: subject.id.clone(), about: about(subject) }).collect()
}

/// Its path or image, where it was seen.
pub(super) fn about(subject: &Subject) -> String {
    subject.seen.as_ref().map_or(String::new(), |seen| seen.about.to_string())
}
