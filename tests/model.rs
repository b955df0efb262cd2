//! The record's protocol, proven for small bounds: every state that they allow is visited, and no invariant breaks.
//!
//! ```text
//! table ──► world (two passes, an agent, people, a provider, time) ──► search ──► a breach, and the shortest way to it
//!   │
//!   └── agreement ──► the production ledger, on the engine in memory: the same answer, the same record, whole
//! ```
//!
//! The table says what each operation does to a record; nothing in it is the ledger's code. Around it a world takes
//! one step at a time: a pass's read, its question for the switch, its claim, its act and its end are steps of their
//! own, and anybody may come in between or die. Of the invariants it keeps, by number:
//!
//! 1. no claim over acknowledged activity, nor while somebody waits; no act on a live runtime; a refused heartbeat is
//!    remembered, and soon looked at; back to running is a whole idle period
//! 2. at most one pass with a right to act, though clocks differ; what a stale holder writes changes nothing
//! 3. no deletion without a notice that still stands
//! 4. not gone because a listing was behind once
//! 5. what is claimed or in between is in the due index, and whoever looks there when the claim has ended can end it
//! 6. no claim under a hold
//! 7. the clock of activity goes only forward, and only by activity
//! 8. after the switch is pulled a pass wins at most the claim that it had asked for
//!
//! That these can fail is seen by faults planted in the table. The search is our own: it checks 5 by trying the way
//! out of every state, which a checker of paths can't say, and it needs no crate.

mod agreement;
mod fault;
mod observed;
mod real;
mod record;
mod search;
mod shift;
mod step;
mod table;
mod world;

use fault::Fault;
use search::{search, told};
use world::{Breach, Scope};

const NONE: Scope = Scope {
    ticks: 4,
    claims: 2,
    lives: 1,
    late: false,
    quiet: false,
    ahead: false,
    works: false,
    deletes: false,
    wakes: false,
    holds: false,
    pauses: false,
    drifts: false,
};

/// What happens in each search. All at once would be too many states for a test.
pub(crate) const SCOPES: [(&str, Scope); 9] = [
    ("suspends and wakes", Scope { wakes: true, ahead: true, ticks: 3, ..NONE }),
    ("work and holds", Scope { works: true, holds: true, claims: 1, ..NONE }),
    ("the switch", Scope { pauses: true, quiet: true, ..NONE }),
    ("two lives", Scope { lives: 2, quiet: true, ticks: 6, ..NONE }),
    ("a registration on its way", Scope { lives: 2, late: true, ahead: true, claims: 1, ..NONE }),
    ("deletions and holds", Scope { deletes: true, holds: true, quiet: true, claims: 3, ..NONE }),
    ("deletions and wishes", Scope { deletes: true, ticks: 3, ..NONE }),
    ("deletions and wakes", Scope { deletes: true, wakes: true, quiet: true, claims: 3, ..NONE }),
    ("what others do", Scope { drifts: true, quiet: true, claims: 1, ticks: 3, ..NONE }),
];

#[test]
fn no_invariant_breaks_within_the_bounds() {
    let mut states = Vec::new();
    for (name, scope) in SCOPES {
        let model = scope.model(None);
        let found = search(&model);
        if let Some((breach, way)) = found.breach {
            panic!("{name}: {}", told(&model, &breach, &way));
        }
        states.push((name, found.states));
    }
    println!("{states:?}");
    assert!(states.iter().all(|(_, states)| *states > 1_000), "a search that goes nowhere proves nothing: {states:?}");
}

/// Each fault, the search that finds it, and the invariant that it breaks.
const FAULTS: [(Fault, &str, u8); 23] = [
    (Fault::ActivityIgnored, "suspends and wakes", 1),
    (Fault::BeatInAMiddleState, "suspends and wakes", 1),
    (Fault::WishForgotten, "suspends and wakes", 1),
    (Fault::WishNotDue, "suspends and wakes", 1),
    (Fault::WishIgnored, "deletions and wishes", 1),
    (Fault::EndOverAWish, "suspends and wakes", 1),
    (Fault::AbandonLeavesTheClock, "two lives", 1),
    (Fault::RegisterOverARest, "a registration on its way", 1),
    (Fault::EndWithoutToken, "two lives", 2),
    (Fault::TokenReset, "two lives", 2),
    (Fault::RegisterUnderAClaim, "two lives", 2),
    (Fault::ClaimOverALiveOne, "deletions and holds", 2),
    (Fault::SkewLeftOut, "deletions and holds", 2),
    (Fault::WakeBesideAClaim, "deletions and wakes", 2),
    (Fault::CondemnedAfterAHold, "deletions and holds", 3),
    (Fault::SecondSightingDropped, "what others do", 4),
    (Fault::ClaimLeavesTheIndex, "two lives", 5),
    (Fault::ClaimDueTooLate, "two lives", 5),
    (Fault::HoldIgnored, "work and holds", 6),
    (Fault::ClockBackwards, "suspends and wakes", 7),
    (Fault::OwnTraceCounts, "suspends and wakes", 7),
    (Fault::RegisterSetsTheClock, "a registration on its way", 7),
    (Fault::PauseReadOnce, "the switch", 8),
];

#[test]
fn each_planted_fault_is_found_as_the_invariant_that_it_breaks() {
    for (fault, name, invariant) in FAULTS {
        let (_, scope) = SCOPES.into_iter().find(|(known, _)| *known == name).expect("a search of that name");
        let found = search(&scope.model(Some(fault))).breach.map(|(Breach(invariant, _), _)| invariant);
        assert_eq!(found, Some(invariant), "{fault:?}");
    }
}

/// A counterexample is read by people: who did what when, and what it left.
#[test]
fn a_counterexample_is_the_shortest_way_told_step_by_step() {
    let (_, scope) = SCOPES[0];
    let model = scope.model(Some(Fault::ActivityIgnored));
    let (breach, way) = search(&model).breach.expect("a breach");
    let expected = "\
invariant 1: claimed over activity that was acknowledged
  0 s  a second passes                      running, idle from 0, token 1, due 2; there: Runs
  1 s  pass 1 reads the record              running, idle from 0, token 1, due 2; there: Runs
  1 s  a heartbeat                          running, idle from 1, token 1, due 2; there: Runs
  1 s  pass 1 claims                        breaks 1: claimed over activity that was acknowledged
";
    assert_eq!(told(&model, &breach, &way), expected);
}
