//! From what the engine shows of one container to what Furlough knows of a runtime. Pure.

use std::sync::Arc;

use lifecycle::{
    Activity, BackendName, Busy, Cannot, FileSizes, Incarnation, Loss, Observation, Ownership, Role, RuntimeId, State,
    Time, activity::MAX_BUSY,
};

use crate::{
    Options,
    wire::{Inspected, Mount, Summary},
};

/// A container's status as the engine names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Made, never started, or its start failed. It stays so for ever.
    Created,
    /// Running.
    Running,
    /// Frozen; nothing records since when.
    Paused,
    /// Between two runs.
    Restarting,
    /// On its way to exited.
    Stopping,
    /// Its removal was begun.
    Removing,
    /// Stopped. Its files are there.
    Exited,
    /// Its removal failed half-way.
    Dead,
}

impl Status {
    /// `None`: a status that this version does not know.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "created" | "configured" | "initialized" => Self::Created,
            "running" => Self::Running,
            "paused" => Self::Paused,
            "restarting" => Self::Restarting,
            "stopping" => Self::Stopping,
            "removing" => Self::Removing,
            "exited" | "stopped" => Self::Exited,
            "dead" => Self::Dead,
            _ => return None,
        })
    }

    /// The state in Furlough's words.
    pub(crate) fn state(self) -> State {
        match self {
            Self::Running | Self::Paused | Self::Restarting => State::Running,
            Self::Stopping => State::Suspending,
            Self::Created | Self::Exited | Self::Dead => State::Suspended,
            Self::Removing => State::Deleting,
        }
    }
}

impl Inspected {
    /// The name without the `/` that the engine puts before it.
    pub(crate) fn bare_name(&self) -> &str {
        bare(&self.name)
    }

    /// Which run of the container this is: each start changes it. A pause does not.
    pub(crate) fn incarnation(&self) -> Incarnation {
        let started = if time(&self.state.started_at).is_some() { &self.state.started_at } else { "created" };
        Incarnation::new(format!("{}@{started}", self.id))
    }

    /// The same without sizes, for a look that did not ask for them: podman then answers zeros.
    pub(crate) fn unmeasured(self) -> Self {
        Self { size_rw: None, size_root_fs: None, ..self }
    }

    /// Bytes written over the image, where the engine measured them. Podman leaves a 0 out: what tells that
    /// it measured is then the size of the whole.
    pub(crate) fn written(&self) -> Option<u64> {
        let whole = self.size_root_fs.filter(|whole| *whole > 0);
        self.size_rw.or(whole.map(|_| 0)).and_then(|bytes| u64::try_from(bytes).ok())
    }

    /// What deleting it would lose.
    pub(crate) fn loss(&self) -> Loss {
        let Some(written) = self.written() else { return Loss::Unknown };
        let layer = (written > 0).then(|| format!("{} written in the container", bytes(written)));
        let volumes = self.mounts.iter().filter(|mount| mount.is_anonymous()).map(Mount::about);
        let work: Vec<Arc<str>> = layer.into_iter().chain(volumes).map(Arc::from).collect();
        if work.is_empty() { Loss::Nothing } else { Loss::Work(work) }
    }

    /// Stopping it deletes it.
    pub(crate) fn stop_deletes(&self) -> bool {
        self.host_config.auto_remove
    }

    /// The engine starts it again by itself after its own restart, also after a stop by hand.
    pub(crate) fn comes_back(&self) -> bool {
        self.host_config.restart_policy.name == "always"
    }

    /// Until when a command that somebody runs in it vetoes idleness.
    ///
    /// [`MAX_BUSY`] from when it began: after that an exec that somebody left open counts for nothing, and the
    /// container's activity is unknown, which is still never idle. An engine remembers its last few events only;
    /// where it has forgotten this one (or never knew, as podman), the command may have begun just now, so that it vetoes
    /// for as long as it runs. Never counted is the start of the container, which says nothing of the command.
    fn busy(&self, status: Status, now: Time) -> Busy {
        if status != Status::Running || self.execs.is_empty() {
            return Busy::No;
        }
        let until = self.execs_begun.map_or(now, |begun| begun.min(now)).plus(MAX_BUSY);
        if until > now { Busy::Until(until) } else { Busy::No }
    }

