//! What a terminal shows: colours, and a line that tells what is going on. And what nothing but a terminal shows.

use std::{fs::File, io::Read, process::Command};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use super::bench::Folder;

/// Runs the command with all its streams on a terminal of its own; what that was sent, and the exit code.
fn on_a_terminal(mut command: Command) -> (String, i32) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let line = || open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut child = command.stdin(line()).stdout(line()).stderr(line()).spawn().unwrap();
    // It holds this end of the terminal, whose other end would never see the last writer leave.
    drop(command);
    let mut sent = Vec::new();
    let mut controller = File::from(controller);
    let mut buffer = [0; 4096];
    // The end of a terminal is an error on Linux, and nothing more to read elsewhere.
    while let Ok(count @ 1..) = controller.read(&mut buffer) {
        sent.extend_from_slice(&buffer[..count]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (String::from_utf8(sent).unwrap(), code)
}

/// With a terminal's usual environment, and this more.
fn shown(folder: &Folder, args: &[&str], more: &[(&str, &str)]) -> (String, i32) {
    let mut command = folder.command(args);
    command.env("TERM", "xterm-256color").envs(more.iter().copied());
    on_a_terminal(command)
}

/// Whether anything is coloured, bold or dim.
fn styled(text: &str) -> bool {
    let sequences = text.split("\u{1b}[").skip(1);
    let end = |sequence: &str| sequence.chars().find(|c| !c.is_ascii_digit() && *c != ';');
    sequences.into_iter().any(|sequence| end(sequence) == Some('m'))
}

#[test]
fn a_plan_has_colours_and_is_told_how_far_it_is_while_it_is_made() {
    let folder = Folder::demo();
    let (text, code) = shown(&folder, &["plan", "--out", "plan.json"], &[]);
    assert_eq!(code, 0, "{text}");
    assert!(styled(&text), "{text:?}");
    let red = "\u{1b}[38;5;1mdelete";
    assert_eq!(text.matches(red).count(), 3, "{text:?}");
    let progress = text.find("looked at").or(text.find("listed")).expect("it says how far it is");
    assert!(progress < text.find("idle hours").unwrap(), "the answer comes after: {text:?}");
    assert!(text[progress..].contains("\u{1b}[2K"), "the line is wiped before the answer: {text:?}");
}

#[test]
fn an_apply_names_the_act_under_way_and_leaves_no_line_of_it() {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    let (text, code) = shown(&folder, &["apply", "plan.json"], &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("delete worktrees/"), "{text:?}");
    assert!(text.contains("\u{1b}[38;5;2mdone"), "{text:?}");
    assert!(!text.contains(": done\r\n"), "a line an act is for where no terminal is: {text:?}");
}

#[test]
fn who_wants_no_colours_gets_none_and_still_sees_how_far_it_is() {
    let folder = Folder::demo();
    for (variable, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        for args in [&["plan"][..], &["list"]] {
            let (text, code) = shown(&folder, args, &[(variable, value)]);
            assert_eq!(code, 0, "{text}");
            assert!(!styled(&text), "{variable}: {text:?}");
            assert!(text.contains("52d8f6a1"), "{text:?}");
        }
    }
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    let (text, _) = shown(&folder, &["apply", "plan.json"], &[("NO_COLOR", "1")]);
    assert!(!styled(&text) && text.contains("delete worktrees/"), "{text:?}");
    let (empty_is_unset, _) = shown(&folder, &["list"], &[("NO_COLOR", "")]);
    assert!(styled(&empty_is_unset), "{empty_is_unset:?}");
}

#[test]
fn where_no_terminal_is_each_act_is_a_line_and_nothing_is_drawn_over() {
    let folder = Folder::demo();
    let plan = folder.run(&["plan", "--out", "plan.json"]).ending(0);
    assert_eq!(plan.err, "");
    let apply = folder.run(&["apply", "plan.json"]).ending(0);
    for text in [&plan.out, &apply.out, &apply.err] {
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
    }
    let lines: Vec<_> = apply.err.lines().collect();
    assert_eq!(lines.len(), 4, "{apply:#?}");
    assert!(lines.iter().all(|line| line.contains(" worktrees/") && line.ends_with(": done")), "{apply:#?}");
}
