//! A provider's own timers.

use std::time::Duration;

use lifecycle::{
    NativeObserved,
    native::{Drift, NativeSettings, Remedy, Span, Timer, drift, wanted},
    policy::{NativeMode, Overrides, Retention, Rules, Window, WorkspaceRule},
};

use super::worlds::{days, hours, mins, rules, usual};

fn span(duration: Duration) -> Option<Span> {
    Span::new(duration)
}

#[test]
fn a_span_is_never_zero() {
    assert_eq!(span(Duration::ZERO), None);
    assert_eq!(span(Duration::from_micros(999)), None);
    assert_eq!(span(mins(30)).unwrap().get(), mins(30));
}

#[test]
fn the_provider_gets_the_policys_times_and_never_sooner() {
    let retention = Retention { suspended: Some(days(14)), archived: Some(days(180)), workspace: None };
    let all = NativeSettings { idle_suspend: span(mins(30)), archive: span(days(14)), delete: span(days(194)) };
    assert_eq!(wanted(&usual()), Some(all));
    // In a window two hours count: the provider knows no windows, so it waits for the longest.
    let window = |idle_after| Window {
        tz: jiff::tz::TimeZone::UTC,
        days: [true; 7],
        from_minute: 480,
        to_minute: 1_080,
        idle_after,
    };
    let idle = |rules: Rules| wanted(&rules).unwrap().idle_suspend;
    assert_eq!(idle(Rules { windows: vec![window(Some(hours(2)))], ..usual() }), span(hours(2)));
    assert_eq!(idle(Rules { windows: vec![window(None)], ..usual() }), None);
    let overrides = Some(Overrides { label: "furlough.idle".into(), min: mins(10), max: hours(8) });
    assert_eq!(idle(Rules { overrides, ..usual() }), span(hours(8)));
    assert_eq!(wanted(&rules()), Some(NativeSettings::default()));
    let later = NativeSettings { idle_suspend: span(mins(90)), archive: span(days(21)), delete: span(days(291)) };
    assert_eq!(wanted(&Rules { native: NativeMode::Backstop, retention, ..usual() }), Some(later));
    assert_eq!(wanted(&Rules { native: NativeMode::Off, ..usual() }), None);
}

#[test]
fn the_provider_never_deletes_what_is_to_be_saved_or_announced() {
    let delete = |rules: Rules| wanted(&rules).unwrap().delete;
    assert_eq!(delete(Rules { workspace: WorkspaceRule::Save, ..usual() }), None);
    assert_eq!(delete(Rules { notice_before_delete: Some(hours(48)), ..usual() }), None);
    let retention = Retention { suspended: Some(days(14)), ..Retention::default() };
    assert_eq!(delete(Rules { retention, ..usual() }), None);
}

#[test]
fn a_drift_says_what_can_be_done_about_it() {
    let want = NativeSettings { idle_suspend: span(mins(30)), archive: None, delete: None };
    let shown = |idle_suspend, delete, mutable| NativeObserved { idle_suspend, delete, mutable, ..<_>::default() };
    let idle = |have, remedy| Drift { timer: Timer::IdleSuspend, want: want.idle_suspend, have, remedy };
    assert_eq!(drift(&want, &shown(Some(mins(30)), None, true)), []);
    assert_eq!(drift(&want, &shown(Some(mins(15)), None, true)), [idle(span(mins(15)), Remedy::Write)]);
    assert_eq!(drift(&want, &shown(Some(mins(15)), None, false)), [idle(span(mins(15)), Remedy::Report)]);
    assert_eq!(drift(&want, &shown(None, None, false)), [idle(None, Remedy::NoBackstop)]);
    // What is not shown may be anything, whether it could be written or not.
    for mutable in [true, false] {
        let hidden = NativeObserved { hidden: true, ..shown(None, None, mutable) };
        assert_eq!(drift(&want, &hidden), [idle(None, Remedy::Unreadable)]);
    }
    // Zero is what one provider calls "never" and another "at once": it is neither, and differs from a time.
    assert_eq!(drift(&want, &shown(Some(Duration::ZERO), None, true)), [idle(None, Remedy::Write)]);
    let unwanted = Drift { timer: Timer::Delete, want: None, have: span(days(1)), remedy: Remedy::Write };
    assert_eq!(drift(&want, &shown(Some(mins(30)), Some(days(1)), true)), [unwanted]);
    assert!(unwanted.is_early() && idle(span(mins(15)), Remedy::Write).is_early());
    assert!(!idle(span(hours(9)), Remedy::Write).is_early() && !idle(None, Remedy::Write).is_early());
}
