//! When a tick must look at a runtime.

use std::time::Duration;

use lifecycle::{
    Arming, Capabilities, Claim, Incarnation, NativeDeadline, NativeEffect, NativeObserved, State, arming,
    policy::{FileRules, Overrides, Rules, Window},
    record::Hold,
};

use super::worlds::{
    NOW, Runtime, SLACK, ago, container, days, hours, just_past, mins, policy, rules, running, suspended, unit, usual,
    worktree,
};

fn armed(can: Capabilities, rules: Rules, runtime: Runtime) -> Arming {
    let unit = unit(can, [runtime]);
    arming(&unit.subjects()[0], &unit, &policy(rules), NOW)
}

fn millis(limit: Duration) -> Option<u64> {
    u64::try_from((limit + SLACK).as_millis()).ok()
}

#[test]
fn a_live_runtime_comes_due_by_its_idle_limit_and_its_lifetime() {
    let rules = Rules { lifetime_max: Some(days(30)), ..usual() };
    let expected = Arming {
        idle_ms: millis(mins(30)),
        cap_at: Some(just_past(ago(days(10)), days(30))),
        due_at: Some(just_past(ago(mins(5)), mins(30))),
    };
    assert_eq!(armed(container(), rules, running("a").heartbeat(mins(5))), expected);
}

#[test]
fn the_shortest_limit_that_can_ever_apply_counts() {
    let idle_ms = |can, rules: Rules| armed(can, rules, running("a").heartbeat(mins(5)).label("wish", "45m")).idle_ms;
    let tz = jiff::tz::TimeZone::UTC;
    let window = Window { tz, days: [true; 7], from_minute: 0, to_minute: 60, idle_after: Some(mins(12)) };
    assert_eq!(idle_ms(container(), Rules { windows: vec![window], ..usual() }), millis(mins(12)));
    let overrides = Some(Overrides { label: "wish".into(), min: mins(10), max: hours(8) });
    assert_eq!(idle_ms(container(), Rules { overrides, ..usual() }), millis(mins(45)));
    assert_eq!(idle_ms(worktree(), usual()), millis(mins(30) + days(14)));
    let files = FileRules { caches: Some(hours(1)), dependencies: Some(days(3)) };
    assert_eq!(idle_ms(worktree(), Rules { files, ..usual() }), millis(hours(1)));
    assert_eq!(idle_ms(container(), rules()), None);
    let no_roles = Capabilities::default();
    assert_eq!(idle_ms(no_roles, Rules { files, ..usual() }), None);
}

#[test]
fn what_is_due_is_looked_at_now_and_what_waits_when_it_stops_waiting() {
    let due_at = |runtime| armed(container(), usual(), runtime).due_at;
    assert_eq!(due_at(running("a").heartbeat(hours(5))), Some(NOW));
    assert_eq!(due_at(suspended("a", days(13)).recorded()), Some(just_past(ago(days(13)), days(14))));
    assert_eq!(due_at(running("a").recorded()), None);
    let until = NOW.plus(mins(4));
    let claimed = running("a").heartbeat(hours(5)).record(|record| {
        record.claim = Some(Claim { owner: "pass".into(), until });
        record.state = State::Suspending;
    });
    let freed = Some(until.plus(Duration::from_secs(10)));
    assert_eq!(due_at(claimed), freed);
    let unclaimed = running("a").heartbeat(hours(5)).record(|record| record.state = State::Suspending);
    assert_eq!(due_at(unclaimed), Some(NOW));
}

/// Else what its holder left when it died would be found a day later.
#[test]
fn whatever_keeps_a_claimed_runtime_it_is_due_when_its_claim_has_ended() {
    let until = NOW.minus(Duration::from_secs(5));
    let claimed = |change: fn(&mut lifecycle::Record)| {
        running("a").heartbeat(hours(5)).record(move |record| {
            record.claim = Some(Claim { owner: "pass".into(), until });
            change(record);
        })
    };
    let freed = Some(until.plus(Duration::from_secs(10)));
    for (what, runtime) in [
        ("another run", claimed(|record| record.incarnation = Some(Incarnation::new("another")))),
        ("held for ever", claimed(|record| record.hold_until = Some(Hold::Forever))),
        ("asked for", claimed(|record| record.wanted_at = Some(NOW))),
    ] {
        assert_eq!(armed(container(), usual(), runtime).due_at, freed, "{what}");
    }
}

#[test]
fn a_providers_own_deadline_is_a_hard_one() {
    let at = NOW.plus(hours(2));
    let native = NativeObserved {
        deadline: Some(NativeDeadline { at, effect: NativeEffect::Destroy }),
        ..NativeObserved::default()
    };
    let runtime = running("a").heartbeat(mins(5)).seen(|seen| seen.native = Some(Box::new(native)));
    assert_eq!(armed(container(), usual(), runtime).cap_at, Some(at));
}
