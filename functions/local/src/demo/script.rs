//! What the demo says.

use std::path::Path;

use lifecycle::report::Bytes;

use super::{
    engine::{Engine, LABEL},
    fixture::Fixture,
    likeness::Likeness,
    story::{Left, TREES, Tree},
};
use crate::{
    render::{
        grid::{Grid, in_style, plain},
        words::{age, count},
    },
    terminal::{Style, Terminal},
};

/// The first thing that anybody sees.
pub(crate) fn title(fixture: &Fixture, terminal: Terminal) -> String {
    let head = terminal.paint(Style::Bold, "Furlough puts idle agent runtimes on leave, and takes it back.");
    let folder = terminal.paint(Style::Cyan, &fixture.folder.display().to_string());
    format!("{head}\nThis is a demo with real git worktrees in {folder}; it touches nothing else.")
}

fn part(number: u8, head: &str, terminal: Terminal) -> String {
    format!("\n{}", terminal.paint(Style::Bold, &format!("{number}. {head}")))
}

fn command(text: &str, terminal: Terminal) -> String {
    terminal.paint(Style::Cyan, &format!("$ {text}"))
}

/// What there is.
pub(crate) fn scene(no_engine: Option<&str>, terminal: Terminal) -> String {
    let mut grid = Grid::new(terminal, &["IDLE", "CONVERSATION", "WAS ASKED TO", "AND LEFT"]);
    for tree in &TREES {
        grid.row([
            plain(age(tree.idle)),
            in_style(Style::Bold, format!("{}…", &tree.conversation[..8])),
            plain(tree.task.to_owned()),
            plain(left(tree)),
        ]);
    }
    let containers = match no_engine {
        None => "and 2 containers on the engine that answers here: one runs, one was never started.".to_owned(),
        Some(why) => terminal.paint(Style::Dim, &format!("(No containers: {why}. They are left out.)")),
    };
    let head = part(1, "What agents left behind", terminal);
    format!(
        "{head}\nA repository, and {} of it:\n\n{}\n\n{containers}",
        count(TREES.len() as u64, "worktree"),
        grid.text(2)
    )
}

fn left(tree: &Tree) -> String {
    let mut said = vec![
        match tree.left {
            Left::Pushed => "everything pushed",
            Left::Dirty => "changes that are not committed",
            Left::Unpushed => "a commit that nobody pushed",
        }
        .to_owned(),
    ];
    if tree.packages > 0 {
        said.push(format!("{} of packages", Bytes(tree.packages as u64)));
    }
    if let Some((_, idle)) = tree.shared_with {
        said.push(format!("used by another, {} ago", age(idle)));
    }
    if tree.held {
        said.push("held by a person".to_owned());
    }
    said.join(", ")
}

/// Containers are seen once before they are judged.
pub(crate) fn first_pass(terminal: Terminal) -> String {
    let why = "Nothing tells since when the running container is idle, so it counts from when it is first seen: now.";
    format!("\n{}\n{why}", command("furlough run --once", terminal))
}

/// The plan.
pub(crate) fn planned(table: &str, terminal: Terminal) -> String {
    let head = part(2, "What would be reclaimed, and why; nothing is changed yet", terminal);
    format!("{head}\n{}\n\n{table}", command("furlough plan --out plan.json", terminal))
}

/// The report of the apply.
pub(crate) fn applied(report: &str, data: &Path, terminal: Terminal) -> String {
    let head = part(3, "Exactly that plan, each runtime looked at again just before", terminal);
    let saves = format!("What would have been lost was saved in {} first.", data.join("saves").display());
    format!("{head}\n{}\n\n{report}\n\n{saves}", command("furlough apply plan.json", terminal))
}

/// The undo, with the proof that it is one.
pub(crate) fn undone(text: &str, before: &Likeness, after: &Likeness, terminal: Terminal) -> String {
    let head = part(4, "And back again", terminal);
    let proof = if before == after {
        let all = format!("All {} are as they were, byte for byte.", count(after.files(), "file"));
        terminal.paint(Style::Green, &all)
    } else {
        terminal.paint(Style::Red, "The files are not as they were: please report this.")
    };
    format!("{head}\n{}\n\n{text}\n\n{proof}", command("furlough undo", terminal))
}

/// What to try next, and how to be rid of it.
pub(crate) fn closing(fixture: &Fixture, engine: Option<&Engine>, prepared: bool, terminal: Terminal) -> String {
    let folder = quoted(&fixture.folder);
    let line = |text: &str, why: &str| {
        let pad = 50_usize.saturating_sub(text.chars().count()).max(2);
        format!("  {}{:pad$}{}", terminal.paint(Style::Cyan, text), "", terminal.paint(Style::Dim, why))
    };
    let mut lines = vec![terminal.paint(Style::Bold, "\nTry next")];
    lines.push(line(&format!("cd {folder}"), "./furlough.toml is found by itself"));
    lines.push(line("export FURLOUGH_DATA=$PWD/data", "records of the demo, apart from yours"));
    if let Some(program) = program() {
        lines.push(line(&format!("alias furlough={program}"), "this very program"));
    }
    let own = |arguments: &str| format!("furlough {arguments}");
    if prepared {
        lines.push(line(&own("plan --out plan.json"), "what would be reclaimed, and why"));
        lines.push(line(&own("apply plan.json"), "do it"));
        lines.push(line(&own("undo"), "take it back"));
    }
    lines.push(line(&own("explain 52d8f6a1"), "every rule, what it saw, when it could fire"));
    lines.push(line(&own("history 52d8f6a1"), "what was done, when and why"));
    lines.push(line(&own("hold c07b5ad9 --for 7d --why \"ask Ada\""), "nobody touches it"));
    lines.push(line("$EDITOR furlough.toml", "change a limit, then `plan` again"));
    lines.push(terminal.paint(Style::Bold, "\nYour own runtimes, in report mode; plan changes nothing"));
    lines.push(line(&format!("cd ~; unset FURLOUGH_DATA; {}", own("plan")), "OpenHands' worktrees and containers"));
    lines.push(terminal.paint(Style::Bold, "\nWhen you have seen enough"));
    lines.push(line(&format!("rm -rf {folder}"), "the demo is in this folder only"));
    if let Some(engine) = engine {
        let mark = &engine.mark;
        let containers = format!("docker rm -f $(docker ps -aq --filter label={LABEL}={mark})");
        lines.push(line(&format!("{containers}; docker rmi {}", engine.image()), ""));
    }
    lines.join("\n")
}

/// Where this program is, if it was called by its path: the commands can then be copied.
fn program() -> Option<String> {
    let called = std::env::args_os().next()?;
    let path = Path::new(&called);
    (path.components().count() > 1).then(|| quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned())))
}

/// As a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
