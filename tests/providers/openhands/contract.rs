//! The contract that any backend keeps, on both of OpenHands' APIs.

use std::time::Duration;

use async_trait::async_trait;
use backend::{
    Backend, BackendError, ErrorKind, Outcome,
    contract::{self, Can, Content, Harness, NotApplicable},
    faulty::{self, Fault, Script, Verb},
};
use backend_rest::openhands::Which;
use lifecycle::{RuntimeId, State, Time};

use super::{super::lab::text, BOTH, Lab, backend};

/// The suite's hands, and the backend in them.
struct OpenHandss {
    lab: Lab,
    which: Which,
    backend: Backend,
}

impl OpenHandss {
    async fn new(which: Which) -> Self {
        let lab = Lab::new(which).await;
        let backend = lab.backend.clone();
        Self { lab, which, backend }
    }

    /// The sandbox's key in the simulator.
    fn key(&self, id: &RuntimeId) -> Option<String> {
        let (state, wanted) = (self.lab.server.state(), text(id));
        let is = |(id, runtime): &(&String, &String)| **id == wanted || **runtime == wanted;
        state.sandboxes.iter().map(|(id, sandbox)| (id, &sandbox.runtime)).find(is).map(|(id, _)| id.clone())
    }
}

#[async_trait]
impl Harness for OpenHandss {
    fn backend(&self) -> Backend {
        self.backend.clone()
    }

    fn now(&self) -> Time {
        self.lab.hands.now()
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(2)
    }

    async fn make(&self, state: State) -> Can<RuntimeId> {
        match state {
            State::Running => Ok(self.lab.running()),
            State::Suspended => Ok(self.lab.paused()),
            other => Err(NotApplicable::because(format!("a sandbox can't be made `{other}`"))),
        }
    }

    async fn content(&self, id: &RuntimeId) -> Can<Option<Content>> {
        self.lab.server.state().tick(self.lab.hands.now());
        let Some(key) = self.key(id) else { return Ok(None) };
        let work = self.lab.server.state().sandboxes[&key].files.clone();
        Ok(Some(Content { work, ..Content::default() }))
    }

    async fn vanish(&self, id: &RuntimeId) -> Can<()> {
        let key = self.key(id).unwrap();
        self.lab.server.state().sandboxes.remove(&key);
        Ok(())
    }

    async fn restart(&self, _: &RuntimeId) -> Can<()> {
        Err(NotApplicable::because("OpenHands tells one run of a sandbox from the next by a secret alone"))
    }

    async fn broken(&self) -> Can<Backend> {
        Ok(backend(self.which, &self.lab.hands, "http://127.0.0.1:1"))
    }

    async fn advance(&self, by: Duration) -> Can<()> {
        self.lab.hands.advance(by);
        Ok(())
    }

    async fn settle(&self) {
        self.lab.hands.advance(Duration::from_secs(30));
    }

    async fn make_foreign(&self) -> Can<RuntimeId> {
        if self.which == Which::Runtime {
            return Err(NotApplicable::because("the Runtime API tells no labels, so nothing is marked as another's"));
        }
        let id = self.lab.running();
        let mut state = self.lab.server.state();
        let talk = state.conversations.values_mut().find(|talk| talk.sandbox == text(&id)).unwrap();
        talk.tags = [("team".to_owned(), "b".to_owned())].into();
        Ok(id)
    }

    async fn make_unlabelled(&self) -> Can<RuntimeId> {
        let id = self.lab.running();
        let key = self.key(&id).unwrap();
        let mut state = self.lab.server.state();
        state.conversations.retain(|_, talk| talk.sandbox != key);
        if self.which == Which::Runtime {
            let sandbox = state.sandboxes.remove(&key).unwrap();
            state.sandboxes.insert(format!("other-{key}"), sandbox);
        }
        Ok(id)
    }
}

/// What OpenHands' sandboxes are not: told apart by their runs, archived, deleted by a stop, asked inside, shed, taken
/// back, saved first, given timers.
const NOT_APPLICABLE: [&str; 23] = [
    "suspend_of_another_incarnation_moves_nothing",
    "suspend_is_refused_where_stopping_deletes",
    "archive_keeps_what_it_says",
    "archive_of_a_running_one_is_never_done",
    "archive_of_what_is_gone_is_gone",
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
    "native_timers_stand_as_they_were_set",
    "probe_is_aimed",
    "execute_is_bounded_in_output",
    "execute_is_aimed",
];

/// The same, and what the Runtime API can't show.
fn not_applicable(which: Which) -> Vec<&'static str> {
    let foreign = [
        "delete_of_a_foreign_runtime_does_nothing",
        "list_shows_a_foreign_runtime_as_not_ours",
        "suspend_of_a_foreign_runtime_does_nothing",
    ];
    let mut cases = NOT_APPLICABLE.to_vec();
    if which == Which::Runtime {
        cases.extend(foreign);
    }
    cases.sort_unstable();
    cases
}

async fn kept(harness: &OpenHandss) {
    let report = contract::run(harness).await;
    let mut cases = report.not_applicable_cases();
    cases.sort_unstable();
    assert_eq!(cases, not_applicable(harness.which), "{:?}", harness.which);
}

#[tokio::test]
async fn sandboxes_keep_the_contract() {
    for which in BOTH {
        kept(&OpenHandss::new(which).await).await;
    }
}

/// Answers come before what they tell of is done.
#[tokio::test]
async fn sandboxes_that_take_their_time_keep_the_contract() {
    for which in BOTH {
        let harness = OpenHandss::new(which).await;
        {
            let mut state = harness.lab.server.state();
            (state.pause_takes, state.resume_takes) = (Duration::from_secs(2), Duration::from_secs(19));
            state.delete_takes = Duration::from_secs(3);
        }
        kept(&harness).await;
    }
}

#[tokio::test]
async fn a_decorator_without_faults_changes_nothing() {
    for which in BOTH {
        let OpenHandss { lab, which, backend } = OpenHandss::new(which).await;
        kept(&OpenHandss { lab, which, backend: faulty::around(backend, Script::new()) }).await;
    }
}

/// An answer that is lost after the act is found by the next look, and the act is not begun again.
#[tokio::test]
async fn an_act_whose_answer_is_lost_is_found_done() {
    for which in BOTH {
        let OpenHandss { lab, backend, .. } = OpenHandss::new(which).await;
        let no_route = Fault::Before(BackendError::new(ErrorKind::Unreachable, "no route"));
        let script = Script::new().at(Verb::Suspend, 0, Fault::Lost).at(Verb::Delete, 0, no_route);
        let lab = Lab { backend: faulty::around(backend, script), ..lab };
        let id = lab.running();
        let target = lab.target(&id).await;
        let lost = lab.suspend(&target).await;
        assert!(matches!(lost, Ok(Outcome::Unknown(_))), "{lost:?}");
        assert_eq!(lab.acts().len(), 1);
        assert_eq!(lab.suspend(&target).await, Ok(Outcome::AlreadyDone));
        let paused = lab.target(&id).await;
        assert!(lab.delete(&paused).await.is_err());
        assert_eq!(lab.acts(), [""; 0]);
        assert_eq!(lab.delete(&paused).await, Ok(Outcome::Done(())));
    }
}
