//! The contract of a backend on the fake, in every shape; and that the contract notices a backend that breaks it.

mod fake_harness;
mod liars;

use std::{fmt::Write as _, time::Duration};

use backend::{
    contract::{self, CASES},
    fake::{Removal, Resume, Saving, Shape},
};
use lifecycle::Survives;

use fake_harness::FakeHarness;
use liars::{Liar, Lie};

/// Cases that no backend in memory with all its roles leaves out.
const NONE: [&str; 0] = [];

async fn not_applicable(shape: Shape) -> Vec<&'static str> {
    contract::run(&FakeHarness::new(shape)).await.not_applicable_cases()
}

#[tokio::test]
async fn a_fake_that_saves_first_keeps_every_case() {
    let shape = Shape { saving: Saving::First, ..Shape::default() };
    assert_eq!(not_applicable(shape).await, NONE);
}

#[tokio::test]
async fn the_plainest_fake_lacks_only_saving() {
    assert_eq!(not_applicable(Shape::default()).await, ["delete_saves_first_what_would_be_lost"]);
}

#[tokio::test]
async fn small_pages_change_nothing() {
    for page_size in [1, 2, 3] {
        let shape = Shape { page_size, ..Shape::default() };
        assert_eq!(not_applicable(shape).await, ["delete_saves_first_what_would_be_lost"]);
    }
}

#[tokio::test]
async fn a_fake_whose_verbs_take_a_while_keeps_every_case() {
    let shape = Shape { takes: Duration::from_secs(5), saving: Saving::First, ..Shape::default() };
    assert_eq!(not_applicable(shape).await, NONE);
}

#[tokio::test]
async fn a_fake_that_keeps_memory_resumes_the_same_run() {
    let shape = Shape { survives: Survives::Memory, resume: Resume::SameIncarnation, ..Shape::default() };
    assert_eq!(not_applicable(shape).await, ["delete_saves_first_what_would_be_lost"]);
}

#[tokio::test]
async fn a_fake_whose_suspend_loses_its_files_says_so() {
    let shape = Shape { survives: Survives::Nothing, ..Shape::default() };
    assert_eq!(not_applicable(shape).await, ["delete_saves_first_what_would_be_lost"]);
}

#[tokio::test]
async fn a_fake_that_removes_for_ever_takes_nothing_back() {
    let shape = Shape { removal: Removal::ForEver, ..Shape::default() };
    assert_eq!(
        not_applicable(shape).await,
        [
            "delete_saves_first_what_would_be_lost",
            "undo_of_a_delete_brings_it_back",
            "undo_of_a_delete_refuses_when_something_new_stands_there",
            "undo_of_a_shed_restores_the_same_bytes",
            "undo_of_a_shed_refuses_when_something_new_stands_there",
            "undo_twice_is_not_done_twice",
            "the_trash_lists_what_was_shed",
            "emptying_removes_for_ever",
        ]
    );
}

#[tokio::test]
async fn a_fake_that_rests_has_no_verbs_of_running_things() {
    let shape = Shape { rests: true, saving: Saving::First, ..Shape::default() };
    let report = contract::run(&FakeHarness::new(shape)).await;
    assert_eq!(
        report.not_applicable_cases(),
        [
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
            "probe_is_aimed",
            "native_timers_stand_as_they_were_set",
            "execute_is_bounded_in_output",
            "execute_is_aimed",
        ]
    );
    assert_eq!(report.passed.len() + report.not_applicable.len(), CASES.len(), "every case is accounted for");
}

/// What every lie is caught by: these cases and no other.
#[tokio::test]
async fn every_lie_is_caught_by_name() {
    let mut wrong = String::new();
    for (lie, cases) in LIES {
        let shape = Shape { saving: Saving::First, ..Shape::default() };
        let report = contract::judge(&Liar::new(FakeHarness::new(shape), *lie)).await;
        if report.violated_cases() != *cases {
            let violated: Vec<_> =
                report.violated.iter().map(|(case, what)| format!("  {case}: {what:.200}")).collect();
            let _ = writeln!(wrong, "{lie:?} should be caught by {cases:?}, but was by\n{}", violated.join("\n"));
        }
    }
    assert_eq!(wrong, "");
}

