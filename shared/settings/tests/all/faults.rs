//! What is wrong is told with its line, its key, what was expected, and the nearest right name.

use settings::{MAX_FAULTS, Severity, parse};

/// Every fault, one a line: `LINE:COLUMN KEY | PROBLEM | NEAREST`.
fn told(text: &str) -> Vec<String> {
    let faults = parse(text, "furlough.toml").unwrap_err();
    let line = |fault: &settings::Fault| {
        let nearest = fault.nearest.as_deref().unwrap_or("-");
        format!("{}:{} {} | {} | {nearest}", fault.line, fault.column, fault.key, fault.problem)
    };
    faults.faults.iter().map(line).collect()
}

/// The warnings of a configuration that can be used, in the same form.
fn warned(text: &str) -> Vec<String> {
    let settings = parse(text, "furlough.toml").unwrap_or_else(|faults| panic!("{faults}"));
    assert!(settings.warnings.iter().all(|warning| warning.severity == Severity::Warning));
    settings.warnings.iter().map(|w| format!("{}:{} {} | {}", w.line, w.column, w.key, w.problem)).collect()
}

const TREES: &str = "[[backend]]\nname = \"trees\"\nkind = \"worktree\"\nroot = \"/w\"\n";
const BUDGETS: &str = "[budget]\nsuspend = { min = 1, per = \"1h\" }\ndelete = { min = 1, per = \"1h\" }\nshed = { min = 1, per = \"1h\" }\n";

#[test]
fn every_fault_is_told_at_once() {
    let text = r#"
mode = "enforced"
brekaer.silent = "20%"
[clock]
coalesce = 30
[[backend]]
name = "w w"
kind = "worktre"
[[backend]]
name = "w w"
kind = "worktree"
[[policy]]
idle_after = "30m"
idle.after = "30min"
idle.signals = ["heartbeats", "probe"]
match = {}
files.cache = "1h"
windows = [{ tz = "Europe/Berln", days = "mon-friday", hours = "8-18", idle.after = "2h" }]
workspace = "keep"
notice.before_delete = "48h"
"#;
    assert_eq!(
        told(text),
        [
            "2:8 mode | `enforced`: not one of `report`, `enforce` | enforce",
            "3:1 brekaer | unknown key `brekaer` | breaker",
            "5:12 clock.coalesce | the bare number 30 has no unit | -",
            "8:8 backend[0].kind | `worktre`: no such backend kind | worktree",
            "9:1 backend[1] | neither `root` nor `repositories`: there is nowhere to look | -",
            "10:8 backend[1].name | backend name `w w` has a character other than A-Z a-z 0-9 . _ ~ - | -",
            "12:1 policy[0].name | `name` is missing | -",
            "13:1 policy[0].idle_after | unknown key `idle_after` | idle.after",
            "14:14 policy[0].idle.after | `30min`: `min` is not a unit of time | 30m",
            "15:17 policy[0].idle.signals[0] | `heartbeats`: not one of `heartbeat`, `provider`, `probe` | heartbeat",
            "16:9 policy[0].match | an empty `match` could mean every runtime or none; name something, or leave it out for every runtime | -",
            "17:7 policy[0].files.cache | unknown key `cache` | caches",
            "18:19 policy[0].windows[0].tz | `Europe/Berln`: no such time zone | Europe/Berlin",
            "18:42 policy[0].windows[0].days | `mon-friday`: `friday` is not one of `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun` | fri",
            "18:64 policy[0].windows[0].hours | `8-18`: not hours of a day | -",
            "19:13 policy[0].workspace | `keep`: not one of `save`, `discard` | -",
            "20:24 policy[0].notice.before_delete | notice needs somewhere to go, and there is no `notify.url`; nothing would ever be deleted | -",
        ]
    );
}

