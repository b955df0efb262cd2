//! Times of the week with an `idle.after` of their own.

use std::time::Duration;

use jiff::{civil, tz::TimeZone};
use serde::{Serialize, Serializer};

use crate::{Time, policy::Rules};

/// A part of each week, in a time zone's own wall clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// The zone whose wall clock counts.
    #[serde(serialize_with = "zone_name")]
    pub tz: TimeZone,
    /// On which days, Monday first.
    pub days: [bool; 7],
    /// From this minute of the day.
    pub from_minute: u16,
    /// Up to, not including, this minute of the day (at most 1440). Less than `from_minute`: past midnight.
    pub to_minute: u16,
    /// What `idle.after` is then. `None`: never.
    pub idle_after: Option<Duration>,
}

fn zone_name<S: Serializer>(tz: &TimeZone, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tz.iana_name().unwrap_or("UTC"))
}

impl Window {
    /// Whether it applies at `now`. A window past midnight belongs to the day that it begins on.
    pub fn applies(&self, now: Time) -> bool {
        let local = self.tz.to_datetime(now.timestamp());
        let minute = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).unwrap_or(0);
        let today = self.on(local.date());
        if self.from_minute <= self.to_minute {
            return today && (self.from_minute..self.to_minute).contains(&minute);
        }
        let yesterday = local.date().yesterday().is_ok_and(|date| self.on(date));
        (today && minute >= self.from_minute) || (yesterday && minute < self.to_minute)
    }

    fn on(&self, date: civil::Date) -> bool {
        let day = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or(0);
        self.days[day]
    }
}

/// How far ahead window borders are looked for: a week repeats, and a day more for what a change of clock moves.
const HORIZON_DAYS: i64 = 8;

impl Rules {
    /// What `idle.after` is at `now`: that of the first window that applies, else the policy's own.
    pub fn idle_after_at(&self, now: Time) -> Option<Duration> {
        self.windows
            .iter()
            .find(|window| window.applies(now))
            .map_or(self.idle_after, |window| window.idle_after)
            .filter(|after| !after.is_zero())
    }

    /// The shortest `idle.after` that can ever apply.
    pub fn shortest_idle_after(&self) -> Option<Duration> {
        self.every_idle_after().flatten().min()
    }

    /// The longest `idle.after` that can ever apply; `None` when it is "never" at some time.
    pub fn longest_idle_after(&self) -> Option<Duration> {
        self.every_idle_after().reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    fn every_idle_after(&self) -> impl Iterator<Item = Option<Duration>> {
        let all = self.windows.iter().map(|window| window.idle_after).chain([self.idle_after]);
        all.map(|after| after.filter(|after| !after.is_zero()))
    }

    /// When `idle.after` next becomes another by the clock alone; `None` without windows. May be too
    /// early (a border at which nothing changes, or the horizon of a week), never too late.
    pub fn next_window_change(&self, now: Time) -> Option<Time> {
        let horizon = now.plus(Duration::from_hours(24 * HORIZON_DAYS.unsigned_abs()));
        let mut borders: Vec<_> = self.windows.iter().flat_map(|window| window.borders(now)).collect();
        borders.retain(|border| now < *border && *border < horizon);
        borders.sort_unstable();
        let present = self.idle_after_at(now);
        let change = borders.into_iter().find(|border| self.idle_after_at(*border) != present);
        (!self.windows.is_empty()).then(|| change.unwrap_or(horizon))
    }
}

impl Window {
    /// Every point, from yesterday to the horizon, at which this window may begin or end: its two times
    /// of day on each date (both, where the clock shows one twice), and the changes of the clock.
    fn borders(&self, now: Time) -> Vec<Time> {
        let today = self.tz.to_datetime(now.timestamp()).date();
        let mut borders = Vec::new();
        for offset in -1..=HORIZON_DAYS {
            let Ok(date) = today.checked_add(jiff::Span::new().days(offset)) else { continue };
            for minute in [self.from_minute, self.to_minute] {
                let Some(civil) = at_minute(date, minute) else { continue };
                let ambiguous = self.tz.to_ambiguous_timestamp(civil);
                borders.extend([ambiguous.earlier(), ambiguous.later()].into_iter().flatten().map(Time::from));
            }
        }
        let changes = self.tz.following(now.timestamp()).take(4);
        borders.extend(changes.map(|change| Time::from(change.timestamp())));
        borders
    }
}

fn at_minute(date: civil::Date, minute: u16) -> Option<civil::DateTime> {
    let midnight = date.to_datetime(civil::Time::midnight());
    midnight.checked_add(jiff::Span::new().minutes(i64::from(minute))).ok()
}
