//! Plans, reports and explanations as tables: rows for whoever draws them, and Markdown.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    Bytes, Fate, Money, Report,
    words::{cell, plain},
};
use crate::{
    Explanation, Headline, Item, Plan, Saves, Time, Verdict, duration::Human, explain::Said, plan::BackendNote,
};

/// A table of plain text, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: &'static str,
    /// Its columns' heads.
    pub columns: &'static [&'static str],
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// The most kept runtimes that Markdown lists by name; JSON has them all.
const MOST_KEPT: usize = 200;

impl Plan {
    /// The lines that a plan opens with.
    pub fn opening(&self) -> Vec<String> {
        let mut lines = self.headline.lines();
        lines.push(format!("planned: {}, which saves {}", acts(self.items.len()), saves(self.headline.saves)));
        lines.extend(self.backends.iter().filter_map(warning));
        lines.push(format!("valid until {}, under policy `{}`", self.expires_at, self.policy));
        lines
    }

    /// What would be done, one row an act.
    pub fn table(&self) -> Table {
        let columns = &["runtime", "what", "action", "why", "saves", "work in it"];
        let rows = self.items.iter().map(|item| item.row(self.made_at)).collect();
        Table { title: "to be done", columns, rows }
    }

    /// What is not touched, one row a runtime.
    pub fn kept_table(&self) -> Table {
        let columns = &["runtime", "why it is kept", "next check"];
        let row = |kept: &crate::Kept| {
            vec![kept.runtime.to_string(), plain(&kept.reason.to_string()), time_or_dash(kept.next_check)]
        };
        Table { title: "kept", columns, rows: self.kept.iter().map(row).collect() }
    }

    /// The plan for a pull request or a chat.
    pub fn markdown(&self) -> String {
        let mut kept = self.kept_table();
        let more = kept.rows.len().saturating_sub(MOST_KEPT);
        kept.rows.truncate(MOST_KEPT);
        let mut text = opening("Plan", &self.opening());
        text += &self.table().markdown();
        text += &kept_counts(&self.kept_by_reason()).markdown();
        text += &kept.markdown();
        if more > 0 {
            let _ = writeln!(text, "and {more} more\n");
        }
        text
    }
}

impl Item {
    fn row(&self, now: Time) -> Vec<String> {
        vec![
            self.runtime.to_string(),
            plain(&self.evidence.about),
            self.action.to_string(),
            plain(&self.reason.with(&self.evidence, now)),
            saves(self.saves),
            plain(&self.work().unwrap_or_default()),
        ]
    }
}

impl Report {
    /// The lines that a report opens with.
    pub fn opening(&self) -> Vec<String> {
        let mut lines = self.headline.lines();
        let counts = self.counts();
        let fates = Fate::ALL.into_iter().filter_map(|fate| Some(format!("{} {fate}", counts.get(&fate)?)));
        let fates: Vec<_> = fates.collect();
        let fates = if fates.is_empty() { "nothing to do".to_owned() } else { fates.join(", ") };
        lines.push(format!("{fates}; saved {}, in {}", saves(self.saved()), Human(self.took)));
        if self.not_due > 0 {
            lines.push(format!("{} runtimes were not due and were not looked at", self.not_due));
        }
        if self.healed > 0 {
            lines.push(format!("{} records were in no index and were put back; 0 is expected", self.healed));
        }
        for backend in &self.backends {
            lines.extend(warning(&backend.note));
            lines.extend(backend.errors.iter().map(|error| format!("`{}`: {}", backend.note.backend, plain(error))));
        }
        lines
    }

    /// What became of each act.
    pub fn table(&self) -> Table {
        let columns = &["runtime", "action", "result", "detail", "saves"];
        let row = |entry: &super::Entry| {
            vec![
                entry.runtime.to_string(),
                entry.action.to_string(),
                entry.fate.to_string(),
                plain(entry.detail.as_deref().unwrap_or(&entry.reason.to_string())),
                saves(entry.saves),
            ]
        };
        Table { title: "acts", columns, rows: self.entries.iter().map(row).collect() }
    }

    /// How many runtimes were kept, by reason.
    pub fn kept_table(&self) -> Table {
        kept_counts(&self.kept)
    }

