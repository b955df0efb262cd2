//! `[[backend]]`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lifecycle::{
    BackendName,
    policy::{Pattern, Prices},
};

use super::{SECOND, Surroundings, between, twice};
use crate::{
    BackendSettings, Cloudflare, Docker, Kind, Modal, OpenHandsApi, Provider, Repository, Scope, TerminateRunning,
    Worktree,
    detect::DOCKER_SOCKET,
    file::{
        BackendTable, CloudflareTable, DaytonaTable, DockerTable, E2bTable, List, ModalTable, OpenHandsTable,
        PriceTable, RepositoryTable, ScopeTable, WorktreeTable,
    },
    log::{Log, Problem, shown},
    read::At,
    scalar::{PathText, Rate, Text},
};

/// So many calls to git and the disk.
const WORKTREE_RATE: crate::Rate = crate::Rate::per_second(100);
/// So many calls to an engine on the same machine.
const DOCKER_RATE: crate::Rate = crate::Rate::per_second(20);
/// So many requests to a provider, of which a product has hundreds a second: room is left for it.
const PROVIDER_RATE: crate::Rate = crate::Rate::per_second(5);
/// E2B's own.
const E2B_URL: &str = "https://api.e2b.app";
/// Cloudflare's own.
const CLOUDFLARE_URL: &str = "https://api.cloudflare.com/client/v4";
/// Daytona's own.
const DAYTONA_URL: &str = "https://app.daytona.io/api";
/// Modal's own.
const MODAL_URL: &str = "https://api.modal.com";
/// The environment that a workspace at Modal begins with.
const MODAL_ENVIRONMENT: &str = "main";
/// OpenHands' own.
const OPENHANDS_URL: &str = "https://app.all-hands.dev";
/// The Runtime API below it.
const OPENHANDS_RUNTIME_URL: &str = "https://runtime.all-hands.dev";
/// What an agent server needs to stop with a tool running, with room (facts: 12 s for a 12 s tool).
const STOP_GRACE: Duration = Duration::from_mins(1);

/// A backend, with what the policy needs of it.
pub(super) struct Checked {
    pub(super) settings: BackendSettings,
    pub(super) prices: Prices,
}

pub(super) fn all(tables: Option<At<List<BackendTable>>>, around: &Surroundings, log: &mut Log<'_>) -> Vec<Checked> {
    let mut backends: Vec<Checked> = Vec::new();
    for At { value: table, span, path } in tables.into_iter().flat_map(|list| list.value) {
        let at = At { value: (), span, path };
        let checked = match table {
            BackendTable::Worktree(table) => worktree(*table, &at, around, log),
            BackendTable::Docker(table) => docker(*table, &at, around, log),
            BackendTable::Daytona(table) => daytona(*table, &at, log),
            BackendTable::E2b(table) => e2b(*table, &at, log),
            BackendTable::OpenHands(table) => openhands(*table, &at, log),
            BackendTable::Cloudflare(table) => cloudflare(*table, &at, log),
            BackendTable::Modal(table) => modal(*table, &at, log),
        };
        let Some(checked) = checked else { continue };
        alone(&checked.settings, &at, &backends, log);
        backends.push(checked);
    }
    backends
}

fn name(name: Option<At<Text>>, log: &mut Log<'_>) -> Option<BackendName> {
    let At { value, span, path } = name?;
    let wrong = |error: lifecycle::IdError| log.error(&path, &span, Problem::new(error.to_string()));
    BackendName::new(&value.0).map_err(wrong).ok()
}

fn prices(table: Option<At<PriceTable>>) -> Prices {
    let table = table.map(|table| table.value).unwrap_or_default();
    let micros = |price: Option<At<crate::scalar::Price>>| price.map_or(0, |price| price.value.0);
    Prices { running: micros(table.running), suspended: micros(table.suspended) }
}

fn rate(rate: Option<At<Rate>>, absent: crate::Rate) -> crate::Rate {
    rate.map_or(absent, |rate| rate.value.0)
}

