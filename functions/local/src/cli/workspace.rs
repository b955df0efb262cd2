//! `furlough workspace …`, as types.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum Workspace {
    /// Save a folder as the next generation of a workspace; names what could not be kept
    Push(Push),
    /// Bring a workspace into a folder: whole and checked, or not at all
    Pull(Pull),
    /// List every workspace with its generation, its size and who writes it
    List,
    /// Show what the newest generation of a workspace consists of, and what it leaves out
    Show {
        /// The workspace's name
        #[arg(value_name = "W")]
        name: String,
    },
    /// Read and check all of a workspace's newest generation; writes nothing
    Verify {
        /// The workspace's name
        #[arg(value_name = "W")]
        name: String,
    },
    /// Remove what no kept generation refers to, and nobody has for a whole grace
    Gc {
        /// Only this workspace
        #[arg(value_name = "W")]
        name: Option<String>,
        /// Only say what would become of each object, and why
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Push {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// The workspace's name: 1 to 128 of A-Z a-z 0-9 . _ ~ -
    #[arg(long = "as", value_name = "W")]
    pub(crate) name: String,
    /// Make it the next generation although it does not descend from the newest one
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pull {
    /// The workspace's name
    #[arg(value_name = "W")]
    pub(crate) name: String,
    /// The folder: new, empty, or as an earlier pull or push of this workspace left it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Lose what is in the folder and in no generation
    #[arg(long)]
    pub(crate) discard: bool,
}
