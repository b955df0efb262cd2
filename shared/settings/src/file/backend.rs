//! `[[backend]]`: each kind has its own keys.

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{
    OpenHandsApi, SecretSource, TerminateRunning,
    file::{Labels, List},
    log::{Log, Problem},
    nearest::nearest,
    read::{At, Node, Read, Scalar, as_table, at, join, listed, table},
    scalar::{Flag, PathText, Period, Price, Rate, Text, Word, text},
};

/// What this version has.
const KINDS: [&str; 7] = ["worktree", "docker", "daytona", "e2b", "openhands", "cloudflare", "modal"];

/// One `[[backend]]`.
#[derive(Debug)]
pub(crate) enum BackendTable {
    /// `kind = "worktree"`
    Worktree(Box<WorktreeTable>),
    /// `kind = "docker"`
    Docker(Box<DockerTable>),
    /// `kind = "daytona"`
    Daytona(Box<DaytonaTable>),
    /// `kind = "e2b"`
    E2b(Box<E2bTable>),
    /// `kind = "openhands"`
    OpenHands(Box<OpenHandsTable>),
    /// `kind = "cloudflare"`
    Cloudflare(Box<CloudflareTable>),
    /// `kind = "modal"`
    Modal(Box<ModalTable>),
}

table! {
    /// Git worktrees.
    WorktreeTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// A folder as OpenHands makes it: `ROOT/CONVERSATION/REPOSITORY`.
        root: PathText,
        /// OpenHands' `conversations` folder, which tells activity and sharers.
        conversations: PathText,
        /// Repositories whose worktrees are managed too: a path, or `{ name, path }`.
        repositories: List<RepositoryTable>,
        /// Worktrees that were copied (to another disk, from a backup) are as old as their files say. Default false:
        /// as new as the copy.
        trust_times: Flag,
        /// At most so many calls. Default `100/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: Worktree = required,
    }
}

table! {
    /// Containers of one Docker engine, or of podman's compatible API.
    DockerTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// The engine, `unix:///PATH`. Default: DOCKER_HOST, else `unix:///var/run/docker.sock`.
        host: Text,
        /// Which containers are ours. None: they are only reported.
        scope: ScopeTable,
        /// OpenHands' containers, known by their names and labels, are ours too. Default false.
        openhands: Flag,
        /// A stop waits this long before it kills. Default `60s`.
        stop_grace: Period,
        /// At most so many calls. Default `20/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: Docker = required,
    }
}

table! {
    /// Sandboxes of one organisation at Daytona.
    DaytonaTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// The API, with its `/api`. Default: `https://app.daytona.io/api`.
        url: Text,
        /// Its key: it needs `write:sandboxes`, and `delete:sandboxes` where a policy deletes.
        api_key: SecretSource = required,
        /// Which sandboxes are ours. None: they are only reported.
        scope: ScopeTable,
        /// At most so many requests; the product's count too. Default `5/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: Daytona = required,
    }
}

table! {
    /// Sandboxes of one team at E2B.
    E2bTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// The API. Default: `https://api.e2b.app`.
        url: Text,
        /// Its key.
        api_key: SecretSource = required,
        /// Which sandboxes are ours: by their metadata (`labels`) and their template's name. None: they are only reported.
        scope: ScopeTable,
        /// At most so many requests; the product's count too. Default `5/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: E2b = required,
    }
}

table! {
    /// Sandboxes of one user at OpenHands Cloud or another app server, or runtimes of its Runtime API.
    OpenHandsTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// Which API is spoken to. Default `cloud`.
        api: Word<OpenHandsApi>,
        /// Where it is. Default: `https://app.all-hands.dev`, for `runtime` `https://runtime.all-hands.dev`.
        url: Text,
        /// Its key.
        api_key: SecretSource = required,
        /// Which sandboxes are ours: by the tags of their conversations (`labels`) and their specification (`names`); for
        /// `runtime` by their session. None: they are only reported.
        scope: ScopeTable,
        /// At most so many requests; the product's count too. Default `5/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: OpenHands = required,
    }
}

table! {
    /// Sandboxes of one container application at Cloudflare.
    CloudflareTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// The API. Default: `https://api.cloudflare.com/client/v4`.
        url: Text,
        /// An API token that may read containers.
        api_key: SecretSource = required,
        /// The account's id.
        account: Text = required,
        /// The container application's id.
        application: Text = required,
        /// Where the companion Worker of `infra/cloudflare` is, which is bound to that application's class.
        worker: Text = required,
        /// The Worker's `FURLOUGH_KEY`.
        worker_key: SecretSource = required,
        /// Which sandboxes are ours, by the beginning of their name (`names`): they have no labels. None: they are only
        /// reported.
        scope: ScopeTable,
        /// One that was idle for `idle.after` and `retention.suspended` is destroyed from running, files and all: there is
        /// no other state. Default false: nothing is ever deleted.
        destroy_running: Flag,
        /// At most so many requests, to the API and the Worker together. Default `5/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: Cloudflare = required,
    }
}

