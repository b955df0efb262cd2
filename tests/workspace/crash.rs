//! Killed at any moment: the generation before is whole, and the next run is right.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::TestRunner,
};
use workspace::{
    Pushed,
    collect::{Mode, Retention, collect},
};

use super::{
    lab::{Lab, name},
    picture::{assert_equal, picture},
    trees::{apply, content, edits},
};

/// How often each is killed.
const KILLS: u64 = if cfg!(feature = "engines") { 100 } else { 12 };

/// How much time passes from one collection to the next: more than its lease.
const ROUND: Duration = Duration::from_mins(10);

/// The test itself has the one before.
const FIRST_SEED: u64 = 2;

/// Says in a folder what a child is to do there.
const JOB: &str = "job";

/// This test is the child: in a folder with a job it does that, elsewhere nothing.
#[tokio::test]
async fn child() {
    let Ok(job) = fs::read_to_string(JOB) else { return };
    let (verb, seed) = job.split_once(' ').unwrap();
    let seed: u64 = seed.parse().unwrap();
    let lab = Lab::at(fs::canonicalize(".").unwrap(), seed);
    match verb {
        "push" => _ = lab.try_push(&lab.host("here")).await.unwrap(),
        "pull" => _ = lab.pull(&lab.bare_host("there")).await,
        _ => {
            // As late as it is in the test, so that what the last one has condemned is removed.
            lab.pass(ROUND * u32::try_from(seed - FIRST_SEED).unwrap());
            collected(&lab).await;
        }
    }
}

async fn collected(lab: &Lab) {
    let retention = Retention { last: 1, grace: Duration::ZERO };
    collect(&lab.blobs, &*lab.commit, &name(), retention, Mode::Act, lab.now()).await.unwrap();
}

fn spawned(folder: &Path, verb: &str, seed: u64) -> Child {
    fs::write(folder.join(JOB), format!("{verb} {seed}")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", "workspace::crash::child"]).current_dir(folder);
    child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs a child, and kills it after a part of the time that such a child takes.
async fn killed(folder: &Path, verb: &str, number: u64) {
    let mut child = spawned(folder, verb, FIRST_SEED + number);
    // From before it has begun to after it has ended, on a fast machine and on a slow one.
    tokio::time::sleep(Duration::from_millis(2 + number * 7919 % 240)).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

fn edited(lab: &Lab, runner: &mut TestRunner, number: u64) {
    let project = lab.host("here").project;
    apply(&project, &edits(16).new_tree(runner).unwrap().current());
    fs::write(project.join("every-time"), content(3 << 20, u8::try_from(number % 251).unwrap())).unwrap();
}

#[tokio::test]
async fn a_killed_push_leaves_the_generation_before_or_the_new_one_whole() {
    let lab = Lab::new();
    let mut runner = TestRunner::deterministic();
    let here = lab.host("here");
    edited(&lab, &mut runner, KILLS);
    lab.push(&here).await;
    let mut head = lab.commit.head(&name()).await.unwrap().unwrap();
    let mut expected = picture(&here.project);
    for number in 0..KILLS {
        edited(&lab, &mut runner, number);
        killed(lab.folder.path(), "push", number).await;
        let now = lab.commit.head(&name()).await.unwrap().unwrap();
        if now != head {
            (head, expected) = (now, picture(&here.project));
        }
        let reader = lab.bare_host(&format!("reader-{number}"));
        lab.pull(&reader).await;
        assert!(picture(&reader.project) == expected, "after kill {number}");
        fs::remove_dir_all(reader.project.parent().unwrap()).unwrap();
    }
    assert!(matches!(lab.try_push(&here).await.unwrap(), Pushed::Committed { .. } | Pushed::Unchanged(_)));
    let reader = lab.bare_host("reader");
    lab.pull(&reader).await;
    assert_equal(&here.project, &reader.project);
}

#[tokio::test]
async fn after_a_killed_pull_the_next_one_is_right() {
    let lab = Lab::new();
    let mut runner = TestRunner::deterministic();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    for number in 0..KILLS {
        edited(&lab, &mut runner, number);
        lab.push(&here).await;
        if number % 4 == 0 {
            // Without what is known of it, the whole tree is pulled.
            _ = fs::remove_dir_all(&there.project);
            _ = fs::remove_dir_all(&there.state);
        }
        killed(lab.folder.path(), "pull", number).await;
        lab.pull(&there).await;
        assert_equal(&here.project, &there.project);
        let beside = fs::read_dir(there.project.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 2, "nothing is left of the killed one after kill {number}");
    }
}

#[tokio::test]
async fn a_killed_collection_leaves_the_head_whole() {
    let lab = Lab::new();
    let mut runner = TestRunner::deterministic();
    let here = lab.host("here");
    for number in 0..KILLS {
        for half in 0..2 {
            edited(&lab, &mut runner, 2 * number + half);
            fs::remove_file(here.state.join("cache")).unwrap_or_default();
            lab.push(&here).await;
        }
        killed(lab.folder.path(), "collect", number).await;
        let reader = lab.bare_host("reader");
        lab.pull(&reader).await;
        assert_equal(&here.project, &reader.project);
        fs::remove_dir_all(reader.project.parent().unwrap()).unwrap();
        // Its lease is over.
        lab.pass(ROUND);
    }
    collected(&lab).await;
}
