//! The bucket without Furlough: GNU tar, zstd and the lines of RESTORE.txt restore a workspace, and other readers of tar see
//! the members that our reader sees.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use proptest::{collection::vec, prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use workspace::{RESTORE, archive::Reader, entry::Kind, key::Sort, manifest::Manifest};

use super::{
    lab::{Host, Lab, name},
    picture::{picture, without_times_of_links_directories},
    trees::{apply, edits},
};

/// The lines that RESTORE.txt tells to run.
fn script() -> String {
    let lines: Vec<_> = RESTORE.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(lines.len(), 6);
    lines.join("\n")
}

fn restored_by_hand(lab: &Lab, manifest: &Manifest, to: &Path) {
    fs::create_dir(to).unwrap();
    let file = format!("{:08}-{:014}", manifest.generation, manifest.token);
    let bucket = lab.folder.path().join("bucket/workspaces/w");
    let names = fs::read_dir(bucket.join("manifests")).unwrap().map(|entry| entry.unwrap().file_name());
    let file = names.map(|name| name.into_string().unwrap()).find(|name| name.starts_with(&file)).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("umask 0\n{}", script())]).current_dir(bucket).env("manifest", file).env("to", to);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Removes what RESTORE.txt says that it leaves out.
fn remove_own_whiteouts(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, is_directory) = (entry.path(), entry.file_type().unwrap().is_dir());
        match entry.file_name().as_bytes().starts_with(b".wh.") {
            true if is_directory => fs::remove_dir_all(path).unwrap(),
            true => fs::remove_file(path).unwrap(),
            false if is_directory => remove_own_whiteouts(&path),
            false => {}
        }
    }
}

/// Three deltas on a base, as property tests make them; a few only, since each runs a dozen processes.
#[tokio::test]
async fn tar_and_zstd_alone_restore_a_base_and_its_deltas() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..4 {
        let cycles = vec(edits(24), 4).new_tree(&mut runner).unwrap().current();
        let lab = Lab::new();
        let here = lab.host("here");
        let mut last = None;
        for edits in &cycles {
            apply(&here.project, edits);
            remove_own_whiteouts(&here.project);
            if let workspace::Pushed::Committed { manifest, .. } = lab.try_push(&here).await.unwrap() {
                last = Some(manifest);
            }
        }
        let by_hand = lab.folder.path().join("by-hand");
        restored_by_hand(&lab, &last.unwrap(), &by_hand);
        let there = without_times_of_links_directories(picture(&by_hand.join("project")));
        let here = without_times_of_links_directories(picture(&here.project));
        let differing: Vec<_> = here.iter().filter(|(path, part)| there.get(*path) != Some(*part)).collect();
        assert!(differing.is_empty() && here.len() == there.len(), "{differing:#?}\n{there:#?}");
    }
}

/// A member, as any reader of tar can tell it: path, type, mode, size, whole seconds, target.
type Told = (Vec<u8>, u8, u32, u64, i64, Vec<u8>);

fn told_by_us(layer: &[u8]) -> Vec<Told> {
    let raw = zstd::decode_all(layer).unwrap();
    let mut reader = Reader::new(&raw);
    let mut told = Vec::new();
    while !reader.is_end() {
        let entry = reader.header().unwrap().unwrap();
        reader.content(entry.size).unwrap();
        let path = match entry.path.split() {
            (Some(above), name) if entry.kind == Kind::Whiteout => [above, b"/.wh.", name].concat(),
            _ => entry.path.bytes().to_vec(),
        };
        let kind = match entry.kind {
            Kind::File | Kind::Whiteout => b'0',
            Kind::HardLink => b'1',
            Kind::Symlink => b'2',
            Kind::Directory => b'5',
        };
        told.push((path, kind, entry.mode, entry.size, entry.mtime.seconds, entry.target));
    }
    told
}

