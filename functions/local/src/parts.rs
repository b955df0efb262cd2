//! The parts, built from the settings: backends, ledger, pass.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use backend::Clock;
use lifecycle::duration::Human;
use pass::{Limits, Notifier, Pass};
use settings::{Settings, Source, system};

use crate::{answer::Fault, commands::faulty, progress, stop::Stopped, terminal::Terminal};

mod store;

/// The longest part of a user's name in a claim's owner.
const MAX_USER_CHARS: usize = 20;

/// What is configured and where records are: all that the parts are built from.
pub(crate) struct Plant {
    /// The configuration.
    pub(crate) settings: Settings,
    /// Records and saves.
    pub(crate) data: PathBuf,
    /// Who watches.
    pub(crate) terminal: Terminal,
    /// Whether its passes are to begin nothing new.
    pub(crate) stopped: Stopped,
}

impl Plant {
    /// From the configuration, or from what is found on this machine. What its author may not mean is said on stderr.
    pub(crate) fn configured(config: Option<&Path>, terminal: Terminal) -> Result<Self, Fault> {
        let settings = settings::load(config).map_err(|error| faulty(&error))?;
        let data = system::data_dir().map_err(|error| faulty(&error))?;
        match &settings.source {
            Source::BuiltIn { .. } => terminal.note(&format!("{}", settings.source)),
            Source::File(path) => {
                let name = path.display().to_string();
                settings.warnings.iter().for_each(|warning| terminal.note(&warning.in_file(&name).to_string()));
            }
            Source::Text(_) => {}
        }
        Ok(Self { settings, data, terminal, stopped: Stopped::default() })
    }

    /// A pass that looks and leaves no trace: its records are a copy in memory.
    pub(crate) async fn looking(&self) -> Result<Pass, Fault> {
        let ledger = store::looking(&self.data, &self.settings.policy).await?;
        self.pass("look", ledger, None).await
    }

    /// A pass that can act. `word`: the command, for the history.
    pub(crate) async fn acting(&self, word: &str) -> Result<Pass, Fault> {
        let ledger = store::acting(&self.data, &self.settings.policy).await?;
        self.pass(word, ledger, self.notifier()?).await
    }

    /// A copy of the records, to look at.
    pub(crate) async fn copy(&self) -> Result<ledger::Ledger, Fault> {
        store::looking(&self.data, &self.settings.policy).await
    }

    /// The records themselves, and the store that they are in, for whoever serves them.
    pub(crate) async fn store(&self) -> Result<(embedded::Embedded, ledger::Ledger), Fault> {
        store::opened(&self.data, &self.settings.policy).await
    }

    async fn pass(
        &self,
        word: &str,
        ledger: ledger::Ledger,
        notifier: Option<Arc<dyn Notifier>>,
    ) -> Result<Pass, Fault> {
        Ok(Pass {
            ledger,
            units: self.units().await?,
            policy: Arc::new(self.settings.policy.clone()),
            clock: clock(),
            owner: owner(word),
            limits: self.limits(),
            notifier,
            watch: progress::watch(self.terminal, self.stopped.clone()),
        })
    }

    /// Every configured backend, with its pace. None is asked anything yet.
    async fn units(&self) -> Result<Vec<pass::Unit>, Fault> {
        let key = async |source: &_| system::secret(source).map(Arc::new).map_err(|error| error.to_string());
        let units = reconcile::units(&self.settings, Some(&self.data), &[], &clock(), key).await;
        units.map_err(|error| Fault::usage("configuration", error))
    }

    fn limits(&self) -> Limits {
        let (asked, usual) = (&self.settings.pass, Limits::default());
        // A stop that waits for the agent server must end within its act.
        let grace = self.settings.backends.iter().map(reconcile::longest_wait).max().unwrap_or_default();
        Limits {
            concurrency: usize::try_from(asked.concurrency.get()).unwrap_or(usize::MAX),
            duration: asked.deadline,
            sweep_every: asked.sweep_every,
            act_timeout: usual.act_timeout.saturating_add(grace),
            ..usual
        }
    }

    fn notifier(&self) -> Result<Option<Arc<dyn Notifier>>, Fault> {
        let Some(notify) = &self.settings.notify else { return Ok(None) };
        let secret = notify.secret.as_ref().map(system::secret).transpose().map_err(|error| faulty(&error))?;
        let secret = secret.as_ref().map(|secret| secret.reveal().as_bytes());
        let webhook = pass::Webhook::new(notify.url.reveal(), secret, clock());
        let webhook = webhook.map_err(|error| Fault::usage("configuration", error))?;
        Ok(Some(Arc::new(webhook)))
    }
}

/// The real clock.
pub(crate) fn clock() -> Clock {
    Clock::new(system::now)
}

/// Who acts, for people and for claims: `ada/apply/3f9c2a1b`. Each run of a command is another.
pub(crate) fn owner(word: &str) -> String {
    let user: String = system::user().chars().filter(char::is_ascii_graphic).take(MAX_USER_CHARS).collect();
    let unique = system::unique();
    format!("{user}/{word}/{}", unique.get(..8).unwrap_or(&unique))
}

/// Why a pass came to nothing as a whole.
pub(crate) fn pass_fault(error: &pass::PassError) -> Fault {
    match error {
        pass::PassError::Refused(_) | pass::PassError::NoBackend { .. } => Fault::failed("plan_refused", error),
        pass::PassError::Ledger(error) => Fault::failed("ledger", error),
    }
}

/// Why the ledger gave no answer.
pub(crate) fn ledger_fault(error: ledger::LedgerError) -> Fault {
    pass_fault(&pass::PassError::Ledger(error))
}

/// A duration as people write it; zero is refused, since nothing that lasts no time can be meant.
pub(crate) fn span(text: &str) -> Result<std::time::Duration, Fault> {
    let span = lifecycle::duration::parse(text).map_err(|error| Fault::usage("duration", error))?;
    if span.is_zero() {
        let problem = format!("`{text}` is {}: give a duration above zero, as `7d`", Human(span));
        return Err(Fault::usage("duration", problem));
    }
    Ok(span)
}
