//! When a worktree was last active, and who says so.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use backend::{Sighting, Target};
use backend_worktree::{Interrupt, Step, backend};
use lifecycle::{Activity, Busy, Observation, Time, activity::MAX_BUSY, policy::WorkspaceRule};

use super::world::{Tree, World, age, git, list, see, stamps, start, write};

/// Days before the beginning.
fn ago(days: u64) -> Time {
    start().minus(Duration::from_hours(24 * days))
}

/// All of it written 90 days ago.
fn aged(world: &World, n: u32) -> Tree {
    let tree = world.furnished(n);
    for place in [&tree.path, &tree.admin()] {
        age(place, ago(90));
    }
    tree
}

fn trusting(world: &World) -> backend::Backend {
    let mut options = world.options();
    options.trust_times = true;
    backend(options)
}

fn listed<'a>(seen: &'a [Observation], tree: &Tree) -> &'a Observation {
    seen.iter().find(|seen| seen.id == tree.id).unwrap()
}

#[tokio::test]
async fn the_newest_of_git_and_the_conversations_own_files_is_the_activity() {
    let world = World::new();
    let tree = aged(&world, 1);
    let backend = trusting(&world);
    let steps = [
        (tree.admin().join("HEAD"), 80),
        (tree.admin().join("index"), 70),
        (tree.admin().join("logs/HEAD"), 60),
        (world.converse(&tree.hex(), &tree.path, "finished"), 50),
        (world.conversations.join(tree.hex()).join("events"), 40),
        (world.conversations.join(tree.hex()).join("base_state.json"), 30),
    ];
    for (place, days) in steps {
        age(&place, ago(days));
        let (seen, _) = list(&backend).await;
        assert_eq!(listed(&seen, &tree).activity, Activity::At(ago(days)), "listed after {}", place.display());
        assert_eq!(see(&backend, &tree.id).await.activity, Activity::At(ago(days)), "inspected");
    }
}

#[tokio::test]
async fn an_inspect_sees_a_file_that_was_written_without_git() {
    let world = World::new();
    let tree = aged(&world, 1);
    let backend = trusting(&world);
    for (file, days) in [("prices.py", 50), ("untracked.txt", 40)] {
        write(&tree.path.join(file), "new");
        age(&tree.path.join(file), ago(days));
        assert_eq!(see(&backend, &tree.id).await.activity, Activity::At(ago(days)), "{file}");
    }
    // What tools write by themselves is no sign: ignored files, and the folders of the tiers.
    for file in ["server.log", ".cache/pip/wheel", "node_modules/left-pad/index.js"] {
        write(&tree.path.join(file), "new");
        age(&tree.path.join(file), ago(1));
    }
    assert_eq!(see(&backend, &tree.id).await.activity, Activity::At(ago(40)));
}

#[tokio::test]
async fn a_worktree_that_was_copied_here_counts_from_the_copy_unless_its_times_are_trusted() {
    let world = World::new();
    let tree = aged(&world, 1);
    let Activity::At(copied) = world.see(&tree.id).await.activity else { panic!("unknown") };
    assert!(copied > "2026-01-01T00:00:00Z".parse().unwrap() && copied < start(), "{copied}");
    assert_eq!(see(&trusting(&world), &tree.id).await.activity, Activity::At(ago(90)));
}

#[tokio::test]
async fn listing_and_inspecting_change_no_file_no_time_and_no_activity() {
    let world = World::new();
    let tree = aged(&world, 1);
    // An index that git would refresh, were it let to.
    write(&tree.path.join("prices.py"), "def total(): return 0\n");
    age(&tree.path.join("prices.py"), ago(50));
    world.converse(&tree.hex(), &tree.path, "finished");
    age(&world.conversations, ago(60));
    let before = stamps(world.folder.path());
    let backend = trusting(&world);
    let first = (list(&backend).await, see(&backend, &tree.id).await);
    for _ in 0..2 {
        assert_eq!((list(&backend).await, see(&backend, &tree.id).await), first);
        backend.undo.as_ref().unwrap().trashed().await.unwrap();
        backend.list.disk().await.unwrap().unwrap();
    }
    let mut after = stamps(world.folder.path());
    let mut before = before;
    // The folder that git's views are made in, and removed from.
    for stamps in [&mut before, &mut after] {
        stamps.remove(&world.scratch);
    }
    assert_eq!(after, before);
    git(&tree.path, &["status"]);
    assert_ne!(stamps(world.folder.path()), before, "git's own status would have been seen by this test");
}

/// When the kernel says that a file was last changed, by the clock of the machine that runs the test.
fn changed(path: &Path) -> Time {
    let meta = fs::symlink_metadata(path).unwrap();
    Time::from_millis(meta.ctime() * 1_000 + meta.ctime_nsec() / 1_000_000)
}

