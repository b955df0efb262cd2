//! The contract that any backend keeps, on Modal.

use std::time::Duration;

use async_trait::async_trait;
use backend::{
    Backend,
    contract::{self, Can, Content, Harness, NotApplicable},
    faulty::{self, Script},
};
use backend_modal::Terminate;
use lifecycle::{RuntimeId, State, Time};

use super::{super::lab::text, Lab, backend};

/// The suite's hands, the backend in them, and whether its deletions save first.
struct Modals(Lab, Backend);

impl Modals {
    async fn of(terminate: Terminate) -> Self {
        let lab = Lab::of(terminate).await;
        let backend = lab.backend.clone();
        Self(lab, backend)
    }
}

#[async_trait]
impl Harness for Modals {
    fn backend(&self) -> Backend {
        self.1.clone()
    }

    fn now(&self) -> Time {
        self.0.hands.now()
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(3)
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        match state {
            State::Running => Ok(self.0.running()),
            other => Err(NotApplicable::because(format!("a sandbox can't be made `{other}`"))),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let state = self.0.server.state();
        let sandbox = state.sandboxes.get(&text(id)).filter(|sandbox| sandbox.status == 0);
        Ok(sandbox.map(|sandbox| Content { work: sandbox.files.clone(), ..Content::default() }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        self.0.server.state().sandboxes.remove(&text(id));
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(backend(&self.0.hands, "http://127.0.0.1:1", Terminate::AtOnce))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.0.hands.advance(by);
        Ok(())
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.tags = [("team".to_owned(), "b".to_owned())].into()))
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.tags.clear()))
    }

    async fn make_unsaved(&self) -> Can<RuntimeId> {
        Ok(self.0.running())
    }
}

/// What Modal's sandboxes are not: suspended, archived, started anew, asked inside, shed, taken back, given timers.
const NOT_APPLICABLE: &[&str] = &[
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
    "delete_after_a_restart_moves_nothing",
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
    "native_timers_stand_as_they_were_set",
    "execute_is_bounded_in_output",
    "execute_is_aimed",
];

/// What only some have that their owner lets be deleted, or saved first.
const OF_DELETION: &[&str] = &[
    "delete_removes_it_and_nothing_else",
    "delete_of_what_is_gone_is_gone",
    "delete_of_a_foreign_runtime_does_nothing",
    "two_deletes_at_once_do_it_once",
    "delete_saves_first_what_would_be_lost",
    "a_passed_deadline_begins_nothing",
];

#[tokio::test]
async fn sandboxes_keep_the_contract() {
    for (terminate, more) in [
        (Terminate::AfterSnapshot, &[][..]),
        (Terminate::AtOnce, &["delete_saves_first_what_would_be_lost"]),
        (Terminate::Never, OF_DELETION),
    ] {
        let cases = contract::run(&Modals::of(terminate).await).await.not_applicable_cases();
        let (all, others): (Vec<&str>, Vec<&str>) = cases.into_iter().partition(|case| NOT_APPLICABLE.contains(case));
        assert_eq!((all, others), (NOT_APPLICABLE.to_vec(), more.to_vec()), "{terminate:?}");
    }
}

#[tokio::test]
async fn a_decorator_without_faults_changes_nothing() {
    let Modals(lab, plain) = Modals::of(Terminate::AfterSnapshot).await;
    let report = contract::run(&Modals(lab, faulty::around(plain, Script::new()))).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}
