//! Finds the configuration and reads it.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::{
    Faults, SecretSource, Settings, Source,
    check::{Surroundings, parse_in},
    detect::{self, DOCKER_SOCKET, Detected, WORKTREE_ROOT},
    system::{self, Variable},
};

/// The largest configuration, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// The file in the current folder that is read where no other is named.
const LOCAL: &str = "furlough.toml";

/// Why there is no configuration. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A named file that is not there.
    #[error("there is no file `{path}`, which {named_by} names")]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
        /// Who names it.
        named_by: &'static str,
    },
    /// A folder.
    #[error("`{path}` is a folder; name the file in it, such as `{path}/furlough.toml`", path = path.display())]
    Folder {
        /// Its path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("can't read `{path}`")]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Too large to be a configuration.
    #[error("`{path}` is larger than {MAX_BYTES} bytes, the limit of a configuration")]
    TooLarge {
        /// Its path.
        path: PathBuf,
    },
    /// Bytes that are no text.
    #[error("`{path}` is not UTF-8 text: line {line} has a byte that is none")]
    NotText {
        /// Its path.
        path: PathBuf,
        /// The first line that has one, from 1.
        line: usize,
    },
    /// What is wrong in it.
    #[error(transparent)]
    Faults(#[from] Faults),
    /// A variable that is not UTF-8.
    #[error("the environment variable `{name}` is not UTF-8 text")]
    Variable {
        /// Its name.
        name: String,
    },
    /// A variable that is needed, and is not set.
    #[error("`{name}` is not set: {meaning}")]
    Unset {
        /// Its name.
        name: &'static str,
        /// What it does.
        meaning: &'static str,
    },
    /// A secret that is not where it should be.
    #[error("{at} is not set, and the configuration names it for a secret")]
    NoSecret {
        /// Where it should be.
        at: SecretSource,
    },
    /// A secret that only the functions on AWS read.
    #[error("{at} is read by the functions on AWS alone; here, name an environment variable with `env`")]
    SecretElsewhere {
        /// Where it is.
        at: SecretSource,
    },
    /// Nowhere to put records.
    #[error("no place for records: set `FURLOUGH_DATA`, `XDG_DATA_HOME` or `HOME`")]
    NoDataDir,
}

/// Reads the configuration: `explicit` (`--config`), else FURLOUGH_CONFIG, else `./furlough.toml`, else the
/// built-in example policy in report mode with what is found on this machine.
pub fn load(explicit: Option<&Path>) -> Result<Settings, SettingsError> {
    Machine::here()?.load(explicit)
}

/// What of a machine decides which configuration is read and what it means.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The current folder. Empty: that of the process.
    pub(crate) folder: PathBuf,
    /// FURLOUGH_CONFIG.
    pub(crate) config: Option<PathBuf>,
    /// What `~` is.
    pub(crate) home: Option<PathBuf>,
    /// DOCKER_HOST.
    pub(crate) docker_host: Option<String>,
    /// Where an engine listens by itself.
    pub(crate) docker_socket: PathBuf,
    /// Where OpenHands puts worktrees.
    pub(crate) worktree_root: PathBuf,
    /// Where OpenHands puts conversations.
    pub(crate) conversations: Option<PathBuf>,
}

impl Machine {
    fn here() -> Result<Self, SettingsError> {
        Ok(Self {
            folder: PathBuf::new(),
            config: system::env_path(Variable::Config),
            home: system::env_path(Variable::Home),
            docker_host: system::env(Variable::DockerHost)?,
            docker_socket: DOCKER_SOCKET.into(),
            worktree_root: system::env_path(Variable::WorktreeRoot).unwrap_or_else(|| WORKTREE_ROOT.into()),
            conversations: system::env_path(Variable::Conversations),
        })
    }

    fn load(&self, explicit: Option<&Path>) -> Result<Settings, SettingsError> {
        if let Some(path) = explicit {
            return self.open(path, "`--config`");
        }
        if let Some(path) = &self.config {
            return self.open(path, "`FURLOUGH_CONFIG`");
        }
        let local = self.folder.join(LOCAL);
        // A link that leads nowhere is a fault to be told, not a missing file.
        match local.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.built_in(),
            _ => self.open(&local, "a link"),
        }
    }

    fn built_in(&self) -> Result<Settings, SettingsError> {
        let Detected { text, found } = detect::look(self);
        let mut settings = parse_in(&text, "the built-in configuration", &self.around(Path::new(""))?)?;
        settings.source = Source::BuiltIn { text, found };
        Ok(settings)
    }

    fn open(&self, path: &Path, named_by: &'static str) -> Result<Settings, SettingsError> {
        let text = read(path, named_by)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut settings = parse_in(&text, &path.display().to_string(), &self.around(folder)?)?;
        settings.source = Source::File(path.to_owned());
        Ok(settings)
    }

    /// What the relative paths and the defaults of a configuration in `folder` mean.
    fn around(&self, folder: &Path) -> Result<Surroundings, SettingsError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let unreadable = |source| SettingsError::Unreadable { path: folder.to_owned(), source };
        Ok(Surroundings {
            folder: Some(std::path::absolute(folder).map_err(unreadable)?),
            home: self.home.clone(),
            docker_host: self.docker_host.clone(),
        })
    }
}

pub(crate) fn read(path: &Path, named_by: &'static str) -> Result<String, SettingsError> {
    let path_buf = || path.to_owned();
    let file = File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SettingsError::NotFound { path: path_buf(), named_by },
        _ => SettingsError::Unreadable { path: path_buf(), source },
    })?;
    let unreadable = |source| SettingsError::Unreadable { path: path_buf(), source };
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(SettingsError::Folder { path: path_buf() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SettingsError::TooLarge { path: path_buf() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        SettingsError::NotText { path: path_buf(), line: good.matches('\n').count() + 1 }
    })
}

#[cfg(test)]
mod tests;
