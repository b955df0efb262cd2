//! The trash, which an agent can write to: nothing in it is taken at its word, and nothing that stands is replaced.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use backend::{Backend, ErrorKind, Outcome, Shed, Target};
use lifecycle::{Tier, policy::WorkspaceRule};

use super::world::{Tree, World, content, refusal, see, write};

async fn shed(world: &World, backend: &Backend, tree: &Tree, tier: Tier) -> Shed {
    let target = Target::of(&see(backend, &tree.id).await);
    match backend.files.as_ref().unwrap().shed(&target, tier, world.bounds()).await.unwrap() {
        Outcome::Done(shed) => shed,
        other => panic!("the shed answered {other:?}"),
    }
}

fn trash(world: &World) -> PathBuf {
    world.root.join(".furlough-trash")
}

/// Edits the note of the only entry.
fn edit(world: &World, from: &str, to: &str) -> String {
    let entry = fs::read_dir(trash(world)).unwrap().next().unwrap().unwrap();
    let note = entry.path().join("note.json");
    let text = fs::read_to_string(&note).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    fs::write(&note, text.replace(from, to)).unwrap();
    entry.file_name().into_string().unwrap()
}

#[tokio::test]
async fn a_tier_is_moved_folder_by_folder_and_comes_back() {
    let world = World::new();
    let tree = world.furnished(1);
    write(&tree.path.join("web/node_modules/x/y"), "y");
    write(&tree.path.join("target/debug/a.o"), "o");
    write(&tree.path.join("data/rows"), "not for a tool to make again");
    write(&tree.path.join(".env"), "KEY=x");
    let before = content(&tree.path);
    let backend = world.backend();
    let shed_now = shed(&world, &backend, &tree, Tier::Dependencies).await;
    assert_eq!(shed_now.undo.len(), 3);
    for folder in ["node_modules", "web/node_modules", "target"] {
        assert!(!tree.path.join(folder).exists(), "{folder}");
    }
    for kept in ["data/rows", ".env", ".cache/pip/wheel", "web"] {
        assert!(tree.path.join(kept).exists(), "{kept}");
    }
    for entry in &shed_now.undo {
        assert!(matches!(backend.undo.as_ref().unwrap().undo(entry).await.unwrap(), Outcome::Done(_)));
    }
    assert_eq!(content(&tree.path), before);
}

#[tokio::test]
async fn links_are_neither_shed_nor_followed() {
    let world = World::new();
    let tree = world.tree(1);
    let outside = world.folder.path().join("outside");
    write(&outside.join("precious"), "x");
    // `target` without a slash is ignored also where it is a link.
    symlink(&outside, tree.path.join("target")).unwrap();
    write(&tree.path.join("node_modules/a"), "a");
    symlink(&outside, tree.path.join("node_modules/link")).unwrap();
    let backend = world.backend();
    let shed_now = shed(&world, &backend, &tree, Tier::Dependencies).await;
    assert_eq!(shed_now.undo.len(), 1);
    assert!(tree.path.join("target").is_symlink());
    let _ = backend.undo.as_ref().unwrap().empty(&shed_now.undo[0]).await.unwrap();
    world.deleted(&tree.id, WorkspaceRule::Discard).await;
    let undo = backend.undo.unwrap();
    let entry = undo.trashed().await.unwrap().remove(0).entry;
    assert_eq!(undo.empty(&entry).await.unwrap(), Outcome::Done(()));
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "x");
}

#[tokio::test]
async fn a_trash_that_is_planted_is_refused() {
    let world = World::new();
    let tree = world.furnished(1);
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, trash(&world)).unwrap();
    let before = content(&world.root);
    let expected =
        format!("the trash `{}` is a link or no folder; remove it, and look who made it", trash(&world).display());
    for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
        assert_eq!(refusal(&world.delete(&tree.id, rule).await), expected);
    }
    let backend = world.backend();
    let target = Target::of(&see(&backend, &tree.id).await);
    let answer = backend.files.as_ref().unwrap().shed(&target, Tier::Caches, world.bounds()).await.unwrap();
    assert_eq!(refusal(&answer), expected);
    let error = backend.undo.unwrap().trashed().await.unwrap_err();
    assert_eq!((error.kind, error.message), (ErrorKind::Denied, expected));
    fs::remove_file(trash(&world)).unwrap();
    fs::create_dir(trash(&world)).unwrap();
    fs::set_permissions(trash(&world), fs::Permissions::from_mode(0o777)).unwrap();
    let answer = world.delete(&tree.id, WorkspaceRule::Save).await;
    assert!(refusal(&answer).contains("is open to other users (its mode must be 0700)"), "{answer:?}");
    fs::remove_dir(trash(&world)).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    let mut before = before;
    before.remove(Path::new(".furlough-trash"));
    assert_eq!(content(&world.root), before);
}

