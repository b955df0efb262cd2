//! The sidecar's settings: flags, and one secret from the environment.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;

use crate::{
    activity::Pace,
    sandbox::Terms,
    server::{Launch, Paths},
};

/// Stands beside an agent server: dormant until /init brings a workspace, dormant again after /deinit.
///
/// The bootstrap key, which /init and /deinit ask for, is read from FURLOUGH_INIT_KEY.
#[derive(Debug, Clone, Parser)]
#[command(version)]
pub struct Options {
    /// Where it listens.
    #[arg(long, default_value = "0.0.0.0:8000")]
    pub listen: SocketAddr,
    /// Its own folder: in no workspace, and not on a network filesystem.
    #[arg(long, default_value = "/var/lib/furlough-sidecar")]
    pub scratch: PathBuf,
    /// A folder that is given to workspaces: their roots are below it, and what is in those is wiped. May be repeated.
    #[arg(long, default_value = "/workspace")]
    pub below: Vec<PathBuf>,
    /// A user that agent servers run as. With two, the next server starts while the last one still serves; with none
    /// they run as the sidecar's own user, which can read what it holds.
    #[arg(long)]
    pub user: Vec<u32>,
    /// A folder of everybody's that is swept of what is such a user's. May be repeated.
    #[arg(long, default_values = ["/tmp", "/var/tmp", "/dev/shm"])]
    pub sweep: Vec<PathBuf>,
    /// Answers 200 once the server is dormant.
    #[arg(long, default_value = "/api/init")]
    pub health_path: String,
    /// Takes what the server is told.
    #[arg(long, default_value = "/api/init")]
    pub init_path: String,
    /// Refuses whoever has no key. Blank: that is not checked.
    #[arg(long, default_value = "/api/conversations/count")]
    pub guarded_path: String,
    /// How long a server may take until it is dormant.
    #[arg(long, value_parser = duration, default_value = "3m")]
    pub start_within: Duration,
    /// How long a server may take to end before it is killed.
    #[arg(long, value_parser = duration, default_value = "60s")]
    pub stop_within: Duration,
    /// How often what has changed is pushed while the server runs.
    #[arg(long, value_parser = duration, default_value = "5m")]
    pub push_every: Duration,
    /// How long after the last sign of work what has changed is pushed.
    #[arg(long, value_parser = duration, default_value = "60s")]
    pub save_after: Duration,
    /// How often is looked whether something works, which is then told where the delivery says.
    #[arg(long, value_parser = duration, default_value = "15s")]
    pub look_every: Duration,
    /// How long the lease of the workspace is held without a word.
    #[arg(long, value_parser = duration, default_value = "15m")]
    pub lease: Duration,
    /// How long it may take after SIGTERM, as the sandbox's owner gives it.
    #[arg(long, value_parser = duration, default_value = "25s")]
    pub grace: Duration,
    /// The agent server's command. `{port}` stands for the port that it listens on, on 127.0.0.1.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

impl Options {
    /// How servers are started.
    pub fn launch(&self) -> Launch {
        Launch {
            command: self.command.clone(),
            scratch: self.scratch.clone(),
            paths: Paths {
                health: self.health_path.clone(),
                init: self.init_path.clone(),
                guarded: self.guarded_path.trim().to_owned(),
            },
            start_within: self.start_within,
            stop_within: self.stop_within,
        }
    }

    /// How work is looked for.
    pub const fn pace(&self) -> Pace {
        Pace { look_every: self.look_every, save_after: self.save_after }
    }

    /// How the sandbox is used. `adopts`: this process, if orphans come back to it.
    pub fn terms(&self, adopts: Option<i32>) -> Terms {
        Terms { scratch: self.scratch.clone(), sweep: self.sweep.clone(), lease: self.lease, adopts }
    }
}

/// A number and `s`, `m` or `h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration: it looks like `30s`, `5m` or `1h`");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_flags_are_coherent() {
        Options::command().debug_assert();
        let options =
            Options::try_parse_from(["sidecar", "--user", "7", "--user", "8", "--", "serve", "--port", "{port}"]);
        let options = options.unwrap();
        assert_eq!((options.user, options.command.len()), (vec![7, 8], 3));
        assert!(Options::try_parse_from(["sidecar"]).is_err(), "nothing to stand beside");
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        for wrong in ["", "5", "m", "0s", "-1s", "5d", "5ss", "99999999999999999999s", "5340232221128654848h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_duration_or_none(text in "\\PC{0,12}") {
            if let Ok(read) = duration(&text) {
                prop_assert!(read >= Duration::from_secs(1));
            }
        }
    }
}