const PYTHON: &str = r#"
import math, sys, tarfile
for m in tarfile.open(sys.argv[1], encoding="utf-8", errors="surrogateescape"):
    raw = lambda text: text.encode("utf-8", "surrogateescape").hex()
    # Fractions make a float of it, which can round a time close to the next second up.
    seconds = math.floor(round(m.mtime, 3)) if m.mtime % 1 < 0.9999 else -1
    print(raw(m.name), m.type.decode(), m.mode, m.size, seconds, raw(m.linkname) or "-")
"#;

fn hex(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches('-');
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn told_by_python(archive: &Path) -> Vec<Told> {
    let output = Command::new("python3").args(["-c", PYTHON]).arg(archive).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let fields: Vec<_> = line.split(' ').collect();
        let kind = fields[1].as_bytes()[0];
        let (mode, size, seconds) =
            (fields[2].parse().unwrap(), fields[3].parse().unwrap(), fields[4].parse().unwrap());
        (hex(fields[0]), kind, mode, size, seconds, hex(fields[5]))
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

fn unpacked(layer: &Path) -> PathBuf {
    let archive = layer.with_extension("unpacked");
    let status = Command::new("zstd").args(["-dqf", "-o"]).arg(&archive).arg(layer).status().unwrap();
    assert!(status.success());
    archive
}

fn layers(lab: &Lab) -> Vec<PathBuf> {
    let folder = lab.folder.path().join("bucket/workspaces/w/layers");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

async fn pushed(lab: &Lab, here: &Host) {
    let mut runner = TestRunner::deterministic();
    for _ in 0..4 {
        apply(&here.project, &edits(40).new_tree(&mut runner).unwrap().current());
        lab.try_push(here).await.unwrap();
    }
}

#[tokio::test]
async fn python_reads_the_members_that_we_read() {
    let lab = Lab::new();
    pushed(&lab, &lab.host("here")).await;
    for layer in layers(&lab) {
        let ours = told_by_us(&fs::read(&layer).unwrap());
        let mut theirs = told_by_python(&unpacked(&layer));
        assert_eq!(ours.len(), theirs.len());
        for (our, their) in ours.iter().zip(&mut theirs) {
            if their.4 == -1 {
                their.4 = our.4;
            }
        }
        assert_eq!(ours, theirs);
    }
}

#[tokio::test]
async fn gnu_tar_lists_the_members_that_we_read() {
    let lab = Lab::new();
    pushed(&lab, &lab.host("here")).await;
    for layer in layers(&lab) {
        let ours: Vec<_> = told_by_us(&fs::read(&layer).unwrap()).into_iter().map(|told| told.0).collect();
        let mut tar = Command::new("tar");
        let output = tar.args(["--quoting-style=literal", "--null", "-tf"]).arg(unpacked(&layer)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing to warn of");
        // Names with newlines make a line each of their parts: compare the text.
        let theirs = output.stdout.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"/").unwrap_or(line));
        let theirs: Vec<_> = theirs.collect();
        let ours = ours.join(&b'\n');
        let ours: Vec<_> =
            ours.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"/").unwrap_or(line)).collect();
        assert_eq!(ours, theirs[..theirs.len() - 1]);
    }
}

#[tokio::test]
async fn restore_txt_lies_beside_the_objects() {
    let lab = Lab::new();
    pushed(&lab, &lab.host("here")).await;
    let bucket = lab.folder.path().join("bucket").join(name().prefix());
    assert_eq!(fs::read_to_string(bucket.join("RESTORE.txt")).unwrap(), RESTORE);
    let manifests = fs::read_dir(bucket.join("manifests")).unwrap();
    for manifest in manifests {
        let key = manifest.unwrap().file_name();
        let key = format!("{}manifests/{}", name().prefix(), String::from_utf8_lossy(key.as_bytes()));
        assert_eq!(key.parse::<workspace::key::Key>().unwrap().sort, Sort::Manifest);
    }
}
