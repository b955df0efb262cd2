//! A report of a pass for people.

use lifecycle::{
    Action, Reason, Report, Time,
    report::{Bytes, Entry, Fate, Standing},
};
use pass::Outcome;

use super::{
    grid::{Cell, Grid, in_style, plain},
    plan::{idle, saves, style, troubles},
    words::{count, safe},
};
use crate::{
    names::{Names, decoded, named},
    notes::Notes,
    terminal::{Style, Terminal},
};

/// The whole report: idle hours first, then what became of each act.
pub(crate) fn text(report: &Report, notes: &Notes, terminal: Terminal) -> String {
    let mut parts = vec![format!("{}\n{}", idle(&report.headline, terminal), counts(report, terminal))];
    parts.extend(untouched(report));
    parts.extend(backends(report, notes, terminal));
    if !report.entries.is_empty() {
        parts.push(entries(report, notes, terminal));
    }
    if report.entries.iter().any(can_be_taken_back) {
        parts.push(format!("To take it back: {}", terminal.paint(Style::Cyan, "furlough undo")));
    }
    parts.join("\n\n")
}

/// The report of a pass, and what it put in order beside its plan.
pub(crate) fn pass(outcome: &Outcome, notes: &Notes, terminal: Terminal) -> String {
    let mut parts = vec![text(&outcome.report, notes, terminal)];
    let upkeep = upkeep(outcome);
    if !upkeep.is_empty() {
        parts.push(upkeep.join("\n"));
    }
    parts.join("\n\n")
}

/// `3 done, 1 refused; saved 4.2 MB of disk`.
fn counts(report: &Report, terminal: Terminal) -> String {
    let counts = report.counts();
    let told = Fate::ALL.into_iter().filter_map(|fate| Some(format!("{} {fate}", counts.get(&fate)?)));
    let told: Vec<_> = told.collect();
    let style = match report.standing() {
        Standing::AllDone => Style::Green,
        Standing::SomeNotDone => Style::Yellow,
        Standing::SomeFailed => Style::Red,
    };
    let told = if told.is_empty() { "nothing to do".to_owned() } else { told.join(", ") };
    let saved = saves(report.saved()).map_or(String::new(), |saved| format!("; saved {saved}"));
    format!("{}{saved}", terminal.paint(style, &told))
}

/// `Kept: 3 active, 1 held; 988 were not due and were not looked at`.
fn untouched(report: &Report) -> Option<String> {
    let kept = report.kept.iter().filter(|(code, _)| *code != Reason::Gone.code());
    let kept: Vec<_> = kept.map(|(code, count)| format!("{count} {}", code.replace('_', " "))).collect();
    let kept = (!kept.is_empty()).then(|| format!("Kept: {}", kept.join(", ")));
    let rest = (report.not_due > 0).then(|| format!("{} not due and not looked at", count(report.not_due, "runtime")));
    let told: Vec<_> = kept.into_iter().chain(rest).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn backends(report: &Report, notes: &Notes, terminal: Terminal) -> Option<String> {
    let notes = troubles(report.backends.iter().map(|backend| &backend.note), notes, report.at, terminal);
    let errors = report.backends.iter().flat_map(|backend| {
        let said = backend.note.listing.error.as_deref();
        let new = backend.errors.iter().filter(move |error| Some(&***error) != said);
        new.map(|error| format!("{} {}", terminal.paint(Style::Red, backend.note.backend.as_str()), safe(error)))
    });
    let lines: Vec<_> = notes.into_iter().chain(errors).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn entries(report: &Report, notes: &Notes, terminal: Terminal) -> String {
    let entries = &report.entries;
    let names = Names::new(entries.iter().map(|entry| &entry.runtime));
    let mut grid = Grid::new(terminal, &["RESULT", "ACT", "RUNTIME", "SAVED", "MORE"]).right(3);
    for entry in entries {
        let bytes = if entry.fate == Fate::Done { entry.saves.bytes } else { 0 };
        grid.row([
            fate(entry.fate),
            in_style(style(entry.action), entry.action.to_string()),
            in_style(Style::Bold, named(&names.of(&entry.runtime), &entry.about)),
            plain(if bytes == 0 { "–".to_owned() } else { Bytes(bytes).to_string() }),
            plain(detail(entry, notes, report.at)),
        ]);
    }
    grid.text(0)
}

/// Whether `furlough undo` brings it back: what was suspended, and what lies in a trash.
fn can_be_taken_back(entry: &Entry) -> bool {
    let in_trash = entry.detail.as_deref().is_some_and(|detail| detail.contains("to be taken back with"));
    entry.fate == Fate::Done && (entry.action == Action::Suspend || in_trash)
}

fn fate(fate: Fate) -> Cell {
    let style = match fate.standing() {
        Standing::AllDone => Style::Green,
        Standing::SomeNotDone => Style::Yellow,
        Standing::SomeFailed => Style::Red,
    };
    in_style(style, fate.to_string())
}

/// How to take back what was done is said once, below the table; where work was saved, by `history` and in JSON.
fn detail(entry: &Entry, notes: &Notes, now: Time) -> String {
    let detail = entry.detail.as_deref();
    match (entry.fate, detail) {
        (Fate::Done, Some(detail)) if detail.starts_with("saved ") => "its work was saved first".to_owned(),
        (Fate::Done, _) => String::new(),
        (Fate::Refused, Some(detail)) => notes.refusal(&entry.runtime, detail, now),
        (_, Some(detail)) => safe(detail).into_owned(),
        (_, None) => safe(&entry.reason.to_string()).into_owned(),
    }
}

/// What was put in order, a line each.
fn upkeep(outcome: &Outcome) -> Vec<String> {
    let done = &outcome.upkeep;
    let mut lines = Vec::new();
    lines.extend(
        done.recovered.iter().map(|found| format!("{}: left {}, {}", decoded(&found.runtime), found.was, found.how)),
    );
    lines.extend(done.woken.iter().map(|id| format!("{}: called back, somebody had asked for it", decoded(id))));
    lines.extend(done.gone.iter().map(|id| format!("{}: gone, its absence was seen twice", decoded(id))));
    lines.extend(done.stuck.iter().map(|stuck| {
        format!(
            "{}: failed {} in a row, a person may want to look",
            decoded(&stuck.runtime),
            count(stuck.attempts.into(), "time")
        )
    }));
    if !done.emptied.is_empty() {
        let bytes = done.emptied.iter().map(|entry| entry.bytes).sum();
        lines.push(format!(
            "{} removed from the trash for ever, {} freed",
            count(done.emptied.len() as u64, "entry"),
            Bytes(bytes)
        ));
    }
    if !done.forgotten.is_empty() {
        lines.push(format!(
            "{} removed for ever: older than `retention.workspace`",
            count(done.forgotten.len() as u64, "save")
        ));
    }
    lines.extend(
        done.busy.iter().map(|busy| {
            format!("`{}`: {} is at it, until {} at the latest", busy.backend, safe(&busy.owner), busy.until)
        }),
    );
    lines.extend(
        done.more_due.iter().map(|backend| format!("`{backend}`: more is due than one pass takes; the next goes on")),
    );
    lines
}
