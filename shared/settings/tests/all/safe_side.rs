//! For every key: what absent, zero and empty mean. Never is written `never`, nothing `None`; `!` is a warning on
//! that very key, and `refused` an error on it (or on the table that lacks it).

use std::time::Duration;

use lifecycle::{
    duration::Human,
    policy::{Budget, Percent},
};
use settings::{Kind, Settings, keys, parse};
use toml::{Table, Value};

use crate::{EXAMPLE, example_by_arn};

/// What a configuration says of one key.
type Lens = fn(&Settings) -> String;

/// Key, what is looked at, and what it is as the example has it, absent, zero and empty.
type Row = (&'static str, Lens, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // key                           lens                                            example        absent       zero        empty
    ("mode",                         |s| debug(s.policy.mode),                       "report",      "report",    "refused",  "refused"),
    ("clock.coalesce",               |s| human(s.policy.coalesce),                   "30s",         "30s",       "refused",  "refused"),
    ("clock.skew",                   |s| human(s.policy.skew),                       "10s",         "10s",       "refused",  "refused"),
    ("notify.url",                   |s| debug(s.notify.as_ref().map(|n| n.url.to_string())), "some(\"https://hooks.example.com/…\")", "refused", "refused", "refused"),
    ("notify.secret.env",            |s| debug(s.notify.as_ref().map(|n| n.secret.is_some())), "some(true)", "refused", "refused", "refused"),
    ("notify.secret.arn",            |s| debug(s.notify.as_ref().map(|n| n.secret.is_some())), "some(true)", "refused", "refused", "refused"),
    ("backend.name",                 |s| s.backends[0].name.to_string(),             "worktrees",   "refused",   "refused",  "refused"),
    ("backend.root",                 |s| debug(&worktree(s).root),                   "some(\"/tmp/conversation-worktrees\")", "none", "refused", "refused"),
    ("backend.conversations",        |s| debug(worktree(s).conversations.is_some()), "true",        "false",     "refused",  "refused"),
    ("backend.repositories",         |s| debug(worktree(s).repositories.len()),      "2",           "0",         "refused",  "0"),
    ("backend.repositories.name",    |s| worktree(s).repositories[1].name.clone(),   "api",         "api.git",   "refused",  "refused"),
    ("backend.repositories.path",    |s| debug(&worktree(s).repositories[1].path),   "\"/srv/code/api.git\"", "refused", "refused", "refused"),
    ("backend.trust_times",          |s| debug(worktree(s).trust_times),             "false",       "false",     "false",    "refused"),
    ("backend.rate",                 |s| debug(s.backends[0].rate.interval()),       "10ms",        "10ms",      "refused",  "refused"),
    ("backend.price.running",        |s| price(s, 0).0,                              "0",           "0",         "0",        "refused"),
    ("backend.price.suspended",      |s| price(s, 1).1,                              "4000",        "0",         "0",        "refused"),
    ("backend.kind",                 |s| s.backends[0].kind.as_str().to_owned(),     "worktree",    "refused",   "refused",  "refused"),
    ("backend.host",                 |s| docker(s).host.clone(),                     "unix:///var/run/docker.sock", "unix:///var/run/docker.sock", "refused", "refused"),
    ("backend.scope.labels",         |s| debug(docker(s).scope.labels.len()),        "1",           "0",         "refused",  "refused"),
    ("backend.scope.names",          |s| debug(docker(s).scope.names.len()),         "2",           "0",         "refused",  "refused"),
    ("backend.openhands",            |s| debug(docker(s).openhands),                 "true",        "false",     "false",    "refused"),
    ("backend.stop_grace",           |s| human(docker(s).stop_grace),                "1m",          "1m",        "refused",  "refused"),
    ("backend.url",                  |s| daytona(s).url.clone(),                     "https://app.daytona.io/api", "https://app.daytona.io/api", "refused", "refused"),
    ("backend.api_key.env",          |s| daytona(s).key.to_string(),                 "the environment variable `DAYTONA_API_KEY`", "refused", "refused", "refused"),
    ("backend.api_key.arn",          |s| debug(daytona(s).key.to_string().contains("furlough/daytona")), "true", "refused", "refused", "refused"),
    ("backend.api",                  |s| debug(openhands(s)),                        "cloud",       "cloud",     "refused",  "refused"),
    ("backend.account",              |s| cloudflare(s).account.clone(),              "0123456789abcdef0123456789abcdef", "refused", "refused", "refused"),
    ("backend.application",          |s| cloudflare(s).application.clone(),          "11111111-2222-4333-8444-555555555555", "refused", "refused", "refused"),
    ("backend.worker",               |s| cloudflare(s).worker.clone(),               "https://furlough-companion.example.workers.dev", "refused", "refused", "refused"),
    ("backend.worker_key.env",       |s| cloudflare(s).worker_key.to_string(),       "the environment variable `CLOUDFLARE_WORKER_KEY`", "refused", "refused", "refused"),
    ("backend.worker_key.arn",       |s| debug(cloudflare(s).worker_key.to_string().contains("furlough/worker")), "true", "refused", "refused", "refused"),
    ("backend.destroy_running",      |s| debug(cloudflare(s).destroy_running),       "false",       "false",     "false",    "refused"),
    ("backend.token_id.env",         |s| modal(s).token_id.to_string(),              "the environment variable `MODAL_TOKEN_ID`", "refused", "refused", "refused"),
    ("backend.token_id.arn",         |s| debug(modal(s).token_id.to_string().contains("furlough/modal-id")), "true", "refused", "refused", "refused"),
    ("backend.token_secret.env",     |s| modal(s).provider.key.to_string(),          "the environment variable `MODAL_TOKEN_SECRET`", "refused", "refused", "refused"),
    ("backend.token_secret.arn",     |s| debug(modal(s).provider.key.to_string().contains("furlough/modal-secret")), "true", "refused", "refused", "refused"),
    ("backend.environment",          |s| modal(s).environment.clone(),               "main",        "main",      "refused",  "refused"),
    ("backend.terminate_running",    |s| debug(modal(s).terminate_running),          "never",       "never",     "refused",  "refused"),
    ("policy.name",                  |s| s.policy.rules[0].name.to_string(),         "coding-agents", "refused", "refused",  "refused"),
    ("policy.match.backend",         |s| debug(s.policy.rules[0].matches.backend.len()), "2",       "0",         "refused",  "refused"),
    ("policy.match.labels",          |s| debug(s.policy.rules[0].matches.labels.len()), "1",        "0",         "refused",  "refused"),
    ("policy.idle.after",            |s| maybe(s.policy.rules[0].idle_after),        "30m",         "never",     "never!",   "refused"),
    ("policy.idle.signals",          |s| debug(s.policy.rules[0].signals == lifecycle::SignalSet::ALL), "true", "true", "refused", "refused"),
    ("policy.unknown.after",         |s| maybe(s.policy.rules[0].unknown_after),     "7d",          "never",     "never!",   "refused"),
    ("policy.lifetime.max",          |s| maybe(s.policy.rules[0].lifetime_max),      "1d",          "never",     "never!",   "refused"),
    ("policy.retention.suspended",   |s| maybe(s.policy.rules[0].retention.suspended), "14d",       "never",     "never!",   "refused"),
    ("policy.retention.archived",    |s| maybe(s.policy.rules[0].retention.archived), "180d",       "never",     "never!",   "refused"),
    ("policy.retention.workspace",   |s| maybe(s.policy.rules[0].retention.workspace), "365d",      "never",     "never!",   "refused"),
    ("policy.notice.before_delete",  |s| maybe(s.policy.rules[0].notice_before_delete), "2d",       "never",     "refused",  "refused"),
    ("policy.files.caches",          |s| maybe(s.policy.rules[0].files.caches),      "1h",          "never",     "never!",   "refused"),
    ("policy.files.dependencies",    |s| maybe(s.policy.rules[0].files.dependencies), "3d",         "never",     "never!",   "refused"),
    ("policy.disk.budget",           |s| share(s.policy.rules[0].disk_budget),       "80%",         "never",     "never!",   "refused"),
    ("policy.workspace",             |s| debug(s.policy.rules[0].workspace),         "save",        "save",      "refused",  "refused"),
    ("policy.native",                |s| debug(s.policy.rules[0].native),            "off",         "off",       "refused",  "refused"),
    ("policy.overrides.label",       |s| debug(s.policy.rules[0].overrides.is_some()), "true",      "refused",   "refused",  "refused"),
    ("policy.overrides.min",         |s| debug(s.policy.rules[0].overrides.is_some()), "true",      "refused",   "refused",  "refused"),
    ("policy.overrides.max",         |s| debug(s.policy.rules[0].overrides.is_some()), "true",      "refused",   "refused",  "refused"),
    ("policy.windows.tz",            |s| debug(s.policy.rules[0].windows.len()),     "1",           "refused",   "refused",  "refused"),
    ("policy.windows.days",          |s| debug(s.policy.rules[0].windows[0].days.iter().filter(|day| **day).count()), "5", "7", "refused", "refused"),
    ("policy.windows.hours",         |s| debug(s.policy.rules[0].windows[0].from_minute..s.policy.rules[0].windows[0].to_minute), "480..1080", "0..1440", "refused", "refused"),
    ("policy.windows.idle.after",    |s| maybe(s.policy.rules[0].windows[0].idle_after), "2h",      "never",     "never!",   "refused"),
    ("budget.suspend.max",           |s| budget(s.policy.budgets.suspend),           "20%/5/10m",   "never/5/10m", "none!",  "refused"),
    ("budget.suspend.min",           |s| budget(s.policy.budgets.suspend),           "20%/5/10m",   "20%/0/10m", "20%/0/10m", "refused"),
    ("budget.suspend.per",           |s| budget(s.policy.budgets.suspend),           "20%/5/10m",   "refused",   "refused",  "refused"),
    ("budget.archive.max",           |s| budget(s.policy.budgets.archive),           "10%/2/1h",    "never/2/1h", "none!",   "refused"),
    ("budget.archive.min",           |s| budget(s.policy.budgets.archive),           "10%/2/1h",    "10%/0/1h",  "10%/0/1h", "refused"),
    ("budget.archive.per",           |s| budget(s.policy.budgets.archive),           "10%/2/1h",    "refused",   "refused",  "refused"),
    ("budget.delete.max",            |s| budget(s.policy.budgets.delete),            "2%/1/1h",     "never/1/1h", "none!",   "refused"),
    ("budget.delete.min",            |s| budget(s.policy.budgets.delete),            "2%/1/1h",     "2%/0/1h",   "2%/0/1h",  "refused"),
    ("budget.delete.per",            |s| budget(s.policy.budgets.delete),            "2%/1/1h",     "refused",   "refused",  "refused"),
    ("budget.shed.max",              |s| budget(s.policy.budgets.shed),              "50%/10/10m",  "never/10/10m", "none!", "refused"),
    ("budget.shed.min",              |s| budget(s.policy.budgets.shed),              "50%/10/10m",  "50%/0/10m", "50%/0/10m", "refused"),
    ("budget.shed.per",              |s| budget(s.policy.budgets.shed),              "50%/10/10m",  "refused",   "refused",  "refused"),
    ("breaker.inventory_drop",       |s| share(s.policy.breakers.inventory_drop),    "30%",         "30%",       "refused",  "refused"),
    ("breaker.silent",               |s| share(s.policy.breakers.silent),            "20%",         "20%",       "refused",  "refused"),
    ("trash.keep",                   |s| human(s.policy.trash_keep),                 "7d",          "7d",        "refused",  "refused"),
    ("plan.valid",                   |s| human(s.policy.plan_valid),                 "1h",          "1h",        "refused",  "refused"),
    ("pass.every",                   |s| human(s.pass.every),                        "1m",          "1m",        "refused",  "refused"),
    ("pass.sweep",                   |s| human(s.pass.sweep_every),                  "15m",         "15m",       "refused",  "refused"),
    ("pass.deadline",                |s| human(s.pass.deadline),                     "5m",          "5m",        "refused",  "refused"),
    ("pass.concurrency",             |s| s.pass.concurrency.to_string(),             "8",           "8",         "refused",  "refused"),
    ("workspaces.store",             |s| debug(s.workspaces.store.as_ref().map(|store| format!("{}/{}", store.name, store.prefix))), "some(\"my-bucket/furlough/\")", "none", "refused", "refused"),
    ("workspaces.keep",              |s| s.workspaces.keep.to_string(),              "3",           "3",         "refused",  "refused"),
    ("workspaces.grace",             |s| human(s.workspaces.grace),                  "1d",          "1d",        "refused",  "refused"),
];

