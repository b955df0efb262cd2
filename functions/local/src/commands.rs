//! The commands, each in its own file: ask the parts, render the answer.

mod check;
mod completions;

use crate::{
    answer::{Answer, Fault},
    cli::{Cli, Command},
    demo,
    terminal::Terminal,
};

/// Does what the command line says.
pub(crate) async fn run(cli: &Cli, terminal: Terminal) -> Result<Answer, Fault> {
    let config = cli.config.as_deref();
    match &cli.command {
        Command::Demo(asked) => demo::run(asked, terminal).await,
        Command::Check { file } => check::check(file.as_deref().or(config), terminal),
        Command::Schema => Ok(check::schema()),
        Command::Completions { shell } => Ok(completions::script(*shell)),
        _ => Err(Fault::failed("not_built", "this command needs the pass, which is not wired yet")),
    }
}
