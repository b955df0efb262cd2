//! Holds, the kill switch, passes, and what stands in the way of all of them.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::bench::{DIRTY, Folder, HELD, PUSHED, ran};

#[test]
fn a_hold_holds_until_it_is_released() {
    let folder = Folder::demo();
    let held = folder.json(&["hold", PUSHED, "--for", "7d", "--why", "ask Ada first"], 0);
    assert_eq!(json!([held["why"], held["by"]]), json!(["ask Ada first", "ada"]));
    let reason = |start: &str| {
        let plan = folder.json(&["plan"], 0);
        let kept = plan["kept"].as_array().unwrap().iter();
        let kept: Vec<_> = kept.filter(|kept| kept["runtime"].as_str().unwrap().contains(start)).cloned().collect();
        kept.first().map(|kept| kept["reason"]["code"].clone())
    };
    assert_eq!(reason(PUSHED), Some(json!("held")));
    let told = &folder.json(&["explain", PUSHED], 0)["hold"];
    assert_eq!(json!([told["why"], told["by"], told["label"]]), json!(["ask Ada first", "ada", null]));
    assert!(told["at"].is_string() && told["hold"]["until"].is_string(), "{told}");
    for args in [&["plan"][..], &["list"], &["explain", PUSHED]] {
        let shown = folder.run(args).ending(0).out;
        let line = shown.lines().find(|line| line.contains("ask Ada first")).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains("held until 2") && line.contains(" UTC by ada, "), "{line}");
    }
    assert_eq!(folder.json(&["release", PUSHED], 0)["released"], true);
    assert_eq!(reason(PUSHED), None);
    assert_eq!(folder.json(&["explain", PUSHED], 0)["hold"], Value::Null);
    assert_eq!(folder.json(&["release", PUSHED], 0)["released"], false);
    folder.run(&["release", HELD]).ending(0);
    assert_eq!(reason(HELD), None);
}

#[test]
fn a_hold_of_which_nobody_says_how_long_ends_and_one_for_ever_says_so() {
    let folder = Folder::demo();
    let usual = folder.run(&["hold", PUSHED]).ending(0).out;
    assert!(usual.contains("is held for 30d, until 2") && usual.contains("`--for ever`"), "{usual}");
    assert!(folder.json(&["explain", PUSHED], 0)["hold"]["hold"]["until"].is_string());
    let ever = folder.run(&["hold", PUSHED, "--for", "ever"]).ending(0).out;
    assert!(ever.contains("is held for ever, until `furlough release`"), "{ever}");
    assert_eq!(folder.json(&["explain", PUSHED], 0)["hold"]["hold"], "forever");
    for args in [&["plan"][..], &["list"], &["explain", PUSHED]] {
        let shown = folder.run(args).ending(0).out;
        assert!(shown.contains("held for ever, until `furlough release` by ada, "), "{shown}");
    }
}

#[test]
fn a_hold_for_no_time_is_refused() {
    let folder = Folder::demo();
    for span in ["0s", "0", "soon", "", "-1d"] {
        let ran = folder.run(&["hold", PUSHED, "--for", span]).ending(2);
        assert!(ran.err.contains("7d") || ran.err.contains("as `45m` or `1h30m`"), "{ran:#?}");
        assert!(ran.err.ends_with("; or `--for ever`\n"), "{ran:#?}");
    }
}