#[tokio::test]
async fn a_file_that_somebody_dated_ahead_counts_from_when_that_was_done_and_is_named() {
    let world = World::new();
    let tree = aged(&world, 1);
    let ahead = start().plus(Duration::from_hours(24 * 365 * 100));
    let backend = trusting(&world);
    let conversation = world.converse(&tree.hex(), &tree.path, "running");
    age(&world.conversations, ago(60));
    for file in [tree.admin().join("index"), conversation.join("events"), tree.path.join("prices.py")] {
        age(&file, ahead);
        let seen = see(&backend, &tree.id).await;
        assert_eq!((seen.activity, seen.busy), (Activity::At(ago(60)), Busy::No), "{}", file.display());
        let shown = file.strip_prefix(&tree.path).unwrap_or(&file).display();
        let at = changed(&file);
        let expected = format!(
            "{}: `{shown}` is dated {ahead}, later than now, so it counts from {at}, when it was last changed",
            tree.path.display()
        );
        assert_eq!(seen.about.as_ref(), expected);
        age(&file, ago(90));
    }
}

#[tokio::test]
async fn a_clock_that_was_ahead_makes_it_active_now_not_until_then_and_says_what_to_do() {
    let world = World::new();
    let tree = world.tree(1);
    // All that the test made is to come, as after a clock that was set back.
    let now = "2020-01-01T00:00:00Z".parse().unwrap();
    world.set(now);
    let backend = trusting(&world);
    let (seen, _) = list(&backend).await;
    let seen = listed(&seen, &tree);
    assert_eq!((seen.activity, seen.running_since), (Activity::At(now), Some(now)));
    let (path, about) = (tree.path.display().to_string(), seen.about.to_string());
    let note = about.strip_prefix(&format!("{path}: `")).unwrap();
    let says = "later than now, so it counts as active at every look: set the clock right, then `touch` that file";
    assert!(note.ends_with(says), "{note}");
    world.pass(Duration::from_hours(3));
    assert_eq!(see(&backend, &tree.id).await.activity, Activity::At(world.now()), "kept as long as that lasts");
}

#[tokio::test]
async fn work_on_a_file_that_is_dated_ahead_is_seen_between_the_look_and_the_move() {
    let world = World::new();
    let tree = aged(&world, 1);
    let file = tree.path.join("prices.py");
    age(&file, start().plus(Duration::from_hours(1)));
    let mut options = world.options();
    let worked = file.clone();
    options.interrupt = Interrupt::new(move |step| {
        if step == Step::SavePublish {
            write(&worked, "def total(): return 2\n");
        }
        Ok(())
    });
    let backend = backend(options);
    let target = Target::of(&see(&backend, &tree.id).await);
    write(&tree.path.join("notes"), "so that there is something to save");
    let answer = backend.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert_eq!(super::world::refusal(&answer), "it was worked in while it was looked at; it is kept");
    assert!(file.exists());
}