#[test]
fn a_secret_is_in_one_place_and_what_is_no_arn_is_not_repeated() {
    let secret = |text: &str| told(&format!("[notify]\nurl = \"https://h/x\"\nsecret = {text}\n"));
    let one = ["3:10 notify.secret | a secret is in one place | -"];
    assert_eq!(secret("{}"), one);
    assert_eq!(secret("{ env = \"A\", arn = \"arn:aws:secretsmanager:r:1:secret:a\" }"), one);
    assert_eq!(secret("{ evn = \"A\" }"), ["3:12 notify.secret.evn | unknown key `evn` | env"]);
    for hush in ["hush", "s3://bucket/hush", "arn:aws:s3:::hush", "/hush"] {
        assert_eq!(secret(&format!("{{ arn = {hush:?} }}")), ["3:18 notify.secret.arn | it is no such ARN | -"]);
    }
}

#[test]
fn a_fault_is_shown_with_its_line() {
    let faults = parse("[[policy]]\nname = \"ä\"\n\tidle.aftr = \"30m\"\n", "furlough.toml").unwrap_err();
    let expected = "\
error: `policy[0].idle.aftr`: unknown key `aftr`
 --> furlough.toml:3:7
  |
3 | \tidle.aftr = \"30m\"
  | \t     ^^^^
  = expected one of `after`, `signals`
  = did you mean `after`?";
    assert_eq!(faults.to_string(), expected);
}

#[test]
fn a_fault_is_one_object_in_json() {
    let faults = parse("mode = \"x\"", "f.toml").unwrap_err();
    let expected = serde_json::json!({
        "file": "f.toml",
        "faults": [{
            "severity": "error", "line": 1, "column": 8, "key": "mode",
            "problem": "`x`: not one of `report`, `enforce`",
            "expected": "`report` or `enforce`", "found": "`x`", "nearest": null,
            "excerpt": { "text": "mode = \"x\"", "before": 7, "width": 3 },
        }],
        "omitted": 0,
    });
    assert_eq!(serde_json::to_value(&faults).unwrap(), expected);
}

#[test]
fn faults_of_syntax_have_a_line_and_a_hint() {
    let faults = parse("[clock]\nskew = 10s\n[[policy]\nname = \"a\"\n", "f").unwrap_err();
    let lines: Vec<_> = faults.faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines.first(), Some(&2), "{faults}");
    assert!(lines.contains(&3), "{faults}");
    assert!(faults.faults.iter().all(|fault| fault.problem.starts_with("not TOML: ")), "{faults}");
    assert!(faults.faults[0].expected.as_deref().is_some_and(|text| text.contains("in quotes")), "{faults}");
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    assert_eq!(told("mode = \"report\"\nmode = \"enforce\""), ["2:1  | not TOML: duplicate key | -"]);
}

#[test]
fn a_kind_has_no_keys_in_a_policy() {
    for kind in ["modal", "cloudflare"] {
        let told = told(&format!("[[policy]]\nname = \"x\"\n{kind}.anything = \"keep\"\n"));
        assert!(told[0].starts_with(&format!("3:1 policy[0].{kind} | unknown key `{kind}`")), "{told:?}");
    }
    let unknown = told("[[policy]]\nname = \"x\"\nfly.anything = 1\n");
    assert_eq!(unknown, ["3:1 policy[0].fly | unknown key `fly` | -"]);
}

#[test]
fn common_slips_get_the_right_name() {
    for (text, nearest) in [
        ("[[policies]]\nname = \"a\"", "policy"),
        ("[[backends]]\nname = \"a\"", "backend"),
        ("coalesce = \"30s\"", "clock.coalesce"),
        ("[budgets.delete]\nmin = 1", "budget"),
        ("[budget]\ndeletes = { min = 1, per = \"1h\" }", "delete"),
        ("[[policy]]\nname = \"a\"\nretention.suspend = \"1d\"", "suspended"),
        ("[[policy]]\nname = \"a\"\nidle-after = \"1d\"", "idle.after"),
        ("[[policy]]\nname = \"a\"\nmax_lifetime = \"1d\"", "lifetime"),
        ("[[backend]]\nname = \"a\"\nkind = \"Docker\"", "docker"),
        ("[[backend]]\nname = \"a\"\nkind = \"worktrees\"", "worktree"),
    ] {
        let faults = told(text);
        assert!(faults.iter().any(|fault| fault.ends_with(&format!(" | {nearest}"))), "{nearest}: {faults:?}");
    }
}

