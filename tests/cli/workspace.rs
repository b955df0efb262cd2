//! `furlough workspace`: a tree to the store and back, by hand.

#[cfg(feature = "engines")]
mod bucket;

use std::{
    fs,
    io::Read as _,
    net::TcpListener,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::bench::{Folder, contents, traces};

/// A folder `here` with a file, an executable, a link and an empty folder.
fn tree() -> Folder {
    let folder = Folder::empty();
    let here = folder.path().join("here");
    fs::create_dir_all(here.join("src/empty")).unwrap();
    fs::write(here.join("src/main.rs"), "fn main() {}").unwrap();
    fs::write(here.join("run"), "#!/bin/sh").unwrap();
    fs::set_permissions(here.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("src/main.rs", here.join("link")).unwrap();
    folder
}

fn push(folder: &Folder, dir: &str) -> Value {
    folder.json(&["workspace", "push", dir, "--as", "w"], 0)
}

fn same(folder: &Folder, one: &str, other: &str) {
    let listed = |name: &str| {
        let root = folder.path().join(name);
        let mut all = contents(&root);
        let names = traces(&root).into_iter().map(|(path, _)| path.strip_prefix(&root).unwrap().to_owned());
        all.extend(names.map(|path| (path, Vec::new())));
        all
    };
    assert_eq!(listed(one), listed(other));
}

#[test]
fn what_is_pushed_is_pulled_elsewhere_and_then_by_the_difference() {
    let folder = tree();
    let first = push(&folder, "here");
    assert_eq!(
        (&first["outcome"], &first["generation"], &first["files"], &first["layers"], &first["left_out"]),
        (&json!("committed"), &json!(1), &json!(2), &json!(1), &json!([])),
        "{first:#}"
    );
    assert_eq!(folder.json(&["workspace", "pull", "w", "there"], 0)["way"], "fresh");
    same(&folder, "here", "there");
    assert_eq!(fs::metadata(folder.path().join("there/run")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(push(&folder, "here")["outcome"], "unchanged");
    fs::write(folder.path().join("here/more"), "more").unwrap();
    assert_eq!(push(&folder, "here")["layers"], 2);
    assert_eq!(folder.json(&["workspace", "pull", "w", "there"], 0)["way"], "difference");
    same(&folder, "here", "there");
    // And what was pulled can be pushed from.
    fs::remove_file(folder.path().join("there/more")).unwrap();
    assert_eq!(push(&folder, "there")["generation"], 3);
    assert_eq!(folder.json(&["workspace", "pull", "w", "here"], 0)["way"], "difference");
    same(&folder, "here", "there");
}

#[test]
fn people_are_told_what_was_done_how_fast_and_what_not() {
    let folder = tree();
    let made = Command::new("mkfifo").arg(folder.path().join("here/pipe")).status().unwrap();
    assert!(made.success());
    fs::set_permissions(folder.path().join("here/run"), fs::Permissions::from_mode(0o4755)).unwrap();
    let ran = folder.run(&["workspace", "push", "here", "--as", "w"]).ending(3);
    for line in [
        "`w` is at generation 1: 2 files, ",
        " a second\n",
        "not kept as they are: 2 members\n",
        "  project/pipe: a FIFO has no content",
        "  project/run: its set-user and set-group bits are kept, and not restored",
    ] {
        assert!(ran.out.contains(line), "{line:?} in {}", ran.out);
    }
    assert!(fs::metadata(folder.path().join("here/pipe")).unwrap().file_type().is_fifo());
    let shown = folder.json(&["workspace", "show", "w"], 0);
    assert_eq!(shown["left_out"][0], json!({ "path": "project/pipe", "why": "a FIFO has no content" }));
    let pulled = folder.run(&["workspace", "pull", "w", "there"]).ending(0).out;
    assert!(pulled.starts_with("`there` is generation 1 of `w`: 2 files, 21 B, made afresh\n"), "{pulled}");
}

#[test]
fn nothing_that_is_nowhere_else_is_lost_unless_that_was_asked_for() {
    let folder = tree();
    push(&folder, "here");
    let fault = |args: &[&str], code: i32| folder.json(args, code)["error"]["code"].clone();
    fs::create_dir(folder.path().join("full")).unwrap();
    folder.write("full/mine", "mine");
    assert_eq!(fault(&["workspace", "pull", "w", "full"], 3), "occupied");
    assert_eq!(fault(&["workspace", "push", "full", "--as", "w"], 3), "unrelated");
    folder.write("here/work", "not pushed yet");
    fs::write(folder.path().join("here/run"), "changed").unwrap();
    let told = folder.run(&["workspace", "pull", "w", "here"]).ending(3).err;
    assert!(told.contains("project/run") && told.contains("project/work") && told.contains("--discard"), "{told}");
    assert_eq!(fs::read(folder.path().join("full/mine")).unwrap(), b"mine");
    folder.json(&["workspace", "pull", "w", "here", "--discard"], 0);
    assert!(!folder.path().join("here/work").exists());
    let replaced = folder.json(&["workspace", "push", "full", "--as", "w", "--replace"], 0);
    assert_eq!((&replaced["generation"], &replaced["files"]), (&json!(2), &json!(1)));
}

#[test]
fn looking_leaves_no_trace() {
    let folder = tree();
    push(&folder, "here");
    let before = traces(folder.path());
    let list = folder.json(&["workspace", "list"], 0);
    assert_eq!((&list["workspaces"][0]["workspace"], &list["workspaces"][0]["generation"]), (&json!("w"), &json!(1)));
    assert_eq!(list["workspaces"][0]["writer"], Value::Null, "{list:#}");
    folder.run(&["workspace", "list"]).ending(0);
    folder.run(&["workspace", "show", "w"]).ending(0);
    let verified = folder.json(&["workspace", "verify", "w"], 0);
    assert_eq!((&verified["generation"], &verified["frames"]), (&json!(1), &json!(2)), "{verified:#}");
    assert_eq!(traces(folder.path()), before);
}

#[test]
fn a_flipped_bit_is_found_by_verify_and_never_pulled() {
    let folder = tree();
    push(&folder, "here");
    let layers = folder.path().join("demo/data/workspaces/objects/workspaces/w/layers");
    let layer = fs::read_dir(layers).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&layer).unwrap();
    bytes[40] ^= 1;
    fs::write(&layer, bytes).unwrap();
    let told = folder.run(&["workspace", "verify", "w"]).ending(1).err;
    assert!(told.contains("error: frame 0 of `workspaces/w/layers/") && told.contains("digest"), "{told}");
    folder.run(&["workspace", "pull", "w", "there"]).ending(1);
    assert!(!folder.path().join("there").exists());
}

#[test]
fn garbage_is_told_before_it_is_removed_and_what_is_kept_stays() {
    let folder = tree();
    folder.write("furlough.toml", "[workspaces]\nkeep = 1\ngrace = \"1h\"\n");
    for number in 0..3 {
        folder.write("here/run", &number.to_string());
        folder.json(&["workspace", "push", "here", "--as", "w"], 0);
    }
    let fates = |document: Value| {
        let objects = document["workspaces"][0]["objects"].as_array().unwrap().clone();
        let mut fates: Vec<_> = objects.iter().map(|object| object["fate"].as_str().unwrap().to_owned()).collect();
        fates.sort();
        fates
    };
    // Three layers in a chain, one manifest of three, and the text; the other two are too young to be removed.
    let expected = ["kept", "kept", "kept", "kept", "unknown", "young", "young"];
    assert_eq!(fates(folder.json(&["workspace", "gc", "--dry-run"], 0)), expected);
    assert_eq!(fates(folder.json(&["workspace", "gc", "w"], 0)), expected);
    folder.run(&["workspace", "gc"]).ending(0);
    folder.json(&["workspace", "verify", "w"], 0);
}

#[test]
fn what_was_asked_wrongly_is_told() {
    let folder = tree();
    folder.run(&["workspace", "push", "here", "--as", "no/name"]).ending(2);
    folder.run(&["workspace", "push", "nowhere", "--as", "w"]).ending(2);
    folder.run(&["workspace", "push", "here"]).ending(2);
    for verb in [&["pull", "w", "there"][..], &["show", "w"], &["verify", "w"], &["gc", "w"]] {
        let told = folder.run(&[&["workspace"], verb].concat()).ending(1).err;
        assert!(told.contains("there is no workspace `w`"), "{told}");
    }
    assert_eq!(folder.json(&["workspace", "list"], 0)["workspaces"], json!([]));
    folder.write("furlough.toml", "[workspaces]\nstor = \"s3://bucket\"\n");
    let told = folder.run(&["workspace", "list"]).ending(2).err;
    assert!(told.contains("stor") && told.contains("store"), "the nearest name: {told}");
}

/// A bucket that takes connections and never answers.
fn silent_bucket(folder: &Folder) -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    folder.write("furlough.toml", "[workspaces]\nstore = \"s3://bucket/team\"\n");
    (listener, url)
}

/// The credentials of nobody, for a stand-in.
pub(super) fn credentials(command: &mut Command, endpoint: &str) {
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_EC2_METADATA_DISABLED", "true");
}

#[test]
fn an_interrupted_push_gives_its_lease_back_and_leaves_what_was_there() {
    let folder = tree();
    let (bucket, url) = silent_bucket(&folder);
    let mut command = folder.command(&["workspace", "push", "here", "--as", "w", "--json"]);
    credentials(&mut command, &url);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut connection, _) = bucket.accept().unwrap();
    let mut head = [0; 4];
    connection.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"PUT ", "it is at work");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), &answer["error"]["code"]),
        (Some(1), &json!("interrupted")),
        "{answer:#}"
    );
    let list = folder.json(&["workspace", "list"], 0);
    assert_eq!(list["workspaces"], json!([]), "there is no generation, and nobody writes it");
    assert!(contents_of_places(folder.path()).iter().all(|name| !name.ends_with("cache")), "nothing is called known");
}

fn contents_of_places(folder: &Path) -> Vec<String> {
    let places = folder.join("demo/data/workspaces/places");
    contents(&places).into_iter().map(|(path, _)| path.display().to_string()).collect()
}