fn worktree(table: WorktreeTable, at: &At<()>, around: &Surroundings, log: &mut Log<'_>) -> Option<Checked> {
    let nowhere = table.root.is_none() && table.repositories.as_ref().is_none_or(|list| list.value.is_empty());
    if nowhere {
        let problem = Problem::new("neither `root` nor `repositories`: there is nowhere to look");
        log.error(&at.path, &at.span, problem.wanting("`root`, `repositories` or both"));
    }
    let root = table.root.and_then(|root| located(root, around, log));
    let conversations = table.conversations.and_then(|path| located(path, around, log));
    let repositories = repositories(table.repositories, around, log);
    let trust_times = table.trust_times.is_some_and(|flag| flag.value.0);
    let kind = Kind::Worktree(Worktree { root, conversations, repositories, trust_times });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, WORKTREE_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn repositories(list: Option<At<List<RepositoryTable>>>, around: &Surroundings, log: &mut Log<'_>) -> Vec<Repository> {
    let mut known: Vec<Repository> = Vec::new();
    for At { value: table, span, path } in list.into_iter().flat_map(|list| list.value) {
        let Some(place) = located(table.path, around, log) else { continue };
        let own = || place.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = table.name.map(|name| name.value.0).or_else(own) else {
            log.error(
                &path,
                &span,
                Problem::new("the path has no last part to be its name; name it: `{ name, path }`"),
            );
            continue;
        };
        if known.iter().any(|other| other.name == name) {
            let mut problem = twice("repository", &name);
            problem.expected = Some("a name of its own: `{ name = \"…\", path = \"…\" }`".to_owned());
            log.error(&path, &span, problem);
        } else if known.iter().any(|other| other.path == place) {
            log.error(&path, &span, Problem::new(format!("{} stands twice", shown(&place.to_string_lossy()))));
        }
        known.push(Repository { name, path: place });
    }
    known
}

/// A path in its surroundings. `/` is refused: everything is below it.
fn located(at: At<PathText>, around: &Surroundings, log: &mut Log<'_>) -> Option<PathBuf> {
    let At { value: PathText(path), span, path: key } = at;
    let home = around.home.as_deref();
    let path = match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        (Ok(_), None) if around.folder.is_some() => {
            log.error(&key, &span, Problem::new("`~` is unknown here: HOME is not set; write the whole path"));
            return None;
        }
        _ => path,
    };
    let path = around.folder.as_ref().map_or(path.clone(), |folder| folder.join(path));
    // Also drops `.` and doubled or trailing slashes, so that equal places have equal paths.
    let path: PathBuf = path.components().collect();
    if path == Path::new("/") {
        log.error(&key, &span, Problem::new("`/` holds the whole machine; name the folder that holds the worktrees"));
        return None;
    }
    Some(path)
}

