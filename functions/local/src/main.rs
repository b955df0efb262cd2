//! The `furlough` command: reads settings, builds the parts, calls shared, prints the answer.
//!
//! ```text
//! argv ─► cli ─► parts (settings, backends, ledger, pass) ─► commands/* ─► Answer ─► render/* ─► stdout
//! ```
//!
//! **Invariants.** stdout carries the answer and nothing else; progress, warnings and logs go to stderr. With
//! `--json` the answer is one JSON document, an error too. What a runtime or a provider wrote reaches a
//! terminal only with its control characters escaped. The exit code is one of [`answer::Exit`].
//!
//! **Must never know**: how a verdict is reached, how a provider is called, how a record is stored.

mod answer;
mod candidates;
mod cli;
mod commands;
mod demo;
mod names;
mod notes;
mod parts;
mod progress;
mod render;
mod serve;
mod stop;
mod terminal;

use std::process::ExitCode;

use crate::{
    answer::{Exit, Fault},
    cli::Cli,
    terminal::Terminal,
};

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(ended) => return ended,
    };
    let terminal = Terminal::new(cli.json, settings::system::no_color());
    let (shown, exit) = match ended(&cli, terminal) {
        Ok(answer) => (terminal.answer(&answer), answer.exit),
        Err(fault) => (terminal.fault(&fault), fault.exit),
    };
    terminal.written(shown).map_or(Exit::Failed, |()| exit).into()
}

fn ended(cli: &Cli, terminal: Terminal) -> Result<answer::Answer, Fault> {
    terminal.log(cli.verbose)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::failed("machine", format!("no threads: {error}")))?;
    runtime.block_on(commands::run(cli, terminal))
}
