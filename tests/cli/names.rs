//! RUNTIME as people write it, and what every command prints.

use serde_json::Value;

use super::bench::{DIRTY, FRESH, Folder, PUSHED, ran};

#[test]
fn a_runtime_is_named_by_any_part_that_is_its_own() {
    let folder = Folder::demo();
    let full = folder.json(&["explain", DIRTY], 0)["runtime"].as_str().unwrap().to_owned();
    let path = folder.worktree(DIRTY).display().to_string();
    let decoded = full.replace("%2F", "/");
    for name in [full.as_str(), &decoded, &path, "worktrees/52d8f6a1…/shop", "d30-8c7e"] {
        assert_eq!(folder.json(&["explain", name], 0)["runtime"], Value::from(full.clone()), "{name}");
    }
}

#[test]
fn an_ambiguous_name_lists_its_candidates_and_an_unknown_one_says_so() {
    let folder = Folder::demo();
    let ambiguous = folder.run(&["explain", "shop"]).ending(2);
    assert!(
        ambiguous.err.starts_with("error: `shop` names 7 runtimes; write more of one of these\n"),
        "{ambiguous:#?}"
    );
    assert!(ambiguous.err.contains(FRESH), "{ambiguous:#?}");
    for args in [
        &["explain", "nosuch"][..],
        &["hold", "nosuch"],
        &["release", "nosuch"],
        &["wake", "nosuch"],
        &["history", "nosuch"],
    ] {
        assert_eq!(folder.json(args, 2)["error"]["code"], "unknown_runtime", "{args:?}");
    }
    assert_eq!(folder.json(&["hold", ""], 2)["error"]["code"], "unknown_runtime");
}

#[test]
fn an_explanation_has_every_rule_in_order() {
    let folder = Folder::demo();
    let document = folder.json(&["explain", PUSHED], 0);
    let rules: Vec<_> =
        document["steps"].as_array().unwrap().iter().map(|step| step["rule"].as_str().unwrap()).collect();
    for rule in ["hold", "claim", "policy", "lifetime.max", "idle.after", "retention at rest", "files"] {
        assert!(rules.contains(&rule), "{rule} is missing in {rules:?}");
    }
    let shown = folder.run(&["explain", PUSHED]).ending(0).out;
    assert!(shown.contains("now: delete: idle for 33d"), "{shown}");
}

#[test]
fn every_command_answers_with_one_json_document() {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    let commands: &[&[&str]] = &[
        &["plan"],
        &["list"],
        &["explain", PUSHED],
        &["hold", PUSHED],
        &["release", PUSHED],
        &["history", PUSHED],
        &["trash"],
        &["pause"],
        &["unpause"],
        &["check"],
        &["schema"],
        &["completions", "bash"],
        &["run", "--once"],
        &["wake", PUSHED],
        &["undo"],
        &["trash", "--empty"],
    ];
    for args in commands {
        assert!(folder.json(args, 0).is_object(), "{args:?}");
    }
    assert!(folder.run(&["apply", "none.json", "--json"]).ending(1).json()["error"]["message"].is_string());
}

#[test]
fn nothing_is_coloured_where_no_terminal_is_and_a_name_moves_no_cursor() {
    let folder = Folder::demo();
    let evil = folder.demo_path().join("conversation-worktrees").join("evil\u{1b}[2J");
    std::fs::create_dir_all(evil.join("x")).unwrap();
    for args in [&["plan"][..], &["list"], &["plan", "--format", "markdown"]] {
        let ran = folder.run(args).ending(0);
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{args:?}: {ran:#?}");
    }
}

/// On Linux a disk that is always full.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_can_t_be_written_is_a_failure_that_says_so() {
    let folder = Folder::demo();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["list"][..], &["list", "--json"], &["schema"]] {
        let output = folder.command(args).stdout(full()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(told.starts_with("error: the answer could not be written: No space left"), "{args:?}: {told}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::demo();
    let mut child = folder.command(&["schema"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut command = folder.command(&["list"]);
    ran(command.env("NO_COLOR", "1")).ending(0);
}
