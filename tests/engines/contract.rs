//! The contract that any backend keeps, on the engine.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use backend::{
    Backend,
    contract::{Can, Content, Harness, NotApplicable, Tree, run},
};
use backend_docker::{Options, backend, connect};
use lifecycle::{RuntimeId, State, Time};

use super::lab::{Lab, POLITE, Spec};

/// The suite's hands: the user's files are in a folder of the host, which a deletion need not save.
struct Hands {
    lab: Lab,
    backend: Backend,
}

impl Hands {
    async fn start(&self, change: impl FnOnce(Spec) -> Spec) -> RuntimeId {
        let folder = self.lab.host_folder();
        std::fs::write(folder.join("notes"), "kept").unwrap();
        let plain = Spec { binds: vec![format!("{}:/work", folder.display())], ..Spec::of(POLITE) };
        let container = self.lab.start(change(plain)).await;
        self.lab.id(&container)
    }
}

fn container(id: &RuntimeId) -> String {
    String::from_utf8(id.provider_id()).unwrap()
}

#[async_trait]
impl Harness for Hands {
    fn backend(&self) -> Backend {
        self.backend.clone()
    }

    fn now(&self) -> Time {
        self.lab.now()
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        let id = self.start(|spec| spec).await;
        match state {
            State::Running => {}
            State::Suspended => self.lab.stop(&container(&id)).await,
            other => return Err(NotApplicable::because(format!("a container can't be made `{other}`"))),
        }
        Ok(id)
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let Some(found) = self.lab.api.look(&container(id)).await else { return Ok(None) };
        let mut work = Tree::new();
        for mount in found["Mounts"].as_array().unwrap() {
            for entry in std::fs::read_dir(Path::new(mount["Source"].as_str().unwrap())).unwrap() {
                let path = entry.unwrap().path();
                work.insert(path.display().to_string(), std::fs::read(&path).unwrap());
            }
        }
        Ok(Some(Content { work, ..Content::default() }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.lab.remove(&container(id)).await;
        Ok(())
    }

    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        self.lab.api.post(&format!("/containers/{}/restart?t=3", container(id))).await;
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        let host = format!("unix://{}", self.lab.folder.path().join("no.sock").display());
        Ok(backend(connect(Options { host: Some(host), ..self.lab.options() }).await.unwrap()))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.lab.advance(by);
        Ok(())
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        Ok(self.start(|spec| Spec { foreign: true, ..spec }).await)
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        let name = self.lab.name("oh-agent-server-");
        let labels = [("sandbox_spec_id", "agent:1".to_owned())].into();
        Ok(self.start(|spec| Spec { foreign: true, name: Some(name), labels, ..spec }).await)
    }

    async fn make_ephemeral(&self) -> Can<RuntimeId> {
        Ok(self.start(|spec| Spec { auto_remove: true, ..spec }).await)
    }
}

#[tokio::test]
async fn containers_keep_the_contract() {
    let lab = Lab::new("contract").await;
    let backend = lab.backend().await;
    let report = run(&Hands { lab, backend }).await;
    // What containers are not: archived, shed, taken back, saved first, run commands in, timed by their engine.
    let expected = [
        "archive_keeps_what_it_says",
        "archive_of_a_running_one_is_never_done",
        "archive_of_what_is_gone_is_gone",
        "delete_saves_first_what_would_be_lost",
        "undo_of_a_delete_brings_it_back",
        "undo_of_a_delete_refuses_when_something_new_stands_there",
        "shed_of_the_runtime_tier_is_refused",
        "shed_takes_its_tier_and_nothing_else",
        "shed_twice_is_already_done",
        "shed_of_another_incarnation_moves_nothing",
        "shed_of_what_is_gone_is_gone",
        "undo_of_a_shed_restores_the_same_bytes",
        "undo_of_a_shed_refuses_when_something_new_stands_there",
        "undo_twice_is_not_done_twice",
        "the_trash_lists_what_was_shed",
        "emptying_removes_for_ever",
        "native_timers_stand_as_they_were_set",
        "execute_is_bounded_in_output",
        "execute_is_aimed",
    ];
    assert_eq!(report.not_applicable_cases(), expected);
}