    /// The report for a chat or a file.
    pub fn markdown(&self) -> String {
        opening("Report", &self.opening()) + &self.table().markdown() + &self.kept_table().markdown()
    }
}

impl Explanation {
    /// The lines that an explanation opens with: the verdict.
    pub fn opening(&self) -> Vec<String> {
        let verdict = match &self.verdict {
            Verdict::Keep(reason, next) => {
                let next = next.map_or("not by time alone".to_owned(), |next| format!("not before {next}"));
                format!("kept: {reason}; changes {next}")
            }
            Verdict::Act(action, reason, evidence) => format!("{action}: {}", reason.with(evidence, self.at)),
        };
        let policy = self.policy.as_ref().map_or("no policy matches".to_owned(), |policy| format!("policy `{policy}`"));
        vec![format!("{} at {}", self.runtime, self.at), plain(&policy), plain(&verdict)]
    }

    /// Every rule in order.
    pub fn table(&self) -> Table {
        let columns = &["rule", "saw", "age", "says", "not before"];
        let row = |step: &crate::explain::Step| {
            let said = match &step.said {
                Said::Pass => "–".to_owned(),
                Said::Wait(reason) => format!("wait: {reason}"),
                Said::Keep(reason) => format!("keep: {reason}"),
                Said::Act(action, reason) => format!("{action}: {reason}"),
            };
            let age = step.age.map_or("–".to_owned(), |age| Human(age).to_string());
            vec![step.rule.to_owned(), plain(&step.saw), age, plain(&said), time_or_dash(step.next)]
        };
        Table { title: "rules", columns, rows: self.steps.iter().map(row).collect() }
    }

    /// The explanation for a chat or a file.
    pub fn markdown(&self) -> String {
        opening("Explanation", &self.opening()) + &self.table().markdown()
    }
}

impl Headline {
    /// Idle hours and what they cost, first.
    pub fn lines(&self) -> Vec<String> {
        let cost = match self.idle_cost_micros {
            0 => "no price is configured for them".to_owned(),
            cost => format!("they cost {}", Money(cost)),
        };
        let hours = self.idle_hours;
        vec![format!(
            "{hours} idle hours; {cost}; {} of {} runtimes are idle past their limit",
            self.idle, self.runtimes
        )]
    }
}

impl Table {
    /// As Markdown; nothing when there are no rows.
    pub fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("## {}\n\n", self.title);
        text += &line(self.columns.iter().map(|&column| column.to_owned()).collect());
        text += &line(vec!["---".to_owned(); self.columns.len()]);
        for row in &self.rows {
            text += &line(row.iter().map(|text| cell(text)).collect());
        }
        text.push('\n');
        text
    }
}

fn kept_counts(kept: &BTreeMap<String, u64>) -> Table {
    let rows = kept.iter().map(|(code, count)| vec![code.replace('_', " "), count.to_string()]).collect();
    Table { title: "kept, by reason", columns: &["reason", "runtimes"], rows }
}

fn opening(title: &str, lines: &[String]) -> String {
    let mut text = format!("# {title}\n\n");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    text.push('\n');
    text
}

/// What stands in the way of a whole backend.
fn warning(note: &BackendNote) -> Option<String> {
    let backend = &note.backend;
    if note.paused {
        let ends = format!("`furlough unpause`, or `furlough unpause {backend}`, ends that");
        return Some(format!("`{backend}` is paused and only reported; {ends}"));
    }
    if let Some(breaker) = note.breaker {
        return Some(format!("`{backend}` is only reported: {breaker}"));
    }
    (!note.listing.complete).then(|| format!("the listing of `{backend}` is partial; what it lacks is kept"))
}

fn acts(count: usize) -> String {
    match count {
        0 => "nothing".to_owned(),
        1 => "1 act".to_owned(),
        count => format!("{count} acts"),
    }
}

fn saves(saves: Saves) -> String {
    match (saves.micros_per_hour, saves.bytes) {
        (0, 0) => "–".to_owned(),
        (0, bytes) => Bytes(bytes).to_string(),
        (price, 0) => format!("{}/h", Money(price)),
        (price, bytes) => format!("{}/h, {}", Money(price), Bytes(bytes)),
    }
}

fn time_or_dash(time: Option<Time>) -> String {
    time.map_or("–".to_owned(), |time| time.to_string())
}