#[test]
fn names_stand_once() {
    let text = format!("{TREES}{}[[policy]]\nname = \"a\"\n[[policy]]\nname = \"a\"\n", TREES.replace("/w", "/v"));
    assert_eq!(
        told(&text),
        [
            "5:1 backend[1].name | a second backend named `trees`; each name stands once | -",
            "12:8 policy[1].name | a second policy named `a`; each name stands once | -",
        ]
    );
    let repositories = |list: &str| format!("[[backend]]\nname = \"t\"\nkind = \"worktree\"\nrepositories = {list}\n");
    assert_eq!(
        told(&repositories("[\"/a/x\", \"/b/x\"]")),
        ["4:25 backend[0].repositories[1] | a second repository named `x`; each name stands once | -"]
    );
    assert_eq!(
        told(&repositories("[\"/a/x\", { name = \"y\", path = \"/a/./x/\" }]")),
        ["4:25 backend[0].repositories[1] | `/a/x` stands twice | -"]
    );
}

#[test]
fn one_worktree_is_in_one_backend() {
    for place in ["/w", "/w/", "/w/below", "/"] {
        let other = TREES.replace("trees", "others").replace("/w", place);
        assert_eq!(told(&format!("{TREES}{other}")).len(), 1, "{place}");
    }
    let docker = "[[backend]]\nname = \"d1\"\nkind = \"docker\"\nopenhands = true\n";
    let warnings = warned(&format!("{docker}{}[[policy]]\nname = \"a\"\n", docker.replace("d1", "d2")));
    assert_eq!(warnings, ["5:1 backend[1] | backend `d1` has the same engine; make sure that no container is in both"]);
}

#[test]
fn docker_without_a_scope_has_nothing_of_ours_and_says_so() {
    let docker = "[[backend]]\nname = \"d\"\nkind = \"docker\"\n";
    let nothing = "no `scope` and not `openhands = true`: no container is ours, all are only reported";
    let policy = "[[policy]]\nname = \"a\"\n";
    assert_eq!(warned(&format!("{docker}{policy}")), [format!("1:1 backend[0] | {nothing}")]);
    assert_eq!(warned(&format!("{docker}scope = {{}}\n{policy}")), [format!("4:9 backend[0].scope | {nothing}")]);
    for empty in [
        "scope.names = []",
        "scope.labels = {}",
        "scope.names = [\"\"]",
        "scope.labels = { a = \"\" }",
        "scope.labels = { \"\" = \"a\" }",
    ] {
        assert_eq!(told(&format!("{docker}{empty}\n")).len(), 1, "{empty}");
    }
    for host in ["tcp://1.2.3.4:2375", "ssh://h", "/var/run/docker.sock", "unix://", "unix:///"] {
        assert_eq!(told(&format!("{docker}host = {host:?}\n")).len(), 1, "{host}");
    }
}

#[test]
fn a_provider_without_a_scope_has_nothing_of_ours_and_its_key_goes_nowhere_in_the_open() {
    for kind in ["daytona", "e2b", "openhands"] {
        provider_without_a_scope(kind);
    }
}

