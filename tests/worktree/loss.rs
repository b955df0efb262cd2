//! What deleting a worktree would lose, in words, and what stands against its deletion.

use std::fs;

use lifecycle::{Loss, Role};

use super::world::{Tree, World, commit, git, try_git, write};

/// What is said of a worktree after `change`.
async fn loss_after(change: impl Fn(&World, &Tree)) -> Vec<String> {
    let world = World::new();
    let tree = world.furnished(1);
    change(&world, &tree);
    let seen = world.see(&tree.id).await;
    match seen.loss {
        Loss::Nothing => Vec::new(),
        Loss::Work(losses) => losses.iter().map(ToString::to_string).collect(),
        Loss::Unknown => panic!("unknown, since {:?}", seen.cannot),
    }
}

#[tokio::test]
async fn a_clean_pushed_worktree_loses_nothing_whatever_lies_in_its_tiers() {
    assert_eq!(loss_after(|_, _| {}).await, Vec::<String>::new());
    let pushed = loss_after(|_, tree| {
        commit(tree, "work");
        git(&tree.path, &["push", "-q", "origin", "HEAD"]);
    });
    assert_eq!(pushed.await, Vec::<String>::new());
}

#[tokio::test]
async fn changed_staged_and_deleted_files_are_modified() {
    let losses = loss_after(|_, tree| {
        write(&tree.path.join("prices.py"), "changed");
        git(&tree.path, &["mv", "README.md", "READ.md"]);
        write(&tree.path.join("staged"), "x");
        git(&tree.path, &["add", "staged"]);
        fs::remove_file(tree.path.join(".gitignore")).unwrap();
    });
    // Without its `.gitignore` everything in the tiers is untracked, and is no tier any more.
    assert_eq!(losses.await, ["4 modified files", "2 untracked files"]);
}

#[tokio::test]
async fn untracked_files_are_counted_one_by_one() {
    let losses = loss_after(|_, tree| {
        write(&tree.path.join("new/a"), "x");
        write(&tree.path.join("new/deep/b"), "x");
        write(&tree.path.join("new/node_modules/c"), "x");
    });
    assert_eq!(losses.await, ["2 untracked files"]);
}

#[tokio::test]
async fn ignored_files_and_ignored_folders_that_no_tool_makes_are_work() {
    let env = loss_after(|_, tree| write(&tree.path.join(".env"), "KEY=x"));
    assert_eq!(env.await, ["1 ignored file outside of dependency folders, such as `.env`"]);
    let data = loss_after(|_, tree| {
        write(&tree.path.join("data/shop.sqlite"), "x");
        write(&tree.path.join("data/more/rows"), "x");
    });
    assert_eq!(data.await, ["2 ignored files outside of dependency folders, such as `data/more/rows`"]);
}

#[tokio::test]
async fn commits_on_no_remote_and_commits_that_no_branch_has_are_told_apart() {
    let unpushed = loss_after(|_, tree| {
        commit(tree, "one");
        commit(tree, "two");
    });
    assert_eq!(unpushed.await, ["2 commits on no remote and no other branch"]);
    let detached = loss_after(|_, tree| {
        git(&tree.path, &["checkout", "-q", "--detach"]);
        commit(tree, "one");
    });
    assert_eq!(detached.await, ["1 commit that no branch has"]);
    let reset = loss_after(|_, tree| {
        commit(tree, "one");
        git(&tree.path, &["reset", "-q", "--hard", "HEAD~1"]);
    });
    assert_eq!(reset.await, ["1 commit that no branch has"], "only this worktree's reflog has it");
    let merged = loss_after(|world, tree| {
        commit(tree, "one");
        git(&world.repository, &["merge", "-q", "--ff-only", &format!("openhands/{}", tree.uuid)]);
    });
    assert_eq!(merged.await, Vec::<String>::new(), "another branch has it");
}

#[tokio::test]
async fn files_that_git_was_told_not_to_look_at_are_work() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let losses = loss_after(|_, tree| {
            git(&tree.path, &["update-index", flag, "prices.py"]);
            write(&tree.path.join("prices.py"), "a secret change");
        });
        assert_eq!(losses.await, ["1 file that git was told not to look at"], "{flag}");
    }
    let sparse = loss_after(|_, tree| {
        git(&tree.path, &["update-index", "--skip-worktree", "README.md"]);
        fs::remove_file(tree.path.join("README.md")).unwrap();
    });
    assert_eq!(sparse.await, Vec::<String>::new(), "what is not there can't be lost");
}

