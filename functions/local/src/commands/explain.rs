//! `furlough explain RUNTIME`.

use lifecycle::{Explanation, Snapshot, Subject, UnitSnapshot};
use serde_json::json;

use crate::{
    answer::{Answer, Fault, to_json},
    names::{Candidate, resolve},
    notes::Notes,
    parts::{Plant, pass_fault},
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
    let notes = Notes::of(&pass, &only(unit, subject), &survey.plan.backends, explanation.at).await?;
    let text = render::explain::text(&explanation, &about, &notes, plant.terminal);
    Ok(Answer::done(text, document(&explanation, &about, &notes)))
}

/// A snapshot of one runtime.
fn only(unit: &UnitSnapshot, subject: &Subject) -> Snapshot {
    let mut unit = unit.clone();
    unit.set_subjects(vec![subject.clone()]);
    Snapshot { units: vec![unit] }
}

fn document(explanation: &Explanation, about: &str, notes: &Notes) -> serde_json::Value {
    let mut document = to_json(explanation);
    document["about"] = json!(about);
    document["hold"] = to_json(notes.hold(&explanation.runtime));
    document["pauses"] = notes.pauses();
    document
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
