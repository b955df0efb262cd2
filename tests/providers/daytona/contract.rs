//! The contract that any backend keeps, on Daytona.

use std::time::Duration;

use async_trait::async_trait;
use backend::{
    Backend, BackendError, ErrorKind, Outcome,
    contract::{self, Can, Content, Harness, NotApplicable},
    faulty::{self, Fault, Script, Verb},
};
use lifecycle::{RuntimeId, State, Time, policy::WorkspaceRule};

use super::{super::lab::text, Lab, backend, minutes};

/// The suite's hands, and the backend in them.
struct Daytonas(Lab, Backend);

impl Daytonas {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let backend = lab.backend.clone();
        Self(lab, backend)
    }
}

#[async_trait]
impl Harness for Daytonas {
    fn backend(&self) -> Backend {
        self.1.clone()
    }

    fn now(&self) -> Time {
        self.0.hands.now()
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        match state {
            State::Running => Ok(self.0.running()),
            State::Suspended => Ok(self.0.stopped()),
            other => Err(NotApplicable::because(format!("a sandbox can't be made `{other}`"))),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let mut state = self.0.server.state();
        state.tick(self.0.hands.now());
        let sandbox = state.sandboxes.get(&text(id)).filter(|sandbox| !sandbox.files.is_empty());
        Ok(sandbox.map(|sandbox| Content { work: sandbox.files.clone(), ..Content::default() }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.0.server.state().sandboxes.remove(&text(id));
        Ok(())
    }

    async fn restart(&self, _: &RuntimeId) -> Can<()> {
        Err(NotApplicable::because("Daytona tells one run of a sandbox from the next by its activity alone"))
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(backend(&self.0.hands, "http://127.0.0.1:1"))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.0.hands.advance(by);
        Ok(())
    }

    async fn settle(&self) {
        self.0.hands.advance(Duration::from_secs(30));
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.labels = [("team".to_owned(), "b".to_owned())].into()))
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.labels.clear()))
    }

    async fn make_ephemeral(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.auto_delete = 0))
    }
}

/// What Daytona's sandboxes are not: told apart by their runs, asked inside, shed, taken back, saved first.
const NOT_APPLICABLE: [&str; 18] = [
    "suspend_of_another_incarnation_moves_nothing",
    "delete_after_a_restart_moves_nothing",
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
    "probe_is_aimed",
    "execute_is_bounded_in_output",
    "execute_is_aimed",
];

#[tokio::test]
async fn sandboxes_keep_the_contract() {
    let report = contract::run(&Daytonas::new().await).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}

#[tokio::test]
async fn a_decorator_without_faults_changes_nothing() {
    let Daytonas(lab, plain) = Daytonas::new().await;
    let report = contract::run(&Daytonas(lab, faulty::around(plain, Script::new()))).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}

/// An answer that is lost after the act is found by the next look, and the act is not begun again.
#[tokio::test]
async fn an_act_whose_answer_is_lost_is_found_done() {
    let Daytonas(lab, plain) = Daytonas::new().await;
    let no_route = Fault::Before(BackendError::new(ErrorKind::Unreachable, "no route"));
    let script = Script::new().at(Verb::Suspend, 0, Fault::Lost).at(Verb::Delete, 0, no_route);
    let backend = faulty::around(plain, script);
    let id = lab.running();
    let target = lab.target(&id).await;
    let suspend = backend.suspend.unwrap();
    let lost = suspend.suspend(&target, minutes(lab.hands.now())).await;
    assert!(matches!(lost, Ok(Outcome::Unknown(_))), "{lost:?}");
    assert_eq!(lab.changes(), ["POST 000000000001/stop?force=false"]);
    assert_eq!(suspend.suspend(&target, minutes(lab.hands.now())).await, Ok(Outcome::Pending));
    lab.hands.advance(Duration::from_secs(30));
    assert_eq!(suspend.suspend(&target, minutes(lab.hands.now())).await, Ok(Outcome::AlreadyDone));
    let stopped = lab.target(&id).await;
    let delete = backend.delete.unwrap();
    assert!(delete.delete(&stopped, WorkspaceRule::Discard, minutes(lab.hands.now())).await.is_err());
    assert_eq!(lab.changes(), [""; 0]);
}