table! {
    /// Sandboxes of one environment at Modal.
    ModalTable {
        /// Its name in ids, policies and reports: `[A-Za-z0-9._~-]{1,128}`.
        name: Text = required,
        /// The API. Default: `https://api.modal.com`.
        url: Text,
        /// A token's id.
        token_id: SecretSource = required,
        /// Its secret.
        token_secret: SecretSource = required,
        /// The environment whose apps' sandboxes these are. Default `main`.
        environment: Text,
        /// Which sandboxes are ours: by their tags (`labels`) and their name. None: they are only reported.
        scope: ScopeTable,
        /// One that was idle for `idle.after` and `retention.suspended` is terminated from running, since there is no other
        /// state: after a snapshot of its files (`snapshot`), or without (`discard`). Default `never`.
        terminate_running: Word<TerminateRunning>,
        /// At most so many requests; the product's count too. Default `5/s`.
        rate: Rate,
        /// What one costs.
        price: PriceTable,
    }
    unkept {
        /// What it is.
        kind: Modal = required,
    }
}

table! {
    /// A repository with a name of its own.
    NamedRepository {
        /// Its name in ids. Default: the last part of the path.
        name: Text,
        /// Where it is.
        path: PathText = required,
    }
}

table! {
    /// What an hour costs.
    PriceTable {
        /// While running.
        running: Price,
        /// While suspended.
        suspended: Price,
    }
}

table! {
    /// Which runtimes are ours.
    ScopeTable {
        /// Labels that must all be there, with values that match; `*` stands for any characters.
        labels: Labels,
        /// The name must begin with one of these.
        names: List<Text>,
    }
}

/// A repository: its path, or a table.
#[derive(Debug)]
pub(crate) struct RepositoryTable {
    pub(crate) name: Option<At<Text>>,
    pub(crate) path: At<PathText>,
}

impl Read for RepositoryTable {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        if matches!(node.value, DeValue::Table(_)) {
            let named = NamedRepository::read(node, log)?;
            return Some(Self { name: named.name, path: named.path? });
        }
        Some(Self { name: None, path: at(node, log)? })
    }

    fn schema() -> Value {
        json!({ "anyOf": [<PathText as Read>::schema(), NamedRepository::schema()] })
    }

    fn keys(prefix: &str, out: &mut Vec<String>) {
        out.push(prefix.to_owned());
        NamedRepository::keys(prefix, out);
    }
}

impl Read for BackendTable {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        let table = as_table(node, log)?;
        let path = join(&node.path, "kind");
        let Some(kind) = table.get("kind") else {
            log.error(&path, &node.span, Problem::new("`kind` is missing").wanting(expected_kinds()));
            return None;
        };
        match text(kind.get_ref(), &expected_kinds()) {
            Ok("worktree") => WorktreeTable::read(node, log).map(|table| Self::Worktree(Box::new(table))),
            Ok("docker") => DockerTable::read(node, log).map(|table| Self::Docker(Box::new(table))),
            Ok("daytona") => DaytonaTable::read(node, log).map(|table| Self::Daytona(Box::new(table))),
            Ok("e2b") => E2bTable::read(node, log).map(|table| Self::E2b(Box::new(table))),
            Ok("openhands") => OpenHandsTable::read(node, log).map(|table| Self::OpenHands(Box::new(table))),
            Ok("cloudflare") => CloudflareTable::read(node, log).map(|table| Self::Cloudflare(Box::new(table))),
            Ok("modal") => ModalTable::read(node, log).map(|table| Self::Modal(Box::new(table))),
            Ok(kind_name) => {
                log.error(&path, &kind.span(), unknown_kind(kind_name));
                None
            }
            Err(problem) => {
                log.error(&path, &kind.span(), problem);
                None
            }
        }
    }

    fn schema() -> Value {
        let [worktree, docker] = [WorktreeTable::schema(), DockerTable::schema()];
        let providers = [
            DaytonaTable::schema(),
            E2bTable::schema(),
            OpenHandsTable::schema(),
            CloudflareTable::schema(),
            ModalTable::schema(),
        ];
        let kinds: Vec<Value> = [worktree, docker].into_iter().chain(providers).collect();
        json!({ "oneOf": kinds })
    }

    fn keys(prefix: &str, out: &mut Vec<String>) {
        let providers =
            [DaytonaTable::keys, E2bTable::keys, OpenHandsTable::keys, CloudflareTable::keys, ModalTable::keys];
        for keys in [WorktreeTable::keys, DockerTable::keys].into_iter().chain(providers) {
            let mut more = Vec::new();
            keys(prefix, &mut more);
            more.retain(|key| !out.contains(key));
            out.append(&mut more);
        }
    }
}

fn expected_kinds() -> String {
    format!("one of {}", listed(&KINDS))
}

fn unknown_kind(kind: &str) -> Problem {
    Problem::text("no such backend kind", kind, &expected_kinds()).meant(nearest(kind, KINDS))
}

macro_rules! kind {
    ($name:ident, $word:literal) => {
        /// The word that chose the table.
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Scalar for $name {
            const EXPECTED: &'static str = concat!("`", $word, "`");

            fn parse(_: &DeValue<'_>) -> Result<Self, Problem> {
                Ok(Self)
            }

            fn schema() -> Value {
                json!({ "const": $word })
            }
        }
    };
}
kind!(Worktree, "worktree");
kind!(Docker, "docker");
kind!(Daytona, "daytona");
kind!(E2b, "e2b");
kind!(OpenHands, "openhands");
kind!(Cloudflare, "cloudflare");
kind!(Modal, "modal");
