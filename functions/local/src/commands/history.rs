//! `furlough history RUNTIME`.

use std::sync::Arc;

use ledger::{AuditLine, UNDO};
use lifecycle::{Evidence, Reason, RuntimeId};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Fault},
    candidates::{Candidates, Named},
    parts::{Plant, ledger_fault},
    render::{
        grid::{Grid, in_style, plain},
        words::{clock, safe},
    },
    terminal::{Style, Terminal},
};

/// What was done with a runtime, newest first. One that is long gone is named in full.
pub(crate) async fn command(plant: &Plant, name: &str, limit: u16) -> Result<Answer, Fault> {
    let pass = plant.looking().await?;
    let named = match Candidates::read(&pass, plant.terminal).await?.named(&pass, name).await {
        Ok(named) => named,
        Err(fault) => match name.parse::<RuntimeId>() {
            Ok(id) => Named { id, about: "".into(), seen: None },
            Err(_) => return Err(fault),
        },
    };
    let lines = pass.ledger.history(&named.id, usize::from(limit)).await.map_err(ledger_fault)?;
    let named = Named { about: about(&named, &lines), ..named };
    let acts: Vec<_> = lines.iter().map(document).collect();
    let json = json!({ "runtime": named.id, "about": &*named.about, "acts": acts });
    Ok(Answer::done(text(&named, &lines, plant.terminal), json))
}

/// What it is known by now, else what it was known by when something was last done with it.
fn about(named: &Named, lines: &[AuditLine]) -> Arc<str> {
    let then = lines.iter().map(AuditLine::about);
    std::iter::once(named.about.clone()).chain(then).find(|about| !about.is_empty()).unwrap_or_else(|| "".into())
}

fn text(named: &Named, lines: &[AuditLine], terminal: Terminal) -> String {
    let head = terminal.paint(Style::Bold, &named.name());
    if lines.is_empty() {
        return format!("{head}\nnothing was done with it");
    }
    let mut grid = Grid::new(terminal, &["WHEN", "ACT", "OUTCOME", "WHY", "BY"]);
    for line in lines {
        let style = if line.action == UNDO { Style::Green } else { Style::Bold };
        grid.row([
            plain(clock(line.at)),
            in_style(style, safe(&line.action)),
            plain(safe(line.outcome.split(':').next().unwrap_or_default())),
            plain(why(line)),
            in_style(Style::Dim, safe(&line.owner)),
        ]);
    }
    let mut text = format!("{head}\n{}", grid.text(0));
    // Of what was done the rest is how to take it back, which `undo` knows.
    let undone = lines.iter().filter(|line| !line.outcome.starts_with("done"));
    for (line, (outcome, why)) in undone.filter_map(|line| Some((line, line.outcome.split_once(": ")?))) {
        text = format!("{text}\n{} at {}: {}", safe(outcome), clock(line.at), safe(why));
    }
    for line in lines.iter().filter(|line| line.saved.is_some()) {
        let saved = line.saved.as_deref().unwrap_or_default();
        text = format!("{text}\nsaved at {}: {}", clock(line.at), safe(saved));
    }
    text
}

/// The sentence with its figures, where the line's reason and evidence can be read.
fn why(line: &AuditLine) -> String {
    let reason: Option<Reason> = serde_json::from_str(&line.reason).ok();
    let evidence: Option<Evidence> = serde_json::from_str(&line.evidence).ok();
    match (reason, evidence) {
        (Some(reason), Some(evidence)) => safe(&reason.with(&evidence, line.at)).into_owned(),
        (Some(reason), None) => safe(&reason.to_string()).into_owned(),
        _ => String::new(),
    }
}

fn document(line: &AuditLine) -> Value {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    json!({
        "at": line.at,
        "action": line.action,
        "outcome": line.outcome,
        "by": line.owner,
        "token": line.token,
        "reason": parsed(&line.reason),
        "evidence": parsed(&line.evidence),
        "saved": line.saved,
        "undo": line.undo,
        "bytes": line.bytes,
    })
}
