//! Disks that are full, read-only, or mounted in the middle. Needs the right to mount, hence `engines`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use backend::{ErrorKind, Outcome, Target};
use lifecycle::policy::WorkspaceRule;

use super::world::{World, content, list, refusal, see, write};

/// A small filesystem, unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn at(place: &Path, options: &str) -> Self {
        fs::create_dir_all(place).unwrap();
        run("mount", &["-t", "tmpfs", "-o", options, "furlough-test", place.to_str().unwrap()]);
        Self(place.to_owned())
    }

    /// A folder mounted at another place of the same filesystem.
    fn bound(from: &Path, place: &Path) -> Self {
        fs::create_dir_all(place).unwrap();
        run("mount", &["--bind", from.to_str().unwrap(), place.to_str().unwrap()]);
        Self(place.to_owned())
    }

    fn remount(&self, options: &str) {
        run("mount", &["-o", &format!("remount,{options}"), self.0.to_str().unwrap()]);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Bytes that don't compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(bytes).collect()
}

#[tokio::test]
async fn a_save_that_fills_its_disk_moves_nothing_and_leaves_nothing() {
    let world = World::new();
    let tree = world.tree(1);
    fs::write(tree.path.join("big"), noise(1 << 20)).unwrap();
    let before = content(&world.root);
    let disk = Mounted::at(&world.saves, "size=256k");
    let backend = world.backend();
    let target = Target::of(&see(&backend, &tree.id).await);
    let delete = backend.delete.unwrap();
    let error = delete.delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Local);
    let says = "No space left on device (os error 28); nothing was moved: free some space";
    assert!(error.message.starts_with("could not save its work to `") && error.message.ends_with(says), "{error}");
    assert_eq!(content(&world.root), before);
    assert_eq!(fs::read_dir(world.saves.join(tree.id.encoded())).unwrap().count(), 0, "a part of the save is left");
    disk.remount("size=8m");
    let answer = delete.delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert!(matches!(answer, Outcome::Done(_)), "{answer:?}");
}

#[tokio::test]
async fn on_a_read_only_disk_it_looks_and_says_what_to_do() {
    let world = World::new();
    let disk = Mounted::at(&world.root, "size=8m");
    let tree = world.furnished(1);
    write(&tree.path.join("notes"), "work");
    let before = content(&world.root);
    disk.remount("ro");
    let backend = world.backend();
    let (seen, unreadable) = list(&backend).await;
    assert_eq!((seen.len(), unreadable.len()), (1, 0));
    let target = Target::of(&see(&backend, &tree.id).await);
    let delete = backend.delete.unwrap();
    for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
        let error = delete.delete(&target, rule, world.bounds()).await.unwrap_err();
        assert_eq!(
            error.message,
            format!(
                "could not make the trash in `{}`: Read-only file system (os error 30); nothing was moved: mount it writable",
                world.root.display()
            )
        );
    }
    assert_eq!(content(&world.root), before);
    let saves = fs::read_dir(world.saves.join(tree.id.encoded())).map_or(0, Iterator::count);
    assert_eq!(saves, 0, "a save of what did not go is kept");
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_moved_and_nothing_is_left_in_the_trash() {
    let world = World::new();
    let disk = Mounted::at(&world.root, "size=1m,nr_inodes=64");
    let tree = world.tree(1);
    let files = 64 - count(&world.root);
    for n in 0..files {
        // Until no inode is left.
        if fs::write(tree.path.join(format!("fill-{n}")), "").is_err() {
            break;
        }
    }
    let before = content(&world.root);
    let backend = world.backend();
    let target = Target::of(&see(&backend, &tree.id).await);
    let delete = backend.delete.unwrap();
    let error = delete.delete(&target, WorkspaceRule::Discard, world.bounds()).await.unwrap_err();
    assert!(
        error.message.ends_with("No space left on device (os error 28); nothing was moved: free some space"),
        "{error}"
    );
    assert_eq!(content(&world.root), before);
    disk.remount("nr_inodes=256");
    let answer = delete.delete(&target, WorkspaceRule::Discard, world.bounds()).await.unwrap();
    assert!(matches!(answer, Outcome::Done(_)), "{answer:?}");
}

fn count(path: &Path) -> usize {
    content(path).len()
}

