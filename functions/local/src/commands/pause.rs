//! `furlough pause` and `furlough unpause`: the kill switch.

use lifecycle::BackendName;
use serde_json::json;
use settings::system;

use super::hold::check_why;
use crate::{
    answer::{Answer, Fault},
    parts::{Plant, ledger_fault},
    terminal::Style,
};

/// Nothing is claimed any more; what is claimed already is finished.
pub(crate) async fn pause(plant: &Plant, backend: Option<&str>, why: &str) -> Result<Answer, Fault> {
    check_why(why)?;
    let backend = backend.map(|name| known(plant, name)).transpose()?;
    let pass = plant.acting("pause").await?;
    let by = system::user();
    let paused = pass.ledger.pause(backend.as_ref(), why, &by, pass.clock.now()).await;
    paused.map_err(ledger_fault)?;
    let head = plant.terminal.paint(Style::Yellow, &format!("{} paused", what(backend.as_ref())));
    let again = backend.as_ref().map_or("furlough unpause".to_owned(), |name| format!("furlough unpause {name}"));
    let text = format!("{head}: nothing new is reclaimed until `{again}`; what is under way is finished");
    Ok(Answer::done(text, json!({ "paused": true, "backend": backend, "why": why, "by": by })))
}

/// Passes act again.
pub(crate) async fn unpause(plant: &Plant, backend: Option<&str>) -> Result<Answer, Fault> {
    let backend = backend.map(|name| known(plant, name)).transpose()?;
    let pass = plant.acting("unpause").await?;
    let was = pass.ledger.unpause(backend.as_ref(), pass.clock.now()).await.map_err(ledger_fault)?;
    let mut text = match (&backend, was) {
        (None, true) => "everything acts again".to_owned(),
        (None, false) => "nothing was paused as a whole".to_owned(),
        (Some(name), true) => format!("`{name}` acts again"),
        (Some(name), false) => format!("`{name}` was not paused"),
    };
    let mut still = Vec::new();
    for unit in &pass.units {
        let name = &unit.backend.name;
        let concerned = backend.as_ref().is_none_or(|backend| backend == name);
        if let Some(pause) = pass.ledger.paused(name).await.map_err(ledger_fault)?.filter(|_| concerned) {
            let by =
                pause.backend.as_ref().map_or("furlough unpause".to_owned(), |own| format!("furlough unpause {own}"));
            text = format!("{text}\n`{name}` is still paused; `{by}` ends that");
            still.push(name.clone());
        }
    }
    Ok(Answer::done(text, json!({ "paused": false, "was_paused": was, "backend": backend, "still_paused": still })))
}

fn what(backend: Option<&BackendName>) -> String {
    backend.map_or("everything is".to_owned(), |name| format!("`{name}` is"))
}

/// A misspelt name would pause nothing.
fn known(plant: &Plant, name: &str) -> Result<BackendName, Fault> {
    let names: Vec<_> = plant.settings.backends.iter().map(|backend| &backend.name).collect();
    let found = names.iter().find(|known| known.as_str() == name);
    found.map(|found| (*found).clone()).ok_or_else(|| {
        let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let listed = if listed.is_empty() { "there is none".to_owned() } else { format!("there is {listed}") };
        Fault::usage("unknown_backend", format!("no backend is called `{}`; {listed}", name.escape_debug()))
    })
}