fn debug(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn human(duration: Duration) -> String {
    Human(duration).to_string()
}

fn maybe(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "never".to_owned(), human)
}

fn share(share: Option<Percent>) -> String {
    share.map_or_else(|| "never".to_owned(), |share| format!("{}%", share.get()))
}

fn budget(budget: Option<Budget>) -> String {
    budget.map_or_else(|| "none".to_owned(), |Budget { max, min, per }| format!("{}/{min}/{}", share(max), Human(per)))
}

fn price(settings: &Settings, backend: usize) -> (String, String) {
    let prices = settings.policy.prices[&settings.backends[backend].name];
    (prices.running.to_string(), prices.suspended.to_string())
}

fn worktree(settings: &Settings) -> &settings::Worktree {
    let Kind::Worktree(worktree) = &settings.backends[0].kind else { panic!("{settings:?}") };
    worktree
}

fn docker(settings: &Settings) -> &settings::Docker {
    let Kind::Docker(docker) = &settings.backends[1].kind else { panic!("{settings:?}") };
    docker
}

fn daytona(settings: &Settings) -> &settings::Provider {
    let Kind::Daytona(daytona) = &settings.backends[2].kind else { panic!("{settings:?}") };
    daytona
}

fn openhands(settings: &Settings) -> settings::OpenHandsApi {
    let Kind::OpenHands(api, _) = &settings.backends[4].kind else { panic!("{settings:?}") };
    *api
}

