//! What a program says of itself while it works.
//!
//! ```text
//! tracing events of every crate ──► filter ──┬► lines on stderr (a terminal)
//!                                            └► JSON, a line each, on stderr (a function)
//! metrics ──► CloudWatch's embedded format ──► stdout (a function)
//! ```
//!
//! **Invariants.** Logs go to stderr, never to stdout, which is for answers and metrics. The filter, the verbosity
//! and the colours are arguments: nothing here reads the environment.
//!
//! **Must never know**: anything of ours. It depends on none of our crates.

pub mod metrics;

use std::io;

use tracing_subscriber::{
    EnvFilter, Layer, filter::ParseError, fmt, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt,
};

/// The SDK speaks at every repeated request of a connection that it could not mark. The embedded store has none.
macro_rules! quieted {
    () => {
        "aws_smithy_runtime::client::http::connection_poisoning=off"
    };
}

/// How much is said where no filter is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Warnings too: the default of a command.
    Normal,
    /// One line a pass and one an act too.
    Verbose,
    /// Everything of ours, for finding faults.
    Debug,
}

impl Verbosity {
    /// From how often `--quiet` and `--verbose` were given.
    pub const fn from_flags(quiet: u8, verbose: u8) -> Self {
        match (quiet, verbose) {
            (0, 0) => Self::Normal,
            (0, 1) => Self::Verbose,
            (0, _) => Self::Debug,
            (_, _) => Self::Quiet,
        }
    }

    const fn directives(self) -> &'static str {
        match self {
            Self::Quiet => "error",
            Self::Normal => concat!("warn,", quieted!()),
            Self::Verbose => concat!("warn,furlough=info,pass=info,ledger=info,backend=info,", quieted!()),
            Self::Debug => "info,furlough=debug,heartbeat=debug,reconcile=debug,pass=debug,ledger=debug,backend=debug",
        }
    }
}

/// Whether lines have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// ANSI colours.
    On,
    /// Plain text.
    Off,
}

/// Why nothing is logged.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter can't be read.
    #[error("`{filter}` is no log filter; it looks like `warn`, `info` or `pass=debug,warn`")]
    Filter {
        /// As it was given.
        filter: String,
        /// What is wrong in it.
        source: ParseError,
    },
    /// A word that is no level would name a target that nobody has, and silence everything.
    #[error("`{word}` is no log level; a log filter looks like `warn`, `info` or `pass=debug,warn`")]
    Level {
        /// The word.
        word: String,
    },
    /// This process logs already.
    #[error("logging was set up twice")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

/// Sets up logs for a terminal, on stderr, for the rest of this process. `filter` (FURLOUGH_LOG) goes before `verbosity`.
pub fn terminal(verbosity: Verbosity, filter: Option<&str>, colours: Colours) -> Result<(), TelemetryError> {
    let layer = lines(io::stderr, verbosity, filter, colours)?;
    tracing_subscriber::registry().with(layer).try_init().map_err(TelemetryError::Twice)
}

/// Sets up logs for a function: a line of JSON each, on stderr, for the rest of this process. `filter` (FURLOUGH_LOG);
/// without one, a line a pass and a line an act.
pub fn function(filter: Option<&str>) -> Result<(), TelemetryError> {
    let filter = filtered(Verbosity::Verbose, filter)?;
    let layer = fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false);
    let layer = layer.with_writer(io::stderr).with_filter(filter);
    tracing_subscriber::registry().with(layer).try_init().map_err(TelemetryError::Twice)
}

fn filtered(verbosity: Verbosity, filter: Option<&str>) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(filter.unwrap_or(verbosity.directives()))
        .map_err(|source| TelemetryError::Filter { filter: filter.unwrap_or_default().to_owned(), source })
}