#[tokio::test]
async fn a_running_conversation_vetoes_for_twelve_hours_after_its_last_sign() {
    let world = World::new();
    let tree = aged(&world, 1);
    let folder = world.converse(&tree.hex(), &tree.path, "running");
    let sign = start().minus(Duration::from_hours(1));
    age(&folder, sign);
    let backend = trusting(&world);
    let (seen, _) = list(&backend).await;
    assert_eq!(listed(&seen, &tree).busy, Busy::Until(sign.plus(MAX_BUSY)));
    world.pass(Duration::from_hours(11));
    assert_eq!(see(&backend, &tree.id).await.busy, Busy::No, "`running` can be a lie for ever");
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_is_unread_never_idle() {
    let world = World::new();
    let tree = aged(&world, 1);
    let folder = world.converse(&tree.hex(), &tree.path, "finished");
    write(&folder.join("base_state.json"), "{ \"execution_status\": ");
    age(&folder, start().minus(Duration::from_hours(1)));
    let seen = see(&trusting(&world), &tree.id).await;
    assert_eq!(seen.busy, Busy::Unread);
    let answer = world.backend().delete.unwrap();
    let answer =
        answer.delete(&Target::of(&seen), lifecycle::policy::WorkspaceRule::Save, world.bounds()).await.unwrap();
    let why = super::world::refusal(&answer);
    assert_eq!(why, format!("not to delete now: conversation `{}` could not be read", tree.hex()));
}

#[tokio::test]
async fn a_conversation_of_which_nobody_can_read_where_it_works_may_work_anywhere_for_twelve_hours() {
    let world = World::new();
    let tree = aged(&world, 1);
    let lost = world.conversations.join("e".repeat(32));
    let looped = world.conversations.join("d".repeat(32));
    for written in ["{ \"workspace\": ", "\0", "[]", "{\"workspace\": 7}"] {
        write(&lost.join("meta.json"), written);
        age(&lost, start().minus(Duration::from_hours(1)));
        world.set(start());
        let backend = trusting(&world);
        let (seen, _) = list(&backend).await;
        assert_eq!(listed(&seen, &tree).busy, Busy::Unread, "{written:?}");
        let target = Target::of(listed(&seen, &tree));
        let answer = backend.delete.clone().unwrap().delete(&target, WorkspaceRule::Discard, world.bounds()).await;
        let expected = format!("not to delete now: conversation `{}` could not be read", "e".repeat(32));
        assert_eq!(super::world::refusal(&answer.unwrap()), expected);
        world.pass(Duration::from_hours(12));
        let seen = see(&backend, &tree.id).await;
        assert_eq!((seen.busy, seen.sharers), (Busy::No, 1), "{written:?}: for ever would be a lie too");
    }
    // What no look gets through to is in doubt as long as it stands, and hides no worktree.
    fs::create_dir(&looped).unwrap();
    std::os::unix::fs::symlink("meta.json", looped.join("meta.json")).unwrap();
    let (seen, unreadable) = list(&trusting(&world)).await;
    assert_eq!((listed(&seen, &tree).busy, unreadable.len()), (Busy::Unread, 0));
}

#[tokio::test]
async fn conversations_that_share_a_worktree_count_and_the_newest_of_all_is_the_activity() {
    let world = World::new();
    let tree = aged(&world, 1);
    let fork = "f".repeat(32);
    for (hex, place) in [(tree.hex(), tree.path.clone()), (fork.clone(), tree.path.join("src"))] {
        world.converse(&hex, &place, "finished");
    }
    world.converse(&"e".repeat(32), &world.repository, "running");
    age(&world.conversations, ago(60));
    age(&world.conversations.join(&fork), ago(20));
    let backend = trusting(&world);
    let (seen, _) = list(&backend).await;
    let seen = listed(&seen, &tree);
    assert_eq!((seen.sharers, seen.activity, seen.busy), (2, Activity::At(ago(20)), Busy::No));
    // The fork begins to run, then is deleted.
    world.converse(&fork, &tree.path.join("src"), "running");
    age(&world.conversations.join(&fork), start());
    let target = Target::of(&see(&backend, &tree.id).await);
    let delete = backend.delete.clone().unwrap();
    let answer = delete.delete(&target, lifecycle::policy::WorkspaceRule::Discard, world.bounds()).await.unwrap();
    let until = start().plus(MAX_BUSY);
    let expected = format!("not to delete now: conversation `{fork}` runs in it (believed until {until})");
    assert_eq!(super::world::refusal(&answer), expected);
    fs::remove_dir_all(world.conversations.join(&fork)).unwrap();
    let seen = see(&backend, &tree.id).await;
    assert_eq!((seen.sharers, seen.activity), (1, Activity::At(ago(60))));
}

#[tokio::test]
async fn a_shed_and_its_undo_are_no_activity() {
    let world = World::new();
    let tree = aged(&world, 1);
    let backend = trusting(&world);
    let before = see(&backend, &tree.id).await;
    let target = Target::of(&before);
    let files = backend.files.clone().unwrap();
    let shed = files.shed(&target, lifecycle::Tier::Dependencies, world.bounds()).await.unwrap();
    let backend::Outcome::Done(shed) = shed else { panic!("{shed:?}") };
    let after = see(&backend, &tree.id).await;
    assert_eq!((after.activity, after.incarnation), (before.activity, before.incarnation.clone()));
    let _ = backend.undo.clone().unwrap().undo(&shed.undo[0]).await.unwrap();
    assert_eq!(see(&backend, &tree.id).await, before);
}

#[tokio::test]
async fn made_again_under_the_same_name_it_is_another_incarnation() {
    let world = World::new();
    let tree = world.tree(1);
    let backend = world.backend();
    let old = Target::of(&see(&backend, &tree.id).await);
    git(&world.repository, &["worktree", "remove", tree.path.to_str().unwrap()]);
    // So that the inode of the old `.git` file is not free for the new one.
    write(&world.root.join("held"), "x");
    git(
        &world.repository,
        &["worktree", "add", "-q", tree.path.to_str().unwrap(), &format!("openhands/{}", tree.uuid)],
    );
    let new = Target::of(&see(&backend, &tree.id).await);
    assert_ne!(new.incarnation, old.incarnation);
    let answer = backend.delete.unwrap().delete(&old, lifecycle::policy::WorkspaceRule::Save, world.bounds()).await;
    let moved = backend::Outcome::Moved { incarnation: new.incarnation, state: new.state };
    assert_eq!(answer.unwrap(), moved);
    assert!(matches!(world.backend().inspect.inspect(&tree.id).await.unwrap(), Sighting::Seen(_)));
}
