//! What a repository configures is never run: an agent may have written it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use backend::{Outcome, Target};
use lifecycle::{Cannot, Loss, Role, policy::WorkspaceRule};

use super::world::{Tree, World, commit, git, try_git, write};

/// Programs that a configuration can name, by the key that names them.
const KEYS: [&str; 22] = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "credential.helper",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "gpg.program",
    "merge.evil.driver",
    "pager.status",
    "pager.log",
    "sequence.editor",
    "trailer.evil.command",
    "alias.status",
    "alias.rev-list",
];

struct Planted {
    world: World,
    tree: Tree,
    ran: PathBuf,
}

impl Planted {
    /// A worktree with work to save, whose repository names a program wherever it can.
    fn new() -> Self {
        let world = World::new();
        let tree = world.tree(1);
        commit(&tree, "work");
        let ran = world.folder.path().join("ran");
        fs::create_dir(&ran).unwrap();
        write(&tree.path.join("prices.py"), "def total(): return 1\n");
        write(&tree.path.join("notes.txt"), "work");
        write(&tree.path.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n");
        git(&tree.path, &["add", "README.md"]);
        let planted = Self { world, tree, ran };
        planted.plant();
        planted
    }

    fn script(&self, key: &str) -> PathBuf {
        let script = self.world.folder.path().join("scripts").join(key);
        let marker = self.ran.join(key);
        write(&script, &format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display()));
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        script
    }

    fn plant(&self) {
        let common = self.world.repository.join(".git");
        for key in KEYS {
            let script = self.script(key);
            let command =
                if key.starts_with("alias.") { format!("!{}", script.display()) } else { script.display().to_string() };
            git(&self.world.repository, &["config", key, &command]);
        }
        for hook in ["post-index-change", "reference-transaction", "pre-auto-gc", "post-checkout", "fsmonitor-watchman"]
        {
            let script = self.script(hook);
            fs::create_dir_all(common.join("hooks")).unwrap();
            fs::copy(script, common.join("hooks").join(hook)).unwrap();
        }
        // The same once more where only this worktree would read it, and by a file that is included.
        let included = self.world.folder.path().join("included");
        write(&included, &format!("[core]\n\tfsmonitor = {}\n", self.script("included").display()));
        git(&self.world.repository, &["config", "include.path", included.to_str().unwrap()]);
        git(&self.world.repository, &["config", "extensions.worktreeConfig", "true"]);
        let own = format!("[core]\n\tfsmonitor = {}\n", self.script("worktree-config").display());
        write(&self.tree.admin().join("config.worktree"), &own);
        fs::remove_dir_all(&self.ran).unwrap();
        fs::create_dir(&self.ran).unwrap();
    }

    fn ran(&self) -> Vec<String> {
        let names = fs::read_dir(&self.ran).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn nothing_that_a_repository_configures_runs_whichever_git_it_is() {
    let gits = ["/usr/local/bin/git", "/usr/bin/git"].into_iter().filter(|git| Path::new(git).exists());
    for git in std::iter::once("git").chain(gits) {
        let planted = Planted::new();
        saved_deleted_undone_and_emptied(&planted, git).await;
        assert_eq!(planted.ran(), Vec::<String>::new(), "{git}");
    }
}

async fn saved_deleted_undone_and_emptied(planted: &Planted, git: &str) {
    let mut options = planted.world.options();
    options.git = git.into();
    let backend = backend_worktree::backend(options);
    let seen = super::world::see(&backend, &planted.tree.id).await;
    let losses = ["1 modified file", "2 untracked files", "1 commit on no remote and no other branch"];
    assert_eq!(seen.loss, Loss::Work(losses.map(Into::into).into()));
    let delete = || async {
        let target = Target::of(&seen);
        match backend
            .delete
            .as_ref()
            .unwrap()
            .delete(&target, WorkspaceRule::Save, planted.world.bounds())
            .await
            .unwrap()
        {
            Outcome::Done(deleted) if deleted.saved.is_some() => deleted.undo.unwrap(),
            other => panic!("{git}: {other:?}"),
        }
    };
    let undo = backend.undo.as_ref().unwrap();
    assert!(matches!(undo.undo(&delete().await).await.unwrap(), Outcome::Done(_)));
    assert_eq!(undo.empty(&delete().await).await.unwrap(), Outcome::Done(()));
}

#[tokio::test]
async fn the_plants_do_run_under_a_git_that_reads_them() {
    let planted = Planted::new();
    let _ = try_git(&planted.tree.path, &["status", "--porcelain"]);
    let ran = planted.ran();
    assert!(ran.iter().any(|name| name.starts_with("filter.")), "{ran:?}");
    assert!(ran.iter().any(|name| name == "worktree-config" || name == "included"), "{ran:?}");
}

#[tokio::test]
async fn a_work_tree_that_the_configuration_moves_elsewhere_is_not_followed() {
    let world = World::new();
    let tree = world.tree(1);
    write(&tree.path.join("notes.txt"), "work");
    let elsewhere = world.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    git(&world.repository, &["config", "core.worktree", elsewhere.to_str().unwrap()]);
    assert_eq!(world.see(&tree.id).await.loss, Loss::Work(vec!["1 untracked file".into()]));
}

#[tokio::test]
async fn a_repository_of_another_user_is_looked_at_all_the_same() {
    let world = World::new();
    let tree = world.tree(1);
    write(&tree.path.join("notes.txt"), "work");
    // Only the superuser can give files away; without that right the owner stays, and git has no doubts to begin with.
    for place in [&world.repository, &tree.path] {
        chown(place, 12_345);
    }
    assert_eq!(world.see(&tree.id).await.loss, Loss::Work(vec!["1 untracked file".into()]));
}

fn chown(path: &Path, uid: u32) {
    let _ = std::os::unix::fs::lchown(path, Some(uid), None);
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            chown(&entry.unwrap().path(), uid);
        }
    }
}

#[tokio::test]
async fn nothing_of_a_look_is_left_in_the_scratch_folder() {
    let planted = Planted::new();
    planted.world.see(&planted.tree.id).await;
    planted.world.deleted(&planted.tree.id, WorkspaceRule::Save).await;
    assert_eq!(fs::read_dir(&planted.world.scratch).unwrap().count(), 0);
}

#[tokio::test]
async fn a_git_that_never_ends_is_ended_and_the_deletion_refused() {
    let world = World::new();
    let tree = world.tree(1);
    let slow = world.folder.path().join("slow-git");
    write(&slow, "#!/bin/sh\nexec sleep 600\n");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = world.options();
    options.git = slow;
    options.git_timeout = std::time::Duration::from_millis(50);
    let seen = super::world::see(&backend_worktree::backend(options), &tree.id).await;
    assert_eq!(seen.loss, Loss::Unknown);
    let why = "git can't tell what is in it: `git config` took longer than 50ms";
    let cannot = |role| Cannot { role, why: why.into() };
    assert_eq!(seen.cannot, [cannot(Role::Files), cannot(Role::Delete)]);
}