/// The lines of a terminal: level, message and fields; a person at a terminal knows the time.
fn lines<S, W>(
    writer: W,
    verbosity: Verbosity,
    filter: Option<&str>,
    colours: Colours,
) -> Result<impl Layer<S>, TelemetryError>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    if let Some(word) = filter.and_then(|filter| filter.split(',').find(|word| is_bare(word) && !is_level(word))) {
        return Err(TelemetryError::Level { word: word.trim().to_owned() });
    }
    let filter = filtered(verbosity, filter)?;
    let ansi = colours == Colours::On;
    Ok(fmt::layer().with_writer(writer).with_ansi(ansi).without_time().with_target(false).with_filter(filter))
}

/// A directive without a target or a span.
fn is_bare(directive: &str) -> bool {
    !directive.trim().is_empty() && !directive.contains(['=', '['])
}

fn is_level(word: &str) -> bool {
    word.trim().parse::<tracing::level_filters::LevelFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(verbosity: Verbosity, filter: Option<&str>, colours: Colours) -> String {
        let page = Page::default();
        let writer = page.clone();
        let layer = lines(move || writer.clone(), verbosity, filter, colours).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "pass", runtime = "w/1", "could not suspend");
            tracing::warn!(target: "hyper", "slow");
            tracing::info!(target: "pass", acts = 2, "pass done");
            tracing::debug!(target: "pass::claim", "claimed");
        });
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn each_verbosity_says_more() {
        let plain = |verbosity| written(verbosity, None, Colours::Off);
        let error = "ERROR could not suspend runtime=\"w/1\"\n";
        let warning = " WARN slow\n";
        let info = " INFO pass done acts=2\n";
        let debug = "DEBUG claimed\n";
        assert_eq!(plain(Verbosity::Quiet), error);
        assert_eq!(plain(Verbosity::Normal), format!("{error}{warning}"));
        assert_eq!(plain(Verbosity::Verbose), format!("{error}{warning}{info}"));
        assert_eq!(plain(Verbosity::Debug), format!("{error}{warning}{info}{debug}"));
    }

    #[test]
    fn a_filter_goes_before_the_verbosity() {
        let filtered = written(Verbosity::Quiet, Some("hyper=off,pass=info"), Colours::Off);
        assert_eq!(filtered, "ERROR could not suspend runtime=\"w/1\"\n INFO pass done acts=2\n");
    }

    #[test]
    fn colours_are_only_there_when_asked_for() {
        assert!(!written(Verbosity::Normal, None, Colours::Off).contains('\u{1b}'));
        assert!(written(Verbosity::Normal, None, Colours::On).contains('\u{1b}'));
    }

    #[test]
    fn a_wrong_filter_is_told_with_an_example() {
        let error =
            lines::<tracing_subscriber::Registry, _>(io::stderr, Verbosity::Normal, Some("pass=loud"), Colours::Off)
                .err()
                .unwrap();
        assert_eq!(
            error.to_string(),
            "`pass=loud` is no log filter; it looks like `warn`, `info` or `pass=debug,warn`"
        );
    }

    #[test]
    fn a_word_that_would_silence_everything_is_refused() {
        let read = |filter| {
            lines::<tracing_subscriber::Registry, _>(io::stderr, Verbosity::Normal, Some(filter), Colours::Off)
                .err()
                .map(|error| error.to_string())
        };
        let refused = "`bogus` is no log level; a log filter looks like `warn`, `info` or `pass=debug,warn`";
        for filter in ["bogus", "bogus,warn", "warn, bogus"] {
            assert_eq!(read(filter).as_deref(), Some(refused), "{filter}");
        }
        for filter in ["warn", "INFO", "off", "pass=debug,warn", "warn,", "pass[act]=debug"] {
            assert_eq!(read(filter), None, "{filter}");
        }
    }

    #[test]
    fn flags_become_a_verbosity() {
        let flags = [(0, 0), (0, 1), (0, 2), (0, 9), (1, 0), (2, 3)];
        let expected = [
            Verbosity::Normal,
            Verbosity::Verbose,
            Verbosity::Debug,
            Verbosity::Debug,
            Verbosity::Quiet,
            Verbosity::Quiet,
        ];
        assert_eq!(flags.map(|(quiet, verbose)| Verbosity::from_flags(quiet, verbose)), expected);
    }
}
