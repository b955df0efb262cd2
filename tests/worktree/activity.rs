//! When a worktree was last active, and who says so.

use std::{fs, time::Duration};

use backend::{Sighting, Target};
use backend_worktree::backend;
use lifecycle::{Activity, Busy, Observation, Time, activity::MAX_BUSY};

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

#[tokio::test]
async fn a_clock_two_hours_ahead_makes_it_active_now_not_active_until_then() {
    let world = World::new();
    let tree = aged(&world, 1);
    age(&tree.admin().join("index"), start().plus(Duration::from_hours(2)));
    let backend = trusting(&world);
    let (seen, _) = list(&backend).await;
    assert_eq!(listed(&seen, &tree).activity, Activity::At(start()));
    world.pass(Duration::from_hours(3));
    let then = Activity::At(start().plus(Duration::from_hours(2)));
    assert_eq!(see(&backend, &tree.id).await.activity, then);
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