fn docker(table: DockerTable, at: &At<()>, around: &Surroundings, log: &mut Log<'_>) -> Option<Checked> {
    let scope_place = place_of(table.scope.as_ref(), at);
    let scope = scope(table.scope.map(|scope| scope.value).unwrap_or_default(), log);
    let openhands = table.openhands.is_some_and(|flag| flag.value.0);
    if scope.is_empty() && !openhands {
        let problem = "no `scope` and not `openhands = true`: no container is ours, all are only reported";
        log.warn(&scope_place.path, &scope_place.span, Problem::new(problem));
    }
    let host = match table.host {
        Some(At { value: Text(host), span, path }) => {
            if host.strip_prefix("unix:///").is_none_or(str::is_empty) {
                let problem = Problem::text("not a socket", &host, "the engine's socket, `unix:///PATH`");
                log.error(&path, &span, problem);
            }
            host
        }
        None => default_host(around, at, log),
    };
    let stop_grace = between(table.stop_grace, STOP_GRACE, SECOND..=Duration::from_mins(30), log);
    let kind = Kind::Docker(Docker { host, scope, openhands, stop_grace });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, DOCKER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn daytona(table: DaytonaTable, at: &At<()>, log: &mut Log<'_>) -> Option<Checked> {
    let url = table.url.map_or_else(|| DAYTONA_URL.to_owned(), |url| address(url, log));
    let scope = scope_of_sandboxes(table.scope, at, log);
    let kind = Kind::Daytona(Provider { url, key: table.api_key?.value, scope });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, PROVIDER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn e2b(table: E2bTable, at: &At<()>, log: &mut Log<'_>) -> Option<Checked> {
    let url = table.url.map_or_else(|| E2B_URL.to_owned(), |url| address(url, log));
    let scope = scope_of_sandboxes(table.scope, at, log);
    let kind = Kind::E2b(Provider { url, key: table.api_key?.value, scope });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, PROVIDER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn openhands(table: OpenHandsTable, at: &At<()>, log: &mut Log<'_>) -> Option<Checked> {
    let api = table.api.map_or(OpenHandsApi::Cloud, |word| word.value.0);
    let own = match api {
        OpenHandsApi::Cloud => OPENHANDS_URL,
        OpenHandsApi::Runtime => OPENHANDS_RUNTIME_URL,
    };
    let url = table.url.map_or_else(|| own.to_owned(), |url| address(url, log));
    if let Some(labels) = table.scope.as_ref().and_then(|scope| scope.value.labels.as_ref())
        && api == OpenHandsApi::Runtime
    {
        let problem = "the Runtime API tells no labels: nothing would be ours; name beginnings of sessions as `names`";
        log.error(&labels.path, &labels.span, Problem::new(problem));
    }
    let scope = scope_of_sandboxes(table.scope, at, log);
    let kind = Kind::OpenHands(api, Provider { url, key: table.api_key?.value, scope });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, PROVIDER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn cloudflare(table: CloudflareTable, at: &At<()>, log: &mut Log<'_>) -> Option<Checked> {
    let url = table.url.map_or_else(|| CLOUDFLARE_URL.to_owned(), |url| address(url, log));
    if let Some(labels) = table.scope.as_ref().and_then(|scope| scope.value.labels.as_ref()) {
        let problem =
            "Cloudflare's sandboxes have no labels: nothing would be ours; name beginnings of names as `names`";
        log.error(&labels.path, &labels.span, Problem::new(problem));
    }
    let scope = scope_of_sandboxes(table.scope, at, log);
    let kind = Kind::Cloudflare(Cloudflare {
        provider: Provider { url, key: table.api_key?.value, scope },
        account: part(table.account?, "account", log),
        application: part(table.application?, "application", log),
        worker: address(table.worker?, log),
        worker_key: table.worker_key?.value,
        destroy_running: table.destroy_running.is_some_and(|flag| flag.value.0),
    });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, PROVIDER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

fn modal(table: ModalTable, at: &At<()>, log: &mut Log<'_>) -> Option<Checked> {
    let url = table.url.map_or_else(|| MODAL_URL.to_owned(), |url| address(url, log));
    let scope = scope_of_sandboxes(table.scope, at, log);
    let kind = Kind::Modal(Modal {
        provider: Provider { url, key: table.token_secret?.value, scope },
        token_id: table.token_id?.value,
        environment: table.environment.map_or_else(|| MODAL_ENVIRONMENT.to_owned(), |name| name.value.0),
        terminate_running: table.terminate_running.map_or(TerminateRunning::Never, |word| word.value.0),
    });
    let settings = BackendSettings { name: name(table.name, log)?, rate: rate(table.rate, PROVIDER_RATE), kind };
    Some(Checked { settings, prices: prices(table.price) })
}

/// An id that is a part of an address.
fn part(At { value: Text(id), span, path }: At<Text>, what: &str, log: &mut Log<'_>) -> String {
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        let problem = Problem::text(format!("not the id of an {what}"), &id, "letters, digits, `-` and `_`");
        log.error(&path, &span, problem);
    }
    id
}

fn scope_of_sandboxes(table: Option<At<ScopeTable>>, at: &At<()>, log: &mut Log<'_>) -> Scope {
    let place = place_of(table.as_ref(), at);
    let scope = scope(table.map(|scope| scope.value).unwrap_or_default(), log);
    if scope.is_empty() {
        let problem = "no `scope`: no sandbox is ours, all are only reported";
        log.warn(&place.path, &place.span, Problem::new(problem));
    }
    scope
}

/// Where a scope stands, or the backend that has none.
fn place_of(scope: Option<&At<ScopeTable>>, at: &At<()>) -> At<()> {
    scope.map_or_else(|| at.clone(), |scope| At { value: (), span: scope.span.clone(), path: scope.path.clone() })
}

/// The address of an API, to which a key is sent.
fn address(At { value: Text(url), span, path }: At<Text>, log: &mut Log<'_>) -> String {
    let open = url.strip_prefix("http://");
    let rest = url.strip_prefix("https://").or(open).unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let here = ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|host| authority.strip_prefix(host).is_some_and(|port| port.is_empty() || port.starts_with(':')));
    let plain = !rest.contains(['?', '#', '@', ' ']) && !authority.is_empty() && !authority.starts_with(':');
    if !plain || (open.is_some() && !here) {
        let wanted = "`https://HOST/PATH`, or `http://` to this machine alone, since a key goes there";
        log.error(&path, &span, Problem::text("not the address of an API", &url, wanted));
    }
    url
}

fn default_host(around: &Surroundings, at: &At<()>, log: &mut Log<'_>) -> String {
    let host = around.docker_host.clone().unwrap_or_else(|| format!("unix://{DOCKER_SOCKET}"));
    if !host.starts_with("unix:///") {
        let problem = format!("DOCKER_HOST is {}, and only sockets are spoken to; name one as `host`", shown(&host));
        log.error(&at.path, &at.span, Problem::new(problem).wanting("`unix:///PATH`"));
    }
    host
}

fn scope(ScopeTable { labels, names }: ScopeTable, log: &mut Log<'_>) -> Scope {
    let empty = [
        labels.as_ref().filter(|labels| labels.value.is_empty()).map(|labels| (&labels.path, &labels.span)),
        names.as_ref().filter(|names| names.value.is_empty()).map(|names| (&names.path, &names.span)),
    ];
    for (path, span) in empty.into_iter().flatten() {
        if !log.told(path) {
            let problem = "an empty condition could mean every container or none; name something, or leave it out";
            log.error(path, span, Problem::new(problem));
        }
    }
    let labels = labels.into_iter().flat_map(|labels| labels.value);
    let names = names.into_iter().flat_map(|names| names.value);
    Scope {
        labels: labels.map(|(key, value)| (key, Pattern::new(value.value.0))).collect(),
        names: names.map(|name| name.value.0).collect(),
    }
}

/// One runtime in two backends would have two records, and two hands on it.
fn alone(new: &BackendSettings, at: &At<()>, others: &[Checked], log: &mut Log<'_>) {
    for other in others.iter().map(|other| &other.settings) {
        if other.name == new.name {
            log.error(&format!("{}.name", at.path), &at.span, twice("backend", new.name.as_str()));
        }
        match (&new.kind, &other.kind) {
            (Kind::Worktree(new), Kind::Worktree(old)) => {
                for place in shared_places(new, old) {
                    let problem = format!("{} is in backend `{}` already", shown(&place.to_string_lossy()), other.name);
                    log.error(&at.path, &at.span, Problem::new(problem));
                }
            }
            (Kind::Docker(new), Kind::Docker(old)) if new.host == old.host => {
                let problem =
                    format!("backend `{}` has the same engine; make sure that no container is in both", other.name);
                log.warn(&at.path, &at.span, Problem::new(problem));
            }
            (Kind::Daytona(new), Kind::Daytona(old))
            | (Kind::E2b(new), Kind::E2b(old))
            | (Kind::OpenHands(_, new), Kind::OpenHands(_, old))
                if (&new.url, &new.key) == (&old.url, &old.key) =>
            {
                let problem =
                    format!("backend `{}` has the same account; make sure that no sandbox is in both", other.name);
                log.warn(&at.path, &at.span, Problem::new(problem));
            }
            (Kind::Cloudflare(new), Kind::Cloudflare(old))
                if (&new.account, &new.application) == (&old.account, &old.application) =>
            {
                let problem =
                    format!("backend `{}` has the same application; make sure that no sandbox is in both", other.name);
                log.warn(&at.path, &at.span, Problem::new(problem));
            }
            (Kind::Modal(new), Kind::Modal(old))
                if (&new.environment, &new.provider.key) == (&old.environment, &old.provider.key) =>
            {
                let problem =
                    format!("backend `{}` has the same environment; make sure that no sandbox is in both", other.name);
                log.warn(&at.path, &at.span, Problem::new(problem));
            }
            _ => {}
        }
    }
}

/// Roots of which one holds the other, and repositories that are in both.
fn shared_places<'a>(new: &'a Worktree, old: &'a Worktree) -> Vec<&'a Path> {
    let roots = new.root.as_deref().zip(old.root.as_deref());
    let nested = roots.filter(|(new, old)| new.starts_with(old) || old.starts_with(new)).map(|(new, _)| new);
    let both =
        new.repositories.iter().filter(|repository| old.repositories.iter().any(|other| other.path == repository.path));
    nested.into_iter().chain(both.map(|repository| repository.path.as_path())).collect()
}