#[test]
fn openhands_has_two_apis_of_which_one_tells_no_labels() {
    let openhands = "[[backend]]\nname = \"o\"\nkind = \"openhands\"\napi_key.env = \"KEY\"\n";
    let labels = "scope.labels = { team = \"a\" }\n";
    let told_of = |keys: &str| told(&format!("{openhands}{keys}"));
    assert_eq!(
        told_of(&format!("api = \"runtime\"\n{labels}")),
        ["6:16 backend[0].scope.labels | the Runtime API tells no labels: nothing would be ours; name beginnings of \
          sessions as `names` | -"]
    );
    assert_eq!(told_of("api = \"v0\"\n").len(), 1);
    let url = |keys: &str| match &parse(&format!("{openhands}{keys}"), "o").unwrap().backends[0].kind {
        settings::Kind::OpenHands(_, provider) => provider.url.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(url(labels), "https://app.all-hands.dev");
    assert_eq!(url("api = \"runtime\"\nscope.names = [\"agent-\"]\n"), "https://runtime.all-hands.dev");
}

#[test]
fn cloudflare_has_names_alone_and_a_worker_with_a_key_of_its_own() {
    let keys = |changed: &str, line: &str| {
        let all = [
            "api_key.env = \"KEY\"",
            "account = \"a1\"",
            "application = \"b-2\"",
            "worker = \"https://w.example.com\"",
            "worker_key.env = \"OTHER\"",
            "scope.names = [\"agent-\"]",
        ];
        let kept = all.into_iter().filter(|key| !key.starts_with(changed));
        let lines: Vec<_> = kept.chain([line]).filter(|line| !line.is_empty()).collect();
        format!("[[backend]]\nname = \"c\"\nkind = \"cloudflare\"\n{}\n", lines.join("\n"))
    };
    let wrong = |changed: &str, line: &str| told(&keys(changed, line));
    assert_eq!(warned(&format!("{}[[policy]]\nname = \"a\"\n", keys("none", ""))), [""; 0]);
    for missing in ["api_key", "account", "application", "worker =", "worker_key"] {
        let key = missing.trim_end_matches(" =");
        assert!(wrong(missing, "").iter().any(|told| told.contains(&format!("`{key}` is missing"))), "{missing}");
    }
    assert_eq!(
        wrong("scope", "scope.labels = { team = \"a\" }"),
        [
            "9:16 backend[0].scope.labels | Cloudflare's sandboxes have no labels: nothing would be ours; name beginnings \
          of names as `names` | -"
        ]
    );
    for (changed, line) in [
        ("account", "account = \"../other\""),
        ("application", "application = \"a b\""),
        ("worker =", "worker = \"http://w.example.com\""),
        ("none", "destroy_running = \"yes\""),
    ] {
        assert_eq!(wrong(changed, line).len(), 1, "{line}");
    }
    let twice = format!("{}{}[[policy]]\nname = \"a\"\n", keys("none", ""), keys("none", "").replace("\"c\"", "\"d\""));
    assert_eq!(
        warned(&twice),
        ["10:1 backend[1] | backend `c` has the same application; make sure that no sandbox is in both"]
    );
}

#[test]
fn modal_has_a_token_of_two_parts_and_terminates_nothing_by_itself() {
    let modal = "[[backend]]\nname = \"m\"\nkind = \"modal\"\nscope.labels = { team = \"a\" }\n";
    let token = "token_id.env = \"ID\"\ntoken_secret.env = \"SECRET\"\n";
    let policy = "[[policy]]\nname = \"a\"\n";
    assert_eq!(warned(&format!("{modal}{token}{policy}")), [""; 0]);
    for (missing, left) in [("token_id", "token_secret.env = \"S\"\n"), ("token_secret", "token_id.env = \"I\"\n")] {
        let told = told(&format!("{modal}{left}"));
        assert!(told.iter().any(|told| told.contains(&format!("`{missing}` is missing"))), "{told:?}");
    }
    assert_eq!(told(&format!("{modal}{token}terminate_running = \"always\"\n")).len(), 1);
    let twice = format!("{modal}{token}{}{token}{policy}", modal.replace("\"m\"", "\"n\""));
    assert_eq!(
        warned(&twice),
        ["7:1 backend[1] | backend `m` has the same environment; make sure that no sandbox is in both"]
    );
}

fn provider_without_a_scope(kind: &str) {
    let daytona = format!("[[backend]]\nname = \"d\"\nkind = \"{kind}\"\napi_key.env = \"KEY\"\n");
    let policy = "[[policy]]\nname = \"a\"\n";
    let nothing = "no `scope`: no sandbox is ours, all are only reported";
    assert_eq!(warned(&format!("{daytona}{policy}")), [format!("1:1 backend[0] | {nothing}")]);
    let scoped = format!("{daytona}scope.labels = {{ team = \"a\" }}\n");
    let twice = format!("{scoped}{}{policy}", scoped.replace("\"d\"", "\"e\""));
    let same = "backend `d` has the same account; make sure that no sandbox is in both";
    assert_eq!(warned(&twice), [format!("6:1 backend[1] | {same}")]);
    for url in
        ["https://daytona.example.com/api", "http://127.0.0.1:3000/api", "http://localhost/api", "http://[::1]:1"]
    {
        assert_eq!(warned(&format!("{scoped}url = {url:?}\n{policy}")), [""; 0], "{url}");
    }
    for url in [
        "http://daytona.example.com/api",
        "http://127.0.0.1.example.com/api",
        "http://localhostess",
        "https://",
        "https://:443",
        "https://key@host/",
        "https://host/?key=1",
        "https://host/#x",
        "host/api",
        "ftp://localhost",
    ] {
        assert_eq!(told(&format!("{scoped}url = {url:?}\n")).len(), 1, "{url}");
    }
}

#[test]
fn a_policy_that_is_never_reached_is_told() {
    let policy = |name: &str, line: &str| format!("[[policy]]\nname = \"{name}\"\n{line}\n");
    let unreached = |first: &str, second: &str| {
        let text = format!("{TREES}{}{}", policy("first", first), policy("second", second));
        warned(&text).iter().any(|warning| warning.contains("never reached: policy `first` before it"))
    };
    assert!(unreached("", ""));
    assert!(unreached("", "match.backend = [\"trees\"]"));
    assert!(unreached("match.backend = [\"tr*\"]", ""), "there is no other backend");
    assert!(unreached("match.labels.team = \"*\"", "match.labels.team = \"core\""));
    assert!(unreached("match.labels.team = \"a\"", "match.labels = { team = \"a\", x = \"y\" }"));
    assert!(!unreached("match.labels.team = \"a\"", "match.labels.team = \"b\""));
    assert!(!unreached("match.labels.team = \"a\"", ""));
    assert!(!unreached("match.backend = [\"other\"]", ""));
}

#[test]
fn timers_that_no_backend_has_are_told() {
    let native = |line: &str| warned(&format!("{TREES}[[policy]]\nname = \"a\"\n{line}\n"));
    for mode in ["prefer", "backstop"] {
        let warnings = native(&format!("native = {mode:?}"));
        assert!(warnings.iter().any(|warning| warning.contains("`native` has no effect")), "{warnings:?}");
    }
    assert_eq!(native("native = \"off\""), [""; 0]);
    let elsewhere = native("match.backend = [\"other\"]\nnative = \"prefer\"");
    assert!(!elsewhere.iter().any(|warning| warning.contains("`native`")), "it matches none: {elsewhere:?}");
}

#[test]
fn what_names_no_backend_is_told_with_the_nearest() {
    let text = format!("{TREES}[[policy]]\nname = \"a\"\nmatch.backend = [\"tres\", \"tr*\"]\n");
    let warnings = parse(&text, "f").unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].problem, "no backend is named so; there are: `trees`");
    assert_eq!(warnings[0].nearest.as_deref(), Some("trees"));
    assert_eq!(warnings[0].key, "policy[0].match.backend[0]");
}

