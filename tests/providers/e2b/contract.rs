//! The contract that any backend keeps, on E2B.

use std::time::Duration;

use async_trait::async_trait;
use backend::{
    Backend,
    contract::{self, Can, Content, Harness, NotApplicable},
    faulty::{self, Script},
};
use lifecycle::{RuntimeId, State, Time};

use super::{super::lab::text, Lab, backend};

/// The suite's hands, and the backend in them.
struct E2bs(Lab, Backend);

impl E2bs {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let backend = lab.backend.clone();
        Self(lab, backend)
    }
}

#[async_trait]
impl Harness for E2bs {
    fn backend(&self) -> Backend {
        self.1.clone()
    }

    fn now(&self) -> Time {
        self.0.hands.now()
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(2)
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        match state {
            State::Running => Ok(self.0.running()),
            State::Suspended => Ok(self.0.paused()),
            other => Err(NotApplicable::because(format!("a sandbox can't be made `{other}`"))),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let state = self.0.server.state();
        let sandbox = state.sandboxes.get(&text(id));
        Ok(sandbox.map(|sandbox| Content { work: sandbox.files.clone(), ..Content::default() }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.0.server.state().sandboxes.remove(&text(id));
        Ok(())
    }

    /// Paused and resumed by somebody else, a second later.
    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        self.0.hands.advance(Duration::from_secs(1));
        let now = self.0.hands.now();
        let mut state = self.0.server.state();
        let sandbox = state.sandboxes.get_mut(&text(id)).unwrap();
        sandbox.paused_since(now);
        (sandbox.running, sandbox.started) = (true, now);
        sandbox.end = now.plus(Duration::from_hours(1));
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(backend(&self.0.hands, "http://127.0.0.1:1"))
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.metadata = [("team".to_owned(), "b".to_owned())].into()))
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.metadata.clear()))
    }
}

/// What E2B's sandboxes are not: archived, deleted by a stop, asked inside, shed, taken back, saved first. Its time
/// is not moved by an hour here, since their runs end in that.
const NOT_APPLICABLE: [&str; 21] = [
    "own_looks_leave_no_trace_as_time_passes",
    "suspend_is_refused_where_stopping_deletes",
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
    "probe_is_aimed",
    "execute_is_bounded_in_output",
    "execute_is_aimed",
];

#[tokio::test]
async fn sandboxes_keep_the_contract() {
    let report = contract::run(&E2bs::new().await).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}

#[tokio::test]
async fn a_decorator_without_faults_changes_nothing() {
    let E2bs(lab, plain) = E2bs::new().await;
    let report = contract::run(&E2bs(lab, faulty::around(plain, Script::new()))).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}

/// Two cycles of pause and resume keep what was written in each of them.
#[tokio::test]
async fn a_canary_lives_through_two_cycles() {
    let lab = Lab::new().await;
    let id = lab.running();
    let suspend = lab.backend.suspend.clone().unwrap();
    for cycle in ["one", "two"] {
        lab.hands.advance(Duration::from_mins(1));
        lab.server.state().sandboxes.get_mut(&text(&id)).unwrap().files.insert(cycle.to_owned(), b"canary".to_vec());
        let running = lab.target(&id).await;
        assert_eq!(suspend.suspend(&running, super::minutes(lab.hands.now())).await, Ok(backend::Outcome::Done(())));
        lab.hands.advance(Duration::from_mins(1));
        let paused = lab.target(&id).await;
        let resumed = suspend.resume(&paused, super::minutes(lab.hands.now())).await;
        let backend::Outcome::Done(incarnation) = resumed.unwrap() else { panic!("it was not resumed") };
        assert_ne!(incarnation, running.incarnation, "a resume is another run");
    }
    let state = lab.server.state();
    let files: Vec<_> = state.sandboxes[&text(&id)].files.keys().map(String::as_str).collect();
    assert_eq!(files, ["one", "two", "work/notes.md"]);
}
