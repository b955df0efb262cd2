//! `furlough plan`.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use lifecycle::{Plan, PlanError};
use pass::Survey;
use serde_json::json;

use crate::{
    answer::{Answer, Exit, Fault, to_json},
    cli,
    notes::Notes,
    parts::{Plant, pass_fault},
    render::plan::{table, validity},
    terminal::Style,
};

/// Plans, and prints the plan or writes it to a file.
pub(crate) async fn command(plant: &Plant, asked: &cli::Plan) -> Result<Answer, Fault> {
    let Planned { plan, notes } = make(plant).await?;
    let exit = ending(&plan);
    let written = asked.out.as_deref().map(|path| write(&plan, path)).transpose()?;
    let mut text = match asked.format {
        cli::Format::Table => table(&plan, &notes, plant.terminal),
        cli::Format::Json => plan.to_json().trim_end().to_owned(),
        cli::Format::Markdown => plan.markdown().trim_end().to_owned(),
    };
    let told = match &written {
        Some(path) if plan.items.is_empty() => format!("Written to {}: there is nothing to do in it", path.display()),
        Some(path) => {
            let command = format!("furlough apply {}", path.display());
            format!("Written, {}. Do it with: {}", validity(&plan), plant.terminal.paint(Style::Cyan, &command))
        }
        None if plan.items.is_empty() => String::new(),
        None => "To do it: `furlough plan --out plan.json`, then `furlough apply plan.json`".to_owned(),
    };
    match asked.format {
        cli::Format::Table if !told.is_empty() => text = format!("{text}\n\n{told}"),
        cli::Format::Json | cli::Format::Markdown if written.is_some() => plant.terminal.note(&told),
        _ => {}
    }
    let mut json = sealed(&plan);
    // Beside the plan, not in it: the document can be saved and applied as it is.
    json["notes"] = json!({ "holds": notes.holds(), "pauses": notes.pauses() });
    Ok(Answer { text, json, exit })
}

/// A plan, and what people left word of.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) notes: Notes,
}

/// A plan of everything, without a trace.
pub(crate) async fn make(plant: &Plant) -> Result<Planned, Fault> {
    let pass = plant.looking().await?;
    let Survey { snapshot, plan } = pass.survey().await.map_err(|error| pass_fault(&error))?;
    let notes = Notes::of(&pass, &snapshot, &plan.backends, plan.made_at).await?;
    Ok(Planned { plan, notes })
}

/// The plan as its file has it, with its digest.
fn sealed(plan: &Plan) -> serde_json::Value {
    serde_json::from_str(&plan.to_json()).unwrap_or_else(|_| to_json(plan))
}

/// A plan without one of its backends is still a plan, and says so by its exit code.
fn ending(plan: &Plan) -> Exit {
    let unread = plan.backends.iter().any(|note| note.listing.error.is_some() || !note.listing.complete);
    if unread { Exit::Failed } else { Exit::Done }
}

/// Writes the plan file in one step: a reader finds the old one or the new one, never a part. What stands there and
/// is no plan is somebody's, and is not replaced.
pub(crate) fn write(plan: &Plan, path: &Path) -> Result<PathBuf, Fault> {
    let fault = |what: &str| Fault::failed("plan_file", format!("can't write `{}`: {what}", path.display()));
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Ok(text) if is_plan(&text) => {}
        Ok(_) => return Err(fault("what is there is not a plan; name another file, or remove that one")),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
            return Err(fault("it is a folder; name a file in it, such as `plan.json`"));
        }
        Err(error) => return Err(fault(&said(&error))),
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(plan.to_json().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map_err(|error| fault(&said(&error)))?;
    Ok(path.to_owned())
}

/// What is wrong, and what to do. The system's own words would name a temporary file of ours.
fn said(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    let told = match error.kind() {
        NotFound | NotADirectory => "there is no such folder; make its folder first, or name another file",
        PermissionDenied => "you may not write there; name a file where you may write",
        ReadOnlyFilesystem => "the disk is read-only; name a file where you may write",
        StorageFull => "no space is left; make room, or name a file on another disk",
        _ => return format!("{error}; name another file"),
    };
    told.to_owned()
}

/// An expired, edited or cut plan is still a plan.
fn is_plan(text: &str) -> bool {
    match Plan::from_json(text) {
        Ok(_) | Err(PlanError::Edited | PlanError::OtherVersion { .. }) => true,
        Err(PlanError::CutShort) => text.trim_start().starts_with("{\n  \"version\""),
        Err(PlanError::Malformed { .. }) => false,
    }
}
