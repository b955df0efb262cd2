//! Deleting: one rename, which git and OpenHands live with, and which can be taken back.

use std::fs;

use backend::Outcome;
use lifecycle::{Loss, policy::WorkspaceRule};

use super::world::{World, commit, content, git, refusal, write};

#[tokio::test]
async fn what_was_deleted_comes_back_whole_and_git_knows_it_again() {
    let world = World::new();
    let tree = world.furnished(1);
    commit(&tree, "work");
    write(&tree.path.join("notes"), "untracked");
    git(&tree.path, &["add", "notes"]);
    let (before, status) = (content(&tree.path), git(&tree.path, &["status", "--porcelain", "--branch"]));
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    assert!(!world.root.join(&tree.uuid).exists(), "the conversation's folder goes with its last worktree");
    let branch = format!("branch `openhands/{}` in `{}`", tree.uuid, world.repository.join(".git").display());
    assert_eq!(deleted.kept, [branch.into()]);
    // OpenHands runs this whenever it makes a worktree.
    git(&world.repository, &["worktree", "prune"]);
    let undo = world.backend().undo.unwrap();
    let trashed = undo.trashed().await.unwrap();
    assert_eq!(trashed.len(), 1);
    assert_eq!((Some(&trashed[0].entry), trashed[0].at), (deleted.undo.as_ref(), world.now()));
    assert_eq!(trashed[0].origin.as_ref(), tree.path.to_str().unwrap());
    assert_eq!(undo.undo(&trashed[0].entry).await.unwrap(), Outcome::Done(trashed[0].clone()));
    assert_eq!(content(&tree.path), before);
    assert_eq!(git(&tree.path, &["status", "--porcelain", "--branch"]), status);
    assert!(!git(&world.repository, &["worktree", "list", "--porcelain"]).contains("locked"));
    assert_eq!(undo.trashed().await.unwrap(), []);
    assert_eq!(undo.undo(&trashed[0].entry).await.unwrap(), Outcome::Gone);
}

#[tokio::test]
async fn a_neighbour_in_the_same_conversation_stays() {
    let world = World::new();
    let tree = world.tree(1);
    let other = world.root.join(&tree.uuid).join("other");
    git(&world.repository, &["worktree", "add", "-q", "-b", "other", other.to_str().unwrap()]);
    let before = content(&other);
    world.deleted(&tree.id, WorkspaceRule::Save).await;
    assert_eq!(content(&other), before);
}

#[tokio::test]
async fn emptied_it_is_gone_for_git_too_but_its_branch_stays() {
    let world = World::new();
    let tree = world.tree(1);
    commit(&tree, "work");
    let admin = tree.admin();
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    assert!(admin.join("HEAD").exists());
    let undo = world.backend().undo.unwrap();
    let entry = deleted.undo.unwrap();
    assert_eq!(undo.empty(&entry).await.unwrap(), Outcome::Done(()));
    assert!(!admin.exists());
    assert_eq!(fs::read_dir(world.root.join(".furlough-trash")).unwrap().count(), 0);
    assert_eq!(git(&world.repository, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    git(&world.repository, &["rev-parse", "--verify", &format!("openhands/{}", tree.uuid)]);
    assert_eq!(undo.undo(&entry).await.unwrap(), Outcome::Gone);
    assert_eq!(undo.empty(&entry).await.unwrap(), Outcome::Gone);
}

#[tokio::test]
async fn a_locked_worktree_is_refused_with_the_reason_of_its_lock() {
    let world = World::new();
    let tree = world.tree(1);
    git(&world.repository, &["worktree", "lock", "--reason", "on a stick", tree.path.to_str().unwrap()]);
    let answer = world.delete(&tree.id, WorkspaceRule::Save).await;
    let expected = "locked by `git worktree lock`, `on a stick`; `git worktree unlock` frees it";
    assert_eq!(refusal(&answer), expected);
    assert_eq!(fs::read_to_string(tree.admin().join("locked")).unwrap().trim(), "on a stick");
}

#[tokio::test]
async fn one_that_holds_another_worktree_is_refused() {
    let world = World::new();
    let tree = world.tree(1);
    let inner = tree.path.join(".worktrees/inner");
    git(&tree.path, &["worktree", "add", "-q", "-b", "inner", inner.to_str().unwrap()]);
    let answer = world.delete(&tree.id, WorkspaceRule::Discard).await;
    assert_eq!(refusal(&answer), "another worktree lies in it, at `.worktrees/inner`; move or remove that one first");
}

#[tokio::test]
async fn two_hundred_twenty_one_idle_directories_converge_to_none() {
    // OpenHands/software-agent-sdk#5196, #5260: 221 directories, 154 GB in two days, mostly caches.
    const N: u32 = 24;
    let world = World::new();
    let trees: Vec<_> = (0..N).map(|n| world.furnished(n)).collect();
    let backend = world.backend();
    let (seen, _) = super::world::list(&backend).await;
    assert_eq!(seen.len(), trees.len());
    let mut bytes = 0;
    for tree in &trees {
        let seen = super::world::see(&backend, &tree.id).await;
        assert_eq!(seen.loss, Loss::Nothing);
        bytes += world.deleted(&tree.id, WorkspaceRule::Save).await.bytes;
    }
    let (seen, unreadable) = super::world::list(&backend).await;
    assert_eq!((seen, unreadable), (Vec::new(), Vec::new()), "the trash is no runtime");
    let undo = backend.undo.unwrap();
    let trashed = undo.trashed().await.unwrap();
    assert_eq!(trashed.iter().map(|entry| entry.bytes).sum::<u64>(), bytes);
    for entry in trashed {
        assert_eq!(undo.empty(&entry.entry).await.unwrap(), Outcome::Done(()));
    }
    assert_eq!(git(&world.repository, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[tokio::test]
async fn an_undo_after_the_repository_went_brings_the_files_and_says_what_is_missing() {
    let world = World::new();
    let tree = world.tree(1);
    let (before, admin) = (content(&tree.path), tree.admin());
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    fs::remove_dir_all(&world.repository).unwrap();
    let Outcome::Done(back) = world.backend().undo.unwrap().undo(&deleted.undo.unwrap()).await.unwrap() else {
        panic!("it was not undone");
    };
    assert_eq!(
        back.origin.as_ref(),
        format!(
            "{} (the files are back, but its repository's `{}` is gone; HEAD was `ref: refs/heads/openhands/{}`)",
            tree.path.display(),
            admin.display(),
            tree.uuid
        )
    );
    assert_eq!(content(&tree.path), before);
}