#[tokio::test]
async fn a_note_that_leads_elsewhere_brings_nothing_back_and_empties_nothing() {
    let victim = "99999999-0000-4000-8000-000000000000";
    for (from, to) in [
        ("\"origin\": \"", "\"origin\": \"../"),
        ("\"origin\": \"", "\"origin\": \"/"),
        ("/shop\"", "/../../escaped\""),
        ("\"v\": 1", "\"v\": 9"),
        ("\"tier\": \"runtime\"", "\"tier\": \"everything\""),
        ("\"runtime\": \"worktrees/", "\"runtime\": \"others/"),
        ("\"origin\": \"00000001", "\"origin\": \"99999999"),
    ] {
        let world = World::new();
        let tree = world.tree(1);
        write(&world.root.join(victim).join("keep"), "x");
        world.deleted(&tree.id, WorkspaceRule::Save).await;
        let entry = edit(&world, from, to);
        let before = content(world.folder.path());
        let undo = world.backend().undo.unwrap();
        assert_eq!(undo.trashed().await.unwrap(), [], "{to}");
        for answer in [undo.undo(&entry).await.unwrap().map_done(), undo.empty(&entry).await.unwrap().map_done()] {
            assert!(
                refusal(&answer).starts_with(&format!("entry `{entry}` is left alone: its note ")),
                "{to}: {answer:?}"
            );
        }
        assert_eq!(content(world.folder.path()), before, "{to}");
    }
}

/// What was answered, without what it would have brought.
trait MapDone {
    fn map_done(self) -> Outcome;
}

impl<T> MapDone for Outcome<T> {
    fn map_done(self) -> Outcome {
        match self {
            Outcome::Done(_) => Outcome::Done(()),
            Outcome::Refused(why) => Outcome::Refused(why),
            Outcome::Gone => Outcome::Gone,
            _ => Outcome::Unknown("something else".into()),
        }
    }
}

/// Puts an entry into a trash of somebody's, made as ours is.
fn plant(yard: &Path, runtime: &str, origin: &str) -> String {
    let entry = "00000000000001-aaaaaaaa-0";
    let folder = yard.join(".furlough-trash").join(entry);
    write(&folder.join("content/file"), "theirs");
    let note = serde_json::json!({
        "v": 1, "runtime": runtime, "tier": "runtime", "at": "2026-11-30T12:00:00Z", "origin": origin, "bytes": 1, "git": null,
    });
    write(&folder.join("note.json"), &note.to_string());
    fs::set_permissions(yard.join(".furlough-trash"), fs::Permissions::from_mode(0o700)).unwrap();
    entry.to_owned()
}

#[tokio::test]
async fn a_note_counts_only_in_a_trash_of_ours_beside_what_it_describes() {
    let world = World::new();
    let top = world.folder.path().canonicalize().unwrap();
    let feature = top.join("work/feature");
    super::world::git(&world.repository, &["worktree", "add", "-q", "-b", "feature", feature.to_str().unwrap()]);
    let mut options = world.options();
    options.root = None;
    options.repositories = vec![backend_worktree::Repository { name: "shop".into(), path: world.repository.clone() }];
    let backend = backend_worktree::backend(options);
    let undo = backend.undo.as_ref().unwrap();
    // Beside a worktree of ours, of which nothing was ever moved; and where a forged pointer leads.
    let elsewhere = top.join("elsewhere");
    let forged = world.repository.join(".git/worktrees/forged");
    write(&forged.join("gitdir"), &format!("{}\n", elsewhere.join("x/.git").display()));
    for (yard, runtime, origin) in [
        (feature.parent().unwrap(), "worktrees/shop%2Ffeature", "other"),
        (feature.parent().unwrap(), "worktrees/shop%2Fforged", "x"),
        (feature.parent().unwrap(), "worktrees/shop%2Fghost", "ghost"),
        (feature.parent().unwrap(), "worktrees/other%2Ffeature", "feature"),
        (feature.parent().unwrap(), "others/shop%2Ffeature", "feature"),
        (feature.parent().unwrap(), "worktrees/feature", "feature"),
        (&elsewhere, "worktrees/shop%2Ffeature", "feature"),
        (&elsewhere, "worktrees/shop%2Fghost", "x"),
    ] {
        let entry = plant(yard, runtime, origin);
        let before = content(&top);
        assert_eq!(undo.trashed().await.unwrap(), [], "{runtime} in {}", yard.display());
        for answer in [undo.undo(&entry).await.unwrap().map_done(), undo.empty(&entry).await.unwrap().map_done()] {
            let says = format!("entry `{entry}` is left alone: its note does not fit this backend");
            assert!(refusal(&answer).starts_with(&says), "{answer:?}");
        }
        assert_eq!(content(&top), before);
        fs::remove_dir_all(yard.join(".furlough-trash")).unwrap();
    }
    // Nor does a trash that was planted beside one worktree hide what lies in another's.
    let target = Target::of(&see(&backend, &super::world::runtime("shop/feature")).await);
    let deleted = backend.delete.as_ref().unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert!(matches!(deleted, Outcome::Done(_)), "{deleted:?}");
    fs::create_dir_all(&elsewhere).unwrap();
    symlink(&top, elsewhere.join(".furlough-trash")).unwrap();
    let trashed = undo.trashed().await.unwrap();
    assert_eq!(trashed.len(), 1);
    assert!(matches!(undo.undo(&trashed[0].entry).await.unwrap(), Outcome::Done(_)));
    assert!(feature.join("prices.py").exists());
}

