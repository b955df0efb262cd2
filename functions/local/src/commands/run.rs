//! `furlough run`: passes under the configured mode.

use std::time::Duration;

use lifecycle::policy::Mode;
use pass::{Outcome, Pass};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    apply::{document, ending},
    check::mode,
};
use crate::{
    answer::{Answer, Exit, Fault},
    notes::Notes,
    parts::{self, Plant},
    render,
    terminal::{Style, emit},
};

/// One pass, or passes until somebody interrupts: the pass under way is finished first.
pub(crate) async fn command(plant: &Plant, once: bool) -> Result<Answer, Fault> {
    let mut pass = plant.acting("run").await?;
    // Whoever starts it means everything, not what happens to be due: the first pass lists all there is.
    let usual = std::mem::replace(&mut pass.limits.sweep_every, Duration::ZERO);
    if once {
        let outcome = pass.run().await;
        let notes = pauses(&pass, &outcome).await?;
        let text = render::report::pass(&outcome, &notes, plant.terminal);
        return Ok(Answer { text, json: document(&outcome, &notes), exit: outcome_ending(&outcome) });
    }
    // Before it is said: who reads it may interrupt at once.
    let mut stop = Stop::new()?;
    let every = plant.settings.pass.every;
    plant.terminal.note(&format!(
        "{} every {}, in mode {}; interrupt to stop after the pass under way",
        plant.terminal.paint(Style::Bold, "a pass"),
        lifecycle::duration::Human(every),
        mode(plant.settings.policy.mode),
    ));
    let mut passes = 0_u64;
    let mut worst = Exit::Done;
    loop {
        let (outcome, stopped) = to_its_end(&pass, &mut stop).await;
        passes += 1;
        worst = worst.max(outcome_ending(&outcome));
        tell(plant, &outcome, &pauses(&pass, &outcome).await?)?;
        if stopped || stop.within(every).await {
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

/// A pass, and whether somebody interrupted while it worked. It is never cut off: each act ends by itself.
async fn to_its_end(pass: &Pass, stop: &mut Stop) -> (Outcome, bool) {
    let mut work = std::pin::pin!(pass.run());
    tokio::select! {
        outcome = &mut work => (outcome, false),
        () = stop.asked() => (work.await, true),
    }
}

async fn pauses(pass: &Pass, outcome: &Outcome) -> Result<Notes, Fault> {
    Notes::pauses(pass, outcome.report.backends.iter().map(|backend| &backend.note)).await
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

/// Somebody wants it to stop: SIGINT or SIGTERM.
struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> Result<Self, Fault> {
        let listen = |kind| signal(kind).map_err(|error| Fault::failed("machine", format!("no signals: {error}")));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Whether somebody wants it to stop before this has passed.
    async fn within(&mut self, wait: Duration) -> bool {
        tokio::select! {
            () = self.asked() => true,
            () = tokio::time::sleep(wait) => false,
        }
    }
}
