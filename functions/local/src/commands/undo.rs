//! `furlough undo [RUNTIME]`.

use std::collections::BTreeMap;

use pass::{Pass, Undoable, Undone, Way};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Exit, Fault},
    candidates::Candidates,
    names::{Candidate, Names, decoded, named, resolve},
    parts::{Plant, pass_fault},
    render::{
        grid::{Cell, Grid, in_style, plain},
        words::{count, safe},
    },
    terminal::{Style, Terminal},
};

/// Takes back the last acts, or those on one runtime, or one entry of the trash.
pub(crate) async fn command(plant: &Plant, name: Option<&str>) -> Result<Answer, Fault> {
    let pass = plant.acting("undo").await?;
    let undone = undo(&pass, name, plant.terminal).await?;
    Ok(match name {
        Some(name) if undone.is_empty() => {
            let text =
                format!("There is nothing to take back of `{}`: `furlough history` tells what was done", safe(name));
            Answer { text, ..answer(&undone, plant.terminal) }
        }
        _ => answer(&undone, plant.terminal),
    })
}

/// What was to be taken back, and what came of it.
pub(crate) type Acts = Vec<(Undoable, Undone)>;

/// Chooses the acts and takes them back, newest first.
pub(crate) async fn undo(pass: &Pass, name: Option<&str>, terminal: Terminal) -> Result<Acts, Fault> {
    let (acts, errors) = pass.undoable().await.map_err(|error| pass_fault(&error))?;
    for error in &errors {
        terminal.note(&safe(error));
    }
    let chosen = match name {
        None => newest(acts),
        Some(name) => of(pass, acts, name, terminal).await?,
    };
    let mut undone = Vec::new();
    for act in chosen {
        let came = pass.undo(&act).await;
        undone.push((act, came));
    }
    Ok(undone)
}

/// All acts of the pass that acted last.
fn newest(acts: Vec<Undoable>) -> Vec<Undoable> {
    let Some(owner) = acts.first().map(|act| act.owner.clone()) else { return acts };
    match owner {
        Some(_) => acts.into_iter().filter(|act| act.owner == owner).collect(),
        None => acts.into_iter().take(1).collect(),
    }
}

/// The act of this entry of a trash, else those on this runtime; none, where nothing was done with it.
async fn of(pass: &Pass, acts: Vec<Undoable>, name: &str, terminal: Terminal) -> Result<Vec<Undoable>, Fault> {
    let has = |act: &Undoable| matches!(&act.way, Way::Trash(all) if all.iter().any(|entry| *entry.entry == *name));
    if let Some(act) = acts.iter().find(|act| has(act)) {
        return Ok(vec![act.clone()]);
    }
    // Of all that there are, not of those with acts alone: a part of another's name must not stand for this one.
    let mut known: BTreeMap<_, _> = Candidates::read(pass, terminal).await?.known().collect();
    for act in &acts {
        let about = known.entry(act.runtime.clone()).or_default();
        *about = format!("{about} {} {}", act.about, origin(act));
    }
    let known: Vec<_> = known.into_iter().map(|(id, about)| Candidate { id, about }).collect();
    let id = resolve(name, &known)?;
    Ok(acts.into_iter().filter(|act| act.runtime == id).collect())
}

fn origin(act: &Undoable) -> String {
    match &act.way {
        Way::Trash(entries) => entries.first().map_or(String::new(), |entry| entry.origin.to_string()),
        Way::Resume | Way::None => String::new(),
    }
}

/// The answer about these acts.
pub(crate) fn answer(acts: &Acts, terminal: Terminal) -> Answer {
    let documents: Vec<_> = acts.iter().map(document).collect();
    let exit = acts.iter().map(|(_, came)| ending(came)).max().unwrap_or(Exit::Done);
    let text = if acts.is_empty() { "There is nothing to take back.".to_owned() } else { text(acts, terminal) };
    Answer { text, json: json!({ "acts": documents }), exit }
}

/// Worse ones are later: a failure counts for more than a refusal.
fn ending(came: &Undone) -> Exit {
    match came {
        Undone::Back | Undone::AlreadyBack => Exit::Done,
        Undone::Pending | Undone::Refused(_) => Exit::Refused,
        Undone::Failed(_) => Exit::Failed,
    }
}

fn text(acts: &Acts, terminal: Terminal) -> String {
    let names = Names::new(acts.iter().map(|(act, _)| &act.runtime));
    let mut grid = Grid::new(terminal, &["RESULT", "RUNTIME", "ACT", "MORE"]);
    if acts.iter().all(|(_, came)| matches!(came, Undone::Back | Undone::AlreadyBack)) {
        // Only paths are there, which are not to be broken within a word; sentences are wrapped.
        grid = grid.clipped(3);
    }
    for (act, came) in acts {
        let (result, more) = told(act, came);
        let name = in_style(Style::Bold, named(&names.of(&act.runtime), &act.about));
        grid.row([result, name, plain(safe(&act.action)), plain(more)]);
    }
    let back = acts.iter().filter(|(_, came)| *came == Undone::Back).count() as u64;
    format!("{} of {} taken back\n\n{}", back, count(acts.len() as u64, "act"), grid.text(0))
}

fn told(act: &Undoable, came: &Undone) -> (Cell, String) {
    match came {
        Undone::Back => {
            let place = origin(act);
            let more = if place.is_empty() { "it runs again".into() } else { safe(&place) };
            (in_style(Style::Green, "back"), more.into_owned())
        }
        Undone::AlreadyBack => (plain("was back"), String::new()),
        Undone::Pending => (in_style(Style::Yellow, "under way"), String::new()),
        Undone::Refused(why) => (in_style(Style::Yellow, "refused"), safe(why).into_owned()),
        Undone::Failed(why) => (in_style(Style::Red, "failed"), safe(why).into_owned()),
    }
}

fn document((act, came): &(Undoable, Undone)) -> Value {
    let (result, why) = match came {
        Undone::Back => ("back", None),
        Undone::AlreadyBack => ("already_back", None),
        Undone::Pending => ("pending", None),
        Undone::Refused(why) => ("refused", Some(why)),
        Undone::Failed(why) => ("failed", Some(why)),
    };
    json!({
        "runtime": act.runtime,
        "name": decoded(&act.runtime),
        "about": &*act.about,
        "action": act.action,
        "at": act.at,
        "saved": act.saved,
        "result": result,
        "why": why,
    })
}
