//! `furlough workspace pull W DIR`.

use lifecycle::report::Bytes;
use serde_json::json;
use settings::system;
use tokio::sync::watch;
use workspace::{Local, Pull, Pulled, Ready, Watched, Way};

use super::{
    bar::watched,
    fault,
    kept::{Kept, nonce, threads},
    named,
    push::rate,
};
use crate::{
    answer::{Answer, Fault},
    cli,
    parts::Plant,
    render::words::{count, safe},
};

/// How many ranges are read at once.
const CONNECTIONS: usize = 16;

/// Brings a workspace into a folder.
pub(super) async fn command(plant: &Plant, asked: &cli::Pull) -> Result<Answer, Fault> {
    let name = named(&asked.name)?;
    let kept = Kept::looking(plant).await?;
    let head = kept.head(&name).await?;
    let manifest = kept.manifest(&head).await?;
    let place = kept.place(&name, &asked.dir, Some(&manifest))?;
    let (watch, begun) = (Watched::default(), system::now());
    let request = Pull {
        head: head.clone(),
        place,
        local: if asked.discard { Local::Discard } else { Local::Keep },
        limit_bytes: None,
        owner: None,
        nonce: nonce(),
        threads: threads(),
        connections: CONNECTIONS,
        watched: watch.clone(),
    };
    let ready = watch::Sender::new(Ready::Nothing);
    let pulling = workspace::pull(&kept.store, request, &ready);
    let done = watched(plant, format!("pulling `{name}`"), &watch, pulling).await?.map_err(|error| fault(&error))?;
    let seconds = system::now().since(begun).as_secs_f64();
    match done {
        Pulled::Whole { manifest, way, without_xattrs } => {
            let moved = watch.progress().moved;
            let (files, dir) = (count(manifest.counts.files, "file"), asked.dir.display());
            let bytes = Bytes(manifest.counts.bytes);
            let mut lines = vec![
                format!("`{dir}` is generation {} of `{name}`: {files}, {bytes}, {}", head.generation, words(way)),
                format!("{} came in {}", Bytes(moved), rate(moved, seconds)),
            ];
            if without_xattrs > 0 {
                let attributes = count(without_xattrs, "extended attribute");
                lines.push(format!("{attributes} could not be set: this filesystem does not take them"));
            }
            let mut json = super::push::document(&head, &manifest, seconds);
            json["way"] = word(way).into();
            json["received_bytes"] = moved.into();
            json["without_xattrs"] = without_xattrs.into();
            Ok(Answer::done(lines.join("\n"), json!(json)))
        }
        Pulled::LocalChanges { some } => {
            let some: Vec<_> = some.iter().map(|path| format!("  {}", safe(&path.to_string()))).collect();
            let problem = format!(
                "`{}` has work that no generation of `{name}` has; push it, or lose it with `--discard`:\n{}",
                asked.dir.display(),
                some.join("\n")
            );
            Err(Fault::refused("local_changes", problem))
        }
        Pulled::Occupied(root) => {
            let problem = format!(
                "`{}` is not empty, and not known to be of `{name}`; pull elsewhere, or lose what is there with `--discard`",
                root.display()
            );
            Err(Fault::refused("occupied", problem))
        }
    }
}

const fn word(way: Way) -> &'static str {
    match way {
        Way::Fresh => "fresh",
        Way::Difference => "difference",
        Way::Same => "same",
    }
}

const fn words(way: Way) -> &'static str {
    match way {
        Way::Fresh => "made afresh",
        Way::Difference => "by the difference to what was there",
        Way::Same => "as it was already",
    }
}
