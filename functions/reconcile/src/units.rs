//! Backends from their settings.

use std::{path::Path, sync::Arc, time::Duration};

use backend::{Backend, Clock};
use backend_docker::{Options as DockerOptions, Scope};
use backend_modal::Terminate;
use backend_rest::{
    Key,
    cloudflare::{self, DestroyRunning},
    daytona, e2b, openhands,
};
use backend_worktree::{Options as WorktreeOptions, Repository, Root};
use lifecycle::BackendName;
use pass::{Gate, Unit};
use settings::{
    BackendSettings, Cloudflare, Docker, Kind, Modal, OpenHandsApi, Provider, Secret, SecretSource, Settings, Source,
    TerminateRunning, Worktree, system,
};

/// A backend that can't be made as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("backend `{backend}`: {why}")]
pub struct UnitError {
    /// Which.
    pub backend: BackendName,
    /// Why, for people.
    pub why: String,
}

/// Configured backends, each with its pace. None is asked anything yet. `data`: where what is saved of a worktree
/// goes; `None`: this process is not on a machine that has any. `only`: these, or all where it is empty. `secret`: reads
/// a provider's key, or says for people why there is none.
pub async fn units(
    settings: &Settings,
    data: Option<&Path>,
    only: &[BackendName],
    clock: &Clock,
    secret: impl AsyncFn(&SecretSource) -> Result<Arc<Secret>, String>,
) -> Result<Vec<Unit>, UnitError> {
    let detected = matches!(settings.source, Source::BuiltIn { .. });
    let mut units = Vec::new();
    for configured in settings.backends.iter().filter(|backend| only.is_empty() || only.contains(&backend.name)) {
        let backend = match &configured.kind {
            Kind::Worktree(worktree) => {
                let why = "worktrees are on one machine, and this is none of its processes; use `furlough run` there";
                let data = data.ok_or_else(|| wrong(configured, why))?;
                worktrees(configured, worktree, data, detected, clock)
            }
            Kind::Docker(docker) => containers(configured, docker, clock).await?,
            Kind::Daytona(provider) => {
                daytonas(configured, provider, key(configured, secret(&provider.key).await)?, clock)?
            }
            Kind::E2b(provider) => e2bs(configured, provider, key(configured, secret(&provider.key).await)?, clock)?,
            Kind::OpenHands(api, provider) => {
                openhands(configured, *api, provider, key(configured, secret(&provider.key).await)?, clock)?
            }
            Kind::Cloudflare(application) => {
                let own = key(configured, secret(&application.provider.key).await)?;
                let worker = read(configured, "worker_key", secret(&application.worker_key).await)?;
                cloudflares(configured, application, own, worker, clock)?
            }
            Kind::Modal(environment) => {
                let id = read(configured, "token_id", secret(&environment.token_id).await)?;
                let token = read(configured, "token_secret", secret(&environment.provider.key).await)?;
                modals(configured, environment, (id, token), clock)?
            }
        };
        units.push(Unit { backend, gate: gate(configured) });
    }
    Ok(units)
}

fn wrong(configured: &BackendSettings, why: impl Into<String>) -> UnitError {
    UnitError { backend: configured.name.clone(), why: why.into() }
}

/// A call of a backend is one request or a few: those of a provider are paced one by one, by the backend itself.
fn gate(configured: &BackendSettings) -> Gate {
    match configured.kind {
        Kind::Worktree(_) | Kind::Docker(_) => Gate::per(configured.rate.calls, configured.rate.per),
        Kind::Daytona(_) | Kind::E2b(_) | Kind::OpenHands(..) | Kind::Cloudflare(_) | Kind::Modal(_) => Gate::open(),
    }
}

/// The longest that an act of a backend may wait for the runtime itself.
pub fn longest_wait(configured: &BackendSettings) -> Duration {
    match &configured.kind {
        Kind::Worktree(_) => Duration::ZERO,
        Kind::Docker(docker) => docker.stop_grace,
        Kind::Daytona(_) => daytona::LONGEST_WAIT,
        Kind::E2b(_) => e2b::LONGEST_WAIT,
        Kind::OpenHands(..) => openhands::LONGEST_WAIT,
        Kind::Cloudflare(_) => cloudflare::LONGEST_WAIT,
        Kind::Modal(_) => backend_modal::LONGEST_WAIT,
    }
}

