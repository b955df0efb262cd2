//! `furlough workspace push DIR --as W`.

use std::{sync::Arc, time::Duration};

use lifecycle::report::Bytes;
use serde_json::{Value, json};
use settings::system;
use workspace::{
    Basis, Progress, Push, Pushed, Store, Watched,
    blobs::bound::Bound,
    commit::{After, Commit as _, Head, Lease},
    exclude::Rules,
    key::Name,
    manifest::Manifest,
};

use super::{
    bar::watched,
    fault,
    kept::{Kept, TTL, nonce, threads},
    named,
};
use crate::{
    answer::{Answer, Exit, Fault},
    cli,
    parts::Plant,
    render::words::{count, safe},
    terminal::Style,
};

/// Zstd's: a slower one saves little, and a store is near.
const LEVEL: i32 = 1;

/// Saves a folder.
pub(super) async fn command(plant: &Plant, asked: &cli::Push) -> Result<Answer, Fault> {
    let name = named(&asked.name)?;
    if !asked.dir.is_dir() {
        return Err(Fault::usage("folder", format!("`{}` is no folder", asked.dir.display())));
    }
    let kept = Kept::acting(plant).await?;
    let (lease, head) = kept.lease(&name, "push").await?;
    let begun = system::now();
    let watch = Watched::default();
    let done = pushed(plant, &kept, asked, &lease, head, &watch).await;
    if !matches!(done, Ok(Pushed::Committed { .. } | Pushed::Unchanged(_))) {
        // Else the next one would wait for its end. If it can't be given back, it ends by itself.
        _ = kept.commit.release(&lease).await;
    }
    let spent = system::now().since(begun);
    match done? {
        Pushed::Committed { head, manifest } => Ok(committed(plant, &head, &manifest, watch.progress(), spent)),
        Pushed::Unchanged(head) => {
            let manifest = kept.manifest(&head).await?;
            Ok(unchanged(plant, &head, &manifest, spent))
        }
        other => Err(refused(&name, asked, &other)),
    }
}

async fn pushed(
    plant: &Plant,
    kept: &Kept,
    asked: &cli::Push,
    lease: &Lease,
    head: Option<Head>,
    watch: &Watched,
) -> Result<Pushed, Fault> {
    let manifest = match &head {
        Some(head) => Some(kept.manifest(head).await?),
        None => None,
    };
    let place = kept.place(&lease.workspace, &asked.dir, manifest.as_ref())?;
    let request = Push {
        lease: lease.clone(),
        head,
        place,
        rules: Rules::new([]).map_err(|error| Fault::failed("workspace", error))?,
        basis: if asked.replace { Basis::Replace } else { Basis::Known },
        after: After::Release,
        now: system::now().millis(),
        nonce: nonce(),
        level: LEVEL,
        threads: threads(),
        ttl: TTL,
        watched: watch.clone(),
    };
    // As a sandbox would be signed for: what is written is of this workspace and lease, whatever goes wrong here.
    let signer = Arc::new(Bound::new(kept.store.signer.clone(), lease.clone()));
    let store = Store { signer, ..kept.store.clone() };
    let what = format!("pushing `{}`", lease.workspace);
    let done = watched(plant, what, watch, workspace::push(&store, &kept.commit, request)).await?;
    done.map_err(|error| fault(&error))
}

fn committed(plant: &Plant, head: &Head, manifest: &Manifest, moved: Progress, spent: Duration) -> Answer {
    let name = &head.manifest.workspace;
    let seconds = spent.as_secs_f64();
    let files = count(manifest.counts.files, "file");
    let layer = manifest.layers.last().map_or(0, |layer| layer.bytes);
    let first = format!(
        "`{name}` is at generation {}: {files}, {}, in {}",
        head.generation,
        Bytes(head.bytes),
        count(manifest.layers.len() as u64, "layer"),
    );
    let second = format!("{} read and {} sent in {}", Bytes(moved.total), Bytes(layer), rate(moved.total, seconds));
    let mut json = document(head, manifest, seconds);
    json["outcome"] = "committed".into();
    json["read_bytes"] = moved.total.into();
    json["sent_bytes"] = layer.into();
    with_notes(plant, manifest, vec![first, second], json)
}