#[test]
fn a_rule_without_its_budget_is_told() {
    let warning = |rule: &str| warned(&format!("{TREES}[[policy]]\nname = \"a\"\n{rule}\n"));
    let told =
        |kind: &str| [format!("6:8 policy[0].name | `budget.{kind}` is not there: this policy can {kind} nothing")];
    assert_eq!(warning("idle.after = \"1h\""), told("suspend"));
    assert_eq!(warning("retention.suspended = \"1d\""), told("delete"));
    assert_eq!(warning("disk.budget = \"80%\""), told("shed"));
    assert_eq!(
        warned(&format!("{TREES}[[policy]]\nname = \"a\"\nidle.after = \"1h\"\n{BUDGETS}")),
        Vec::<String>::new()
    );
}

#[test]
fn bounds_are_told_with_the_limit_and_the_value() {
    for (text, problem) in [
        ("trash.keep = \"1m\"", "`1m` is out of bounds; expected a duration from `1h` to `3650d`"),
        ("plan.valid = \"8d\"", "`8d` is out of bounds; expected a duration from `1s` to `7d`"),
        ("pass.concurrency = 500", "`500` is out of bounds; expected a number from 1 to 256"),
        (
            "budget.delete = { min = 1, per = \"500ms\" }",
            "`500ms` is out of bounds; expected a duration from `1s` to `30d`",
        ),
    ] {
        let faults = parse(text, "f").unwrap_err();
        assert_eq!(faults.faults[0].problem, problem);
    }
    let overrides = "[[policy]]\nname = \"a\"\noverrides = { label = \"l\", min = \"2h\", max = \"1h\" }";
    assert_eq!(
        told(overrides),
        ["3:34 policy[0].overrides.min | `min` is longer than `max`, so that no wish can be granted | -"]
    );
}

