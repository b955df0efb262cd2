//! `furlough apply FILE`: exactly the plan, or a refusal with its reason.

use std::fs;

use serde_json::{Value, json};

use super::bench::{DIRTY, Folder, PACKAGES, PUSHED, UNPUSHED, contents};

fn planned() -> Folder {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder
}

/// Beginning of the id, and what became of it.
fn fates(report: &Value) -> Vec<Value> {
    let entries = report["entries"].as_array().unwrap().iter();
    let mut fates: Vec<_> = entries
        .map(|entry| json!([entry["runtime"].as_str().unwrap()["worktrees/".len()..][..8], entry["fate"]]))
        .collect();
    fates.sort_by_key(ToString::to_string);
    fates
}

#[test]
fn it_does_what_the_plan_lists_and_nothing_else() {
    let folder = planned();
    let report = folder.json(&["apply", "plan.json"], 0);
    assert_eq!(
        fates(&report),
        [json!([PUSHED, "done"]), json!([DIRTY, "done"]), json!([PACKAGES, "done"]), json!([UNPUSHED, "done"])]
    );
    for gone in [PUSHED, DIRTY, UNPUSHED] {
        assert!(!folder.demo_path().join("conversation-worktrees").join(gone).exists());
    }
    assert!(!folder.worktree(PACKAGES).join("node_modules").exists());
    assert!(folder.worktree(PACKAGES).join("work.md").exists());
    for kept in [super::bench::HELD, super::bench::SHARED, super::bench::FRESH] {
        assert!(folder.worktree(kept).join("work.md").exists());
    }
    let again = folder.run(&["apply", "plan.json"]).ending(3);
    assert!(again.out.contains("refused") || again.out.contains("moved"), "{again:#?}");
}

#[test]
fn what_moved_since_is_refused_by_name_and_the_rest_is_done() {
    let folder = planned();
    fs::write(folder.worktree(DIRTY).join("prices.py"), "print('back at work')\n").unwrap();
    let git = std::process::Command::new("git").args(["add", "--all"]).current_dir(folder.worktree(DIRTY)).status();
    assert!(git.unwrap().success());
    folder.run(&["hold", UNPUSHED, "--why", "ask Ada first"]).ending(0);
    let report = folder.json(&["apply", "plan.json"], 3);
    assert_eq!(
        fates(&report),
        [json!([PUSHED, "done"]), json!([DIRTY, "moved"]), json!([PACKAGES, "done"]), json!([UNPUSHED, "refused"])]
    );
    assert!(folder.worktree(DIRTY).join("notes.txt").exists());
    assert!(folder.worktree(UNPUSHED).join("work.md").exists());
}

/// Whoever finds it held or paused is told by whom, since when and why, wherever that is.
#[test]
fn a_refusal_tells_who_holds_or_paused_it_and_why() {
    let folder = planned();
    folder.run(&["hold", UNPUSHED, "--why", "ask Ada first"]).ending(0);
    let held = &folder.json(&["plan"], 0)["notes"]["holds"];
    let of_both: Vec<_> = held.as_array().unwrap().iter().map(|hold| json!([hold["by"], hold["why"]])).collect();
    assert_eq!(of_both, [json!(["ada", "the release needs it"]), json!(["ada", "ask Ada first"])]);
    folder.run(&["pause", "worktrees", "--why", "moving the disk"]).ending(0);
    let pauses = folder.json(&["plan"], 0)["notes"]["pauses"].clone();
    assert_eq!(json!([pauses[0]["by"], pauses[0]["why"]]), json!(["ada", "moving the disk"]));
    let shown = folder.run(&["apply", "plan.json"]).ending(3).out;
    let line = |about: &str| shown.lines().find(|line| line.contains(about)).unwrap_or_else(|| panic!("{shown}"));
    assert!(line("ask Ada first").starts_with("refused "), "{shown}");
    assert!(
        line("ask Ada first").contains("held until 2") && line("ask Ada first").contains(" UTC by ada, "),
        "{shown}"
    );
    let told = line("moving the disk");
    assert!(
        told.starts_with("worktrees is paused by ada, ") && told.contains("`furlough unpause worktrees`"),
        "{told}"
    );
    let report = folder.json(&["apply", "plan.json"], 3);
    assert_eq!(
        json!([report["holds"][0]["why"], report["pauses"][0]["why"]]),
        json!(["ask Ada first", "moving the disk"])
    );
}

