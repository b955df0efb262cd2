//! The one room that reads the clock, the environment and randomness. Everything else takes them as
//! arguments, so that a simulation can hand in its own.
//!
//! The variables are those of [`Variable`]; nothing else is read, but for the ones that the
//! configuration itself names (`notify.secret.env`), which [`secret`] reads.

use std::{
    collections::hash_map::RandomState,
    fs::File,
    hash::BuildHasher,
    io::Read as _,
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use lifecycle::Time;

use crate::{Secret, SecretSource, SettingsError};

macro_rules! variables {
    ($( $variant:ident = $name:literal : $meaning:literal ),* $(,)?) => {
        /// Every environment variable that Furlough reads.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Variable {
            $( #[doc = concat!("`", $name, "`: ", $meaning)] $variant, )*
        }

        impl Variable {
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// What it does.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $meaning, )* }
            }
        }

        /// Every environment variable that Furlough reads.
        pub const VARIABLES: &[Variable] = &[ $( Variable::$variant ),* ];
    };
}

variables! {
    Config = "FURLOUGH_CONFIG": "the configuration, where `--config` is not given",
    Data = "FURLOUGH_DATA": "the folder of records; default: `furlough` in XDG_DATA_HOME",
    Log = "FURLOUGH_LOG": "what is logged: `warn`, `info`, `debug`, `pass=debug,warn`",
    NoColor = "NO_COLOR": "set to anything: no colours",
    Term = "TERM": "`dumb`: no colours",
    WorktreeRoot = "OH_CONVERSATION_WORKTREE_ROOT": "where OpenHands puts worktrees, where there is no configuration",
    Conversations = "OH_CONVERSATIONS_PATH": "where OpenHands puts conversations, where there is no configuration",
    DockerHost = "DOCKER_HOST": "the Docker engine, where the configuration names none",
    DataHome = "XDG_DATA_HOME": "the parent of the folder of records; default: `~/.local/share`",
    Home = "HOME": "what `~` is",
    User = "USER": "who holds, releases and pauses, in the history",
    LogName = "LOGNAME": "the same, where USER is not set",
    Table = "FURLOUGH_TABLE": "the functions' table of records; default: `furlough`",
    ActionsTable = "FURLOUGH_ACTIONS_TABLE": "the functions' table of what was done; default: `furlough-actions`",
    Keys = "FURLOUGH_KEYS": "the keys of the heartbeat function's tokens: a secret's ARN, or a file",
    InitKey = "FURLOUGH_INIT_KEY": "the sidecar's bootstrap key: who has it may bring and take workspaces",
    WorkspaceKeys = "FURLOUGH_WORKSPACE_KEYS": "the keys of the workspace function's tokens and secrets: a secret's ARN, or a file",
    Workspaces = "FURLOUGH_WORKSPACES": "where the workspace function keeps workspaces: `s3://BUCKET`, or `s3://BUCKET/PREFIX`",
    Origin = "FURLOUGH_ORIGIN": "where sidecars find the workspace and the heartbeat function: an HTTP address",
    Reports = "FURLOUGH_REPORTS": "where the reconcile function puts reports: `s3://BUCKET/PREFIX`, or a folder",
}

/// The time, in whole milliseconds.
#[expect(clippy::disallowed_methods, reason = "the one clock")]
pub fn now() -> Time {
    // A clock that stands before 1970 is broken: then everything is in the future, and nothing is idle.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A moment of this process.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at: Time,
    steady: Instant,
}

impl Moment {
    /// Now.
    #[expect(clippy::disallowed_methods, reason = "the one clock")]
    pub fn now() -> Self {
        Self { at: now(), steady: Instant::now() }
    }

    /// How long ago it was, at least: by a clock that is never set back and stands still while the machine does, and by
    /// the other one, whichever says more.
    pub fn age(self) -> Duration {
        self.steady.elapsed().max(now().since(self.at))
    }
}

/// A name that no other process and no other call has: 32 hex digits. Unique, not secret.
#[expect(clippy::disallowed_methods, reason = "the one source of ids")]
pub fn unique() -> String {
    // The standard library seeds each of them from the system's randomness.
    let half = || RandomState::new().hash_one((std::process::id(), now()));
    format!("{:016x}{:016x}", half(), half())
}

/// A text that nobody can guess: 64 hexadecimal digits from the system's own source of secrets.
pub fn random() -> Result<String, SettingsError> {
    let path = PathBuf::from("/dev/urandom");
    let (mut one, mut other) = ([0; 16], [0; 16]);
    let mut fill = |source: &mut File| source.read_exact(&mut one).and_then(|()| source.read_exact(&mut other));
    match File::open(&path).and_then(|mut source| fill(&mut source)) {
        Ok(()) => Ok(format!("{:032x}{:032x}", u128::from_ne_bytes(one), u128::from_ne_bytes(other))),
        Err(source) => Err(SettingsError::Unreadable { path, source }),
    }
}

