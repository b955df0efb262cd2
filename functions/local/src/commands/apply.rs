//! `furlough apply FILE`.

use std::path::Path;

use lifecycle::{Plan, Report, report::Standing};
use pass::Outcome;

use crate::{
    answer::{Answer, Exit, Fault, to_json},
    notes::Notes,
    parts::{Plant, pass_fault},
    render,
    stop::Stop,
};

/// The largest plan file: 10⁶ runtimes take about 300 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Does exactly what the plan file lists.
pub(crate) async fn command(plant: &Plant, file: &Path) -> Result<Answer, Fault> {
    let plan = read(file)?;
    // Before anything is opened: a plan that is refused leaves no trace.
    let checked = plan.check(&plant.settings.policy, crate::parts::clock().now());
    checked.map_err(|refused| Fault::failed("plan_refused", refused))?;
    let (outcome, notes) = apply(plant, &plan).await?;
    let text = render::report::pass(&outcome, &notes, plant.terminal);
    Ok(Answer { text, json: document(&outcome, &notes), exit: ending(&outcome.report) })
}

/// What a pass did, and what people left word of: who paused a backend or holds what was refused, since when and why.
pub(super) fn document(outcome: &Outcome, notes: &Notes) -> serde_json::Value {
    let mut document = to_json(outcome);
    document["pauses"] = notes.pauses();
    document["holds"] = notes.holds();
    document
}

/// Applies a plan, then empties the trash of what has been there for long enough: in report mode nothing else does.
pub(crate) async fn apply(plant: &Plant, plan: &Plan) -> Result<(Outcome, Notes), Fault> {
    let pass = plant.acting("apply").await?;
    let mut stop = Stop::new(&plant.stopped, plant.terminal)?;
    let report = stop.until_done(pass.apply(plan)).await?.map_err(|error| pass_fault(&error))?;
    let (upkeep, troubles) = stop.until_done(pass.empty_expired()).await?;
    for trouble in troubles {
        tracing::warn!("after the apply: {trouble}");
    }
    let notes = Notes::of_report(&pass, &report).await?;
    Ok((Outcome { report, upkeep }, notes))
}

/// How a report ends the command.
pub(crate) fn ending(report: &Report) -> Exit {
    match report.standing() {
        Standing::AllDone => Exit::Done,
        Standing::SomeNotDone => Exit::Refused,
        Standing::SomeFailed => Exit::Failed,
    }
}

fn read(file: &Path) -> Result<Plan, Fault> {
    let unreadable = |why: &str| Fault::failed("plan_file", format!("can't read `{}`: {why}", file.display()));
    let found = std::fs::metadata(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let message = format!("there is no file `{}`; `furlough plan --out FILE` writes one", file.display());
            Fault::failed("plan_file", message)
        }
        _ => unreadable(&format!("{error}; `furlough plan --out FILE` writes one")),
    })?;
    if !found.is_file() {
        return Err(unreadable("it is not a file; `furlough plan --out FILE` writes one"));
    }
    if found.len() > MAX_BYTES {
        return Err(unreadable(&format!("it has {} bytes; a plan file has at most {MAX_BYTES}", found.len())));
    }
    let bytes =
        std::fs::read(file).map_err(|error| unreadable(&format!("{error}; make a new one with `furlough plan`")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable("it is not text, so no plan; `furlough plan --out FILE` writes one"))?;
    let refused = |error| Fault::failed("plan_refused", format!("`{}`: {error}", file.display()));
    Plan::from_json(&text).map_err(refused)
}