#[test]
fn what_plan_prints_as_its_answer_can_be_applied_with_its_notes() {
    let folder = Folder::demo();
    let printed = folder.run(&["plan", "--json"]).ending(0).out;
    assert!(printed.contains("the release needs it"), "{printed}");
    folder.write("printed.json", &printed);
    folder.run(&["apply", "printed.json"]).ending(0);
}

/// What a refusal of the whole says, and that nothing was done.
#[track_caller]
fn refused(folder: &Folder, file: &str) -> String {
    let trees = folder.demo_path().join("conversation-worktrees");
    let before = contents(&trees);
    let document = folder.json(&["apply", file], 1);
    assert_eq!(contents(&trees), before);
    assert_eq!(document["error"]["code"], "plan_refused", "{document:#}");
    document["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_plan_that_is_cut_edited_or_of_another_version_is_refused_whole() {
    let folder = planned();
    let text = fs::read_to_string(folder.path().join("plan.json")).unwrap();
    for length in [0, 1, text.len() / 3, text.len() - 3] {
        folder.write("cut.json", &text[..length]);
        assert!(refused(&folder, "cut.json").contains("cut short"), "{length}");
    }
    folder.write("edited.json", &text.replacen(PUSHED, super::bench::FRESH, 1));
    assert!(refused(&folder, "edited.json").contains("was edited"));
    folder.write("other.json", &text.replacen("\"version\": 1", "\"version\": 2", 1));
    assert!(refused(&folder, "other.json").contains("has format 2"));
    folder.write("none.json", "{\"a\": 1}");
    assert!(refused(&folder, "none.json").contains("not a plan file"));
}

#[test]
fn a_plan_made_under_another_policy_is_refused_whole() {
    let folder = planned();
    let config = folder.demo_path().join("furlough.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("retention.suspended = \"14d\"", "retention.suspended = \"15d\"")).unwrap();
    assert!(refused(&folder, "plan.json").contains("under policy"));
}

#[test]
fn an_expired_plan_is_refused_whole() {
    let folder = Folder::demo();
    let config = folder.demo_path().join("furlough.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[plan]\nvalid = \"1s\"\n")).unwrap();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    let made = fs::metadata(folder.path().join("plan.json")).unwrap().modified().unwrap();
    // No sleep: the command itself takes its time, and is run until a second has passed since the plan.
    while made.elapsed().unwrap() < std::time::Duration::from_millis(1_100) {
        folder.run(&["schema"]).ending(0);
    }
    assert!(refused(&folder, "plan.json").contains("expired"));
}

#[test]
fn a_plan_file_that_is_not_there_is_an_error() {
    let folder = planned();
    let ran = folder.run(&["apply", "none.json"]).ending(1);
    assert_eq!(ran.err, "error: there is no file `none.json`; `furlough plan --out FILE` writes one\n");
    let folder_of_it = folder.run(&["apply", "demo"]).ending(1);
    assert!(folder_of_it.err.contains("it is not a file; `furlough plan --out FILE` writes one"), "{folder_of_it:#?}");
}

#[test]
fn two_at_once_do_each_act_once() {
    let folder = planned();
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            folder.command(&["apply", "plan.json", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.drain(..).map(|child| child.wait_with_output().unwrap()).collect();
    let reports: Vec<Value> = outputs.iter().map(|output| serde_json::from_slice(&output.stdout).unwrap()).collect();
    let done = reports.iter().flat_map(fates).filter(|fate| fate[1] == "done").count();
    assert_eq!(done, 4, "{reports:#?}");
}

#[test]
fn without_a_budget_nothing_is_done() {
    let folder = Folder::demo();
    let config = folder.demo_path().join("furlough.toml");
    let text = fs::read_to_string(&config).unwrap();
    let (before, after) = text.split_once("[budget]").unwrap();
    fs::write(&config, format!("{before}{}", &after[after.find("[trash]").unwrap()..])).unwrap();
    let plan = folder.json(&["plan"], 0);
    assert_eq!(plan["items"], json!([]));
    let reasons: Vec<_> =
        plan["kept"].as_array().unwrap().iter().filter(|kept| kept["reason"]["code"] == "budget").collect();
    assert_eq!(reasons.len(), 4, "{plan:#}");
}