fn cloudflare(settings: &Settings) -> &settings::Cloudflare {
    let Kind::Cloudflare(cloudflare) = &settings.backends[5].kind else { panic!("{settings:?}") };
    cloudflare
}

fn modal(settings: &Settings) -> &settings::Modal {
    let Kind::Modal(modal) = &settings.backends[6].kind else { panic!("{settings:?}") };
    modal
}

/// The example that has `key`.
fn that_has(key: &str) -> String {
    if key.rsplit('.').next() == Some("arn") { example_by_arn() } else { EXAMPLE.to_owned() }
}

/// The example with the value at `key` changed, in the first of each list that has it. `None`: removed.
fn changed(key: &str, change: fn(&Value) -> Option<Value>) -> String {
    let mut table: Table = that_has(key).parse().unwrap();
    let path: Vec<_> = key.split('.').collect();
    assert!(change_in(&mut table, &path, change), "the example lacks `{key}`");
    table.to_string()
}

fn change_in(table: &mut Table, path: &[&str], change: fn(&Value) -> Option<Value>) -> bool {
    let Some(value) = table.get_mut(path[0]) else { return false };
    match (value, &path[1..]) {
        (value, []) => {
            match change(value) {
                Some(changed) => *value = changed,
                None => drop(table.remove(path[0])),
            }
            true
        }
        (Value::Table(below), rest) => change_in(below, rest, change),
        (Value::Array(items), rest) => {
            items.iter_mut().any(|item| item.as_table_mut().is_some_and(|below| change_in(below, rest, change)))
        }
        _ => false,
    }
}

