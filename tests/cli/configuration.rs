//! `furlough check`, and what a faulty configuration does to the other commands.

use serde_json::json;

use super::bench::Folder;

const MISSPELT: &str = "mode = \"report\"\n\n[[polcy]]\nname = \"a\"\n";

#[test]
fn a_fault_has_its_line_its_key_and_the_nearest_right_name() {
    let folder = Folder::empty();
    folder.write("bad.toml", MISSPELT);
    let shown = folder.run(&["check", "bad.toml"]).ending(2).out;
    assert!(shown.contains("bad.toml:3:3"), "{shown}");
    assert!(shown.contains("did you mean `policy`?"), "{shown}");
    let document = folder.json(&["check", "bad.toml"], 2);
    let fault = &document["faults"][0];
    assert_eq!(
        json!([document["ok"], fault["line"], fault["key"], fault["nearest"], fault["severity"]]),
        json!([false, 3, "polcy", "policy", "error"])
    );
}

#[test]
fn no_command_works_on_a_faulty_configuration() {
    let folder = Folder::empty();
    folder.write("bad.toml", MISSPELT);
    for args in [&["plan"][..], &["list"], &["run", "--once"], &["undo"], &["explain", "x"], &["pause"], &["trash"]] {
        let args = [&["--config", "bad.toml"], args].concat();
        let ran = folder.run(&args).ending(2);
        assert!(ran.err.contains("bad.toml:3:3"), "{ran:#?}");
        assert_eq!(folder.json(&args, 2)["error"]["code"], "configuration");
    }
}

#[test]
fn a_named_configuration_that_is_not_there_is_an_error_and_not_the_built_in_one() {
    let folder = Folder::empty();
    let ran = folder.run(&["--config", "none.toml", "plan"]).ending(2);
    assert_eq!(ran.err, "error: there is no file `none.toml`, which `--config` names\n");
    let mut command = folder.command(&["plan"]);
    let ran = super::bench::ran(command.env("FURLOUGH_CONFIG", "none.toml")).ending(2);
    assert_eq!(ran.err, "error: there is no file `none.toml`, which `FURLOUGH_CONFIG` names\n");
}

#[test]
fn a_file_to_check_that_is_not_there_is_not_said_to_come_from_a_flag() {
    let folder = Folder::empty();
    let ran = folder.run(&["check", "none.toml"]).ending(2);
    let next = "name a configuration, or none for the one that every command reads";
    assert_eq!(ran.err, format!("error: there is no file `none.toml`; {next}\n"));
}

#[test]
fn what_a_local_backend_can_t_do_by_itself_is_told() {
    let folder = Folder::demo();
    let text = std::fs::read_to_string(folder.demo_path().join("furlough.toml")).unwrap();
    folder.write("native.toml", &text.replacen("idle.after", "native = \"prefer\"\nidle.after", 1));
    let shown = folder.run(&["check", "native.toml"]).ending(0).out;
    assert!(shown.contains("`native` has no effect"), "{shown}");
}

#[test]
fn a_log_filter_that_would_silence_everything_is_bad_usage() {
    let folder = Folder::empty();
    let mut command = folder.command(&["schema"]);
    let ran = super::bench::ran(command.env("FURLOUGH_LOG", "bogus")).ending(2);
    assert_eq!(
        ran.err,
        "error: `bogus` is no log level; a log filter looks like `warn`, `info` or `pass=debug,warn`\n"
    );
}

#[test]
fn the_built_in_configuration_is_sound_and_says_what_it_found() {
    let folder = Folder::empty();
    let ok = folder.run(&["check"]).ending(0).out;
    assert!(ok.contains("the built-in example policy, in report mode; no OpenHands worktrees at"), "{ok}");
}
