//! A plan for people.

use std::collections::BTreeMap;

use lifecycle::{
    Action, Headline, Item, Kept, Plan, Reason, Saves, Time,
    duration::Human,
    plan::BackendNote,
    report::{Bytes, Money},
    verdict::Breaker,
};

use super::{
    grid::{Grid, in_style, plain},
    words::{count, relative, safe},
};
use crate::{
    names::{Names, named},
    notes::Notes,
    terminal::{Style, Terminal},
};

/// At most this many kept runtimes are listed one by one; beyond it, by reason.
const KEPT_LINES: usize = 60;

/// Short names for every runtime of a plan.
pub(crate) fn names(plan: &Plan) -> Names {
    Names::new(plan.items.iter().map(|item| &item.runtime).chain(plan.kept.iter().map(|kept| &kept.runtime)))
}

/// The whole plan: idle hours first, then what would be done, then what would not.
pub(crate) fn table(plan: &Plan, notes: &Notes, terminal: Terminal) -> String {
    let names = names(plan);
    let mut opening = idle(&plan.headline, terminal);
    if let Some(saves) = saves(plan.headline.saves) {
        opening = format!("{opening}\nThis plan saves {}", terminal.paint(Style::Bold, &saves));
    }
    let mut parts = vec![opening];
    let troubles = troubles(plan.backends.iter(), notes, plan.made_at, terminal);
    if !troubles.is_empty() {
        parts.push(troubles.join("\n"));
    }
    parts.push(if plan.items.is_empty() {
        terminal.paint(Style::Green, "Nothing to reclaim now.")
    } else {
        items(plan, &names, terminal)
    });
    if !plan.kept.is_empty() {
        parts.push(kept(plan, &names, notes, terminal));
    }
    parts.join("\n\n")
}

/// What every plan and report opens with: idle hours, and what they cost.
pub(crate) fn idle(headline: &Headline, terminal: Terminal) -> String {
    let runtimes = count(headline.runtimes, "runtime");
    if headline.idle == 0 {
        return format!("{}: none of {runtimes} is idle past its limit", terminal.paint(Style::Bold, "0 idle hours"));
    }
    let idle = format!("{} idle hours", hours(headline.idle_hours));
    let cost = match headline.idle_cost_micros {
        0 => "no price is configured for them".to_owned(),
        micros => format!("they cost {}", Money(micros)),
    };
    let over = format!("{} of {runtimes} idle past the limit", headline.idle);
    format!("{}; {cost}; {over}", terminal.paint(Style::Bold, &idle))
}

