//! An explanation for people: every rule in order, the value that it saw, its age, when it could next fire.

use lifecycle::{
    Explanation, Reason, Verdict,
    explain::{Said, Step},
};

use super::{
    grid::{Cell, Grid, in_style, plain},
    plan::style,
    words::{lasted, relative, safe},
};
use crate::{
    names::decoded,
    notes::Notes,
    terminal::{Style, Terminal},
};

/// The whole explanation. `about` is the runtime's path or image.
pub(crate) fn text(explanation: &Explanation, about: &str, notes: &Notes, terminal: Terminal) -> String {
    let mut lines = vec![terminal.paint(Style::Bold, &decoded(&explanation.runtime))];
    if !about.is_empty() {
        lines.push(safe(about).into_owned());
    }
    lines.push(match &explanation.policy {
        Some(policy) => format!("policy `{}`", safe(policy)),
        None => "no policy matches it".to_owned(),
    });
    lines.push(format!("now: {}", verdict(explanation, notes, terminal)));
    let mut grid = Grid::new(terminal, &["RULE", "SAW", "AGE", "SAYS", "NEXT"]).wrapped();
    for step in &explanation.steps {
        let age = step.age.map_or(String::new(), lasted);
        let next = step.next.map_or(String::new(), |at| relative(at, explanation.at));
        grid.row([in_style(Style::Bold, step.rule), plain(safe(&step.saw)), plain(age), said(step), plain(next)]);
    }
    format!("{}\n\n{}", lines.join("\n"), grid.text(0))
}

fn verdict(explanation: &Explanation, notes: &Notes, terminal: Terminal) -> String {
    match &explanation.verdict {
        Verdict::Keep(reason, next) => {
            let next = next.map_or(String::new(), |at| format!("; next look {}", relative(at, explanation.at)));
            let why = match reason {
                Reason::Paused => {
                    let told = notes.paused(explanation.runtime.backend(), explanation.at);
                    format!("its backend {}", told.as_deref().unwrap_or("is paused"))
                }
                reason => notes.sentence(&explanation.runtime, reason, explanation.at),
            };
            format!("{}: {why}{next}", terminal.paint(Style::Green, "keep"))
        }
        Verdict::Act(action, reason, evidence) => {
            let why = reason.with(evidence, explanation.at);
            format!("{}: {}", terminal.paint(style(*action), &action.to_string()), safe(&why))
        }
    }
}

fn said(step: &Step) -> Cell {
    match &step.said {
        Said::Pass => in_style(Style::Dim, "–"),
        Said::Wait(reason) => plain(format!("not yet: {}", safe(&reason.to_string()))),
        Said::Keep(reason) => in_style(Style::Green, format!("keep: {}", safe(&reason.to_string()))),
        Said::Act(action, reason) => in_style(style(*action), format!("{action}: {}", safe(&reason.to_string()))),
    }
}