/// The zero of the same type; a text's is that of what it holds.
fn zero(value: &Value) -> Value {
    match value {
        Value::String(text) if text.ends_with('%') => "0%".into(),
        Value::String(text) if text.ends_with("/h") => "0/h".into(),
        Value::String(text) if text.ends_with("/s") => "0/s".into(),
        Value::String(text) if lifecycle::duration::parse(text).is_ok() => "0s".into(),
        Value::Boolean(_) => false.into(),
        _ => 0.into(),
    }
}

/// The empty one of the same type.
fn empty(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Table(_) => Value::Table(Table::new()),
        _ => "".into(),
    }
}

/// What the text says through `lens`, with its warnings and faults on `key`.
fn outcome(text: &str, key: &str, lens: Lens) -> String {
    // A list's number is not part of the key.
    let plain = |path: &str| path.split('.').map(|part| part.split('[').next().unwrap()).collect::<Vec<_>>().join(".");
    // A budget's `0%`, say, is told at its table, and an empty `match.backend` in a `match`.
    let on_key = |path: &str| key.starts_with(&plain(path));
    match parse(text, "test") {
        Ok(settings) => {
            let warned =
                settings.warnings.iter().any(|warning| on_key(&warning.key) && warning.problem.contains("as if"));
            format!("{}{}", lens(&settings), if warned { "!" } else { "" })
        }
        Err(faults) => {
            assert!(faults.faults.iter().all(|fault| on_key(&fault.key)), "{key}: {faults}");
            "refused".to_owned()
        }
    }
}

