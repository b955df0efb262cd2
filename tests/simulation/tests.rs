//! What plain `cargo test` runs of the simulation.

use std::{collections::BTreeMap, thread};

use super::{REACHED, account, reached::SELDOM, run};

/// As many as a debug build runs in seconds; `.ci/run` runs 2,000. The first twelve, and three for what comes in one seed of
/// ten or fewer: a registration is refused (15, 22), a heartbeat comes of an earlier life (22) or is coalesced (57).
const SEEDS: [u64; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 22, 57];

#[test]
fn no_seed_breaks_an_invariant_and_all_that_matters_happens() {
    let halves = [0, 1].map(|half| {
        thread::spawn(move || {
            let mut counts = BTreeMap::<&'static str, u64>::new();
            for seed in SEEDS.into_iter().skip(half).step_by(2) {
                let ran = run(seed, false);
                assert!(ran.violation.is_none(), "{}", account(seed));
                for (event, times) in ran.counts {
                    *counts.entry(event).or_default() += times;
                }
            }
            counts
        })
    });
    let [one, other] = halves.map(|half| half.join().expect("no violation"));
    let all = |event: &str| one.get(event).copied().unwrap_or(0) + other.get(event).copied().unwrap_or(0);
    let missing: Vec<_> = REACHED.iter().filter(|event| !SELDOM.contains(event) && all(event) == 0).collect();
    assert!(missing.is_empty(), "never happened in the seeds {SEEDS:?}: {missing:?}");
}

fn holds(seed: u64) {
    assert!(run(seed, false).violation.is_none(), "{}", account(seed));
}

/// Who resumed it died before writing that down: heartbeats were refused of what ran already, and later were not.
#[test]
fn a_heartbeat_refused_of_what_runs_again_already_is_not_forgotten() {
    holds(15);
}

/// Its act had failed once, and while its label held it it was put off for a day, which then counted as its back-off.
#[test]
fn what_failed_once_and_was_held_for_a_while_is_tried_again() {
    holds(60);
}

/// A listing that lagged told that it ran, after its suspend was written down.
#[test]
fn what_a_late_listing_says_to_run_again_is_looked_at() {
    holds(84);
}

/// Nothing is acted on while its breaker is open, and the trailing mean closes that in the end.
#[test]
fn a_fleet_that_really_fell_silent_is_reclaimed() {
    holds(19);
}

/// A sweep saw another run than the record's, and had put it off for as long as sweeps are apart.
#[test]
fn a_claim_that_ended_is_found_although_another_run_is_there() {
    holds(20);
}

/// It arrived when its sender had given up, and a heartbeat had been recorded meanwhile.
#[test]
fn a_registration_that_arrives_late_does_not_set_the_clock_back() {
    holds(163);
}

/// It was on its way while its runtime was suspended: heartbeats were then recorded of what we had stopped.
#[test]
fn a_registration_of_before_a_suspend_is_not_believed_after_it() {
    holds(377);
}

/// The same while a long suspend was handed over, by a clock that was ahead.
#[test]
fn a_registration_of_before_a_long_suspend_is_not_believed_while_that_is_under_way() {
    holds(1_934);
}

/// Another run was there already when its heartbeats were refused: they were all that ever told of it.
#[test]
fn what_was_only_ever_refused_and_runs_again_is_known_to_have_been_active() {
    holds(1_901);
}

/// Its host registered it again and again, and each time its lifetime began anew.
#[test]
fn what_is_registered_again_and_again_outlives_its_lifetime_all_the_same() {
    holds(221);
}

#[test]
fn one_seed_gives_one_trace() {
    let [one, other] = [7, 7].map(|seed| run(seed, true).trace.text(None));
    assert!(one.lines().count() > 100, "{one}");
    assert!(one == other, "two runs of one seed differ");
}

/// `FURLOUGH_SEED=N`: its whole trace.
#[test]
fn one_seed() {
    #[expect(clippy::disallowed_methods, reason = "whoever replays a seed names it")]
    let Ok(seed) = std::env::var("FURLOUGH_SEED") else { return };
    let seed = seed.parse().expect("FURLOUGH_SEED is a number");
    let ran = run(seed, true);
    println!("{}", ran.trace.text(None));
    assert!(ran.violation.is_none(), "{}", account(seed));
}

/// Who held it for a while, in place of one that held it for ever, died before being told so.
#[test]
fn a_hold_in_place_of_another_ends_when_it_says() {
    holds(2192);
}

/// It arrived after the last unpause, and nobody was left to take it back: the passes were right to do nothing.
#[test]
fn a_pause_that_arrives_late_is_taken_back_by_whoever_sees_it() {
    holds(3924);
}

/// Its id was taken again when its agent, whose heartbeats alone told of it, had gone: nobody ever heard of it.
#[test]
fn what_nobody_ever_heard_of_is_kept() {
    holds(5418);
}

/// In one millisecond its record was read and then its agent heard of: the auditor took the read for the later one.
#[test]
fn what_is_heard_of_after_the_last_read_was_not_told_by_it() {
    holds(10039);
}

/// More was due than a pass looks at, and each sweep put it off until so much was due again.
#[test]
fn what_is_wanted_is_called_back_however_much_is_due() {
    holds(6485);
}
