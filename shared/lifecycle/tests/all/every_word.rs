//! One plan with every action and every reason in it, as the file that whoever reads plans can rely on.

use std::{collections::BTreeSet, fs};

use lifecycle::{
    Action, Activity, Busy, Cannot, Capabilities, Claim, Disk, Incarnation, Loss, NativeDeadline, NativeEffect,
    NativeObserved, Ownership, Plan, PlanError, Policy, Reason, Role, Snapshot, State, Sweep, Tier, UnitSnapshot, plan,
    policy::{Breakers, BudgetKind, FileRules, Match, Pattern, Percent, Prices, Retention, Rules, WorkspaceRule},
    record::Hold,
};
use serde_json::Value;

use super::worlds::{
    NOW, Runtime, ago, archiving, container, days, hours, mins, policy, rules, running, suspended, unit, usual,
    worktree,
};

const FIXTURE: &str = include_str!("../every_word.plan.json");

/// Rules for one backend.
fn only(backend: &str, rules: Rules) -> Rules {
    let backend_only = Match { backend: vec![Pattern::new(backend)], ..Match::default() };
    Rules { name: backend.into(), matches: backend_only, ..rules }
}

fn every_rule() -> Policy {
    let plain = Rules { retention: Retention { suspended: Some(days(14)), ..Retention::default() }, ..usual() };
    let cloud = Rules {
        lifetime_max: Some(hours(24)),
        notice_before_delete: Some(hours(48)),
        workspace: WorkspaceRule::Save,
        ..usual()
    };
    let trees = Rules {
        files: FileRules { caches: Some(hours(1)), dependencies: Some(days(3)) },
        disk_budget: Percent::new(80),
        workspace: WorkspaceRule::Save,
        ..plain.clone()
    };
    let small = ["dark", "paused", "shrunk", "spent"].map(|backend| only(backend, plain.clone()));
    let mut policy = policy(rules());
    policy.rules = vec![
        only("box", Rules { unknown_after: Some(days(7)), ..plain.clone() }),
        only("cloud", cloud),
        only("trees", trees),
    ];
    policy.rules.extend(small);
    policy.prices = [("box".parse().unwrap(), Prices { running: 80_000, suspended: 4_000 })].into();
    policy.breakers = Breakers { inventory_drop: Percent::new(30), silent: None };
    policy
}

/// A backend with these runtimes, whose ids are `name/…`.
fn named(name: &str, can: Capabilities, runtimes: impl IntoIterator<Item = Runtime>) -> UnitSnapshot {
    let moved = |runtime: Runtime| {
        runtime.seen(|seen| seen.id = format!("{name}/{}", seen.id.encoded()).parse().unwrap()).subject()
    };
    let mut unit = unit(can, []);
    unit.backend = name.parse().unwrap();
    unit.set_subjects(runtimes.into_iter().map(moved).collect());
    unit
}

/// Known to the record alone.
fn unseen(mut unit: UnitSnapshot, names: &[&str]) -> UnitSnapshot {
    let mut subjects = unit.subjects().to_vec();
    for subject in subjects.iter_mut().filter(|subject| names.contains(&subject.id.encoded())) {
        subject.seen = None;
    }
    unit.set_subjects(subjects);
    unit
}

