//! The configurations that people start from.

use std::time::Duration;

use lifecycle::policy::{BudgetKind, Mode, WorkspaceRule};
use settings::{BUILT_IN, Kind, keys, parse};
use toml::{Table, Value};

use crate::{EXAMPLE, example_by_arn};

/// The design's example, with `daytona` and `e2b`, which this version lacks, replaced by what it has.
const DESIGN: &str = r#"
mode = "report"                                   # or "enforce". `apply PLAN` works in both, within the budgets

[clock]
coalesce = "30s"                                  # a heartbeat may be this late
skew = "10s"

[notify]
url = "https://hooks.example.com/x"               # a POST per event; required where notice.before_delete is used

[[backend]]
name = "docker-prod"
kind = "docker"                                   # each kind has its own typed keys
scope.labels = { managed-by = "furlough" }
rate = "5/s"                                      # shared with the product: leave it room
price = { running = "0.08/h", suspended = "0.004/h" }

[[backend]]
name = "trees"
kind = "worktree"
root = "/tmp/conversation-worktrees"

[[policy]]
name = "coding-agents"
match = { backend = ["docker-*", "trees"], labels = { team = "*" } }
idle.after = "30m"                                # then: suspend
idle.signals = ["heartbeat", "provider", "probe"]
unknown.after = "7d"                              # never seen active: suspend (never delete); absent by default
lifetime.max = "24h"                              # since it last started running; even if busy; activity can't extend it
retention.suspended = "14d"                       # then: archive, or delete where there is no archive
retention.archived = "180d"                       # then: delete
retention.workspace = "365d"                      # then: the saved workspace goes too
notice.before_delete = "48h"                      # delete waits until this was sent
files = { caches = "1h", dependencies = "3d" }
disk.budget = "80%"                               # local backends: shed the longest idle first, until under it
workspace = "save"                                # or "discard"
native = "prefer"                                 # "backstop" (ours first, theirs later), "off"; drift: re-synced and reported
overrides = { label = "furlough.idle", min = "10m", max = "8h" }   # a runtime's own wish, within bounds
windows = [{ tz = "Europe/Berlin", days = "mon-fri", hours = "08-18", idle.after = "2h" }]

[budget]
suspend = { max = "20%", min = 5, per = "10m" }   # percent of the last complete sweep
delete  = { max = "2%",  min = 1, per = "1h" }
shed    = { max = "20%", min = 5, per = "10m" }

[breaker]
inventory_drop = "30%"
silent = "20%"
"#;

const BACKEND: &str = "\n[[backend]]\nname = \"w\"\nkind = \"worktree\"\nroot = \"/w\"\n";

#[test]
fn each_example_says_nothing_that_its_author_may_not_mean() {
    for (name, text) in [("example", EXAMPLE), ("design", DESIGN), ("built-in", &format!("{BUILT_IN}{BACKEND}"))] {
        let settings = parse(text, name).unwrap_or_else(|faults| panic!("{faults}"));
        let warnings: Vec<_> = settings.warnings.iter().map(|warning| warning.in_file(name).to_string()).collect();
        // The design's has one key that only a provider's backend can take.
        let expected = usize::from(name == "design");
        assert_eq!(warnings.len(), expected, "{name}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("`native` has no effect")), "{name}: {warnings:?}");
    }
}

#[test]
fn a_newcomer_s_policy_reports_and_loses_nothing_that_is_not_saved() {
    let policy = parse(&format!("{BUILT_IN}{BACKEND}"), "built-in").unwrap().policy;
    let rules = &policy.rules[0];
    assert_eq!((policy.rules.len(), policy.mode), (1, Mode::Report));
    assert_eq!(rules.workspace, WorkspaceRule::Save);
    assert_eq!(rules.idle_after, Some(Duration::from_mins(30)));
    assert_eq!(rules.retention.suspended, Some(Duration::from_hours(14 * 24)));
    assert_eq!((rules.unknown_after, rules.lifetime_max), (None, None));
    let few = |kind| policy.budgets.of(kind).map_or(0, |budget| budget.allows(0));
    let kinds = [BudgetKind::Suspend, BudgetKind::Archive, BudgetKind::Delete, BudgetKind::Shed];
    assert_eq!(kinds.map(few), [5, 0, 20, 50]);
    assert!(policy.breakers.inventory_drop.is_some() && policy.breakers.silent.is_some());
}

#[test]
fn the_long_example_has_every_key_and_the_schema_no_other() {
    let mut found = Vec::new();
    paths("", &EXAMPLE.parse().unwrap(), &mut found);
    paths("", &example_by_arn().parse().unwrap(), &mut found);
    let mut keys = keys();
    // A label's own name is no key, and a table of repositories is one of its two forms.
    found.retain(|path| !path.starts_with("policy.match.labels.") && !path.starts_with("backend.scope.labels."));
    found.extend(["policy.match.labels".to_owned(), "backend.scope.labels".to_owned()]);
    for list in [&mut found, &mut keys] {
        list.sort();
        list.dedup();
    }
    assert_eq!(found, keys);
}

/// The full names of the keys of `table`.
fn paths(prefix: &str, table: &Table, found: &mut Vec<String>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        below(&path, value, found);
    }
}

fn below(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Table(table) => paths(path, table, found),
        Value::Array(items) => items.iter().for_each(|item| below(path, item, found)),
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn dotted_and_nested_keys_say_the_same() {
    let dotted = "[[policy]]\nname = \"a\"\nidle.after = \"1h\"\nfiles.caches = \"2h\"";
    let nested = "[[policy]]\nname = \"a\"\nfiles = { caches = \"2h\" }\n[policy.idle]\nafter = \"1h\"";
    let inline = "policy = [{ name = \"a\", idle = { after = \"1h\" }, files.caches = \"2h\" }]";
    let read = |text| parse(text, "t").unwrap().policy;
    assert_eq!(read(dotted), read(nested));
    assert_eq!(read(dotted), read(inline));
    assert_eq!(read(dotted).hash(), read(inline).hash());
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_read() {
    let text = format!("\u{feff}{}", EXAMPLE.replace('\n', "\r\n"));
    assert_eq!(parse(&text, "t").unwrap().policy, parse(EXAMPLE, "t").unwrap().policy);
}

#[test]
fn a_repository_is_named_by_its_folder_or_by_hand() {
    let Kind::Worktree(worktree) = parse(EXAMPLE, "t").unwrap().backends.remove(0).kind else { panic!() };
    let repositories: Vec<_> = worktree.repositories.iter().map(|r| (r.name.as_str(), r.path.to_str())).collect();
    assert_eq!(repositories, [("site", Some("/srv/code/site")), ("api", Some("/srv/code/api.git"))]);
}