#[test]
fn a_pause_tells_whoever_finds_it_who_when_and_why() {
    let folder = Folder::demo();
    let told = |what: &str, ends: &str| {
        let said = format!("worktrees is paused by ada, {what}; `{ends}` lets it go on");
        for args in [&["plan"][..], &["list"], &["run", "--once"]] {
            let shown = folder.run(args).ending(0).out;
            let line = shown.lines().find(|line| line.starts_with("worktrees ")).unwrap_or_else(|| panic!("{shown}"));
            let since = line.split(", ").nth(1).unwrap().split([':', ';']).next().unwrap();
            assert_eq!(line, said.replace("AGO", since), "{args:?}");
        }
    };
    folder.run(&["pause", "--why", "moving the disk"]).ending(0);
    told("AGO: moving the disk", "furlough unpause");
    assert_eq!(folder.json(&["list"], 0)["pauses"][0]["why"], "moving the disk");
    folder.run(&["unpause"]).ending(0);
    folder.run(&["pause", "worktrees"]).ending(0);
    told("AGO", "furlough unpause worktrees");
    let pause = &folder.json(&["run", "--once"], 0)["pauses"][0];
    assert_eq!(json!([pause["backend"], pause["by"], pause["all"]]), json!(["worktrees", "ada", false]));
    assert!(folder.run(&["explain", PUSHED]).ending(0).out.contains("its backend is paused by ada, "));
}

#[test]
fn paused_it_only_reports_and_unpaused_it_acts() {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["pause", "--why", "moving the disk"]).ending(0);
    let report = folder.json(&["apply", "plan.json"], 3);
    let fates: Vec<_> = report["entries"].as_array().unwrap().iter().map(|entry| &entry["fate"]).collect();
    assert_eq!(json!(fates), json!(["refused", "refused", "refused", "refused"]));
    folder.run(&["unpause"]).ending(0);
    folder.run(&["apply", "plan.json"]).ending(0);
    folder.run(&["pause", "worktrees"]).ending(0);
    assert_eq!(folder.json(&["unpause"], 0)["still_paused"], json!(["worktrees"]));
    folder.run(&["unpause", "worktrees"]).ending(0);
    let unknown = folder.run(&["pause", "worktree"]).ending(2);
    assert!(unknown.err.contains("there is `worktrees`"), "{unknown:#?}");
}

#[test]
fn a_pass_in_report_mode_only_reports() {
    let folder = Folder::demo();
    let report = folder.json(&["run", "--once"], 0);
    assert_eq!(report["not_due"], 0, "it lists everything");
    let fates: Vec<_> = report["entries"].as_array().unwrap().iter().map(|entry| &entry["fate"]).collect();
    assert_eq!(json!([report["mode"], fates]), json!(["report", ["left", "left", "left", "left"]]));
    assert!(folder.worktree(PUSHED).exists());
}

#[test]
fn a_pass_in_enforce_mode_acts() {
    let folder = Folder::demo();
    let config = folder.demo_path().join("furlough.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("mode = \"report\"", "mode = \"enforce\"")).unwrap();
    let report = folder.json(&["run", "--once"], 0);
    let fates: Vec<_> = report["entries"].as_array().unwrap().iter().map(|entry| &entry["fate"]).collect();
    assert_eq!(json!(fates), json!(["done", "done", "done", "done"]), "{report:#}");
    folder.run(&["undo"]).ending(0);
    assert!(folder.worktree(PUSHED).exists());
}

#[test]
fn a_worktree_has_nothing_to_wake() {
    let folder = Folder::demo();
    folder.run(&["run", "--once"]).ending(0);
    assert_eq!(folder.json(&["wake", DIRTY], 0)["woken"], "already_running");
}

#[test]
fn a_data_folder_that_cannot_be_used_stops_acts_and_says_what_to_do() {
    let folder = Folder::demo();
    // A file in its place stops root too, which may write everywhere.
    let data = folder.write("file", "no folder");
    for args in [&["hold", PUSHED][..], &["pause"], &["run", "--once"], &["undo"]] {
        let mut command = folder.command(args);
        let ended = ran(command.env("FURLOUGH_DATA", &data)).ending(1);
        assert!(ended.err.starts_with("error: the data folder"), "{ended:#?}");
    }
    assert_eq!(fs::read_to_string(data).unwrap(), "no folder");
}

#[test]
fn run_goes_on_until_it_is_told_to_stop_and_then_ends_well() {
    let folder = Folder::demo();
    let mut command = folder.command(&["run", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["mode"], "report");
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let rest: String = lines.map(Result::unwrap).collect();
    let last: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(last, json!({ "stopped": true, "passes": 1 }));
}
