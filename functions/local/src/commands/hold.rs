//! `furlough hold RUNTIME` and `furlough release RUNTIME`.

use std::time::Duration;

use ledger::{HoldRequest, HoldSet};
use lifecycle::{duration::Human, record::Hold};
use serde_json::json;
use settings::system;

use crate::{
    answer::{Answer, Fault},
    candidates::Candidates,
    cli,
    parts::{Plant, ledger_fault, span},
    render::words::clock,
    terminal::Style,
};

/// How long a hold lasts of which nobody said how long: one that is forgotten ends.
const USUAL: Duration = Duration::from_hours(30 * 24);

/// The word for a hold without an end.
const EVER: &str = "ever";

/// The longest reason, in bytes.
const MAX_WHY_BYTES: usize = 1000;

/// Keeps a runtime from being touched.
pub(crate) async fn hold(plant: &Plant, asked: &cli::Hold) -> Result<Answer, Fault> {
    let span = match asked.span.as_deref() {
        None => Some(USUAL),
        Some(EVER) => None,
        Some(text) => Some(or_ever(span(text))?),
    };
    check_why(&asked.why)?;
    let pass = plant.acting("hold").await?;
    let named = Candidates::read(&pass, plant.terminal).await?.named(&pass, &asked.runtime.name).await?;
    let now = pass.clock.now();
    let until = span.map(|span| now.plus(span));
    let hold = until.map_or(Hold::Forever, Hold::Until);
    let by = system::user();
    let request = HoldRequest { hold, why: &asked.why, by: &by };
    let set = pass.ledger.hold(&named.id, &request, named.seen.as_deref(), now).await.map_err(ledger_fault)?;
    let name = named.name();
    let HoldSet::Held(record) = set else {
        return Err(Fault::failed("gone", format!("`{name}` is no more, so there is nothing to hold")));
    };
    let mut text = match (span, until) {
        (Some(span), Some(until)) => format!("{name} is held for {}, until {}", Human(span), clock(until)),
        _ => format!("{name} is held for ever, until `furlough release`"),
    };
    if asked.span.is_none() {
        text = format!("{text}; for another time: `--for 90d`, or `--for ever`");
    }
    if let Some(claim) = record.claim.as_ref().filter(|_| record.claimed(now)) {
        let warned = format!("{} is at work on it and may finish, until {}", claim.owner, clock(claim.until));
        text = format!("{text}\n{}", plant.terminal.paint(Style::Yellow, &warned));
    }
    let claimed = record.claim.as_ref().filter(|_| record.claimed(now));
    let json = json!({ "runtime": named.id, "held": hold, "why": asked.why, "by": by, "claimed": claimed });
    Ok(Answer::done(text, json))
}

/// A hold has one more word than other durations.
fn or_ever(span: Result<Duration, Fault>) -> Result<Duration, Fault> {
    span.map_err(|fault| Fault { message: format!("{}; or `--for {EVER}`", fault.message), ..fault })
}

/// Takes a hold off.
pub(crate) async fn release(plant: &Plant, name: &str) -> Result<Answer, Fault> {
    let pass = plant.acting("release").await?;
    let named = Candidates::read(&pass, plant.terminal).await?.named(&pass, name).await?;
    let released = pass.ledger.release(&named.id, pass.clock.now()).await.map_err(ledger_fault)?;
    let name = named.name();
    let label = named.seen.is_some_and(|seen| seen.labels.contains_key(lifecycle::policy::HOLD_LABEL));
    let mut text = if released { format!("{name} is released") } else { format!("{name} was not held") };
    if label {
        text = format!("{text}; its label `{}` still holds it", lifecycle::policy::HOLD_LABEL);
    }
    let json = json!({ "runtime": named.id, "released": released, "held_by_label": label });
    Ok(Answer::done(text, json))
}

/// People write a sentence here, not a file.
pub(super) fn check_why(why: &str) -> Result<(), Fault> {
    if why.len() > MAX_WHY_BYTES {
        let problem = format!("`--why` has {} bytes; at most {MAX_WHY_BYTES} are kept", why.len());
        return Err(Fault::usage("too_long", problem));
    }
    Ok(())
}
