//! Merging pages, probes and records.

use lifecycle::{Activity, Busy, Ownership, ProbeAnswer, SnapshotBuilder, State, UnitSnapshot, snapshot::Listing};

use super::worlds::{NOW, Runtime, ago, backend, container, hours, id, mins, running};

fn builder() -> SnapshotBuilder {
    SnapshotBuilder::new(backend(), container(), Listing { complete: true, at: NOW, error: None })
}

fn rows(runtimes: &[Runtime]) -> Vec<lifecycle::Observation> {
    runtimes.iter().map(|runtime| runtime.seen.clone()).collect()
}

#[test]
fn pages_and_records_meet_by_id_and_a_record_without_a_row_is_a_subject_not_seen() {
    let recorded = running("b").recorded();
    let lost = running("c").recorded();
    let records = [&lost, &recorded].map(|runtime| (runtime.seen.id.clone(), runtime.record.clone().unwrap()));
    let unit = builder().records(records).seen(rows(&[running("b")])).seen(rows(&[running("a")])).build();
    let mut absent = lost.subject();
    absent.seen = None;
    assert_eq!(unit.subjects(), [running("a").subject(), recorded.subject(), absent]);
    assert_eq!(unit.subject(&id("b")), Some(&unit.subjects()[1]));
    assert_eq!(unit.subject(&id("z")), None);
}

#[test]
fn a_new_snapshot_allows_nothing_that_it_was_not_told() {
    let unit = builder().build();
    assert_eq!(unit, UnitSnapshot::new(backend(), container(), Listing { complete: true, at: NOW, error: None }));
    assert!(unit.used.is_empty() && unit.last_sweep.is_none() && unit.disk.is_none() && unit.subjects().is_empty());
}

#[test]
fn of_two_rows_the_one_that_gives_less_right_to_act_stays_with_the_signs_of_life_of_both() {
    let merged = |one: Runtime, other: Runtime| {
        let forward = builder().seen(rows(&[one.clone(), other.clone()])).build();
        let backward = builder().seen(rows(&[other])).seen(rows(&[one])).build();
        assert_eq!(forward, backward);
        *forward.subjects()[0].seen.clone().unwrap()
    };
    let busy = running("a").active(hours(3)).seen(|seen| seen.busy = Busy::Until(NOW.plus(hours(1))));
    let both = merged(running("a").active(mins(5)), busy);
    assert_eq!((both.activity, both.busy), (Activity::At(ago(mins(5))), Busy::Until(NOW.plus(hours(1)))));
    let stopped = running("a").seen(|seen| seen.state = State::Suspended);
    assert_eq!(merged(stopped, running("a")).state, State::Running);
    let foreign = running("a").seen(|seen| seen.ownership = Ownership::Foreign);
    assert_eq!(merged(foreign, running("a")).ownership, Ownership::Foreign);
    assert_eq!(merged(running("a").active(mins(5)), running("a")).activity, Activity::Unknown);
}

#[test]
fn of_two_records_the_one_with_the_later_fence_stays() {
    let old = running("a").recorded();
    let new = old.clone().record(|record| record.token = 8);
    let records = [&new, &old].map(|runtime| (runtime.seen.id.clone(), runtime.record.clone().unwrap()));
    let unit = builder().records(records).build();
    assert_eq!(unit.subjects()[0].record.as_deref(), new.record.as_ref());
}

#[test]
fn two_answers_of_a_probe_both_count() {
    let answer = |last_active, busy| ProbeAnswer { last_active, busy };
    let unit = builder()
        .probe(id("a"), answer(Some(ago(hours(1))), Busy::Unread))
        .probe(id("a"), answer(Some(ago(mins(1))), Busy::No))
        .build();
    assert_eq!(unit.subjects()[0].probe, Some(answer(Some(ago(mins(1))), Busy::Unread)));
}

#[test]
fn a_row_that_counts_for_less_lends_its_times_in_no_order_of_three() {
    let asleep = |before| {
        running("a").seen(|seen| {
            seen.state = State::Suspended;
            seen.state_since = Some(ago(before));
        })
    };
    let foreign = asleep(hours(9)).seen(|seen| seen.ownership = Ownership::Foreign);
    let rows = rows(&[foreign.clone(), asleep(hours(1)), running("a")]);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let unit = builder().seen(order.map(|at| rows[at].clone())).build();
        let merged = unit.subjects()[0].seen.as_deref().unwrap();
        assert_eq!((merged.ownership, merged.state_since), (Ownership::Foreign, Some(ago(hours(9)))), "{order:?}");
    }
}
