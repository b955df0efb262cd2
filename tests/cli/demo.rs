//! `furlough demo` from its first line to its last.

use std::{collections::BTreeSet, fs};

use serde_json::json;

use super::bench::{Folder, contents};

#[test]
fn it_plans_applies_and_takes_back_and_every_file_is_as_it_was() {
    let folder = Folder::empty();
    let shown = folder.run(&["demo", "--dir", "demo"]).ending(0).out;
    for line in [
        "(No containers: nothing answers at",
        "$ furlough plan",
        "$ furlough apply",
        "4 of 4 acts taken back",
        "Try next",
    ] {
        assert!(shown.contains(line), "`{line}` is missing in\n{shown}");
    }
    assert!(shown.contains("byte for byte"), "{shown}");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let names: BTreeSet<_> = names.into_iter().collect();
    assert_eq!(names, BTreeSet::from(["demo".into(), "tmp".into()]), "nothing is made outside its folder");
    assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0, "nothing stays in the temporary folder");
}

#[test]
fn its_document_tells_the_same() {
    let folder = Folder::empty();
    let document = folder.json(&["demo", "--dir", "demo"], 0);
    assert_eq!(document["files_as_before"], true);
    assert_eq!(document["engine"], false);
    let fates: Vec<_> = document["report"]["entries"].as_array().unwrap().iter().map(|entry| &entry["fate"]).collect();
    assert_eq!(json!(fates), json!(["done", "done", "done", "done"]));
    let results: Vec<_> = document["undo"]["acts"].as_array().unwrap().iter().map(|act| &act["result"]).collect();
    assert_eq!(json!(results), json!(["back", "back", "back", "back"]));
}

#[test]
fn a_folder_that_is_there_is_not_touched() {
    let folder = Folder::empty();
    fs::create_dir(folder.path().join("demo")).unwrap();
    folder.write("demo/precious.txt", "mine");
    let before = contents(&folder.demo_path());
    let ran = folder.run(&["demo", "--dir", "demo"]).ending(2);
    assert!(ran.err.contains("is there already"), "{ran:#?}");
    assert_eq!(contents(&folder.demo_path()), before);
    let below = folder.run(&["demo", "--dir", "demo/precious.txt/x"]).ending(2);
    assert!(below.err.contains("is below a file; name a folder that can be made"), "{below:#?}");
    let nowhere = folder.run(&["demo", "--dir", "none/demo"]).ending(2);
    assert!(nowhere.err.contains("is not there; make it first"), "{nowhere:#?}");
}

#[test]
fn prepared_only_it_leaves_everything_to_be_played_with() {
    let folder = Folder::demo();
    let plan = folder.json(&["plan"], 0);
    let acts: Vec<_> = plan["items"].as_array().unwrap().iter().map(|item| &item["action"]).collect();
    assert_eq!(json!(acts), json!([{ "shed": "dependencies" }, "delete", "delete", "delete"]));
}

#[cfg(feature = "engines")]
mod engines {
    use super::*;
    use crate::cli::bench::ran;

    /// The socket of the private engine that `.ci/engine` started.
    #[expect(clippy::disallowed_methods, reason = "the engine is named by whoever started it")]
    fn socket() -> String {
        let named =
            ["FURLOUGH_TEST_DOCKER", "FURLOUGH_TEST_PODMAN"].into_iter().find_map(|name| std::env::var(name).ok());
        named.expect("FURLOUGH_TEST_DOCKER or FURLOUGH_TEST_PODMAN names no engine: run this through `.ci/engine`")
    }

    #[test]
    fn a_container_is_suspended_and_runs_again() {
        let folder = Folder::empty();
        let mut command = folder.command(&["demo", "--dir", "demo", "--json"]);
        let document = ran(command.env("DOCKER_HOST", socket())).ending(0).json();
        assert_eq!(json!([document["engine"], document["files_as_before"]]), json!([true, true]));
        let suspended = |key: &str, list: &str, result: &str| {
            let all = document[key][list].as_array().unwrap().iter();
            let found = all.filter(|row| row["action"] == "suspend" && row[result].is_string());
            found.map(|row| row[result].clone()).collect::<Vec<_>>()
        };
        assert_eq!(suspended("report", "entries", "fate"), ["done"]);
        assert_eq!(suspended("undo", "acts", "result"), ["back"]);
    }
}