/// `4.2 MB of disk and 0.32 an hour`; `None`: nothing.
pub(crate) fn saves(saves: Saves) -> Option<String> {
    let mut parts = Vec::new();
    if saves.bytes > 0 {
        parts.push(format!("{} of disk", Bytes(saves.bytes)));
    }
    if saves.micros_per_hour > 0 {
        parts.push(format!("{} an hour", Money(saves.micros_per_hour)));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// `2881`, `2,881`: whole hours once there are many, one place while there are few.
pub(crate) fn hours(hours: f64) -> String {
    let text = if hours < 100.0 { format!("{hours:.1}") } else { format!("{hours:.0}") };
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

/// A line for each backend that something is wrong with.
pub(crate) fn troubles<'a>(
    backends: impl Iterator<Item = &'a BackendNote>,
    notes: &Notes,
    now: Time,
    terminal: Terminal,
) -> Vec<String> {
    backends.filter_map(|note| trouble(note, notes, now, terminal)).collect()
}

/// What is wrong with a backend, or stands in the way of acting on it.
fn trouble(note: &BackendNote, notes: &Notes, now: Time, terminal: Terminal) -> Option<String> {
    let mut said = Vec::new();
    if let Some(error) = &note.listing.error {
        said.push(format!("could not be read: {}", safe(error)));
    } else if !note.listing.complete {
        said.push("was read in part only".to_owned());
    }
    let paused = notes.paused(&note.backend, now);
    said.extend(paused.or_else(|| note.paused.then(|| "is paused".to_owned())));
    if let Some(breaker) = note.breaker {
        said.push(format!("only reports: {breaker}; {}", passes(breaker)));
    }
    if note.unlabelled > 0 {
        said.push(format!("has {} that the scope does not name", count(note.unlabelled, "more runtime")));
    }
    let style = if note.listing.error.is_some() { Style::Red } else { Style::Yellow };
    (!said.is_empty()).then(|| format!("{} {}", terminal.paint(style, note.backend.as_str()), said.join("; ")))
}

/// What ends a breaker's doubt, if it is none.
const fn passes(breaker: Breaker) -> &'static str {
    match breaker {
        Breaker::InventoryDrop => "if so few is right, one pass of `furlough run` notes it, and the next one acts",
        Breaker::Silent => "see whether heartbeats arrive; it acts again when their share is as usual",
    }
}

/// The colour of an act: what deletes is red, what stops is yellow.
pub(crate) fn style(action: Action) -> Style {
    match action {
        Action::Delete => Style::Red,
        Action::Suspend | Action::Archive => Style::Yellow,
        Action::Shed(_) | Action::Notify => Style::Cyan,
    }
}

/// Why an act is to be done, with the evidence's figures.
pub(crate) fn why(item: &Item, plan: &Plan) -> String {
    safe(&item.reason.with(&item.evidence, plan.made_at)).into_owned()
}

/// What becomes of work that is kept nowhere else.
fn work(item: &Item) -> String {
    item.work().map_or(String::new(), |work| format!("; {}", safe(&work)))
}

fn items(plan: &Plan, names: &Names, terminal: Terminal) -> String {
    let mut grid = Grid::new(terminal, &["ACT", "RUNTIME", "SAVES", "WHY"]).right(2);
    for item in &plan.items {
        let saved = match (item.saves.bytes, item.saves.micros_per_hour) {
            (0, 0) => "–".to_owned(),
            (0, micros) => format!("{}/h", Money(micros)),
            (size, 0) => Bytes(size).to_string(),
            (size, micros) => format!("{}, {}/h", Bytes(size), Money(micros)),
        };
        grid.row([
            in_style(style(item.action), item.action.to_string()),
            in_style(Style::Bold, named(&names.of(&item.runtime), &item.evidence.about)),
            plain(saved),
            plain(why(item, plan) + &work(item)),
        ]);
    }
    grid.text(0)
}

fn kept(plan: &Plan, names: &Names, notes: &Notes, terminal: Terminal) -> String {
    // Tombstones are records of what is no more; JSON has them.
    let kept: Vec<_> = plan.kept.iter().filter(|kept| kept.reason != Reason::Gone).collect();
    let head = terminal.paint(Style::Bold, &format!("Kept: {}", kept.len()));
    if kept.len() > KEPT_LINES {
        return format!("{head}\n{}", by_reason(&kept, terminal));
    }
    let mut grid = Grid::new(terminal, &["RUNTIME", "WHY", "NEXT LOOK"]);
    for kept in kept {
        let next = kept.next_check.map_or("–".to_owned(), |at| relative(at, plan.made_at));
        grid.row([
            plain(named(&names.of(&kept.runtime), notes.about(&kept.runtime))),
            plain(notes.why_kept(kept, plan.made_at)),
            in_style(Style::Dim, next),
        ]);
    }
    format!("{head}\n{}", grid.text(0))
}

fn by_reason(kept: &[&Kept], terminal: Terminal) -> String {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for kept in kept {
        *groups.entry(kept.reason.to_string()).or_default() += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut grid = Grid::new(terminal, &["COUNT", "WHY"]).right(0);
    for (why, number) in groups.iter().take(KEPT_LINES) {
        grid.row([plain(number.to_string()), plain(safe(why))]);
    }
    let more = terminal.paint(Style::Dim, "each by name: `furlough plan --format json`");
    format!("{}\n{more}", grid.text(0))
}

/// How long a plan may be applied.
pub(crate) fn validity(plan: &Plan) -> String {
    format!("valid for {}", Human(plan.expires_at.since(plan.made_at)))
}
