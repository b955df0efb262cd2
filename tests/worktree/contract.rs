//! The contract of any backend, on real worktrees.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use backend::{
    Backend,
    contract::{self, Can, Content, Harness, NotApplicable, Tree as Files},
};
use backend_worktree::Root;
use lifecycle::{RuntimeId, State, Tier, Time};

use super::world::{World, content, git, runtime, write};

struct Worktrees {
    world: World,
    backend: Backend,
    made: AtomicU32,
}

impl Worktrees {
    fn path(&self, id: &RuntimeId) -> std::path::PathBuf {
        self.world.root.join(String::from_utf8(id.provider_id()).unwrap())
    }

    fn add(&self) -> super::world::Tree {
        let tree = self.world.furnished(self.made.fetch_add(1, Ordering::SeqCst));
        write(&tree.path.join("work.md"), "what the agent found out");
        git(&tree.path, &["add", "work.md"]);
        git(&tree.path, &["commit", "-qm", "work"]);
        git(&tree.path, &["push", "-q", "origin", "HEAD"]);
        tree
    }
}

#[async_trait]
impl Harness for Worktrees {
    fn backend(&self) -> Backend {
        self.backend.clone()
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        match state {
            State::Running => Ok(self.add().id),
            _ => Err(NotApplicable::because("a worktree has no suspended state")),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let path = self.path(id);
        if !path.exists() {
            return Ok(None);
        }
        let files: BTreeMap<_, _> = content(&path).into_iter().filter(|(file, _)| path.join(file).is_file()).collect();
        let below = |top: Option<&str>| -> Files {
            let of = |file: &Path| ["node_modules", ".cache"].into_iter().find(|tier| file.starts_with(tier));
            let these = files.iter().filter(|(file, _)| of(file) == top);
            these.map(|(file, bytes)| (file.to_str().unwrap().to_owned(), bytes.clone())).collect()
        };
        Ok(Some(Content {
            work: below(None),
            caches: below(Some(".cache")),
            dependencies: below(Some("node_modules")),
        }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        // As OpenHands does it.
        fs::remove_dir_all(self.path(id).parent().unwrap()).unwrap();
        git(&self.world.repository, &["worktree", "prune"]);
        Ok(())
    }

    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        let path = self.path(id);
        let branch = git(&path, &["branch", "--show-current"]);
        let furniture = content(&path);
        git(&self.world.repository, &["worktree", "remove", "--force", path.to_str().unwrap()]);
        git(&self.world.repository, &["worktree", "add", "-q", path.to_str().unwrap(), branch.trim()]);
        for (file, bytes) in
            furniture.iter().filter(|(file, _)| file.starts_with("node_modules") || file.starts_with(".cache"))
        {
            if path.join(file).extension().is_some() || file.ends_with("wheel") {
                write(&path.join(file), std::str::from_utf8(bytes).unwrap());
            }
        }
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        let mut options = self.world.options();
        options.root = Some(Root::Configured(self.world.folder.path().join("not mounted")));
        Ok(backend_worktree::backend(options))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.world.pass(by);
        Ok(())
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        let key = format!("{}/plain", super::world::uuid(self.made.fetch_add(1, Ordering::SeqCst)));
        write(&self.world.root.join(&key).join("file"), "x");
        Ok(runtime(key))
    }

    async fn make_unsaved(&self) -> Can<RuntimeId> {
        let tree = self.add();
        write(&tree.path.join("notes.md"), "untracked");
        Ok(tree.id)
    }

    async fn occupy(&self, id: &RuntimeId, tier: Tier) -> Can<()> {
        let path = self.path(id);
        match tier {
            Tier::Runtime => write(&path.join("new"), "somebody else's"),
            Tier::Caches => write(&path.join(".cache/pip/wheel"), "a newer wheel"),
            Tier::Dependencies => write(&path.join("node_modules/left-pad/index.js"), "newer exports"),
        }
        Ok(())
    }
}

#[tokio::test]
async fn worktrees_keep_the_contract() {
    let world = World::new();
    let backend = world.backend();
    let report = contract::run(&Worktrees { world, backend, made: AtomicU32::new(1) }).await;
    // A worktree has no owner but the scope, no suspended state, no agent server, no timers and nothing to run in.
    let expected = [
        "list_shows_a_foreign_runtime_as_not_ours",
        "suspend_and_resume_keep_what_they_say",
        "suspend_twice_is_already_done",
        "suspend_of_another_incarnation_moves_nothing",
        "suspend_of_another_state_moves_nothing",
        "suspend_of_what_is_gone_is_gone",
        "suspend_is_refused_where_stopping_deletes",
        "suspend_of_a_foreign_runtime_does_nothing",
        "resume_of_a_running_one_is_already_done",
        "resume_of_what_is_gone_is_gone",
        "archive_keeps_what_it_says",
        "archive_of_a_running_one_is_never_done",
        "archive_of_what_is_gone_is_gone",
        "delete_of_a_running_one_is_never_done",
        "delete_of_a_foreign_runtime_does_nothing",
        "probe_is_aimed",
        "native_timers_stand_as_they_were_set",
        "execute_is_bounded_in_output",
        "execute_is_aimed",
    ];
    assert_eq!(report.not_applicable_cases(), expected);
}