fn unchanged(plant: &Plant, head: &Head, manifest: &Manifest, spent: Duration) -> Answer {
    let seconds = spent.as_secs_f64();
    let name = &head.manifest.workspace;
    let line =
        format!("`{name}` stays at generation {}: nothing has changed, found in {seconds:.2} s", head.generation);
    let mut json = document(head, manifest, seconds);
    json["outcome"] = "unchanged".into();
    json["read_bytes"] = 0.into();
    json["sent_bytes"] = 0.into();
    with_notes(plant, manifest, vec![line], json)
}

/// A time, and how much a second that makes.
pub(super) fn rate(bytes: u64, seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a figure for people"
    )]
    let rate = (bytes as f64 / seconds.max(0.001)) as u64;
    format!("{seconds:.2} s, {} a second", Bytes(rate))
}

/// What every answer about a generation has.
pub(super) fn document(head: &Head, manifest: &Manifest, seconds: f64) -> Value {
    json!({
        "workspace": head.manifest.workspace,
        "generation": head.generation,
        "manifest": head.manifest,
        "as_of": lifecycle::Time::from_millis(head.as_of_ms),
        "files": manifest.counts.files,
        "bytes": head.bytes,
        "layers": manifest.layers.len(),
        "left_out": manifest.left_out,
        "torn": manifest.torn,
        "seconds": seconds,
    })
}

/// Adds what was not kept, or not whole: then not all was done.
pub(super) fn with_notes(plant: &Plant, manifest: &Manifest, mut lines: Vec<String>, json: Value) -> Answer {
    let yellow = |text: String| plant.terminal.paint(Style::Yellow, &text);
    let left = manifest.left_out.len() as u64;
    if left > 0 {
        lines.push(yellow(format!("not kept as they are: {}", count(left, "member"))));
        let line =
            |note: &workspace::manifest::Note| format!("  {}: {}", safe(&note.path.to_string()), safe(&note.why));
        lines.extend(manifest.left_out.iter().map(line));
    }
    let torn = manifest.torn.len() as u64;
    if torn > 0 {
        lines.push(yellow(format!("changed while it was read, so maybe a mixture: {}", count(torn, "member"))));
        lines.extend(manifest.torn.iter().map(|path| format!("  {}", safe(&path.to_string()))));
    }
    let exit = if left + torn > 0 { Exit::Refused } else { Exit::Done };
    Answer::done(lines.join("\n"), json).ending(exit)
}

fn refused(name: &Name, asked: &cli::Push, pushed: &Pushed) -> Fault {
    let dir = asked.dir.display();
    let told = match pushed {
        Pushed::Fenced => {
            ("fenced", format!("somebody else took the lease of `{name}` meanwhile; nothing was changed, push again"))
        }
        Pushed::Moved(_) => {
            ("moved", format!("`{name}` has a newer generation by now; nothing was changed, push again"))
        }
        Pushed::HalfPulled => {
            ("half_pulled", format!("a pull into `{dir}` was broken off, so it is nothing; pull again"))
        }
        Pushed::Unrelated { trees, head } => {
            let generation = |key: &workspace::key::Key| format!("generation {}", key.generation);
            let from = trees.as_ref().map_or_else(|| "none of its generations".to_owned(), generation);
            let problem = format!(
                "`{dir}` descends from {from}, and `{name}` is at {}; pull that into another folder and merge, or \
                 `--replace` it",
                generation(head),
            );
            ("unrelated", problem)
        }
        Pushed::Committed { .. } | Pushed::Unchanged(_) => ("done", format!("`{name}` was pushed")),
    };
    Fault::refused(told.0, told.1)
}
