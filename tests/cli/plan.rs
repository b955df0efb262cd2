//! `furlough plan`: what it says, and that it leaves no trace.

use serde_json::{Value, json};

use super::bench::{DIRTY, FRESH, Folder, HELD, PACKAGES, PUSHED, SHARED, UNPUSHED, traces};

/// The beginning of the runtime's id without its backend.
fn short(row: &Value) -> String {
    row["runtime"].as_str().unwrap().strip_prefix("worktrees/").unwrap()[..8].to_owned()
}

#[test]
fn each_runtime_gets_one_verdict_with_its_reason() {
    let plan = Folder::demo().json(&["plan"], 0);
    let items: Vec<_> = plan["items"].as_array().unwrap().iter().collect();
    let acts: Vec<_> = items
        .iter()
        .map(|item| json!([short(item), item["action"], item["reason"]["code"], item["evidence"]["would_lose"]]))
        .collect();
    assert_eq!(
        acts,
        [
            json!([PACKAGES, { "shed": "dependencies" }, "tier_age", []]),
            json!([PUSHED, "delete", "idle", []]),
            json!([UNPUSHED, "delete", "idle", ["1 commit on no remote and no other branch"]]),
            json!([DIRTY, "delete", "idle", ["1 modified file", "1 untracked file"]]),
        ]
    );
    for item in &items {
        for key in ["runtime", "action", "reason", "evidence", "incarnation", "saves"] {
            assert!(!item[key].is_null(), "{key} of {item:#}");
        }
        assert!(item["saves"]["bytes"].as_u64().unwrap() > 1_000_000, "{item:#}");
    }
    let kept: Vec<_> =
        plan["kept"].as_array().unwrap().iter().map(|kept| json!([short(kept), kept["reason"]["code"]])).collect();
    assert_eq!(kept, [json!([FRESH, "active"]), json!([HELD, "held"]), json!([SHARED, "active"])]);
    assert!(plan["kept"].as_array().unwrap().iter().all(|kept| kept["next_check"].is_string()));
}

#[test]
fn it_leaves_no_trace_not_even_the_data_folder() {
    let folder = Folder::demo();
    let data = folder.demo_path().join("data");
    std::fs::remove_dir_all(&data).unwrap();
    let before = traces(&folder.demo_path());
    for args in [&["plan"][..], &["list"], &["explain", DIRTY], &["history", DIRTY], &["trash"], &["check"]] {
        folder.run(args).ending(0);
        assert_eq!(traces(&folder.demo_path()), before, "{args:?}");
    }
    assert!(!data.exists());
}

#[test]
fn with_records_it_leaves_no_trace_either() {
    let folder = Folder::demo();
    let before = traces(&folder.demo_path());
    folder.run(&["plan"]).ending(0);
    assert_eq!(traces(&folder.demo_path()), before);
}

#[test]
fn it_opens_with_idle_hours_and_their_cost() {
    let shown = Folder::demo().run(&["plan"]).ending(0).out;
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("2,976 idle hours; they cost 5.95; 5 of 7 runtimes idle past the limit"), "{first}");
}

#[test]
fn markdown_is_markdown() {
    let shown = Folder::demo().run(&["plan", "--format", "markdown"]).ending(0).out;
    assert!(shown.starts_with("# Plan\n"), "{shown}");
    assert!(shown.contains("| runtime |"), "{shown}");
}

#[test]
fn the_printed_json_is_the_plan_file() {
    let folder = Folder::demo();
    let printed = folder.run(&["plan", "--format", "json"]).ending(0).out;
    folder.write("printed.json", &printed);
    folder.run(&["apply", "printed.json"]).ending(0);
}

#[test]
fn what_is_no_plan_is_not_overwritten() {
    let folder = Folder::demo();
    let notes = folder.write("notes.txt", "mine\n");
    let ran = folder.run(&["plan", "--out", "notes.txt"]).ending(1);
    assert!(ran.err.contains("is not a plan"), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "mine\n");
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
}

#[test]
fn a_plan_file_that_can_t_be_written_says_what_to_do() {
    let folder = Folder::demo();
    let told = |out: &str| folder.run(&["plan", "--out", out]).ending(1).err;
    let nowhere = "error: can't write `no/such/plan.json`: there is no such folder; make its folder first, or name another file\n";
    assert_eq!(told("no/such/plan.json"), nowhere);
    assert!(told("demo").contains("it is a folder; name a file in it, such as `plan.json`"));
    assert!(told("demo/furlough.toml/plan.json").contains("make its folder first, or name another file"));
}

#[test]
fn a_plan_without_acts_tells_nobody_to_do_it() {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["apply", "plan.json"]).ending(0);
    let shown = folder.run(&["plan", "--out", "plan.json"]).ending(0).out;
    assert!(shown.contains("Nothing to reclaim now."), "{shown}");
    assert!(shown.ends_with("Written to plan.json: there is nothing to do in it\n"), "{shown}");
}

#[test]
fn its_markdown_says_what_is_saved_first() {
    let shown = Folder::demo().run(&["plan", "--format", "markdown"]).ending(0).out;
    assert!(shown.contains("| saved first: 1 modified file, 1 untracked file |"), "{shown}");
}

#[test]
fn a_backend_that_cannot_be_asked_is_named_and_the_others_go_on() {
    let folder = Folder::demo();
    let config = folder.demo_path().join("furlough.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let engine = "\n[[backend]]\nname = \"engine\"\nkind = \"docker\"\nhost = \"unix:///nowhere/docker.sock\"\nopenhands = true\n";
    std::fs::write(&config, text + engine).unwrap();
    let plan = folder.json(&["plan"], 1);
    assert_eq!(plan["items"].as_array().unwrap().len(), 4);
    let note = plan["backends"].as_array().unwrap().iter().find(|note| note["backend"] == "engine").unwrap();
    assert_eq!(note["listing"]["complete"], false);
    let shown = folder.run(&["plan"]).ending(1).out;
    assert!(shown.contains("there is no socket `/nowhere/docker.sock`"), "{shown}");
}

#[test]
fn without_a_configuration_it_says_what_it_looked_for() {
    let folder = Folder::empty();
    let ran = folder.run(&["plan"]).ending(1);
    assert!(ran.err.contains("the built-in example policy, in report mode; no OpenHands worktrees at"), "{ran:#?}");
    assert!(ran.err.contains("a Docker engine at `unix://"), "DOCKER_HOST names one: {ran:#?}");
    assert!(ran.out.contains("is the engine installed and running?"), "{ran:#?}");
    assert!(ran.out.contains("Nothing to reclaim now."), "{ran:#?}");
}

#[test]
fn without_a_configuration_it_finds_the_worktrees_of_openhands() {
    let folder = Folder::demo();
    std::fs::remove_file(folder.demo_path().join("furlough.toml")).unwrap();
    let mut command = folder.command(&["plan", "--json"]);
    command.env("OH_CONVERSATION_WORKTREE_ROOT", folder.demo_path().join("conversation-worktrees"));
    let plan = super::bench::ran(&mut command).ending(1).json();
    assert_eq!(plan["headline"]["runtimes"], 7);
    assert_eq!(plan["items"], json!([]), "made a moment ago, whatever their files say");
}
