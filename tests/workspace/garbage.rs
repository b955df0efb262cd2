//! What is kept, what goes, and when.

use std::{collections::BTreeMap, fs, time::Duration};

use filetime::{FileTime, set_file_mtime};
use workspace::{
    blobs::Blobs as _,
    collect::{Collected, Fate, Mode, Retention, collect, fork},
    commit::{Acquired, Committed, Head},
    key::Name,
    verify,
};

use super::{
    lab::{Host, Lab, TTL, name},
    picture::assert_equal,
};

const GRACE: Duration = Duration::from_hours(24);
const KEEP: Retention = Retention { last: 2, grace: GRACE };

/// Writes that the store dates by the lab's clock.
fn date(lab: &Lab) {
    let time = FileTime::from_unix_time(lab.now() / 1000, 0);
    for folder in ["layers", "manifests"] {
        for entry in fs::read_dir(lab.folder.path().join("bucket/workspaces/w").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.metadata().unwrap().modified().unwrap().elapsed().is_ok() {
                set_file_mtime(path, time).unwrap();
            }
        }
    }
}

async fn push_dated(lab: &Lab, host: &Host, text: &str) {
    fs::write(host.project.join("work"), text).unwrap();
    fs::remove_file(host.state.join("cache")).unwrap_or_default();
    lab.push(host).await;
    date(lab);
}

async fn run(lab: &Lab, mode: Mode) -> BTreeMap<String, (u64, Fate)> {
    match collect(&lab.blobs, &*lab.commit, &name(), KEEP, mode, lab.now()).await.unwrap() {
        Collected::Done(fates) => fates,
        other @ Collected::Leased { .. } => panic!("{other:?}"),
    }
}

fn count(fates: &BTreeMap<String, (u64, Fate)>, wanted: impl Fn(Fate) -> bool) -> usize {
    fates.values().filter(|(_, fate)| wanted(*fate)).count()
}

fn keys(lab: &Lab) -> usize {
    ["layers", "manifests"]
        .map(|folder| fs::read_dir(lab.folder.path().join("bucket/workspaces/w").join(folder)).unwrap().count())
        .iter()
        .sum()
}

#[tokio::test]
async fn what_nothing_refers_to_goes_a_whole_grace_after_it_was_condemned() {
    let lab = Lab::new();
    let here = lab.host("here");
    for number in 0..4 {
        push_dated(&lab, &here, &number.to_string()).await;
    }
    let first = run(&lab, Mode::Act).await;
    assert_eq!((count(&first, |fate| fate == Fate::Kept), count(&first, |fate| fate == Fate::Young)), (4, 4));
    lab.pass(GRACE + Duration::from_secs(1));
    let second = run(&lab, Mode::Act).await;
    assert_eq!(count(&second, |fate| matches!(fate, Fate::Condemned(_))), 4);
    assert_eq!(keys(&lab), 8);
    lab.pass(GRACE);
    assert_eq!(count(&run(&lab, Mode::Act).await, |fate| fate == Fate::Removed), 0, "one moment too early");
    lab.pass(Duration::from_secs(1));
    assert_eq!(count(&run(&lab, Mode::DryRun).await, |fate| fate == Fate::Removed), 4);
    assert_eq!(keys(&lab), 8, "a dry run removes nothing");
    run(&lab, Mode::Act).await;
    assert_eq!(keys(&lab), 4);
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    assert_equal(&here.project, &there.project);
}

#[tokio::test]
async fn nothing_is_collected_under_a_lease() {
    let lab = Lab::new();
    push_dated(&lab, &lab.host("here"), "work").await;
    let (lease, _) = lab.lease("somebody").await;
    let collected = collect(&lab.blobs, &*lab.commit, &name(), KEEP, Mode::Act, lab.now()).await.unwrap();
    assert_eq!(collected, Collected::Leased { owner: "somebody".to_owned(), until_ms: lease.until_ms });
}

#[tokio::test]
async fn when_a_kept_manifest_cannot_be_read_nothing_is_removed() {
    let lab = Lab::new();
    let here = lab.host("here");
    for number in 0..3 {
        push_dated(&lab, &here, &number.to_string()).await;
    }
    let head = lab.commit.head(&name()).await.unwrap().unwrap();
    lab.blobs.put(&head.manifest.to_string(), b"{}").await.unwrap();
    lab.pass(3 * GRACE);
    collect(&lab.blobs, &*lab.commit, &name(), KEEP, Mode::Act, lab.now()).await.unwrap_err();
    assert_eq!(keys(&lab), 6);
    assert_eq!(lab.commit.lease(&name()).await.unwrap(), None, "the lease was given back");
}

async fn head(lab: &Lab, workspace: &Name) -> Head {
    lab.commit.head(workspace).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_fork_shares_its_templates_layers_which_are_never_collected() {
    let lab = Lab::new();
    let here = lab.host("here");
    push_dated(&lab, &here, "template").await;
    let template = head(&lab, &name()).await;
    let child = Name::new("child").unwrap();
    let Acquired::Granted { lease, head: None } = lab.commit.acquire(&child, "host", TTL).await.unwrap() else {
        panic!()
    };
    let forked = fork(&lab.blobs, &*lab.commit, &template, &lease, lab.nonce(), lab.now()).await.unwrap();
    assert_eq!(forked, Committed::Done);
    for number in 0..4 {
        push_dated(&lab, &here, &number.to_string()).await;
    }
    for _ in 0..3 {
        lab.pass(GRACE + Duration::from_secs(1));
        run(&lab, Mode::Act).await;
    }
    let there = lab.bare_host("there");
    let request = workspace::Pull { head: head(&lab, &child).await, ..lab.pull_request(&there).await };
    workspace::pull(&lab.store, request, &tokio::sync::watch::Sender::default()).await.unwrap();
    assert_eq!(fs::read_to_string(there.project.join("work")).unwrap(), "template");
}

#[tokio::test]
async fn verify_reads_everything_and_finds_one_flipped_bit() {
    let lab = Lab::new();
    let here = lab.host("here");
    fs::write(here.project.join("long"), super::trees::content(5 << 20, 1)).unwrap();
    lab.push(&here).await;
    fs::write(here.project.join("more"), "more").unwrap();
    let manifest = lab.push(&here).await;
    let head = head(&lab, &name()).await;
    let verified = verify(&lab.store, &head).await.unwrap();
    assert_eq!(verified.frames, manifest.layers.iter().map(|layer| layer.frames.len()).sum::<usize>());
    let path = lab.folder.path().join("bucket").join(manifest.layers[0].key.to_string());
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = verify(&lab.store, &head).await.unwrap_err();
    assert!(matches!(error, workspace::Error::Frame { .. }), "{error}");
    let there = lab.bare_host("there");
    lab.try_pull(&there).await.unwrap_err();
}