/// Suspended by idleness, and all that can keep a container from it.
fn boxes() -> UnitSnapshot {
    let idle = |name: &str| running(name).heartbeat(hours(2));
    let cannot = |why: &str| vec![Cannot { role: Role::Suspend, why: why.into() }];
    let runtimes = [
        idle("idle"),
        running("never-active").recorded(),
        suspended("retention", days(20)).seen(|seen| {
            seen.loss = Loss::Work(vec!["2 unpushed commits".into(), "3 untracked files".into()]);
            seen.files.total = Some(9_900_000);
        }),
        running("active").active(mins(3)),
        suspended("not-yet", days(1)),
        idle("busy").seen(|seen| seen.busy = Busy::Until(NOW.plus(hours(1)))),
        idle("unread").seen(|seen| seen.busy = Busy::Unread),
        running("unknown").recorded().record(|record| {
            (record.first_seen, record.idle_from) = (ago(days(1)), ago(days(1)));
        }),
        running("first-seen"),
        idle("held").record(|record| record.hold_until = Some(Hold::Until(NOW.plus(days(7))))),
        idle("held-for-ever").record(|record| record.hold_until = Some(Hold::Forever)),
        idle("hold-unreadable").label("furlough.hold", "soon"),
        suspended("wanted", days(20)).recorded().record(|record| record.wanted_at = Some(ago(mins(5)))),
        idle("unlabelled").seen(|seen| seen.ownership = Ownership::Unlabelled),
        idle("foreign").seen(|seen| seen.ownership = Ownership::Foreign),
        idle("lacks").seen(|seen| seen.cannot = cannot("`--rm` container: stopping it deletes it")),
        idle("claimed").record(|record| {
            record.claim = Some(Claim { owner: "another pass".into(), until: NOW.plus(mins(2)) });
        }),
        idle("middle").record(|record| record.state = State::Suspending),
        idle("moved").record(|record| record.incarnation = Some(Incarnation::new("run-0"))),
        idle("backing-off").record(|record| {
            (record.attempts, record.due_at) = (2, Some(NOW.plus(mins(10))));
        }),
        running("no-rule").seen(|seen| seen.state = State::Archived),
        idle("absent"),
        idle("gone").record(|record| record.state = State::Gone),
    ];
    unseen(named("box", container(), runtimes), &["absent", "gone"])
}

/// Archived, announced, deleted; and a provider that acts by itself.
fn cloud() -> UnitSnapshot {
    let archived = |name: &str| {
        suspended(name, days(200)).seen(|seen| (seen.state, seen.loss) = (State::Archived, Loss::Nothing)).recorded()
    };
    let noticed = |name: &str, before| {
        archived(name).record(|record| {
            (record.condemned_at, record.noticed_at) = (Some(ago(before)), Some(ago(before)));
        })
    };
    let deadline = NativeDeadline { at: NOW.plus(mins(5)), effect: NativeEffect::Archive };
    let native = NativeObserved { archive: Some(days(14)), deadline: Some(deadline), ..NativeObserved::default() };
    let runtimes = [
        running("lifetime").heartbeat(mins(3)),
        suspended("archive", days(15)),
        archived("notify"),
        noticed("delete", days(3)),
        noticed("notice", days(1)),
        archived("not-saved").seen(|seen| seen.loss = Loss::Work(vec!["1 modified file".into()])),
        suspended("native-first", days(15)).seen(|seen| seen.native = Some(Box::new(native))),
    ];
    named("cloud", archiving(), runtimes)
}

/// Files shed by age and for the disk, and a worktree that is deleted.
fn trees() -> UnitSnapshot {
    let tree = |name: &str, before, caches, dependencies| {
        running(name).active(before).seen(|seen| {
            seen.running_since = None;
            (seen.files.caches, seen.files.dependencies) = (Some(caches), Some(dependencies));
        })
    };
    let work = Loss::Work(vec!["1 commit on no remote and no other branch".into()]);
    let runtimes = [
        tree("caches", hours(2), 40, 400),
        tree("dependencies", days(5), 0, 300),
        tree("disk-budget", mins(45), 20, 200),
        tree("idle", days(30), 0, 0).seen(|seen| seen.loss = work),
        tree("frozen", mins(1), 0, 0).seen(|seen| seen.activity = Activity::Frozen),
    ];
    let mut trees = named("trees", worktree(), runtimes);
    trees.disk = Some(Disk { total: 10_000, used: 9_990 });
    trees
}

/// What keeps a whole backend.
fn stopped() -> [UnitSnapshot; 5] {
    let one = |name: &str| named(name, container(), [running("a").heartbeat(hours(2))]);
    let [mut paused, mut shrunk, mut spent, stray] = ["paused", "shrunk", "spent", "stray"].map(one);
    paused.paused = true;
    shrunk.last_sweep = Some(Sweep { at: ago(hours(1)), count: 100 });
    spent.used.insert(BudgetKind::Suspend, 1_000_000);
    let mut dark = unseen(one("dark"), &["a"]);
    dark.listing.complete = false;
    dark.listing.error = Some("the engine does not answer".into());
    [paused, shrunk, spent, stray, dark]
}

