//! `furlough undo`, `trash` and `history`.

use std::fs;

use serde_json::json;

use super::bench::{DIRTY, Folder, PACKAGES, PUSHED, contents};

fn applied() -> Folder {
    let folder = Folder::demo();
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["apply", "plan.json"]).ending(0);
    folder
}

#[test]
fn everything_that_the_last_apply_did_comes_back() {
    let folder = Folder::demo();
    let trees = folder.demo_path().join("conversation-worktrees");
    let before = contents(&trees);
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["apply", "plan.json"]).ending(0);
    assert_ne!(contents(&trees), before);
    let shown = folder.run(&["undo"]).ending(0).out;
    assert!(shown.starts_with("4 of 4 acts taken back"), "{shown}");
    let after = contents(&trees);
    let after: Vec<_> = after.into_iter().filter(|(path, _)| !path.starts_with(".furlough-trash")).collect();
    assert_eq!(after, before);
    assert_eq!(folder.json(&["plan"], 0)["items"], json!([]), "a whole idle period passes after an undo");
    assert_eq!(folder.run(&["undo"]).ending(0).out, "There is nothing to take back.\n");
}

#[test]
fn nothing_to_take_back_is_not_an_unknown_name() {
    let folder = Folder::demo();
    let unknown = |folder: &Folder| folder.json(&["undo", "nope"], 2)["error"]["code"].clone();
    assert_eq!(unknown(&folder), "unknown_runtime");
    let nothing = "There is nothing to take back of `3c9e12d4`: `furlough history` tells what was done\n";
    assert_eq!(folder.run(&["undo", PUSHED]).ending(0).out, nothing);
    folder.run(&["plan", "--out", "plan.json"]).ending(0);
    folder.run(&["apply", "plan.json"]).ending(0);
    assert_eq!(unknown(&folder), "unknown_runtime");
    assert_eq!(folder.json(&["undo", super::bench::FRESH], 0)["acts"], json!([]));
}

#[test]
fn one_runtime_comes_back_alone_and_its_history_tells_all() {
    let folder = applied();
    let trash = folder.json(&["trash"], 0);
    assert_eq!(trash["entries"].as_array().unwrap().len(), 4);
    let undone = folder.json(&["undo", DIRTY], 0);
    assert_eq!(undone["acts"][0]["result"], "back");
    assert!(folder.worktree(DIRTY).join("notes.txt").exists());
    assert!(!folder.demo_path().join("conversation-worktrees").join(PUSHED).exists());
    let history = folder.json(&["history", DIRTY], 0);
    let acts: Vec<_> =
        history["acts"].as_array().unwrap().iter().map(|act| json!([act["action"], act["outcome"]])).collect();
    assert_eq!(acts[0], json!(["undo", "delete taken back"]));
    assert_eq!(acts[1][0], "delete");
    let saved = history["acts"][1]["saved"].as_str().unwrap();
    assert!(fs::metadata(saved).unwrap().is_dir(), "{saved}");
}

#[test]
fn what_would_overwrite_something_new_is_refused() {
    let folder = applied();
    let path = folder.worktree(PACKAGES).join("node_modules");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("new.js"), "new\n").unwrap();
    let undone = folder.json(&["undo", PACKAGES], 3);
    assert_eq!(undone["acts"][0]["result"], "refused");
    assert_eq!(fs::read_to_string(path.join("new.js")).unwrap(), "new\n");
    assert_eq!(folder.json(&["trash"], 0)["entries"].as_array().unwrap().len(), 4, "what is in the trash stays there");
}

#[test]
fn an_emptied_trash_is_told_and_not_taken_back() {
    let folder = applied();
    let emptied = folder.json(&["trash", "--empty"], 0);
    assert_eq!(emptied["removed"].as_array().unwrap().len(), 4);
    assert!(emptied["bytes"].as_u64().unwrap() > 10_000_000, "{emptied}");
    assert_eq!(folder.run(&["trash"]).ending(0).out, "The trash is empty.\n");
    let undone = folder.json(&["undo"], 3);
    let results: Vec<_> = undone["acts"].as_array().unwrap().iter().map(|act| &act["result"]).collect();
    assert_eq!(json!(results), json!(["refused", "refused", "refused"]));
}
