//! Times of the week with an `idle.after` of their own.

use std::time::Duration;

use jiff::{civil, tz::TimeZone};
use serde::{Serialize, Serializer};

use crate::Time;

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
