//! Windows over changes of the clock, against civil time worked out by other means.

use std::time::Duration;

use jiff::tz::TimeZone;
use lifecycle::{
    Action, Reason, Time,
    policy::{Rules, Window},
};
use proptest::prelude::*;

use super::worlds::{container, hours, just_past, mins, rules, running, short, verdict_at};

const WEEKDAYS: [bool; 7] = [true, true, true, true, true, false, false];
const EVERY_DAY: [bool; 7] = [true; 7];

fn window(zone: &str, days: [bool; 7], from: u16, to: u16, idle_after: Option<Duration>) -> Window {
    let tz = TimeZone::get(zone).unwrap();
    Window { tz, days, from_minute: from * 60, to_minute: to * 60, idle_after }
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn applies(window: &Window, times: &[(&str, bool)]) {
    for (text, expected) in times {
        assert_eq!(window.applies(at(text)), *expected, "{text}");
    }
}

#[test]
fn office_hours_in_berlin_move_with_the_clock() {
    let office = window("Europe/Berlin", WEEKDAYS, 8, 18, None);
    applies(
        &office,
        &[
            // Friday before the switch: UTC+1.
            ("2026-03-27T06:59:59.999Z", false),
            ("2026-03-27T07:00:00Z", true),
            ("2026-03-27T16:59:59.999Z", true),
            ("2026-03-27T17:00:00Z", false),
            // Sunday of the switch, then Monday: UTC+2.
            ("2026-03-29T10:00:00Z", false),
            ("2026-03-30T05:59:59.999Z", false),
            ("2026-03-30T06:00:00Z", true),
            ("2026-03-30T16:00:00Z", false),
            // And back again.
            ("2026-10-23T06:00:00Z", true),
            ("2026-10-26T06:59:59.999Z", false),
            ("2026-10-26T07:00:00Z", true),
        ],
    );
}

#[test]
fn an_hour_that_does_not_exist_never_applies_and_one_that_comes_twice_applies_twice() {
    let small_hour = window("Europe/Berlin", EVERY_DAY, 2, 3, None);
    applies(
        &small_hour,
        &[
            // 2026-03-29: 01:59:59 is followed by 03:00.
            ("2026-03-29T00:59:59.999Z", false),
            ("2026-03-29T01:00:00Z", false),
            // 2026-10-25: 02:00 to 03:00 in UTC+2, and once more in UTC+1.
            ("2026-10-24T23:59:59.999Z", false),
            ("2026-10-25T00:00:00Z", true),
            ("2026-10-25T00:59:59.999Z", true),
            ("2026-10-25T01:00:00Z", true),
            ("2026-10-25T01:59:59.999Z", true),
            ("2026-10-25T02:00:00Z", false),
        ],
    );
}

#[test]
fn a_window_past_midnight_belongs_to_the_day_on_which_it_begins() {
    let friday_night = window("Europe/Berlin", [false, false, false, false, true, false, false], 22, 6, None);
    applies(
        &friday_night,
        &[
            ("2026-06-12T19:59:59.999Z", false),
            ("2026-06-12T20:00:00Z", true),
            ("2026-06-13T03:59:59.999Z", true),
            ("2026-06-13T04:00:00Z", false),
            ("2026-06-13T20:00:00Z", false),
            ("2026-06-12T03:00:00Z", false),
        ],
    );
}

#[test]
fn half_hours_count() {
    // Adelaide: UTC+9:30, from the first Sunday in October UTC+10:30.
    let office = window("Australia/Adelaide", WEEKDAYS, 8, 18, None);
    applies(
        &office,
        &[
            ("2026-09-30T22:29:59.999Z", false),
            ("2026-09-30T22:30:00Z", true),
            ("2026-10-04T21:29:59.999Z", false),
            ("2026-10-04T21:30:00Z", true),
        ],
    );
    // Kathmandu: UTC+5:45, always.
    applies(
        &window("Asia/Kathmandu", WEEKDAYS, 8, 18, None),
        &[("2026-06-15T02:14:59Z", false), ("2026-06-15T02:15:00Z", true)],
    );
}

#[test]
fn the_first_window_that_applies_gives_the_limit() {
    let patient = Rules {
        idle_after: Some(mins(30)),
        windows: vec![
            window("Europe/Berlin", WEEKDAYS, 8, 18, Some(hours(2))),
            window("Europe/Berlin", EVERY_DAY, 0, 12, Some(hours(9))),
            window("Europe/Berlin", EVERY_DAY, 20, 24, None),
        ],
        ..rules()
    };
    // Monday 2026-06-15, UTC+2.
    let limit = |text| patient.idle_after_at(at(text));
    assert_eq!(limit("2026-06-15T08:00:00Z"), Some(hours(2)));
    assert_eq!(limit("2026-06-15T05:00:00Z"), Some(hours(9)));
    assert_eq!(limit("2026-06-15T17:00:00Z"), Some(mins(30)));
    assert_eq!(limit("2026-06-15T18:00:00Z"), None);
    assert_eq!((patient.shortest_idle_after(), patient.longest_idle_after()), (Some(mins(30)), None));
}

/// In office hours two hours count; at 18:00 half an hour does, and what is idle for longer is due at once.
#[test]
fn what_is_kept_by_a_window_is_looked_at_again_when_it_ends() {
    let windows = vec![window("Europe/Berlin", WEEKDAYS, 8, 18, Some(hours(2)))];
    let office = Rules { idle_after: Some(mins(30)), windows, ..rules() };
    let now = at("2026-06-15T15:30:00Z");
    let idle_since = |time| running("a").seen(|seen| seen.activity = lifecycle::Activity::At(at(time)));
    let kept = |next| Err((Reason::Active, Some(next)));
    let verdict = |runtime, now| short(verdict_at(container(), office.clone(), runtime, now));
    let ends = at("2026-06-15T16:00:00Z");
    let long = idle_since("2026-06-15T14:00:00Z");
    assert_eq!(verdict(long.clone(), now), kept(ends));
    assert_eq!(verdict(long, ends), Ok((Action::Suspend, Reason::Idle { after: mins(30) })));
    let recent = idle_since("2026-06-15T15:40:00Z");
    assert_eq!(verdict(recent, now), kept(just_past(at("2026-06-15T15:40:00Z"), mins(30))));
    // Due under the window itself, before it ends.
    let oldest = idle_since("2026-06-15T13:40:00Z");
    assert_eq!(verdict(oldest, now), kept(just_past(at("2026-06-15T13:40:00Z"), hours(2))));
}

#[test]
fn changes_of_the_clock_are_foretold() {
    let change = |from_minute, to_minute, now| {
        let tz = TimeZone::get("Europe/Berlin").unwrap();
        let window = Window { tz, days: EVERY_DAY, from_minute, to_minute, idle_after: Some(hours(2)) };
        Rules { idle_after: Some(mins(30)), windows: vec![window], ..rules() }.next_window_change(at(now))
    };
    // 02:30 to 03:30 begins when the clock jumps from 02:00 into it.
    assert_eq!(change(150, 210, "2026-03-29T00:00:00Z"), Some(at("2026-03-29T01:00:00Z")));
    // 02:15 to 02:30 comes twice.
    assert_eq!(change(135, 150, "2026-10-25T00:00:00Z"), Some(at("2026-10-25T00:15:00Z")));
    assert_eq!(change(135, 150, "2026-10-25T00:45:00Z"), Some(at("2026-10-25T01:15:00Z")));
    // A window that never applies: looked at again after a week.
    assert_eq!(change(60, 60, "2026-06-15T12:00:00Z"), Some(at("2026-06-23T12:00:00Z")));
}

#[test]
fn a_wish_is_not_moved_by_a_window_but_by_a_window_that_says_never() {
    let wishes = lifecycle::policy::Overrides { label: "furlough.idle".into(), min: mins(10), max: hours(8) };
    let windows = vec![window("Europe/Berlin", WEEKDAYS, 8, 18, None)];
    let office = Rules { idle_after: Some(mins(30)), windows, overrides: Some(wishes), ..rules() };
    let idle = running("a").seen(|seen| seen.activity = lifecycle::Activity::At(at("2026-06-15T06:00:00Z")));
    let idle = idle.label("furlough.idle", "45m");
    let within = short(verdict_at(container(), office.clone(), idle.clone(), at("2026-06-15T12:00:00Z")));
    let ends = at("2026-06-15T16:00:00Z");
    assert_eq!(within, Err((Reason::Active, Some(ends))));
    let after = short(verdict_at(container(), office, idle, ends));
    assert_eq!(after, Ok((Action::Suspend, Reason::Idle { after: mins(45) })));
}

/// The European Union's rule, worked out by hand: summer time from the last Sunday in March, 01:00 UTC,
/// to the last Sunday in October, 01:00 UTC; in 2026 these are the 29th and the 25th.
fn berlin_minutes(now: Time) -> i64 {
    let summer = (at("2026-03-29T01:00:00Z")..at("2026-10-25T01:00:00Z")).contains(&now);
    now.millis().div_euclid(60_000) + if summer { 120 } else { 60 }
}

/// South Australia's, where summer spans the turn of the year: from the first Sunday in October to that
/// in April, 16:30 UTC on the Saturday before.
fn adelaide_minutes(now: Time) -> i64 {
    let winter = (at("2026-04-04T16:30:00Z")..at("2026-10-03T16:30:00Z")).contains(&now);
    now.millis().div_euclid(60_000) + if winter { 570 } else { 630 }
}

fn expected(window: &Window, local_minutes: i64) -> bool {
    let minute = local_minutes.rem_euclid(1_440);
    // 1970-01-01 was a Thursday, the fourth day of a week that begins on Monday.
    let on = |day: i64| window.days[usize::try_from((day + 3).rem_euclid(7)).unwrap()];
    let day = local_minutes.div_euclid(1_440);
    let (from, to) = (i64::from(window.from_minute), i64::from(window.to_minute));
    if from <= to {
        on(day) && from <= minute && minute < to
    } else {
        (on(day) && minute >= from) || (on(day - 1) && minute < to)
    }
}

fn any_window(zone: &'static str) -> impl Strategy<Value = Window> {
    let after = prop_oneof![Just(None), Just(Some(mins(10))), Just(Some(hours(3)))];
    (any::<[bool; 7]>(), 0_u16..1_440, 0_u16..=1_440, after).prop_map(
        move |(days, from_minute, to_minute, idle_after)| Window {
            tz: TimeZone::get(zone).unwrap(),
            days,
            from_minute,
            to_minute,
            idle_after,
        },
    )
}

/// Any minute of 2026, and often one near a change of the clock.
fn any_time() -> impl Strategy<Value = Time> {
    let year = at("2026-01-01T00:00:00Z").millis()..at("2026-12-31T00:00:00Z").millis();
    let near = |text| {
        let change = at(text).millis();
        change - 100_000_000..change + 100_000_000
    };
    let near = [
        near("2026-03-29T01:00:00Z"),
        near("2026-10-25T01:00:00Z"),
        near("2026-04-04T16:30:00Z"),
        near("2026-10-03T16:30:00Z"),
    ];
    let [a, b, c, d] = near;
    prop_oneof![4 => year, 1 => a, 1 => b, 1 => c, 1 => d].prop_map(Time::from_millis)
}

proptest! {
    #[test]
    fn windows_agree_with_civil_time(berlin in any_window("Europe/Berlin"), adelaide in any_window("Australia/Adelaide"), now in any_time()) {
        prop_assert_eq!(berlin.applies(now), expected(&berlin, berlin_minutes(now)));
        prop_assert_eq!(adelaide.applies(now), expected(&adelaide, adelaide_minutes(now)));
    }

    /// The limit is the same until the change that is foretold, at any point up to it.
    #[test]
    fn no_change_of_the_limit_comes_unforetold(
        windows in proptest::collection::vec(prop_oneof![any_window("Europe/Berlin"), any_window("Australia/Adelaide")], 0..3),
        now in any_time(),
        part in 0.0_f64..1.0,
    ) {
        let rules = Rules { idle_after: Some(mins(30)), windows, ..rules() };
        let Some(change) = rules.next_window_change(now) else {
            prop_assert!(rules.windows.is_empty());
            return Ok(());
        };
        prop_assert!(now < change);
        let between = now.plus(change.since(now).mul_f64(part)).min(change.minus(Duration::from_millis(1)));
        prop_assert_eq!(rules.idle_after_at(between), rules.idle_after_at(now));
        let last = change.minus(Duration::from_millis(1));
        prop_assert_eq!(rules.idle_after_at(last), rules.idle_after_at(now));
    }
}
