//! `furlough apply FILE`.

use std::path::Path;

use lifecycle::{Plan, Report, report::Standing};

use crate::{
    answer::{Answer, Exit, Fault, to_json},
    parts::{Plant, pass_fault},
    render,
};

/// The largest plan file: 10⁶ runtimes take about 300 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Does exactly what the plan file lists.
pub(crate) async fn command(plant: &Plant, file: &Path) -> Result<Answer, Fault> {
    let plan = read(file)?;
    // Before anything is opened: a plan that is refused leaves no trace.
    let checked = plan.check(&plant.settings.policy, crate::parts::clock().now());
    checked.map_err(|refused| Fault::failed("plan_refused", refused))?;
    let report = apply(plant, &plan).await?;
    let text = render::report::text(&report, plant.terminal);
    Ok(Answer { text, json: to_json(&report), exit: ending(&report) })
}

/// Applies a plan and reports.
pub(crate) async fn apply(plant: &Plant, plan: &Plan) -> Result<Report, Fault> {
    plant.acting("apply").await?.apply(plan).await.map_err(|error| pass_fault(&error))
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
    let size = std::fs::metadata(file).map_err(|error| unreadable(&error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(unreadable(&format!("it has {size} bytes; a plan file has at most {MAX_BYTES}")));
    }
    let bytes = std::fs::read(file).map_err(|error| unreadable(&error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text"))?;
    let refused = |error| Fault::failed("plan_refused", format!("`{}`: {error}", file.display()));
    Plan::from_json(&text).map_err(refused)
}
