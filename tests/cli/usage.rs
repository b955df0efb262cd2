//! How the command is called, and what it answers when it is called wrongly.

use super::bench::Folder;

#[test]
fn help_tells_the_commands_and_the_exit_codes() {
    let help = Folder::empty().run(&["--help"]).ending(0);
    for word in
        ["demo", "plan", "apply", "undo", "pause", "completions", "Exit codes", "3  done, but some were refused"]
    {
        assert!(help.out.contains(word), "`{word}` is missing in\n{}", help.out);
    }
    assert_eq!(help.err, "");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    let folder = Folder::empty();
    let ran = folder.run(&["plna"]).ending(2);
    assert!(ran.err.contains("plan"), "{ran:#?}");
    assert_eq!(ran.out, "");
    for args in [&["apply"][..], &["hold"], &["history", "x", "--limit", "0"], &["plan", "--format", "xml"], &[]] {
        folder.run(args).ending(2);
    }
    let document = folder.json(&["apply"], 2);
    assert_eq!(document["error"]["code"], "usage");
}

#[test]
fn completions_and_schema_need_no_configuration() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&["completions", shell]).ending(0).out;
        assert!(script.contains("furlough"), "{shell}");
    }
    let plain: serde_json::Value = folder.run(&["schema"]).ending(0).json();
    assert_eq!(plain, folder.json(&["schema"], 0));
    assert_eq!(plain["title"], "furlough.toml");
}
