//! Ctrl-C at work: what was begun is ended, nothing new is begun, and the answer says so.

use std::{
    fs::{DirBuilder, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::DirBuilderExt,
    process::{Child, ChildStderr, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::bench::{Folder, PACKAGES};

/// An `apply` that does one act at a time and is at its first: somebody else has the trash.
struct Applying {
    folder: Folder,
    child: Child,
    told: BufReader<ChildStderr>,
    trash: File,
}

impl Applying {
    fn begun() -> Self {
        let folder = Folder::demo();
        let config = folder.demo_path().join("furlough.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text + "\n[pass]\nconcurrency = 1\n").unwrap();
        folder.run(&["plan", "--out", "plan.json"]).ending(0);
        let trash = folder.demo_path().join("conversation-worktrees/.furlough-trash");
        DirBuilder::new().mode(0o700).create(&trash).unwrap();
        let trash = File::open(trash).unwrap();
        trash.lock().unwrap();
        let mut command = folder.command(&["apply", "plan.json", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(child.stderr.take().unwrap());
        while !claimed(&folder) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it had begun");
        }
        Self { folder, child, told, trash }
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line
    }

    /// Its exit code, and its document.
    fn ended(mut self) -> (Folder, i32, Value) {
        let mut answer = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        (self.folder, code, serde_json::from_str(&answer).unwrap())
    }
}

/// Whether somebody is at work on a worktree.
fn claimed(folder: &Folder) -> bool {
    let list = folder.json(&["list"], 0);
    list["runtimes"].as_array().unwrap().iter().any(|row| row["verdict"]["keep"][0]["code"] == "claimed")
}

#[test]
fn the_act_under_way_is_ended_and_the_rest_is_left_by_name() {
    let mut applying = Applying::begun();
    let shown = applying.folder.run(&["list"]).ending(0).out;
    let row = shown.lines().find(|line| line.contains(PACKAGES)).unwrap();
    assert!(
        row.contains("keep: `ada/apply/") && row.contains("` is at work on it, or was killed at it; free at "),
        "{row}"
    );
    applying.interrupt();
    assert!(applying.line().starts_with("interrupted: what was begun is ended"));
    applying.trash.unlock().unwrap();
    let (_, code, report) = applying.ended();
    let fates: Vec<_> =
        report["entries"].as_array().unwrap().iter().map(|entry| json!([entry["fate"], entry["detail"]])).collect();
    let left = json!(["left", "the pass was interrupted"]);
    assert_eq!(fates[0][0], "done", "{report:#}");
    assert_eq!((code, &fates[1..]), (3, &[left.clone(), left.clone(), left][..]));
}

#[test]
fn who_insists_is_obeyed_at_once_and_nothing_is_half_done() {
    let mut applying = Applying::begun();
    applying.interrupt();
    assert!(applying.line().starts_with("interrupted: "));
    applying.interrupt();
    let (folder, code, answer) = applying.ended();
    assert_eq!((code, &answer["error"]["code"]), (1, &json!("interrupted")), "{answer:#}");
    assert!(folder.worktree(PACKAGES).join("node_modules").exists());
    assert_eq!(folder.json(&["trash"], 0)["entries"], json!([]));
}
