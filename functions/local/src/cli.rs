//! The command line, as types.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

mod workspace;

pub(crate) use workspace::{Pull, Push, Workspace};

use crate::{
    answer::{Exit, Fault},
    terminal::Terminal,
};

const EXAMPLES: &str = "\
Begin with:
  furlough demo                   a throw-away folder with real worktrees: plan, apply, undo
  furlough plan                   what would be reclaimed here, and why; changes nothing
  furlough plan --out plan.json   the same, as a file that `furlough apply plan.json` does exactly

RUNTIME is `backend/id` as the tables print it, or any part of the id or of its path that names one runtime.

Exit codes:
  0  all done
  1  failed: nothing more could be done, or a backend could not be asked
  2  bad usage or a fault in the configuration
  3  done, but some were refused, left or are under way: each is named with the reason";

/// Puts idle agent runtimes on leave: suspends, saves and deletes what a policy says is idle, and takes it back.
#[derive(Debug, Parser)]
#[command(name = "furlough", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The configuration [default: `$FURLOUGH_CONFIG`, else ./furlough.toml, else what is found here, in report mode]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on stdout, for errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log more to stderr: once for each pass and act, twice for finding faults [also: `$FURLOUGH_LOG`]
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a throw-away folder with real worktrees, then plan, apply and undo in it
    Demo(Demo),
    /// Show what would be reclaimed now, why, and what it saves; changes nothing, not even a record
    Plan(Plan),
    /// Do exactly what a plan file lists; refuse each item whose runtime moved since
    Apply {
        /// The plan file that `furlough plan --out FILE` wrote
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Make passes under the configured mode until interrupted; the act under way is finished first
    Run {
        /// One pass, then stop
        #[arg(long)]
        once: bool,
    },
    /// Make passes as `run` does, take heartbeats over HTTP, and open the stores to `cargo lambda watch`
    Serve(Serve),
    /// List every runtime with its state, its idle time and what keeps it
    List,
    /// Show every rule in order, the value that it saw, its age, and when it could next fire
    Explain {
        #[command(flatten)]
        runtime: Runtime,
    },
    /// Keep a runtime from being touched
    Hold(Hold),
    /// Take a hold off
    Release {
        #[command(flatten)]
        runtime: Runtime,
    },
    /// Take back what the last `apply` or `run` did, or everything that it did to one runtime
    Undo {
        /// Only this runtime
        #[arg(value_name = "RUNTIME")]
        runtime: Option<String>,
    },
    /// Resume a suspended runtime
    Wake {
        #[command(flatten)]
        runtime: Runtime,
    },
    /// Show what was done with a runtime, when and why, newest first
    History {
        #[command(flatten)]
        runtime: Runtime,
        /// At most this many acts
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
    /// Show what is in the trash, and until when it can be taken back
    Trash {
        /// Remove it all for ever now, to free the disk; it can't be undone then
        #[arg(long)]
        empty: bool,
    },
    /// Save folders to a store, generation after generation, and bring them back
    #[command(subcommand)]
    Workspace(Workspace),
    /// The kill switch: nothing is reclaimed until `furlough unpause`
    Pause {
        /// Only this backend
        #[arg(value_name = "BACKEND")]
        backend: Option<String>,
        /// For the people who find it paused
        #[arg(long, value_name = "TEXT", default_value = "")]
        why: String,
    },
    /// Let passes act again
    Unpause {
        /// Only this backend
        #[arg(value_name = "BACKEND")]
        backend: Option<String>,
    },
    /// Look for faults in a configuration: each with its line, what was expected, and the nearest right name
    Check {
        /// The configuration [default: as for every command]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print a completion script
    Completions {
        /// For which shell
        shell: Shell,
    },
}

impl Cli {
    /// The command line as this process got it. A fault says how the process ends; help and version are no fault.
    pub(crate) fn read() -> Result<Self, ExitCode> {
        Self::try_parse().map_err(|error| {
            let misuse = error.use_stderr();
            let json = misuse && std::env::args_os().any(|argument| argument == "--json");
            let terminal = Terminal::new(json, true);
            let shown = if json {
                terminal.fault(&Fault::usage("usage", error.render().to_string().trim()))
            } else {
                error.print()
            };
            let exit = if misuse { Exit::Usage } else { Exit::Done };
            shown.map_or(Exit::Failed, |()| exit).into()
        })
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Runtime {
    /// `backend/id`, or any part of the id or of its path that names one runtime
    #[arg(value_name = "RUNTIME")]
    pub(crate) name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Make the folder here [default: a new one under the temporary directory]; it must not exist yet
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Only make the folder, and say how to play in it
    #[arg(long)]
    pub(crate) prepare: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Take heartbeats, and what is asked of workspaces, here; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7788")]
    pub(crate) listen: SocketAddr,
    /// Let `--listen` be an address that other machines can reach; put a proxy with TLS before it
    #[arg(long)]
    pub(crate) any_address: bool,
    /// Where sidecars find this, if not at the address that it listens on
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Open the stores, as DynamoDB, for the functions under `cargo lambda watch`
    #[arg(long)]
    pub(crate) stores: bool,
    /// Open them here, on this machine alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7789")]
    pub(crate) stores_listen: SocketAddr,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// Write the plan to this file, for `furlough apply FILE`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) runtime: Runtime,
    /// For this long, as `45m`, `12h` or `7d`; `ever`: until `furlough release` [default: 30d]
    #[arg(long = "for", value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) span: Option<String>,
    /// For the people who find it held
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// The plan file itself
    Json,
    /// For a pull request or a chat
    Markdown,
}
