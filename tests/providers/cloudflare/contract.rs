//! The contract that any backend keeps, on Cloudflare.

use std::time::Duration;

use async_trait::async_trait;
use backend::{
    Backend,
    contract::{self, Can, Content, Harness, NotApplicable},
    faulty::{self, Script},
};
use backend_rest::cloudflare::DestroyRunning;
use lifecycle::{RuntimeId, State, Time};

use super::{super::lab::text, Lab, backend};

/// The suite's hands, and the backend in them.
struct Cloudflares(Lab, Backend);

impl Cloudflares {
    fn of(lab: Lab) -> Self {
        let backend = lab.backend.clone();
        Self(lab, backend)
    }
}

#[async_trait]
impl Harness for Cloudflares {
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
            // One that does not go to sleep while the suite lets time pass.
            State::Running => Ok(self.0.add(|sandbox| sandbox.sleep_after = Duration::from_hours(24))),
            other => Err(NotApplicable::because(format!("a sandbox can't be made `{other}`"))),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        let state = self.0.server.state();
        let files = state.sandboxes.get(&text(id)).and_then(|sandbox| sandbox.files.clone());
        Ok(files.map(|work| Content { work, ..Content::default() }))
    }

    /// Its container goes to sleep; the Durable Object stays.
    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        let now = self.now();
        self.0.server.state().sandboxes.get_mut(&text(id)).unwrap().sleep(now);
        Ok(())
    }

    async fn restart(&self, id: &RuntimeId) -> Can<()> {
        self.0.hands.advance(Duration::from_secs(1));
        let now = self.now();
        self.0.server.state().sandboxes.get_mut(&text(id)).unwrap().start_anew(now);
        Ok(())
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(backend(&self.0.hands, "http://127.0.0.1:1", DestroyRunning::WhenIdle))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.0.hands.advance(by);
        Ok(())
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        Ok(self.0.add(|sandbox| sandbox.name = Some("site-1".to_owned())))
    }
}

/// What Cloudflare's sandboxes are not: another's by a label, suspended, archived, asked inside, shed, taken back, saved
/// first.
const NOT_APPLICABLE: [&str; 31] = [
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

/// What only those have that its owner lets be deleted.
const OF_DELETION: [&str; 4] = [
    "delete_removes_it_and_nothing_else",
    "delete_of_what_is_gone_is_gone",
    "delete_after_a_restart_moves_nothing",
    "two_deletes_at_once_do_it_once",
];

#[tokio::test]
async fn sandboxes_keep_the_contract() {
    let report = contract::run(&Cloudflares::of(Lab::new().await)).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
    let keeping = contract::run(&Cloudflares::of(Lab::keeping().await)).await.not_applicable_cases();
    let more: Vec<_> = keeping.into_iter().filter(|case| !NOT_APPLICABLE.contains(case)).collect();
    assert_eq!(more, OF_DELETION);
}

#[tokio::test]
async fn a_decorator_without_faults_changes_nothing() {
    let Cloudflares(lab, plain) = Cloudflares::of(Lab::new().await);
    let report = contract::run(&Cloudflares(lab, faulty::around(plain, Script::new()))).await;
    assert_eq!(report.not_applicable_cases(), NOT_APPLICABLE);
}