#[test]
fn a_file_of_junk_is_told_in_bounds() {
    let many = (0..5_000).map(|n| format!("key{n} = 1")).collect::<Vec<_>>().join("\n");
    let faults = parse(&many, "f").unwrap_err();
    assert_eq!((faults.faults.len(), faults.omitted), (MAX_FAULTS, 5_000 - MAX_FAULTS));
    assert!(faults.to_string().ends_with(&format!("and {} more", 5_000 - MAX_FAULTS)));

    let list = format!("policy = [{}]", "{ name = \"a\" },".repeat(1_001));
    assert_eq!(told(&list), ["1:10 policy | a list of 1001; at most 1000 are read | -"]);

    let long = format!("mode = \"{}\" # {}", "x".repeat(50_000), "y".repeat(50_000));
    let text = parse(&long, "f").unwrap_err().to_string();
    assert!(text.len() < 2_000, "{} bytes", text.len());
    assert!(
        !parse("mode = \"\\u001b[31m\"", "f").unwrap_err().to_string().contains('\u{1b}'),
        "no escapes reach a terminal"
    );
}

#[test]
fn a_text_on_more_lines_is_refused_where_it_would_break_a_report() {
    assert_eq!(told("[[policy]]\nname = \"a\\nb\""), ["2:8 policy[0].name | `a\\nb`: it has a control character | -"]);
}

#[test]
fn what_is_dearer_to_rebuild_never_goes_before_what_is_cheaper() {
    let files = |files: &str| format!("{TREES}[[policy]]\nname = \"p\"\nfiles = {{ {files} }}\n{BUDGETS}");
    assert_eq!(
        told(&files(r#"dependencies = "59m", caches = "1h""#)),
        [
            "7:26 policy[0].files.dependencies | sooner than `caches` (1h), which are cheaper to rebuild and go first | -"
        ]
    );
    for fine in [r#"caches = "1h", dependencies = "1h""#, r#"dependencies = "59m""#, r#"caches = "1h""#] {
        assert_eq!(warned(&files(fine)), [""; 0], "{fine}");
    }
}
