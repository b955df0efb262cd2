//! `furlough trash`.

use std::sync::Arc;

use backend::{Outcome, Recoverable, Trashed};
use lifecycle::{BackendName, report::Bytes};
use pass::Pass;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Exit, Fault},
    names::Names,
    parts::Plant,
    render::{
        grid::{Grid, in_style, plain},
        words::{ago, count, relative, safe},
    },
    terminal::Style,
};

/// An entry and the trash that it lies in.
struct Lying {
    role: Arc<dyn Recoverable>,
    entry: Trashed,
}

/// Lists the trash, or removes everything in it for ever.
pub(crate) async fn command(plant: &Plant, empty: bool) -> Result<Answer, Fault> {
    let pass = plant.looking().await?;
    let (lying, unread) = lying(&pass).await;
    for (backend, error) in &unread {
        plant.terminal.note(&format!("`{backend}`: {}", safe(error)));
    }
    let answer = if empty { emptied(lying).await } else { listed(plant, &pass, &lying) };
    Ok(if unread.is_empty() { answer } else { answer.ending(Exit::Failed) })
}

async fn lying(pass: &Pass) -> (Vec<Lying>, Vec<(BackendName, String)>) {
    let (mut lying, mut unread) = (Vec::new(), Vec::new());
    for unit in &pass.units {
        let Some(role) = &unit.backend.undo else { continue };
        match role.trashed().await {
            Ok(entries) => lying.extend(entries.into_iter().map(|entry| Lying { role: role.clone(), entry })),
            Err(error) => unread.push((unit.backend.name.clone(), error.to_string())),
        }
    }
    (lying, unread)
}

fn listed(plant: &Plant, pass: &Pass, lying: &[Lying]) -> Answer {
    let (now, keep) = (pass.clock.now(), plant.settings.policy.trash_keep);
    let names = Names::new(lying.iter().map(|lying| &lying.entry.runtime));
    let mut grid = Grid::new(plant.terminal, &["MOVED", "RUNTIME", "WHAT", "SIZE", "KEPT", "FROM"]).right(3).clipped(5);
    for Lying { entry, .. } in lying {
        grid.row([
            plain(ago(entry.at, now)),
            in_style(Style::Bold, names.of(&entry.runtime)),
            plain(entry.tier.to_string()),
            plain(Bytes(entry.bytes).to_string()),
            plain(relative(entry.at.plus(keep), now)),
            in_style(Style::Dim, safe(&entry.origin)),
        ]);
    }
    let total: u64 = lying.iter().map(|lying| lying.entry.bytes).sum();
    let take = plant.terminal.paint(Style::Cyan, "furlough undo RUNTIME");
    let head = format!("{} in the trash, {}", count(lying.len() as u64, "entry"), Bytes(total));
    let text = if lying.is_empty() {
        "The trash is empty.".to_owned()
    } else {
        format!("{head}; take one back with {take}\n\n{}", grid.text(0))
    };
    let entries: Vec<_> = lying.iter().map(|lying| document(&lying.entry, lying.entry.at.plus(keep))).collect();
    Answer::done(text, json!({ "bytes": total, "entries": entries }))
}

fn document(entry: &Trashed, until: lifecycle::Time) -> Value {
    json!({
        "entry": &*entry.entry,
        "runtime": entry.runtime,
        "tier": entry.tier,
        "at": entry.at,
        "from": &*entry.origin,
        "bytes": entry.bytes,
        "until": until,
    })
}

async fn emptied(lying: Vec<Lying>) -> Answer {
    let (mut freed, mut gone, mut failed) = (0, Vec::new(), Vec::new());
    for Lying { role, entry } in lying {
        match role.empty(&entry.entry).await {
            Ok(Outcome::Done(()) | Outcome::AlreadyDone | Outcome::Gone) => {
                freed += entry.bytes;
                gone.push(entry.entry);
            }
            Ok(other) => failed.push(format!("`{}` was not removed: {other:?}", entry.entry)),
            Err(error) => failed.push(format!("`{}` was not removed: {error}", entry.entry)),
        }
    }
    let mut lines = vec![format!("{} removed for ever, {} freed", count(gone.len() as u64, "entry"), Bytes(freed))];
    lines.extend(failed.iter().map(|problem| safe(problem).into_owned()));
    let exit = if failed.is_empty() { Exit::Done } else { Exit::Failed };
    let gone: Vec<_> = gone.iter().map(|entry| &**entry).collect();
    Answer::done(lines.join("\n"), json!({ "bytes": freed, "removed": gone, "failed": failed })).ending(exit)
}
