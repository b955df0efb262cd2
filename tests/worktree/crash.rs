//! A process killed between any two steps: the thing is whole, in one of two places, and the next act goes on from there.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use backend::{Backend, Outcome, Target};
use backend_worktree::{Interrupt, Step, backend};
use lifecycle::policy::WorkspaceRule;

use super::world::{Tree, World, commit, content, git, list, see, write};

/// A backend whose process is killed before `step`.
fn killed_at(world: &World, step: Step) -> Backend {
    let mut options = world.options();
    options.interrupt = Interrupt::new(move |at| if at == step { Err(io::Error::other("killed")) } else { Ok(()) });
    backend(options)
}

/// A worktree with work of every kind.
fn worked_in(world: &World) -> Tree {
    let tree = world.furnished(1);
    commit(&tree, "work");
    write(&tree.path.join("notes"), "untracked");
    write(&tree.path.join("staged"), "staged");
    git(&tree.path, &["add", "staged"]);
    tree
}

type Whole = std::collections::BTreeMap<PathBuf, Vec<u8>>;

/// Where the thing is, whole; it is nowhere else in part.
fn places(world: &World, tree: &Tree, whole: &Whole) -> Vec<PathBuf> {
    let mut places = vec![tree.path.clone()];
    if let Ok(entries) = std::fs::read_dir(world.root.join(".furlough-trash")) {
        places.extend(entries.map(|entry| entry.unwrap().path().join("content")));
    }
    places.retain(|place| place.exists());
    for place in &places {
        assert_eq!(&content(place), whole, "{} is not whole", place.display());
    }
    places
}

/// What git says of it when it stands where it was: as before, and unlocked.
fn git_is_content(world: &World, tree: &Tree, status: &str) {
    assert_eq!(git(&tree.path, &["status", "--porcelain", "--branch"]), status);
    let listed = git(&world.repository, &["worktree", "list", "--porcelain"]);
    assert!(!listed.contains("locked"), "{listed}");
}

const DELETION: [Step; 10] = [
    Step::SaveBegin,
    Step::SaveBundle,
    Step::SaveTree,
    Step::SaveVerify,
    Step::SavePublish,
    Step::TrashEntry,
    Step::TrashNote,
    Step::TrashLock,
    Step::TrashMove,
    Step::TrashTidy,
];

#[tokio::test]
async fn killed_at_any_step_of_a_deletion_it_is_whole_and_the_next_pass_ends_it() {
    for step in DELETION {
        let world = World::new();
        let tree = worked_in(&world);
        let (whole, status) = (content(&tree.path), git(&tree.path, &["status", "--porcelain", "--branch"]));
        let killed = killed_at(&world, step);
        let target = Target::of(&see(&killed, &tree.id).await);
        let answer = killed.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await;
        // After the rename it is gone, as far as anybody can tell.
        let gone = step == Step::TrashTidy && answer == Ok(Outcome::Gone);
        assert!(answer.is_err() || gone, "{step:?}: {answer:?}");
        // Git may come by at any time.
        git(&world.repository, &["worktree", "prune"]);
        let found = places(&world, &tree, &whole);
        assert_eq!(found.len(), 1, "{step:?}: {found:?}");

        let next = world.backend();
        if found[0] == tree.path {
            let (seen, unreadable) = list(&next).await;
            assert_eq!((seen.len(), unreadable.len(), seen[0].cannot.len()), (1, 0, 0), "{step:?}");
            world.deleted(&tree.id, WorkspaceRule::Save).await;
        }
        let found = places(&world, &tree, &whole);
        assert!(found.len() == 1 && found[0] != tree.path, "{step:?}: {found:?}");
        let undo = next.undo.unwrap();
        let trashed = undo.trashed().await.unwrap();
        assert_eq!(trashed.len(), 1, "{step:?}");
        assert!(matches!(undo.undo(&trashed[0].entry).await.unwrap(), Outcome::Done(_)), "{step:?}");
        assert_eq!(places(&world, &tree, &whole), std::slice::from_ref(&tree.path), "{step:?}");
        git_is_content(&world, &tree, &status);
        let left = std::fs::read_dir(world.root.join(".furlough-trash")).unwrap().count();
        assert_eq!(left, 0, "{step:?}: the next act tidies what was left");
        let saves = std::fs::read_dir(world.saves.join(tree.id.encoded())).unwrap();
        let begun = saves.filter(|save| save.as_ref().unwrap().path().extension().is_some()).count();
        assert_eq!(begun, 0, "{step:?}: a begun save is left");
    }
}

