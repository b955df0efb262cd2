//! Backends from their settings.

use std::{path::Path, time::Duration};

use backend::Backend;
use backend_docker::{Options as DockerOptions, Scope};
use backend_worktree::{Options as WorktreeOptions, Repository, Root};
use pass::{Gate, Unit};
use settings::{BackendSettings, Docker, Kind, Settings, Source, Worktree, system};

use super::clock;
use crate::answer::Fault;

/// Every configured backend, with its pace. None is asked anything yet.
pub(super) async fn units(settings: &Settings, data: &Path) -> Result<Vec<Unit>, Fault> {
    let detected = matches!(settings.source, Source::BuiltIn { .. });
    let mut units = Vec::new();
    for configured in &settings.backends {
        let backend = match &configured.kind {
            Kind::Worktree(worktree) => worktrees(configured, worktree, data, detected),
            Kind::Docker(docker) => containers(configured, docker).await?,
        };
        units.push(Unit { backend, gate: Gate::per(configured.rate.calls, configured.rate.per) });
    }
    Ok(units)
}

/// The longest that an act of a backend may wait for the runtime itself.
pub(super) fn longest_wait(configured: &BackendSettings) -> Duration {
    match &configured.kind {
        Kind::Worktree(_) => Duration::ZERO,
        Kind::Docker(docker) => docker.stop_grace,
    }
}

fn worktrees(configured: &BackendSettings, worktree: &Worktree, data: &Path, detected: bool) -> Backend {
    let saves = data.join("saves").join(configured.name.as_str());
    let root = worktree.root.clone().map(if detected { Root::Detected } else { Root::Configured });
    let repositories = worktree.repositories.iter();
    let repositories = repositories.map(|known| Repository { name: known.name.clone(), path: known.path.clone() });
    backend_worktree::backend(WorktreeOptions {
        root,
        conversations: worktree.conversations.clone(),
        repositories: repositories.collect(),
        trust_times: worktree.trust_times,
        ..WorktreeOptions::new(configured.name.clone(), clock(), saves, system::temp_dir())
    })
}

async fn containers(configured: &BackendSettings, docker: &Docker) -> Result<Backend, Fault> {
    let options = DockerOptions {
        host: Some(docker.host.clone()),
        scope: Scope { labels: docker.scope.labels.clone(), name_prefixes: docker.scope.names.clone() },
        openhands: docker.openhands,
        stop_grace: docker.stop_grace,
        ..DockerOptions::new(configured.name.clone(), clock())
    };
    let connected = backend_docker::connect(options).await;
    connected.map(backend_docker::backend).map_err(|error| Fault::usage("configuration", error))
}