fn made() -> Plan {
    let units = [boxes(), cloud(), trees()].into_iter().chain(stopped());
    plan(&Snapshot { units: units.collect() }, &every_rule(), NOW)
}

/// The words that a type has, from its own reader: a new one is missing here before anybody remembers this test.
fn words<T: serde::de::DeserializeOwned>(unknown: &str) -> BTreeSet<String> {
    let Err(error) = serde_json::from_str::<T>(unknown) else { panic!("{unknown} is a word") };
    let known = error.to_string();
    known.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_file_is_what_is_produced_byte_for_byte() {
    let produced = made().to_json();
    let kept = concat!(env!("CARGO_TARGET_TMPDIR"), "/every_word.plan.json");
    fs::write(kept, &produced).unwrap();
    assert!(produced == FIXTURE, "plans are written differently; if that is meant, copy {kept} over the fixture");
}

#[test]
fn the_file_is_read_back_and_may_be_applied_under_its_policy_alone() {
    let read = Plan::from_json(FIXTURE).unwrap();
    assert_eq!(read, made());
    assert_eq!(read.check(&every_rule(), NOW), Ok(()));
    let other = policy(usual());
    assert!(read.check(&other, NOW).is_err());
}

#[test]
fn every_reason_and_every_action_is_in_it() {
    let plan = Plan::from_json(FIXTURE).unwrap();
    let reasons = plan.items.iter().map(|item| &item.reason).chain(plan.kept.iter().map(|kept| &kept.reason));
    let reasons: BTreeSet<_> = reasons.map(|reason| reason.code().to_owned()).collect();
    let all = words::<Reason>(r#"{"code": "?"}"#);
    assert!(all.len() > 30, "{all:?}");
    assert_eq!(reasons, all);
    let file: Value = serde_json::from_str(FIXTURE).unwrap();
    let word = |action: &Value| action.as_str().map_or("shed", |word| word).to_owned();
    let actions: BTreeSet<_> = file["items"].as_array().unwrap().iter().map(|item| word(&item["action"])).collect();
    assert_eq!(actions, words::<Action>("\"?\""));
    let tiers: BTreeSet<_> = plan.items.iter().map(|item| item.action).collect();
    // The runtime as a whole is never shed: that is a deletion.
    assert!(tiers.contains(&Action::Shed(Tier::Caches)) && tiers.contains(&Action::Shed(Tier::Dependencies)));
}

#[test]
fn no_value_of_it_can_be_changed() {
    let file: Value = serde_json::from_str(FIXTURE).unwrap();
    let mut leaves = Vec::new();
    pointers("", &file, &mut leaves);
    assert!(leaves.len() > 400, "{}", leaves.len());
    for leaf in leaves {
        let mut edited = file.clone();
        let value = edited.pointer_mut(&leaf).unwrap();
        *value = changed(value);
        let refused = Plan::from_json(&edited.to_string());
        assert!(refused.is_err(), "{leaf}");
    }
}

fn pointers(at: &str, value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| pointers(&format!("{at}/{key}"), value, leaves)),
        Value::Array(all) if !all.is_empty() => {
            all.iter().enumerate().for_each(|(index, value)| pointers(&format!("{at}/{index}"), value, leaves));
        }
        _ => leaves.push(at.to_owned()),
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Bool(yes) => (!yes).into(),
        Value::Number(number) => (number.as_f64().unwrap() + 1.0).into(),
        Value::String(text) => format!("{text}0").into(),
        Value::Null => 1.into(),
        Value::Array(_) | Value::Object(_) => Value::Array(vec!["0".into()]),
    }
}

#[test]
fn cut_anywhere_or_of_another_version_it_is_refused_as_such() {
    let text = FIXTURE.trim_end();
    for cut in (0..text.len()).step_by(211).chain([text.len() - 1]) {
        assert_eq!(Plan::from_json(&text[..cut]), Err(PlanError::CutShort), "after {cut} bytes");
    }
    let newer = FIXTURE.replacen("\"version\": 1", "\"version\": 2", 1);
    assert_eq!(Plan::from_json(&newer), Err(PlanError::OtherVersion { found: 2 }));
}
