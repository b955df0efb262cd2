//! `furlough workspace list`, `show W` and `verify W`: nothing is changed.

use ledger::{LedgerError, WorkspaceRecord};
use lifecycle::{Time, report::Bytes};
use serde_json::{Value, json};
use settings::system;
use workspace::manifest::Manifest;

use super::{
    fault,
    kept::Kept,
    named,
    push::{document, rate, with_notes},
};
use crate::{
    answer::{Answer, Exit, Fault},
    parts::{Plant, ledger_fault},
    render::{
        grid::{Grid, in_style, plain},
        words::{ago, clock, count, safe},
    },
    terminal::Style,
};

/// All workspaces that have a generation or a writer, by name; and the keys of those that can't be read.
pub(super) async fn all(kept: &Kept) -> Result<(Vec<WorkspaceRecord>, Vec<(String, LedgerError)>), Fault> {
    let (mut records, mut unreadable, mut next) = (Vec::new(), Vec::new(), None);
    loop {
        let page = kept.ledger.workspaces(next.take()).await.map_err(ledger_fault)?;
        records.extend(page.records.into_iter().filter(|record| record.head.is_some() || record.lease.is_some()));
        unreadable.extend(page.unreadable);
        next = page.next;
        if next.is_none() {
            records.sort_by(|a: &WorkspaceRecord, b| a.name.cmp(&b.name));
            return Ok((records, unreadable));
        }
    }
}

pub(super) async fn list(plant: &Plant) -> Result<Answer, Fault> {
    let kept = Kept::looking(plant).await?;
    let (records, unreadable) = all(&kept).await?;
    let now = system::now();
    let mut grid =
        Grid::new(plant.terminal, &["WORKSPACE", "GENERATION", "SIZE", "PUSHED", "WRITER"]).right(1).right(2);
    for record in &records {
        let head = record.head.as_ref();
        let text = |of: Option<String>| plain(of.unwrap_or_else(|| "–".to_owned()));
        grid.row([
            in_style(Style::Bold, record.name.to_string()),
            text(head.map(|head| head.generation.to_string())),
            text(head.map(|head| Bytes(head.bytes).to_string())),
            text(head.map(|head| ago(Time::from_millis(head.as_of_ms), now))),
            text(record.lease.as_ref().map(|lease| safe(&lease.owner).into_owned())),
        ]);
    }
    let mut lines = vec![if records.is_empty() {
        "There are no workspaces; `furlough workspace push DIR --as W` makes one.".to_owned()
    } else {
        grid.text(0)
    }];
    lines.extend(unreadable.iter().map(|(_, error)| safe(&error.to_string()).into_owned()));
    let json: Vec<_> = records.iter().map(row).collect();
    let unread: Vec<_> = unreadable.iter().map(|(_, error)| error.to_string()).collect();
    let exit = if unreadable.is_empty() { Exit::Done } else { Exit::Failed };
    Ok(Answer::done(lines.join("\n"), json!({ "workspaces": json, "unreadable": unread })).ending(exit))
}

fn row(record: &WorkspaceRecord) -> Value {
    json!({
        "workspace": record.name,
        "generation": record.head.as_ref().map(|head| head.generation),
        "manifest": record.head.as_ref().map(|head| &head.manifest),
        "as_of": record.head.as_ref().map(|head| Time::from_millis(head.as_of_ms)),
        "bytes": record.head.as_ref().map(|head| head.bytes),
        "writer": record.lease.as_ref().map(|lease| json!({ "owner": lease.owner, "until": Time::from_millis(lease.until_ms) })),
    })
}

pub(super) async fn show(plant: &Plant, name: &str) -> Result<Answer, Fault> {
    let kept = Kept::looking(plant).await?;
    let head = kept.head(&named(name)?).await?;
    let manifest = kept.manifest(&head).await?;
    let counts = &manifest.counts;
    let mut lines = vec![
        format!("`{name}`, generation {}, as of {}", head.generation, clock(Time::from_millis(head.as_of_ms))),
        format!(
            "{}, {}, {}, {}; {}",
            count(counts.files, "file"),
            count(counts.directories, "folder"),
            count(counts.symlinks, "symlink"),
            count(counts.hard_links, "further name"),
            Bytes(counts.bytes)
        ),
    ];
    lines.extend(
        manifest
            .roots
            .iter()
            .map(|root| format!("root {}, pushed from `{}`", safe(&root.name.to_string()), safe(&root.path))),
    );
    lines.extend(
        manifest.exclusions.iter().map(|rule| format!("left out by rule: {} ({})", safe(&rule.names), safe(&rule.why))),
    );
    let layer = |(at, layer): (usize, &workspace::manifest::Layer)| {
        format!("layer {}: {}, {} packed, {}", at + 1, count(layer.members, "member"), Bytes(layer.bytes), layer.key)
    };
    lines.extend(manifest.layers.iter().enumerate().map(layer));
    let answer = with_notes(plant, &manifest, lines, shown(&head, &manifest));
    // What a push could not keep is no fault of looking at it.
    Ok(Answer { exit: Exit::Done, ..answer })
}

fn shown(head: &workspace::commit::Head, manifest: &Manifest) -> Value {
    let mut json = document(head, manifest, 0.0);
    let layers: Vec<_> = manifest
        .layers
        .iter()
        .map(
            |layer| json!({ "key": layer.key, "bytes": layer.bytes, "blake3": layer.blake3, "members": layer.members }),
        )
        .collect();
    json["layers"] = layers.into();
    json["counts"] = json!(manifest.counts);
    json["roots"] = json!(manifest.roots);
    json["exclusions"] = json!(manifest.exclusions);
    json["parent"] = json!(manifest.parent);
    json["tool"] = json!(manifest.tool);
    if let Some(document) = json.as_object_mut() {
        document.remove("seconds");
    }
    json
}

pub(super) async fn verified(plant: &Plant, name: &str) -> Result<Answer, Fault> {
    let kept = Kept::looking(plant).await?;
    let head = kept.head(&named(name)?).await?;
    let begun = system::now();
    let verified = workspace::verify(&kept.store, &head).await.map_err(|error| fault(&error))?;
    let seconds = system::now().since(begun).as_secs_f64();
    let frames = count(verified.frames as u64, "frame");
    let text = format!(
        "generation {} of `{name}` is whole: {frames}, {} read in {}",
        head.generation,
        Bytes(verified.bytes),
        rate(verified.bytes, seconds)
    );
    let mut json = document(&head, &verified.manifest, seconds);
    json["frames"] = verified.frames.into();
    json["read_bytes"] = verified.bytes.into();
    Ok(Answer::done(text, json))
}