fn worktrees(configured: &BackendSettings, worktree: &Worktree, data: &Path, detected: bool, clock: &Clock) -> Backend {
    let saves = data.join("saves").join(configured.name.as_str());
    let root = worktree.root.clone().map(if detected { Root::Detected } else { Root::Configured });
    let repositories = worktree.repositories.iter();
    let repositories = repositories.map(|known| Repository { name: known.name.clone(), path: known.path.clone() });
    backend_worktree::backend(WorktreeOptions {
        root,
        conversations: worktree.conversations.clone(),
        repositories: repositories.collect(),
        trust_times: worktree.trust_times,
        ..WorktreeOptions::new(configured.name.clone(), clock.clone(), saves, system::temp_dir())
    })
}

async fn containers(configured: &BackendSettings, docker: &Docker, clock: &Clock) -> Result<Backend, UnitError> {
    let options = DockerOptions {
        host: Some(docker.host.clone()),
        scope: Scope { labels: docker.scope.labels.clone(), name_prefixes: docker.scope.names.clone() },
        openhands: docker.openhands,
        stop_grace: docker.stop_grace,
        ..DockerOptions::new(configured.name.clone(), clock.clone())
    };
    let connected = backend_docker::connect(options).await;
    connected.map(backend_docker::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn daytonas(configured: &BackendSettings, provider: &Provider, key: Key, clock: &Clock) -> Result<Backend, UnitError> {
    let connected = daytona::connect(daytona::Options {
        name: configured.name.clone(),
        clock: clock.clone(),
        url: provider.url.clone(),
        key,
        scope: scope(provider),
        rate: (configured.rate.calls, configured.rate.per),
    });
    connected.map(daytona::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn e2bs(configured: &BackendSettings, provider: &Provider, key: Key, clock: &Clock) -> Result<Backend, UnitError> {
    let connected = e2b::connect(e2b::Options {
        name: configured.name.clone(),
        clock: clock.clone(),
        url: provider.url.clone(),
        key,
        scope: scope(provider),
        rate: (configured.rate.calls, configured.rate.per),
    });
    connected.map(e2b::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn openhands(
    configured: &BackendSettings,
    api: OpenHandsApi,
    provider: &Provider,
    key: Key,
    clock: &Clock,
) -> Result<Backend, UnitError> {
    let connected = openhands::connect(openhands::Options {
        name: configured.name.clone(),
        clock: clock.clone(),
        which: match api {
            OpenHandsApi::Cloud => openhands::Which::Cloud,
            OpenHandsApi::Runtime => openhands::Which::Runtime,
        },
        url: provider.url.clone(),
        key,
        scope: scope(provider),
        rate: (configured.rate.calls, configured.rate.per),
    });
    connected.map(openhands::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn cloudflares(
    configured: &BackendSettings,
    application: &Cloudflare,
    key: Key,
    worker_key: Key,
    clock: &Clock,
) -> Result<Backend, UnitError> {
    let connected = cloudflare::connect(cloudflare::Options {
        name: configured.name.clone(),
        clock: clock.clone(),
        url: application.provider.url.clone(),
        key,
        account: application.account.clone(),
        application: application.application.clone(),
        worker: application.worker.clone(),
        worker_key,
        scope: scope(&application.provider),
        destroy_running: if application.destroy_running { DestroyRunning::WhenIdle } else { DestroyRunning::Never },
        rate: (configured.rate.calls, configured.rate.per),
    });
    connected.map(cloudflare::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn modals(
    configured: &BackendSettings,
    environment: &Modal,
    token: (Key, Key),
    clock: &Clock,
) -> Result<Backend, UnitError> {
    let connected = backend_modal::connect(backend_modal::Options {
        name: configured.name.clone(),
        clock: clock.clone(),
        url: environment.provider.url.clone(),
        token,
        environment: environment.environment.clone(),
        scope: scope(&environment.provider),
        terminate: match environment.terminate_running {
            TerminateRunning::Never => Terminate::Never,
            TerminateRunning::Snapshot => Terminate::AfterSnapshot,
            TerminateRunning::Discard => Terminate::AtOnce,
        },
        rate: (configured.rate.calls, configured.rate.per),
    });
    connected.map(backend_modal::backend).map_err(|error| wrong(configured, error.to_string()))
}

fn key(configured: &BackendSettings, secret: Result<Arc<Secret>, String>) -> Result<Key, UnitError> {
    read(configured, "api_key", secret)
}

/// The key that is configured as `name`.
fn read(configured: &BackendSettings, name: &str, secret: Result<Arc<Secret>, String>) -> Result<Key, UnitError> {
    let secret = secret.map_err(|why| wrong(configured, format!("`{name}`: {why}")))?;
    Ok(Key::new(secret.reveal()))
}

fn scope(Provider { scope, .. }: &Provider) -> backend_rest::Scope {
    backend_rest::Scope { labels: scope.labels.clone(), name_prefixes: scope.names.clone() }
}