#[tokio::test]
async fn a_forged_git_folder_is_neither_unlocked_nor_removed() {
    let world = World::new();
    let (tree, other) = (world.tree(1), world.tree(2));
    super::world::git(&world.repository, &["worktree", "lock", "--reason", "mine", other.path.to_str().unwrap()]);
    world.deleted(&tree.id, WorkspaceRule::Save).await;
    let entry = edit(&world, "worktrees/shop\"", "worktrees/shop1\"");
    assert_eq!(world.backend().undo.unwrap().empty(&entry).await.unwrap(), Outcome::Done(()));
    assert_eq!(fs::read_to_string(other.admin().join("locked")).unwrap().trim(), "mine");
    assert_eq!(super::world::git(&other.path, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn an_entry_that_is_no_name_of_ours_is_gone_whatever_it_says() {
    let world = World::new();
    let tree = world.tree(1);
    world.deleted(&tree.id, WorkspaceRule::Save).await;
    let undo = world.backend().undo.unwrap();
    for entry in ["", ".", "..", "../..", "note.json", "x", "1-0000000g-0", "1-00000000-0/content", "1-00000000-0"] {
        assert_eq!(undo.undo(entry).await.unwrap(), Outcome::Gone, "{entry}");
        assert_eq!(undo.empty(entry).await.unwrap(), Outcome::Gone, "{entry}");
    }
    assert_eq!(undo.trashed().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_undo_refuses_where_something_new_stands_and_where_its_parent_is_a_link() {
    let world = World::new();
    let tree = world.tree(1);
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    let entry = deleted.undo.unwrap();
    let undo = world.backend().undo.unwrap();
    // An empty folder is something too: a plain rename would replace it.
    fs::create_dir_all(&tree.path).unwrap();
    let answer = undo.undo(&entry).await.unwrap();
    let expected = format!("something new stands at `{}`; move it away first", tree.path.display());
    assert_eq!(refusal(&answer), expected);
    assert_eq!(fs::read_dir(&tree.path).unwrap().count(), 0);
    fs::remove_dir_all(tree.path.parent().unwrap()).unwrap();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, tree.path.parent().unwrap()).unwrap();
    undo.undo(&entry).await.unwrap_err();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(tree.path.parent().unwrap()).unwrap();
    assert!(matches!(undo.undo(&entry).await.unwrap(), Outcome::Done(_)));
}

#[tokio::test]
async fn a_shed_is_not_undone_without_its_worktree() {
    let world = World::new();
    let tree = world.furnished(1);
    let backend = world.backend();
    let shed_now = shed(&world, &backend, &tree, Tier::Caches).await;
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    let undo = backend.undo.unwrap();
    let answer = undo.undo(&shed_now.undo[0]).await.unwrap();
    let expected = format!("`{}` is not there to take it: take that back first", tree.path.display());
    assert_eq!(refusal(&answer), expected);
    let _ = undo.undo(&deleted.undo.unwrap()).await.unwrap();
    assert!(matches!(undo.undo(&shed_now.undo[0]).await.unwrap(), Outcome::Done(_)));
    assert!(tree.path.join(".cache/pip/wheel").exists());
}

#[tokio::test]
async fn deep_trees_and_folders_that_forbid_writing_are_emptied_too() {
    let world = World::new();
    let tree = world.tree(1);
    let mut deep = tree.path.join("node_modules");
    for _ in 0..200 {
        deep.push("d");
        fs::create_dir_all(&deep).unwrap();
    }
    write(&tree.path.join("node_modules/closed/inner/file"), "x");
    for closed in ["node_modules/closed/inner", "node_modules/closed"] {
        fs::set_permissions(tree.path.join(closed), fs::Permissions::from_mode(0o500)).unwrap();
    }
    let backend = world.backend();
    let shed_now = shed(&world, &backend, &tree, Tier::Dependencies).await;
    assert_eq!(backend.undo.unwrap().empty(&shed_now.undo[0]).await.unwrap(), Outcome::Done(()));
    assert_eq!(fs::read_dir(trash(&world)).unwrap().count(), 0);
}

#[tokio::test]
async fn the_trash_is_ours_alone_to_read() {
    let world = World::new();
    let tree = world.tree(1);
    world.deleted(&tree.id, WorkspaceRule::Save).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&trash(&world)), 0o700);
    let entry = fs::read_dir(trash(&world)).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&entry), mode(&entry.join("note.json"))), (0o700, 0o600));
}

#[tokio::test]
async fn the_disk_is_the_roots() {
    let world = World::new();
    let disk = world.backend().list.disk().await.unwrap().unwrap();
    assert!(disk.used <= disk.total && disk.total > 0, "{disk:?}");
}