#[tokio::test]
async fn a_filesystem_mounted_in_a_worktree_refuses_its_deletion() {
    let world = World::new();
    let tree = world.tree(1);
    let _disk = Mounted::at(&tree.path.join("data/volume"), "size=64k");
    let answer = world.delete(&tree.id, WorkspaceRule::Discard).await;
    assert_eq!(refusal(&answer), "a filesystem is mounted in it, at `data/volume`; unmount it first");
}

#[tokio::test]
async fn a_folder_that_is_mounted_in_a_worktree_is_not_the_worktrees() {
    let world = World::new();
    let tree = world.tree(1);
    let theirs = world.folder.path().join("theirs");
    write(&theirs.join("work"), "of somebody else");
    let _mount = Mounted::bound(&theirs, &tree.path.join("data/volume"));
    let answer = world.delete(&tree.id, WorkspaceRule::Discard).await;
    assert_eq!(refusal(&answer), "a filesystem is mounted in it, at `data/volume`; unmount it first");
}

#[tokio::test]
async fn a_folder_of_a_tier_in_which_something_is_mounted_stays() {
    let world = World::new();
    let tree = world.tree(1);
    let theirs = world.folder.path().join("theirs");
    write(&theirs.join("work"), "of somebody else");
    write(&tree.path.join("node_modules/a"), "a");
    let _mount = Mounted::bound(&theirs, &tree.path.join("node_modules/shared"));
    let backend = world.backend();
    let target = Target::of(&see(&backend, &tree.id).await);
    let answer = backend.files.unwrap().shed(&target, lifecycle::Tier::Dependencies, world.bounds()).await.unwrap();
    assert_eq!(refusal(&answer), "a filesystem is mounted in it, at `node_modules/shared`; unmount it first");
    assert_eq!(fs::read_to_string(tree.path.join("node_modules/shared/work")).unwrap(), "of somebody else");
}

#[tokio::test]
async fn what_is_mounted_in_the_trash_is_never_emptied() {
    let world = World::new();
    let tree = world.tree(1);
    let answer = world.delete(&tree.id, WorkspaceRule::Discard).await;
    let Outcome::Done(deleted) = answer else { panic!("{answer:?}") };
    let entry = deleted.undo.unwrap();
    let theirs = world.folder.path().join("theirs");
    write(&theirs.join("work"), "of somebody else");
    let at = world.root.join(".furlough-trash").join(&*entry).join("content/late");
    let mut mount = Mounted::bound(&theirs, &at);
    let backend = world.backend();
    let error = backend.undo.unwrap().empty(&entry).await.unwrap_err();
    // It was given up under another name, and the mount went with it.
    mount.0 = world.root.join(".furlough-trash").join(format!("{entry}.emptying/content/late"));
    assert!(error.message.contains("something is mounted in it; unmount it first"), "{error}");
    assert_eq!(fs::read_to_string(theirs.join("work")).unwrap(), "of somebody else");
}

#[tokio::test]
async fn a_folder_of_a_tier_that_is_a_mount_is_refused_and_stays() {
    let world = World::new();
    let tree = world.tree(1);
    let modules = tree.path.join("node_modules");
    let _disk = Mounted::at(&modules, "size=64k");
    write(&modules.join("a"), "a");
    let backend = world.backend();
    let target = Target::of(&see(&backend, &tree.id).await);
    let answer = backend.files.unwrap().shed(&target, lifecycle::Tier::Dependencies, world.bounds()).await.unwrap();
    assert!(refusal(&answer).contains("can't be moved by one rename"), "{answer:?}");
    assert_eq!(fs::read_to_string(modules.join("a")).unwrap(), "a");
    assert_eq!(fs::read_dir(world.root.join(".furlough-trash")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_trash_on_another_filesystem_is_refused() {
    let world = World::new();
    let tree = world.tree(1);
    let trash = world.root.join(".furlough-trash");
    let _disk = Mounted::at(&trash, "size=64k,mode=700");
    let answer = world.delete(&tree.id, WorkspaceRule::Discard).await;
    let expected =
        format!("the trash `{}` lies on another filesystem; remove it, and look who made it", trash.display());
    assert_eq!(refusal(&answer), expected);
}
