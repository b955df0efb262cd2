//! git for the demo's own repository: nothing of the user's configuration, no hooks, no prompts.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use lifecycle::Time;

use crate::answer::Fault;

/// Variables that would point git at another repository or another configuration.
const FOREIGN: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

/// Runs git in `folder` as if it were `at`: commits and reflogs are then as old as the demo says.
pub(crate) fn git(folder: &Path, home: &Path, at: Time, args: &[&str]) -> Result<(), Fault> {
    let date = format!("{} +0000", at.millis() / 1000);
    let mut command = Command::new("git");
    for variable in FOREIGN {
        command.env_remove(variable);
    }
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"])
        .args(["-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false"])
        .args(args)
        .current_dir(folder)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TEMPLATE_DIR", "")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Demo Agent")
        .env("GIT_AUTHOR_EMAIL", "agent@example.invalid")
        .env("GIT_COMMITTER_NAME", "Demo Agent")
        .env("GIT_COMMITTER_EMAIL", "agent@example.invalid")
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .stdin(Stdio::null());
    let asked = format!("`git {}` in `{}`", args.join(" "), folder.display());
    let output = command.output().map_err(|error| {
        Fault::failed("demo_git", format!("{asked} could not be started: {error}; the demo needs git 2.20 or newer"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(Fault::failed("demo_git", format!("{asked} failed: {}", told.trim())))
}
