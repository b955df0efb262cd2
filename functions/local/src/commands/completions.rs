//! `furlough completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::{answer::Answer, cli::Cli};

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "furlough", &mut script);
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    let json = json!({ "shell": shell.to_string(), "script": script });
    Answer::done(script, json)
}
