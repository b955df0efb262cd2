//! What is saved before a worktree goes, restored by hand with nothing but git and tar.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use backend::{ErrorKind, Target};
use backend_worktree::backend;
use lifecycle::policy::WorkspaceRule;

use super::world::{Tree, World, bytes, commit, content, git, see, try_git, write};

/// Unpacks the files of a save, as its README says.
pub(super) fn unpack(save: &str, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let archive = Path::new(save).join("tree.tar.zst");
    let output = Command::new("tar")
        .args(["--zstd", "-xpf"])
        .arg(&archive)
        .arg("-C")
        .arg(into)
        .args(["--strip-components=1", "tree"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Saves of a runtime, complete and begun.
fn saves(world: &World, tree: &Tree) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(world.saves.join(tree.id.encoded())) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

async fn saved(world: &World, tree: &Tree) -> String {
    world.deleted(&tree.id, WorkspaceRule::Save).await.saved.expect("nothing was saved").to_string()
}

/// A worktree of the repository at the commit that the save's README names, with the saved files over it.
fn restored(world: &World, save: &str) -> PathBuf {
    let readme = fs::read_to_string(Path::new(save).join("README.txt")).unwrap();
    let head = readme.lines().find_map(|line| line.strip_prefix("Checked out was commit ")).unwrap();
    let bundle = Path::new(save).join("commits.bundle");
    if bundle.exists() {
        let what = "refs/furlough/*:refs/furlough/*";
        git(&world.repository, &["fetch", "-q", bundle.to_str().unwrap(), what]);
    }
    let place = world.folder.path().canonicalize().unwrap().join("restored");
    git(&world.repository, &["worktree", "add", "-q", "--detach", place.to_str().unwrap(), head]);
    unpack(save, &place);
    place
}

#[tokio::test]
async fn dirty_and_unpushed_work_comes_back_by_hand_with_git_and_tar() {
    // anthropics/claude-code#74719: a sweep deleted dirty and unpushed worktrees.
    let world = World::new();
    let tree = world.furnished(1);
    commit(&tree, "committed");
    write(&tree.path.join("prices.py"), "def total(): return 1\n");
    write(&tree.path.join("notes/deep/todo.md"), "ask about the tax");
    write(&tree.path.join(".env"), "KEY=x");
    write(&tree.path.join("data/shop.sqlite"), "rows");
    let status = git(&tree.path, &["status", "--porcelain"]);
    let head = git(&tree.path, &["rev-parse", "HEAD"]);
    let mut expected = content(&tree.path);
    let save = saved(&world, &tree).await;
    // Worse than planned: the branch is deleted too, and what nothing points at is pruned.
    git(&world.repository, &["worktree", "prune"]);
    let undone = world.backend().undo.unwrap();
    let entry = undone.trashed().await.unwrap().remove(0).entry;
    let _ = undone.empty(&entry).await.unwrap();
    git(&world.repository, &["branch", "-D", &format!("openhands/{}", tree.uuid)]);
    git(&world.repository, &["reflog", "expire", "--expire=now", "--all"]);
    git(&world.repository, &["gc", "-q", "--prune=now"]);
    try_git(&world.repository, &["cat-file", "-e", head.trim()]).unwrap_err();

    let back = restored(&world, &save);
    assert_eq!(git(&back, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&back, &["status", "--porcelain"]), status);
    expected.retain(|path, _| !path.starts_with("node_modules") && !path.starts_with(".cache"));
    expected.remove(Path::new(".git"));
    let mut got = content(&back);
    got.remove(Path::new(".git"));
    assert_eq!(got, expected);
}

#[tokio::test]
async fn what_was_staged_and_what_only_a_detached_head_or_a_reflog_has_is_in_the_bundle() {
    let world = World::new();
    let tree = world.tree(1);
    commit(&tree, "amended away");
    let amended = git(&tree.path, &["rev-parse", "HEAD"]);
    git(&tree.path, &["commit", "-q", "--amend", "-m", "amended"]);
    git(&tree.path, &["checkout", "-q", "--detach"]);
    commit(&tree, "detached");
    let detached = git(&tree.path, &["rev-parse", "HEAD"]);
    write(&tree.path.join("prices.py"), "staged\n");
    git(&tree.path, &["add", "prices.py"]);
    write(&tree.path.join("prices.py"), "then changed again\n");
    let save = saved(&world, &tree).await;
    let bundle = Path::new(&save).join("commits.bundle");
    let heads = git(&world.repository, &["bundle", "list-heads", bundle.to_str().unwrap()]);
    assert!(heads.contains(&format!("{} refs/furlough/head", detached.trim())), "{heads}");
    assert!(heads.contains(amended.trim()), "{heads}");
    git(&world.repository, &["fetch", "-q", bundle.to_str().unwrap(), "refs/furlough/*:refs/furlough/*"]);
    assert_eq!(git(&world.repository, &["show", "refs/furlough/index:prices.py"]), "staged\n");
    assert_eq!(git(&world.repository, &["rev-parse", "refs/furlough/index~1"]), detached);
}

#[tokio::test]
async fn links_modes_times_hard_links_and_odd_names_are_kept() {
    let world = World::new();
    let tree = world.tree(1);
    let outside = world.folder.path().join("outside");
    write(&outside, "not ours");
    symlink(&outside, tree.path.join("link")).unwrap();
    symlink("x".repeat(300), tree.path.join("long link")).unwrap();
    symlink("../../a//b/../c/", tree.path.join("odd link")).unwrap();
    let long = tree.path.join("d".repeat(90)).join("e".repeat(90)).join("f".repeat(90));
    write(&long, "deep");
    write(&tree.path.join("run.sh"), "#!/bin/sh\n");
    fs::set_permissions(tree.path.join("run.sh"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::write(tree.path.join(bytes(b"caf\xe9\n\\")), "latin").unwrap();
    fs::hard_link(tree.path.join("run.sh"), tree.path.join("twin")).unwrap();
    fs::create_dir(tree.path.join("empty")).unwrap();
    let time = filetime::FileTime::from_unix_time(1_000_000_007, 123_456_789);
    filetime::set_file_times(tree.path.join("run.sh"), time, time).unwrap();
    let expected = content(&tree.path);
    let save = saved(&world, &tree).await;
    let back = world.folder.path().join("back");
    unpack(&save, &back);
    let mut got = content(&back);
    got.insert(".git".into(), expected[Path::new(".git")].clone());
    assert_eq!(got, expected);
    let meta = fs::metadata(back.join("run.sh")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (0o4751, 1_000_000_007, 123_456_789));
    assert_eq!(meta.ino(), fs::metadata(back.join("twin")).unwrap().ino());
}

#[tokio::test]
async fn a_merge_under_way_is_saved_with_what_git_kept_of_it() {
    let world = World::new();
    let tree = world.tree(1);
    write(&world.repository.join("prices.py"), "theirs");
    git(&world.repository, &["commit", "-qam", "theirs"]);
    write(&tree.path.join("prices.py"), "ours");
    git(&tree.path, &["commit", "-qam", "ours"]);
    write(&tree.path.join("staged.txt"), "staged");
    git(&tree.path, &["add", "staged.txt"]);
    git(&tree.path, &["commit", "-qm", "more"]);
    try_git(&tree.path, &["merge", "main"]).unwrap_err();
    write(&tree.path.join("during.txt"), "during the merge");
    git(&tree.path, &["add", "during.txt"]);
    let save = saved(&world, &tree).await;
    let archive = Path::new(&save).join("tree.tar.zst");
    let listed = Command::new("tar").args(["--zstd", "-tf"]).arg(&archive).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    for member in ["admin/MERGE_HEAD", "admin/index", "admin/HEAD", "tree/prices.py", "tree/during.txt"] {
        assert!(listed.lines().any(|line| line == member), "{member} is missing in\n{listed}");
    }
    let bundle = Path::new(&save).join("commits.bundle");
    git(&world.repository, &["fetch", "-q", bundle.to_str().unwrap(), "refs/furlough/*:refs/furlough/*"]);
    assert_eq!(git(&world.repository, &["show", "refs/furlough/index:during.txt"]), "during the merge");
}

#[tokio::test]
async fn a_repository_inside_is_saved_with_its_history() {
    let world = World::new();
    let tree = world.tree(1);
    let inner = tree.path.join("lib");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    write(&inner.join("f"), "x");
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-qm", "inner work"]);
    let head = git(&inner, &["rev-parse", "HEAD"]);
    let save = saved(&world, &tree).await;
    let back = world.folder.path().join("back");
    unpack(&save, &back);
    assert_eq!(git(&back.join("lib"), &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&back.join("lib"), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn submodules_are_saved_with_what_git_keeps_of_them() {
    let world = World::new();
    let library = world.folder.path().canonicalize().unwrap().join("library");
    fs::create_dir(&library).unwrap();
    git(&library, &["init", "-q"]);
    write(&library.join("f"), "x");
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "-qm", "a library"]);
    let tree = world.tree(1);
    let add = ["-c", "protocol.file.allow=always", "submodule", "-q", "add", library.to_str().unwrap(), "lib"];
    git(&tree.path, &add);
    git(&tree.path, &["commit", "-qm", "use it"]);
    write(&tree.path.join("lib/f"), "changed inside");
    git(&tree.path.join("lib"), &["commit", "-qam", "inner work"]);
    let head = git(&tree.path.join("lib"), &["rev-parse", "HEAD"]);
    let save = saved(&world, &tree).await;
    let all = world.folder.path().join("all");
    fs::create_dir(&all).unwrap();
    let archive = Path::new(&save).join("tree.tar.zst");
    assert!(Command::new("tar").args(["--zstd", "-xf"]).arg(archive).current_dir(&all).status().unwrap().success());
    let modules = all.join("admin/modules/lib");
    assert_eq!(git(&modules, &["--git-dir=.", "--work-tree=.", "rev-parse", "HEAD"]), head);
    assert_eq!(fs::read_to_string(all.join("tree/lib/f")).unwrap(), "changed inside");
}

#[tokio::test]
async fn nothing_is_saved_where_nothing_would_be_lost_or_the_policy_discards() {
    let world = World::new();
    let (clean, dirty) = (world.furnished(1), world.furnished(2));
    assert_eq!(world.deleted(&clean.id, WorkspaceRule::Save).await.saved, None);
    write(&dirty.path.join("notes"), "x");
    assert_eq!(world.deleted(&dirty.id, WorkspaceRule::Discard).await.saved, None);
    assert_eq!(saves(&world, &dirty), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_save_that_fails_moves_nothing_and_leaves_nothing() {
    let world = World::new();
    let tree = world.tree(1);
    write(&tree.path.join("notes"), "work");
    let before = content(&tree.path);
    let mut options = world.options();
    // A file stands where the folder of the saves should be.
    write(&world.folder.path().join("in the way"), "x");
    options.saves = world.folder.path().join("in the way/saves");
    let backend = backend(options.clone());
    let target = Target::of(&see(&backend, &tree.id).await);
    let error = backend.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Local);
    let expected = format!("could not save its work to `{}`: Not a directory (os error 20)", options.saves.display());
    assert_eq!(error.message, expected);
    assert_eq!(content(&tree.path), before);
    assert!(!world.root.join(".furlough-trash").exists());
}

#[tokio::test]
async fn a_commit_that_is_missing_from_the_repository_refuses_the_deletion() {
    let world = World::new();
    let tree = world.tree(1);
    commit(&tree, "work");
    let tree_hash = git(&tree.path, &["rev-parse", "HEAD^{tree}"]);
    let (folder, file) = tree_hash.trim().split_at(2);
    fs::remove_file(world.repository.join(".git/objects").join(folder).join(file)).unwrap();
    let before = content(&tree.path);
    let answer = world.delete(&tree.id, WorkspaceRule::Save).await;
    let why = super::world::refusal(&answer);
    assert!(why.contains("git"), "{why}");
    assert_eq!(content(&tree.path), before);
    assert_eq!(saves(&world, &tree), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn work_that_goes_on_while_it_is_saved_keeps_it() {
    let world = World::new();
    let tree = world.tree(1);
    write(&tree.path.join("notes"), "work");
    let mut options = world.options();
    let path = tree.path.clone();
    options.interrupt = backend_worktree::Interrupt::new(move |step| {
        if step == backend_worktree::Step::SavePublish {
            write(&path.join("notes"), "work went on");
        }
        Ok(())
    });
    let backend = backend(options);
    let target = Target::of(&see(&backend, &tree.id).await);
    let answer = backend.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert_eq!(super::world::refusal(&answer), "it was worked in while it was looked at; it is kept");
    assert_eq!(fs::read_to_string(tree.path.join("notes")).unwrap(), "work went on");
    assert_eq!(saves(&world, &tree), Vec::<PathBuf>::new(), "a save that is of no use is not kept");
}

#[tokio::test]
async fn old_saves_go_and_young_ones_and_what_is_no_save_stay() {
    let world = World::new();
    let tree = world.furnished(1);
    write(&tree.path.join("draft.md"), "a draft");
    let save = saved(&world, &tree).await;
    let (id, stray) = (world.saves.join(tree.id.encoded()), world.saves.join("read-me.txt"));
    fs::write(&stray, "not ours").unwrap();
    let outside = world.folder.path().join("outside");
    fs::create_dir_all(outside.join("00000000000001-0")).unwrap();
    symlink(&outside, world.saves.join("link")).unwrap();
    fs::create_dir(id.join("00000000000001-x")).unwrap();
    let role = backend(world.options()).undo.unwrap();
    let now = world.now();
    assert_eq!(role.forget_saves(now).await.unwrap(), []);
    assert_eq!(role.forget_saves(now.plus(std::time::Duration::from_millis(1))).await.unwrap(), [save.clone().into()]);
    assert!(!Path::new(&save).exists());
    assert!(
        stray.exists() && outside.join("00000000000001-0").exists(),
        "what is not a save is left, links are not followed"
    );
    assert!(id.join("00000000000001-x").exists());
    fs::remove_dir(id.join("00000000000001-x")).unwrap();
    assert_eq!(role.forget_saves(now).await.unwrap(), []);
    assert!(!id.exists(), "an empty folder of a runtime goes too");
}
