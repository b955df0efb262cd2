//! A plan for a pull request or a chat.

use std::fmt::Write;

use lifecycle::Plan;

use super::{
    plan::{headline, names, why},
    words::{age, bytes, clock, money, relative, safe},
};
use crate::terminal::Terminal;

/// No colours in a document.
const PLAIN: Terminal = Terminal { colours: false, watched: false, json: false };

/// The whole plan as GitHub-flavoured Markdown.
pub(crate) fn document(plan: &Plan) -> String {
    let names = names(plan);
    let mut text = format!("## Furlough plan of {}\n\n", clock(plan.made_at));
    for line in headline(&plan.headline, PLAIN).lines() {
        line_of(&mut text, &format!("{line}  "));
    }
    line_of(&mut text, "\n### To do\n");
    if plan.items.is_empty() {
        line_of(&mut text, "Nothing.");
    } else {
        line_of(&mut text, "| act | runtime | idle | why | saves | saved first |\n|---|---|---|---|---|---|");
    }
    for item in &plan.items {
        let saves = match item.saves.bytes {
            0 => format!("{}/h", money(item.saves.micros_per_hour)),
            size => bytes(size),
        };
        let lost: Vec<_> = item.evidence.would_lose.iter().map(|lost| code(lost)).collect();
        let cells = [
            format!("**{}**", item.action),
            code(&names.of(&item.runtime)),
            age(item.evidence.idle),
            words(&why(item, plan)),
            saves,
            lost.join(", "),
        ];
        line_of(&mut text, &format!("| {} |", cells.join(" | ")));
    }
    let _ = write!(text, "\n### Kept: {}\n\n", plan.kept.len());
    if !plan.kept.is_empty() {
        line_of(&mut text, "| runtime | why | next look |\n|---|---|---|");
    }
    for kept in &plan.kept {
        let next = kept.next_check.map_or("–".to_owned(), |at| relative(at, plan.made_at));
        let (name, why) = (code(&names.of(&kept.runtime)), words(&kept.reason.to_string()));
        line_of(&mut text, &format!("| {name} | {why} | {next} |"));
    }
    let _ = write!(text, "\nPolicy `{}`, valid until {}.", plan.policy, clock(plan.expires_at));
    text
}

fn line_of(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Foreign text as a code span: nothing in it is markup, a mention or a column.
fn code(text: &str) -> String {
    format!("`{}`", safe(text).replace('`', "'").replace('|', "\\|"))
}

/// Our own sentence, which may quote foreign text in backticks.
fn words(text: &str) -> String {
    safe(text).replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_no_markup() {
        assert_eq!(code("a|b`c\n"), "`a\\|b'c\\n`");
        assert_eq!(words("idle <b>|"), "idle &lt;b>\\|");
    }
}