#[tokio::test]
#[should_panic(expected = "suspend_twice_is_already_done")]
async fn a_violated_contract_panics_with_the_name_of_the_case() {
    let liar = Liar::new(FakeHarness::new(Shape::default()), Lie::SuspendIsDoneTwice);
    let _ = contract::run(&liar).await;
}

const LIES: &[(Lie, &[&str])] = &[
    (Lie::DownIsEmpty, &["a_broken_backend_is_an_error_never_an_empty_page"]),
    (Lie::DownIsNotThere, &["a_broken_backend_is_an_error_never_an_absence"]),
    (Lie::DownIsGone, &["a_broken_backend_is_an_error_from_every_verb"]),
    (Lie::ListsTwice, &["list_has_every_runtime_of_ours_once"]),
    (Lie::ListsTheFirstPageOnly, &["list_has_every_runtime_of_ours_once", "list_and_inspect_agree"]),
    (
        Lie::RemembersWhatVanished,
        &[
            "a_vanished_runtime_is_not_there",
            "delete_removes_it_and_nothing_else",
            "two_deletes_at_once_do_it_once",
            "delete_saves_first_what_would_be_lost",
        ],
    ),
    (Lie::AllIsOurs, &["list_shows_a_foreign_runtime_as_not_ours", "list_shows_an_unlabelled_runtime_as_not_ours"]),
    (Lie::LooksCountAsActivity, &["own_looks_leave_no_trace_as_time_passes"]),
    (Lie::SuspendIsDoneTwice, &["suspend_twice_is_already_done"]),
    (
        Lie::SuspendIgnoresTheTarget,
        &[
            "suspend_and_resume_keep_what_they_say",
            "suspend_of_another_incarnation_moves_nothing",
            "suspend_of_another_state_moves_nothing",
        ],
    ),
    (
        Lie::SuspendRefusesNothing,
        &["suspend_is_refused_where_stopping_deletes", "suspend_of_a_foreign_runtime_does_nothing"],
    ),
    (Lie::ResumeLosesFiles, &["suspend_and_resume_keep_what_they_say"]),
    (Lie::DeleteIgnoresTheTarget, &["delete_of_a_running_one_is_never_done", "delete_after_a_restart_moves_nothing"]),
    (Lie::DeleteOfGoneIsDone, &["delete_of_what_is_gone_is_gone", "two_deletes_at_once_do_it_once"]),
    (Lie::DeletesTheForeign, &["delete_of_a_running_one_is_never_done", "delete_of_a_foreign_runtime_does_nothing"]),
    (Lie::DeleteSavesNothing, &["delete_saves_first_what_would_be_lost"]),
    (Lie::DeleteTakesANeighbour, &["delete_removes_it_and_nothing_else"]),
    (
        Lie::ShedTakesWork,
        &[
            "shed_takes_its_tier_and_nothing_else",
            "undo_of_a_shed_restores_the_same_bytes",
            "undo_twice_is_not_done_twice",
        ],
    ),
    (Lie::ShedsTheRuntime, &["shed_of_the_runtime_tier_is_refused"]),
    (
        Lie::UndoOverwrites,
        &[
            "undo_of_a_delete_refuses_when_something_new_stands_there",
            "undo_of_a_shed_refuses_when_something_new_stands_there",
        ],
    ),
    (Lie::EmptyKeeps, &["emptying_removes_for_ever"]),
    (Lie::DeadlinesAreIgnored, &["a_passed_deadline_begins_nothing"]),
    (Lie::LateIsUnknown, &["a_passed_deadline_begins_nothing"]),
];
