//! `furlough run`: passes under the configured mode.

use std::time::Duration;

use lifecycle::policy::Mode;
use pass::Outcome;
use serde_json::json;

use super::{
    apply::{document, ending},
    check::mode,
};
use crate::{
    answer::{Answer, Exit, Fault},
    notes::Notes,
    parts::{self, Plant},
    render,
    stop::Stop,
    terminal::{Style, emit},
};

/// One pass, or passes until somebody interrupts: what was begun is ended first.
pub(crate) async fn command(plant: &Plant, once: bool) -> Result<Answer, Fault> {
    let mut pass = plant.acting("run").await?;
    // Whoever starts it means everything, not what happens to be due: the first pass lists all there is.
    let usual = std::mem::replace(&mut pass.limits.sweep_every, Duration::ZERO);
    // Before anything is said: who reads it may interrupt at once.
    let mut stop = Stop::new(&plant.stopped, plant.terminal)?;
    if once {
        let outcome = stop.until_done(pass.run()).await?;
        let notes = Notes::of_report(&pass, &outcome.report).await?;
        let text = render::report::pass(&outcome, &notes, plant.terminal);
        return Ok(Answer { text, json: document(&outcome, &notes), exit: outcome_ending(&outcome) });
    }
    let every = plant.settings.pass.every;
    plant.terminal.note(&format!(
        "{} every {}, in mode {}; interrupt to stop after the acts under way",
        plant.terminal.paint(Style::Bold, "a pass"),
        lifecycle::duration::Human(every),
        mode(plant.settings.policy.mode),
    ));
    let mut passes = 0_u64;
    let mut worst = Exit::Done;
    loop {
        let outcome = stop.until_done(pass.run()).await?;
        passes += 1;
        worst = worst.max(outcome_ending(&outcome));
        tell(plant, &outcome, &Notes::of_report(&pass, &outcome.report).await?)?;
        if stop.is_asked() || stop.within(every).await {
            break;
        }
        pass.owner = parts::owner("run");
        pass.limits.sweep_every = usual;
    }
    let text = format!("stopped after {}", render::words::count(passes, "pass"));
    let mut json = json!({ "stopped": true, "passes": passes });
    if plant.terminal.json {
        // A line like those before it.
        emit(&json.take()).map_err(|error| Fault::failed("output", error))?;
    }
    Ok(Answer { text, json, exit: worst })
}

/// One JSON line a pass, or the report where there was something to tell.
fn tell(plant: &Plant, outcome: &Outcome, notes: &Notes) -> Result<(), Fault> {
    let told = if plant.terminal.json {
        emit(&document(outcome, notes))
    } else {
        plant.terminal.say(&render::report::pass(outcome, notes, plant.terminal))
    };
    told.map_err(|error| Fault::failed("output", error))
}

/// In report mode everything is left on purpose.
fn outcome_ending(outcome: &Outcome) -> Exit {
    match (outcome.report.mode, ending(&outcome.report)) {
        (Mode::Report, Exit::Refused) => Exit::Done,
        (_, exit) => exit,
    }
}