    fn cannot(&self, status: Status) -> Vec<Cannot> {
        if !self.stop_deletes() || status == Status::Created {
            return Vec::new();
        }
        let why: Arc<str> = Arc::from("`--rm` container: stopping it deletes it");
        [Role::Suspend, Role::Delete].into_iter().map(|role| Cannot { role, why: why.clone() }).collect()
    }

    fn about(&self) -> String {
        let (name, image) = (self.bare_name(), &self.config.image);
        let rm = if self.stop_deletes() { ", --rm" } else { "" };
        let restart = if self.comes_back() { ", restart=always" } else { "" };
        let execs = if self.execs.is_empty() { "" } else { ", a command runs in it" };
        format!("{name} ({image}{rm}{restart}{execs})")
    }

    /// What Furlough knows of it at `now`. An error says, for people, what can't be read.
    pub(crate) fn observation(&self, options: &Options, now: Time) -> Result<Observation, String> {
        let status = Status::parse(&self.state.status).ok_or_else(|| {
            format!("container `{}` is in a state that this version does not know: kept", self.bare_name())
        })?;
        let started = time(&self.state.started_at);
        let finished = time(&self.state.finished_at).max(started);
        let created = time(&self.created);
        let (state_since, running_since, activity) = match status {
            Status::Created => (created, None, created.map_or(Activity::Unknown, Activity::At)),
            Status::Exited | Status::Dead => (finished, None, finished.map_or(Activity::Unknown, Activity::At)),
            Status::Paused => (started, started, Activity::Frozen),
            Status::Running => (started, started, Activity::Unknown),
            Status::Restarting | Status::Stopping => (None, started, Activity::Unknown),
            Status::Removing => (None, None, Activity::Unknown),
        };
        Ok(Observation {
            id: id(&options.name, &self.id)?,
            incarnation: self.incarnation(),
            state: status.state(),
            state_since,
            running_since,
            activity,
            busy: self.busy(status, now),
            ownership: options.scope.ownership(options.openhands, self.bare_name(), &self.config.labels),
            labels: Arc::new(self.config.labels.clone()),
            cannot: self.cannot(status),
            loss: self.loss(),
            files: FileSizes { caches: None, dependencies: None, total: self.written() },
            native: None,
            sharers: 1,
            about: self.about().into(),
        })
    }
}

impl Summary {
    /// The name without the `/`. A container has more only through legacy links.
    pub(crate) fn bare_name(&self) -> &str {
        self.names.first().map_or("", |name| bare(name))
    }

    /// Somebody else's container, which is counted and never looked into.
    pub(crate) fn observation(self, name: &BackendName, ownership: Ownership) -> Result<Observation, String> {
        Ok(Observation {
            id: id(name, &self.id)?,
            incarnation: Incarnation::new(self.id.as_str()),
            state: State::Running,
            state_since: None,
            running_since: None,
            activity: Activity::Unknown,
            busy: Busy::No,
            ownership,
            cannot: Vec::new(),
            loss: Loss::Unknown,
            files: FileSizes::default(),
            native: None,
            sharers: 1,
            about: format!("{} ({})", self.bare_name(), self.image).into(),
            labels: Arc::new(self.labels),
        })
    }
}

impl Mount {
    /// A volume that was made with the container and goes with it. The engine names those by 64 hex digits.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.kind == "volume" && is_full_id(&self.name)
    }

    /// One line for people.
    pub(crate) fn about(&self) -> String {
        let at = &self.destination;
        match self.kind.as_str() {
            "volume" if self.is_anonymous() => format!("anonymous volume `{}` at `{at}`", &self.name[..12]),
            "volume" => format!("volume `{}` at `{at}`", self.name),
            kind => format!("{kind} mount of `{}` at `{at}`", self.source),
        }
    }
}

/// A container's id in full.
pub(crate) fn is_full_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn id(backend: &BackendName, container: &str) -> Result<RuntimeId, String> {
    if !is_full_id(container) {
        return Err("a container's id is not 64 hex digits: kept".to_owned());
    }
    RuntimeId::new(backend, container.as_bytes()).map_err(|error| error.to_string())
}

fn bare(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// `0001-01-01T00:00:00Z` is how an engine writes "never".
pub(crate) fn time(text: &str) -> Option<Time> {
    text.parse::<Time>().ok().filter(|time| time.millis() > 0)
}

/// Bytes for people, in powers of ten as Docker shows them.
fn bytes(count: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", count / size, count % size / (size / 10)),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