/// The value of `variable`. Empty is not set.
pub fn env(variable: Variable) -> Result<Option<String>, SettingsError> {
    named(variable.name())
}

/// The value of `variable`, which is needed.
pub fn required(variable: Variable) -> Result<String, SettingsError> {
    let (name, meaning) = (variable.name(), variable.meaning());
    env(variable)?.ok_or(SettingsError::Unset { name, meaning })
}

#[expect(clippy::disallowed_methods, reason = "the one reader of the environment")]
fn named(name: &str) -> Result<Option<String>, SettingsError> {
    match std::env::var(name) {
        Ok(value) => Ok((!value.is_empty()).then_some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(SettingsError::Variable { name: name.to_owned() }),
    }
}

/// The value of `variable` as a path, which need not be UTF-8. Empty is not set.
#[expect(clippy::disallowed_methods, reason = "the one reader of the environment")]
pub fn env_path(variable: Variable) -> Option<PathBuf> {
    std::env::var_os(variable.name()).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Reads a secret of this machine. Missing or blank is an error that names where it should be, never an empty secret;
/// one of AWS is read by [`Secrets`](crate::Secrets).
pub fn secret(source: &SecretSource) -> Result<Secret, SettingsError> {
    match source {
        SecretSource::Env(name) => {
            named(name)?.and_then(Secret::new).ok_or_else(|| SettingsError::NoSecret { at: source.clone() })
        }
        SecretSource::Stored(_) => Err(SettingsError::SecretElsewhere { at: source.clone() }),
    }
}

/// The folder of records: FURLOUGH_DATA, else `furlough` in XDG_DATA_HOME, else `~/.local/share/furlough`.
/// Absolute. It need not be there.
pub fn data_dir() -> Result<PathBuf, SettingsError> {
    let chosen = match (env_path(Variable::Data), env_path(Variable::DataHome), env_path(Variable::Home)) {
        (Some(data), _, _) => data,
        // The XDG specification has a relative one ignored.
        (None, Some(parent), _) if parent.is_absolute() => parent.join("furlough"),
        (None, _, Some(home)) => home.join(".local/share/furlough"),
        (None, _, None) => return Err(SettingsError::NoDataDir),
    };
    std::path::absolute(&chosen).map_err(|source| SettingsError::Unreadable { path: chosen, source })
}

/// Whether colours are unwanted: NO_COLOR is set to anything but the empty text, or the terminal is dumb.
pub fn no_color() -> bool {
    env_path(Variable::NoColor).is_some() || env_path(Variable::Term).is_some_and(|term| term.as_os_str() == "dumb")
}

/// Who runs this, for the history. `someone` where the environment does not tell.
pub fn user() -> String {
    let told = |variable| env(variable).ok().flatten();
    told(Variable::User).or_else(|| told(Variable::LogName)).unwrap_or_else(|| "someone".to_owned())
}

/// The system's folder for temporary files.
#[expect(clippy::disallowed_methods, reason = "the one reader of the environment")]
pub fn temp_dir() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_variable_stands_once_and_has_a_meaning() {
        let names: BTreeSet<_> = VARIABLES.iter().map(|variable| variable.name()).collect();
        assert_eq!(names.len(), VARIABLES.len());
        assert!(VARIABLES.iter().all(|variable| !variable.meaning().is_empty()));
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one != other && [&one, &other].iter().all(|text| text.len() == 64));
    }

    #[test]
    fn no_two_names_are_the_same() {
        let names: BTreeSet<_> = (0..1_000).map(|_| unique()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())));
    }

    #[test]
    fn a_secret_that_is_not_there_is_an_error_and_one_that_is_can_t_be_printed() {
        let missing = SecretSource::Env("FURLOUGH_TEST_NO_SUCH_SECRET".to_owned());
        let error = secret(&missing).unwrap_err().to_string();
        assert_eq!(
            error,
            "the environment variable `FURLOUGH_TEST_NO_SUCH_SECRET` is not set, and the configuration names it for a secret"
        );
        assert_eq!(format!("{:?}", Secret::new("hush").unwrap()), "Secret(…)");
        assert!(Secret::new(" \n").is_none(), "a blank one signs nothing");
    }

    #[test]
    fn the_clock_is_that_of_the_system() {
        // Later than this was written, and earlier than the last year that a time can say.
        assert!(now() > Time::from_millis(1_764_000_000_000) && now() < Time::MAX);
    }
}