#[test]
fn every_key_has_a_row() {
    let rows: Vec<_> = ROWS.iter().map(|row| row.0).collect();
    assert_eq!(rows, keys());
}

#[test]
fn zero_empty_and_absent_are_the_safe_side() {
    let mut wrong = Vec::new();
    for &(key, lens, example, absent, zeroed, emptied) in ROWS {
        let found = [
            outcome(&that_has(key), key, lens),
            outcome(&changed(key, |_| None), key, lens),
            outcome(&changed(key, |value| Some(zero(value))), key, lens),
            outcome(&changed(key, |value| Some(empty(value))), key, lens),
        ];
        let expected = [example, absent, zeroed, emptied].map(str::to_owned);
        if found != expected {
            wrong.push(format!("{key}: expected {expected:?}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_empty_file_does_nothing_and_says_so() {
    let settings = parse("", "empty").unwrap();
    assert_eq!(debug(settings.policy.mode), "report");
    assert_eq!((settings.policy.rules.len(), settings.backends.len()), (0, 0));
    assert_eq!(settings.policy.budgets, lifecycle::policy::Budgets::default());
    assert_eq!(settings.warnings.len(), 1);
    assert_eq!(settings.warnings[0].problem, "no `[[backend]]`: nothing is looked at");
}

#[test]
fn an_empty_table_is_as_if_it_were_left_out_or_refused() {
    for table in ["[clock]", "[budget]", "[breaker]", "[trash]", "[plan]", "[pass]"] {
        assert_eq!(parse(table, "t").unwrap().policy, parse("", "t").unwrap().policy, "{table}");
    }
    for table in ["[notify]", "[[backend]]", "[[policy]]", "policy = [{ name = \"a\", match = {} }]"] {
        assert!(parse(table, "t").is_err(), "{table}");
    }
}

#[test]
fn a_match_that_is_left_out_is_everything() {
    let settings = parse("[[policy]]\nname = \"a\"", "t").unwrap();
    assert_eq!(settings.policy.rules[0].matches, lifecycle::policy::Match::default());
}
