//! `furlough workspace gc [W] [--dry-run]`.

use std::collections::BTreeMap;

use lifecycle::report::Bytes;
use serde_json::{Value, json};
use settings::system;
use workspace::{
    collect::{Collected, Fate, Mode, Retention, collect},
    key::Name,
};

use super::{fault, kept::Kept, leased, look::all, named};
use crate::{
    answer::{Answer, Exit, Fault},
    parts::Plant,
    render::words::{clock, count, safe},
};

type Fates = BTreeMap<String, (u64, Fate)>;

/// Collects one workspace, or all of them.
pub(super) async fn command(plant: &Plant, name: Option<&str>, dry_run: bool) -> Result<Answer, Fault> {
    let kept = Kept::acting(plant).await?;
    let names = match name {
        Some(name) => vec![kept.head(&named(name)?).await?.manifest.workspace],
        None => all(&kept).await?.0.into_iter().map(|record| record.name).collect(),
    };
    let mode = if dry_run { Mode::DryRun } else { Mode::Act };
    let last = usize::try_from(kept.settings.keep).unwrap_or(usize::MAX);
    let retention = Retention { last, grace: kept.settings.grace };
    let (mut lines, mut json, mut exit) = (Vec::new(), Vec::new(), Exit::Done);
    for name in &names {
        let now = system::now().millis();
        match collect(&*kept.blobs, &kept.commit, name, retention, mode, now).await.map_err(|error| fault(&error))? {
            Collected::Done(fates) => {
                lines.extend(told(name, &fates, mode));
                json.push(document(name, &fates));
            }
            Collected::Leased { owner, until_ms } => {
                lines.push(leased(name, &owner, until_ms).message);
                json.push(json!({ "workspace": name, "leased": { "owner": owner } }));
                exit = Exit::Refused;
            }
        }
    }
    if names.is_empty() {
        lines.push("There are no workspaces.".to_owned());
    }
    Ok(Answer::done(lines.join("\n"), json!({ "dry_run": dry_run, "workspaces": json })).ending(exit))
}

fn told(name: &Name, fates: &Fates, mode: Mode) -> Vec<String> {
    let removed = fates.values().filter(|(_, fate)| *fate == Fate::Removed);
    let (number, bytes) = removed.fold((0, 0), |(number, sum), (bytes, _)| (number + 1, sum + bytes));
    let word = if mode == Mode::DryRun { "would be removed" } else { "removed" };
    let kept = fates.len() as u64 - number;
    let mut lines = vec![format!("`{name}`: {} {word}, {}; {kept} kept", count(number, "object"), Bytes(bytes))];
    // What is plainly kept needs no line.
    let other = fates.iter().filter(|(_, (_, fate))| !matches!(fate, Fate::Kept | Fate::Unknown));
    lines.extend(other.map(|(key, (_, fate))| format!("  {}: {}", safe(key), words(*fate))));
    lines
}

fn words(fate: Fate) -> String {
    match fate {
        Fate::Condemned(until) => format!("condemned: removed after {}", clock(lifecycle::Time::from_millis(until))),
        fate => fate.to_string(),
    }
}

fn document(name: &Name, fates: &Fates) -> Value {
    let objects: Vec<_> = fates
        .iter()
        .map(|(key, (bytes, fate))| json!({ "key": key, "bytes": bytes, "fate": word(*fate), "why": words(*fate) }))
        .collect();
    json!({ "workspace": name, "objects": objects })
}

const fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "kept",
        Fate::Pinned => "pinned",
        Fate::Young => "young",
        Fate::Condemned(_) => "condemned",
        Fate::Removed => "removed",
        Fate::Unknown => "unknown",
    }
}
