//! The commands, each in its own file: ask the parts, render the answer.

pub(crate) mod apply;
mod check;
mod completions;
mod explain;
mod history;
pub(crate) mod hold;
mod list;
mod pause;
pub(crate) mod plan;
pub(crate) mod run;
mod serve;
mod trash;
pub(crate) mod undo;
mod wake;
pub(crate) mod workspace;

pub(crate) use check::faulty;

use crate::{
    answer::{Answer, Fault},
    cli::{Cli, Command},
    demo,
    parts::Plant,
    terminal::Terminal,
};

/// Does what the command line says.
pub(crate) async fn run(cli: &Cli, terminal: Terminal) -> Result<Answer, Fault> {
    let config = cli.config.as_deref();
    let plant = || Plant::configured(config, terminal);
    match &cli.command {
        Command::Demo(asked) => demo::command(asked, terminal).await,
        Command::Plan(asked) => plan::command(&plant()?, asked).await,
        Command::Apply { file } => apply::command(&plant()?, file).await,
        Command::Run { once } => run::command(&plant()?, *once).await,
        Command::Serve(asked) => serve::command(&plant()?, asked).await,
        Command::List => list::command(&plant()?).await,
        Command::Explain { runtime } => explain::command(&plant()?, &runtime.name).await,
        Command::Hold(asked) => hold::hold(&plant()?, asked).await,
        Command::Release { runtime } => hold::release(&plant()?, &runtime.name).await,
        Command::Undo { runtime } => undo::command(&plant()?, runtime.as_deref()).await,
        Command::Wake { runtime } => wake::command(&plant()?, &runtime.name).await,
        Command::History { runtime, limit } => history::command(&plant()?, &runtime.name, *limit).await,
        Command::Trash { empty } => trash::command(&plant()?, *empty).await,
        Command::Workspace(asked) => workspace::command(&plant()?, asked).await,
        Command::Pause { backend, why } => pause::pause(&plant()?, backend.as_deref(), why).await,
        Command::Unpause { backend } => pause::unpause(&plant()?, backend.as_deref()).await,
        Command::Check { file } => check::check(file.as_deref(), config, terminal),
        Command::Schema => Ok(check::schema()),
        Command::Completions { shell } => Ok(completions::script(*shell)),
    }
}
