//! `furlough wake RUNTIME`.

use pass::{Pass, Woken};
use serde_json::json;

use crate::{
    answer::{Answer, Exit, Fault},
    candidates::{Candidates, Named},
    parts::{Plant, ledger_fault},
    render::words::{clock, safe},
};

/// Resumes a suspended runtime; of many callers one does it.
pub(crate) async fn command(plant: &Plant, name: &str) -> Result<Answer, Fault> {
    let pass = plant.acting("wake").await?;
    let named = Candidates::read(&pass, plant.terminal).await?.named(&pass, name).await?;
    woken(&pass, &named).await
}

async fn woken(pass: &Pass, named: &Named) -> Result<Answer, Fault> {
    let (id, name) = (&named.id, named.name());
    let (word, text, exit) = match pass.wake(id).await {
        Woken::Running(_) => ("running", format!("{name} runs again"), Exit::Done),
        Woken::AlreadyRunning => ("already_running", format!("{name} runs already"), Exit::Done),
        Woken::Pending => ("pending", format!("{name} is on its way; `furlough list` shows when it runs"), Exit::Done),
        Woken::Claimed { until } => {
            let claim = pass.ledger.get(id).await.map_err(ledger_fault)?.and_then(|record| record.claim);
            let who = claim.map_or("somebody".to_owned(), |claim| format!("`{}`", safe(&claim.owner)));
            let works = format!("{who} is at work on `{name}`, or failed at it");
            let problem = format!("{works}; try again at {}, when that has ended at the latest", clock(until));
            return Err(Fault::refused("claimed", problem));
        }
        Woken::NotFound => return Err(Fault::failed("gone", format!("`{name}` is not there: nothing can wake it"))),
        Woken::Refused(why) => return Err(Fault::refused("refused", format!("`{name}` can't be woken: {why}"))),
        Woken::Failed(why) => return Err(Fault::failed("wake", format!("`{name}` was not woken: {why}"))),
    };
    Ok(Answer::done(text, json!({ "runtime": id, "woken": word })).ending(exit))
}
