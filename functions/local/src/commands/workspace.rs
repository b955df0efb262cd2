//! `furlough workspace …`: a tree to the store and back.
//!
//! The records are in the ledger that the other commands use; the bytes are in the data folder, or in the bucket that
//! `workspaces.store` names.

mod bar;
mod gc;
pub(crate) mod kept;
mod look;
mod pull;
mod push;

use workspace::key::Name;

use crate::{
    answer::{Answer, Fault},
    cli,
    parts::Plant,
    render::words::safe,
};

/// Does what is asked.
pub(crate) async fn command(plant: &Plant, asked: &cli::Workspace) -> Result<Answer, Fault> {
    match asked {
        cli::Workspace::Push(asked) => push::command(plant, asked).await,
        cli::Workspace::Pull(asked) => pull::command(plant, asked).await,
        cli::Workspace::List => look::list(plant).await,
        cli::Workspace::Show { name } => look::show(plant, name).await,
        cli::Workspace::Verify { name } => look::verified(plant, name).await,
        cli::Workspace::Gc { name, dry_run } => gc::command(plant, name.as_deref(), *dry_run).await,
    }
}

fn named(text: &str) -> Result<Name, Fault> {
    Name::new(text).map_err(|error| Fault::usage("workspace_name", error))
}

/// An error with all that is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        told = format!("{told}: {error}");
        source = error.source();
    }
    safe(&told).into_owned()
}

/// Why a push, a pull or a look came to nothing.
fn fault(error: &workspace::Error) -> Fault {
    match error {
        workspace::Error::InUse(_) => Fault::refused("in_use", chain(error)),
        workspace::Error::Cancelled => {
            Fault::failed("interrupted", "interrupted: it was given up, and what was there is whole; do it again")
        }
        workspace::Error::Roots(_) => Fault::usage("roots", chain(error)),
        _ => Fault::failed("workspace", chain(error)),
    }
}

fn unasked(error: &workspace::commit::CommitError) -> Fault {
    Fault::failed("ledger", chain(error))
}

/// Somebody writes it.
fn leased(name: &Name, owner: &str, until_ms: i64) -> Fault {
    let until = crate::render::words::clock(lifecycle::Time::from_millis(until_ms));
    let owner = safe(owner);
    let problem = format!("`{name}` is being written by `{owner}`, until {until} unless it renews; try again then");
    Fault::refused("leased", problem)
}
