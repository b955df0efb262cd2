//! What a pass counts.

use lifecycle::{Fate, Time};
use pass::Outcome;
use serde_json::Map;
use telemetry::metrics::{self, Metric};

use crate::summary::{Ended, Summary, UnitSummary};

/// The lines of metrics that a pass writes: one a backend.
pub fn lines(outcome: &Outcome, summary: &Summary, now: Time) -> Vec<String> {
    let more = Map::from_iter([("Report".to_owned(), summary.report.as_str().into())]);
    let line =
        |unit: &UnitSummary| metrics::line(now.millis(), Some(unit.backend.as_str()), &values(outcome, unit), &more);
    summary.backends.iter().map(line).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a pass counts fewer than 2^53 things")]
fn values(outcome: &Outcome, unit: &UnitSummary) -> Vec<(Metric, f64)> {
    let name = &unit.backend;
    let ended = |which: Ended| f64::from(u8::from(unit.ended == which));
    let acts = |fates: &[Fate]| fates.iter().filter_map(|fate| unit.acts.get(fate)).sum::<u64>() as f64;
    let note = outcome.report.backends.iter().map(|report| &report.note).find(|note| note.backend == *name);
    let of =
        |ids: &mut dyn Iterator<Item = &lifecycle::RuntimeId>| ids.filter(|id| id.backend() == name).count() as f64;
    let upkeep = &outcome.upkeep;
    let mut values = vec![
        (Metric::PassCompleted, ended(Ended::Completed)),
        (Metric::PassUnfinished, ended(Ended::Unfinished)),
        (Metric::PassBusy, ended(Ended::Busy)),
        (Metric::PassFailed, ended(Ended::Failed)),
    ];
    if unit.ended == Ended::Busy {
        return values;
    }
    values.extend([
        (Metric::PassSeconds, outcome.report.took.as_secs_f64()),
        (Metric::ActsDone, acts(&[Fate::Done, Fate::AlreadyDone, Fate::Gone])),
        (Metric::ActsRefused, acts(&[Fate::Refused])),
        (Metric::ActsMoved, acts(&[Fate::Moved])),
        (Metric::ActsLeft, acts(&[Fate::Left, Fate::Pending])),
        (Metric::ActsFailed, acts(&[Fate::Failed])),
        (Metric::ActsUnknown, acts(&[Fate::Unknown])),
        (Metric::Runtimes, note.map_or(0.0, |note| note.ours as f64)),
        (Metric::RuntimesGone, of(&mut upkeep.gone.iter())),
        (Metric::RuntimesStuck, of(&mut upkeep.stuck.iter().map(|stuck| &stuck.runtime))),
        (Metric::ClaimsRecovered, of(&mut upkeep.recovered.iter().map(|recovered| &recovered.runtime))),
        (Metric::BreakerOpen, f64::from(u8::from(note.is_some_and(|note| note.breaker.is_some())))),
        (Metric::Paused, f64::from(u8::from(note.is_some_and(|note| note.paused)))),
    ]);
    // What the report has as a sum over all backends alone is counted where there is one.
    if outcome.report.backends.len() == 1 {
        values.extend([
            (Metric::RuntimesIdle, outcome.report.headline.idle as f64),
            (Metric::RecordsHealed, outcome.report.healed as f64),
        ]);
    }
    values
}