#[tokio::test]
async fn a_merge_under_way_is_named_with_its_conflicts() {
    let losses = loss_after(|world, tree| {
        write(&world.repository.join("prices.py"), "theirs");
        git(&world.repository, &["commit", "-qam", "theirs"]);
        git(&world.repository, &["push", "-q", "origin", "main"]);
        write(&tree.path.join("prices.py"), "ours");
        git(&tree.path, &["commit", "-qam", "ours"]);
        git(&tree.path, &["push", "-q", "origin", "HEAD"]);
        try_git(&tree.path, &["merge", "main"]).unwrap_err();
    });
    assert_eq!(losses.await, ["1 file with a conflict", "a merge under way"]);
}

#[tokio::test]
async fn repositories_inside_are_named_and_never_shed() {
    let losses = loss_after(|_, tree| {
        let inner = tree.path.join("target/checkouts/lib");
        fs::create_dir_all(&inner).unwrap();
        git(&inner, &["init", "-q"]);
    });
    let losses = losses.await;
    assert!(losses.contains(&"1 repository inside".to_owned()), "{losses:?}");
}

#[tokio::test]
async fn one_without_a_commit_yet_and_one_with_a_broken_index_are_told_apart() {
    let unborn = loss_after(|_, tree| {
        git(&tree.path, &["checkout", "-q", "--orphan", "fresh"]);
    });
    assert_eq!(unborn.await, ["3 modified files"], "all is staged, in no commit of this branch");
    let world = World::new();
    let tree = world.tree(1);
    fs::write(tree.admin().join("index"), "not an index").unwrap();
    let seen = world.see(&tree.id).await;
    assert_eq!(seen.loss, Loss::Unknown);
    assert_eq!(seen.cannot.iter().map(|cannot| cannot.role).collect::<Vec<_>>(), [Role::Files, Role::Delete]);
    for cannot in &seen.cannot {
        assert!(cannot.why.starts_with("git can't tell what is in it: `git status` failed: "), "{}", cannot.why);
    }
}

#[tokio::test]
async fn a_locked_worktree_and_one_with_another_inside_say_so_before_anybody_tries() {
    let world = World::new();
    let (locked, outer) = (world.tree(1), world.tree(2));
    git(&world.repository, &["worktree", "lock", "--reason", "on a stick", locked.path.to_str().unwrap()]);
    let inner = outer.path.join(".worktrees/inner");
    git(&outer.path, &["worktree", "add", "-q", "-b", "inner", inner.to_str().unwrap()]);
    let why = |seen: lifecycle::Observation| {
        let against = seen.cannot.into_iter().find(|cannot| cannot.role == Role::Delete);
        against.map(|cannot| cannot.why.to_string())
    };
    let expected = "locked by `git worktree lock`, `on a stick`; `git worktree unlock` frees it";
    assert_eq!(why(world.see(&locked.id).await).as_deref(), Some(expected));
    let expected = "another worktree lies in it, at `.worktrees/inner`; move or remove that one first";
    assert_eq!(why(world.see(&outer.id).await).as_deref(), Some(expected));
}

#[tokio::test]
async fn bytes_are_told_by_tier() {
    let world = World::new();
    let tree = world.furnished(1);
    write(&tree.path.join("node_modules/big"), &"x".repeat(200_000));
    write(&tree.path.join("node_modules/.cache/warm"), &"x".repeat(100_000));
    write(&tree.path.join(".cache/pip/big"), &"x".repeat(50_000));
    let files = world.see(&tree.id).await.files;
    let (caches, dependencies, total) = (files.caches.unwrap(), files.dependencies.unwrap(), files.total.unwrap());
    assert!((150_000..250_000).contains(&caches), "{files:?}");
    assert!((200_000..300_000).contains(&dependencies), "{files:?}");
    assert!(total >= caches + dependencies, "{files:?}");
}