/// The saves that were begun and not ended.
fn begun(world: &World) -> Vec<PathBuf> {
    let folders = |path: &Path| {
        std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let all = folders(&world.saves).into_iter().flat_map(|runtime| folders(&runtime));
    all.filter(|path| path.extension().is_some()).collect()
}

#[tokio::test]
async fn what_a_killed_process_left_is_removed_by_the_next_act_on_anything_once_it_is_old() {
    let world = World::new();
    let (tree, other, third) = (worked_in(&world), world.tree(2), world.tree(3));
    let killed = killed_at(&world, Step::SaveVerify);
    let target = Target::of(&see(&killed, &tree.id).await);
    killed.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap_err();
    let left = begun(&world);
    assert_eq!(left.len(), 1);
    // Somebody else's: no name of a save, a link, one that is only old by its looks.
    let mine = left[0].with_file_name("mine.part");
    std::fs::create_dir(&mine).unwrap();
    let outside = world.folder.path().join("outside");
    write(&outside.join("precious"), "x");
    let link = left[0].with_file_name("00000000000001-0.part");
    std::os::unix::fs::symlink(&outside, &link).unwrap();

    world.deleted(&other.id, WorkspaceRule::Save).await;
    assert!(left[0].exists(), "it is young: its process may live");
    world.pass(Duration::from_hours(2));
    let working = std::fs::File::open(&left[0]).unwrap();
    working.lock().unwrap();
    world.deleted(&third.id, WorkspaceRule::Discard).await;
    assert!(left[0].exists(), "its process lives");
    drop(working);
    // What another test starts just now has a copy of the lock's file until it is started.
    for _ in 0..100 {
        let forgotten = world.backend().undo.unwrap().forget_saves(world.now()).await.unwrap();
        assert_eq!(forgotten, Vec::<std::sync::Arc<str>>::new());
        if !left[0].exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!left[0].exists());
    assert!(mine.exists() && link.is_symlink() && outside.join("precious").exists());
}

/// A process that runs for weeks looks again at each pass: others are killed after it began.
#[tokio::test]
async fn what_was_left_later_than_a_process_began_is_removed_by_that_one_too() {
    let world = World::new();
    let tree = worked_in(&world);
    let lasting = world.backend().undo.unwrap();
    let never = lifecycle::Time::MIN;
    lasting.forget_saves(never).await.unwrap();
    let killed = killed_at(&world, Step::SaveVerify);
    let target = Target::of(&see(&killed, &tree.id).await);
    killed.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap_err();
    lasting.forget_saves(never).await.unwrap();
    assert_eq!(begun(&world).len(), 1, "it is young: its process may live");
    world.pass(Duration::from_hours(2));
    // What another test starts just now has a copy of the lock's file until it is started.
    for _ in 0..100 {
        assert_eq!(lasting.forget_saves(never).await.unwrap(), Vec::<std::sync::Arc<str>>::new());
        if begun(&world).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(begun(&world), [""; 0].map(PathBuf::from));
}

#[tokio::test]
async fn an_emptying_that_was_killed_is_ended_by_the_next_act_in_any_trash() {
    let world = World::new();
    let feature = world.folder.path().canonicalize().unwrap().join("feature");
    git(&world.repository, &["worktree", "add", "-q", "-b", "feature", feature.to_str().unwrap()]);
    let tree = world.tree(1);
    let repositories = vec![backend_worktree::Repository { name: "shop".into(), path: world.repository.clone() }];
    let mut options = world.options();
    options.repositories.clone_from(&repositories);
    let before = backend(options.clone());
    let target = Target::of(&see(&before, &super::world::runtime("shop/feature")).await);
    let deleted = before.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    let Outcome::Done(deleted) = deleted else { panic!("{deleted:?}") };
    let mut killed = options.clone();
    killed.interrupt =
        Interrupt::new(|at| if at == Step::EmptyFiles { Err(io::Error::other("killed")) } else { Ok(()) });
    backend(killed).undo.unwrap().empty(&deleted.undo.unwrap()).await.unwrap_err();
    let trash = feature.with_file_name(".furlough-trash");
    assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 1);
    // The next act is in another trash.
    let next = backend(options);
    let target = Target::of(&see(&next, &tree.id).await);
    let _ = next.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert!(!tree.path.exists());
    assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 0);
}

#[tokio::test]
async fn killed_at_any_step_of_an_undo_it_is_whole_and_can_be_deleted_or_undone() {
    for step in [Step::UndoMove, Step::UndoUnlock, Step::UndoTidy] {
        let world = World::new();
        let tree = worked_in(&world);
        let (whole, status) = (content(&tree.path), git(&tree.path, &["status", "--porcelain", "--branch"]));
        let entry = world.deleted(&tree.id, WorkspaceRule::Save).await.undo.unwrap();
        killed_at(&world, step).undo.unwrap().undo(&entry).await.unwrap_err();
        git(&world.repository, &["worktree", "prune"]);
        let found = places(&world, &tree, &whole);
        assert_eq!(found.len(), 1, "{step:?}: {found:?}");
        let undo = world.backend().undo.unwrap();
        let again = undo.undo(&entry).await.unwrap();
        assert!(matches!(again, Outcome::Done(_) | Outcome::Gone), "{step:?}: {again:?}");
        assert_eq!(places(&world, &tree, &whole), std::slice::from_ref(&tree.path), "{step:?}");
        git_is_content(&world, &tree, &status);
        assert_eq!(undo.trashed().await.unwrap(), []);
        world.deleted(&tree.id, WorkspaceRule::Save).await;
    }
}

#[tokio::test]
async fn killed_at_any_step_of_an_emptying_it_can_be_taken_back_or_is_gone_with_the_next_act() {
    for step in [Step::EmptyCondemn, Step::EmptyAdmin, Step::EmptyFiles] {
        let world = World::new();
        let (tree, other) = (worked_in(&world), world.tree(2));
        let admin = tree.admin();
        let entry = world.deleted(&tree.id, WorkspaceRule::Save).await.undo.unwrap();
        killed_at(&world, step).undo.unwrap().empty(&entry).await.unwrap_err();
        let trashed = world.backend().undo.unwrap().trashed().await.unwrap();
        assert_eq!(trashed.len(), usize::from(step == Step::EmptyCondemn), "{step:?}");
        // The next act in the same trash, whatever it is.
        world.deleted(&other.id, WorkspaceRule::Save).await;
        if step == Step::EmptyCondemn {
            assert!(admin.exists());
            continue;
        }
        assert!(!admin.exists(), "{step:?}: git still knows it");
        let left = std::fs::read_dir(world.root.join(".furlough-trash")).unwrap().count();
        assert_eq!(left, 1, "{step:?}: only the other one is left");
    }
}
