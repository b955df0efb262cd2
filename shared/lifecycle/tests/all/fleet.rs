//! What concerns a backend as a whole: budgets, breakers, pause, the disk, absence, the headline.

use std::{collections::BTreeMap, time::Duration};

use lifecycle::{
    Action, Disk, Headline, Incarnation, Ownership, Policy, Reason, Saves, Snapshot, State, Subject, Sweep, Tier,
    UnitSnapshot, plan,
    policy::{Breakers, Budget, BudgetKind, FileRules, Percent, Prices, Rules},
    verdict::Breaker,
};

use super::worlds::{
    NOW, Runtime, ago, backend, container, days, hours, id, mins, plan_of, policy, rules, running, short, suspended,
    unit, usual, worktree,
};

fn idle(name: &str, minutes: u64) -> Runtime {
    running(name).heartbeat(mins(minutes))
}

fn acts(unit: UnitSnapshot, policy: &Policy) -> Vec<String> {
    let plan = plan_of(unit, policy);
    plan.items.iter().map(|item| format!("{} {}", item.action, item.runtime.encoded())).collect()
}

fn why(unit: UnitSnapshot, policy: &Policy, name: &str) -> Reason {
    match short(plan_of(unit, policy).verdict(&id(name)).unwrap()) {
        Ok((_, reason)) | Err((reason, _)) => reason,
    }
}

fn budget(max: Option<u8>, min: u32) -> Policy {
    let suspend = Some(Budget { max: max.and_then(Percent::new), min, per: mins(10) });
    let policy = policy(usual());
    Policy { budgets: lifecycle::policy::Budgets { suspend, ..policy.budgets }, ..policy }
}

#[test]
fn a_budget_takes_the_longest_idle_first_and_says_when_the_next_window_begins() {
    let unit = unit(container(), [idle("c", 40), idle("b", 90), idle("a", 40), idle("d", 60)]);
    let plan = plan_of(unit, &budget(None, 3));
    let items: Vec<_> = plan.items.iter().map(|item| item.runtime.encoded()).collect();
    assert_eq!(items, ["b", "d", "a"]);
    let spent = Reason::Budget { kind: BudgetKind::Suspend, limit: 3 };
    let next = NOW.plus(mins(10));
    assert_eq!(
        plan.kept.iter().map(|kept| (&kept.reason, kept.next_check)).collect::<Vec<_>>(),
        [(&spent, Some(next))]
    );
}

#[test]
fn no_budget_and_an_unknown_use_of_one_allow_nothing() {
    let one = || unit(container(), [idle("a", 40)]);
    let none = Policy { budgets: <_>::default(), ..policy(usual()) };
    assert_eq!(why(one(), &none, "a"), Reason::Budget { kind: BudgetKind::Suspend, limit: 0 });
    assert_eq!(why(one(), &budget(None, 0), "a"), Reason::Budget { kind: BudgetKind::Suspend, limit: 0 });
    let mut unread = one();
    unread.used = BTreeMap::new();
    assert_eq!(why(unread, &budget(None, 9), "a"), Reason::Budget { kind: BudgetKind::Suspend, limit: 9 });
    let mut used = one();
    used.used.insert(BudgetKind::Suspend, 9);
    assert_eq!(acts(used, &budget(None, 9)), Vec::<String>::new());
}

#[test]
fn a_share_is_of_the_last_complete_sweep_else_of_this_one_if_it_is_complete() {
    let four = || unit(container(), [idle("a", 40), idle("b", 40), idle("c", 40), idle("d", 40)]);
    let share = budget(Some(50), 0);
    assert_eq!(acts(four(), &share).len(), 2);
    let mut swept = four();
    swept.last_sweep = Some(Sweep { at: ago(hours(1)), count: 2 });
    assert_eq!(acts(swept, &share).len(), 1);
    let mut partial = four();
    partial.listing.complete = false;
    assert_eq!(acts(partial.clone(), &share).len(), 0);
    assert_eq!(acts(partial, &budget(Some(50), 1)).len(), 1);
}

#[test]
fn notices_have_no_budget_and_come_first() {
    let polite = Rules { notice_before_delete: Some(hours(48)), ..usual() };
    let none = Policy { budgets: budget(None, 1).budgets, ..policy(polite) };
    let unit = unit(container(), [idle("a", 40), suspended("b", days(20)), suspended("c", days(30))]);
    assert_eq!(acts(unit, &none), ["notify c", "notify b", "suspend a"]);
}

#[test]
fn a_paused_backend_only_reports_and_keeps_the_reasons_of_what_would_be_kept_anyway() {
    let mut unit = unit(container(), [idle("a", 40), idle("b", 10)]);
    unit.paused = true;
    let policy = policy(usual());
    assert_eq!(acts(unit.clone(), &policy), Vec::<String>::new());
    assert_eq!(why(unit.clone(), &policy, "a"), Reason::Paused);
    assert_eq!(why(unit, &policy, "b"), Reason::Active);
}

/// terraform-aws-github-runner#3589: one short provider list made live runners orphans.
#[test]
fn an_inventory_that_shrank_too_much_is_only_reported() {
    let breakers = Breakers { inventory_drop: Percent::new(30), silent: None };
    let policy = Policy { breakers, ..policy(usual()) };
    let after = |count, complete| {
        let mut unit = unit(container(), (0..7).map(|n| idle(&format!("r{n}"), 40)));
        unit.last_sweep = Some(Sweep { at: ago(hours(1)), count });
        unit.listing.complete = complete;
        unit
    };
    assert_eq!(acts(after(10, true), &policy).len(), 7);
    assert_eq!(acts(after(11, true), &policy).len(), 0);
    assert_eq!(why(after(11, true), &policy, "r3"), Reason::Breaker { breaker: Breaker::InventoryDrop });
    // A partial listing tells nothing of what it lacks, and what it shows was really seen.
    assert_eq!(acts(after(11, false), &policy).len(), 7);
}

/// daytonaio/daytona#5154: activity was buffered and invisible to the stop query.
#[test]
fn many_that_fall_silent_at_once_mean_that_ingestion_is_down() {
    let breakers = Breakers { inventory_drop: None, silent: Percent::new(20) };
    let policy = Policy { breakers, ..policy(usual()) };
    let fleet = |silent: usize| {
        let runtimes = (0..10).map(|n| idle(&format!("r{n}"), if n < silent { 40 } else { 5 }));
        // Those that do not live by heartbeats have no part in it.
        let others = (0..5).map(|n| running(&format!("s{n}")).active(mins(40)));
        unit(container(), runtimes.chain(others))
    };
    let share = |unit| plan_of(unit, &policy).backends[0].silent_share;
    assert_eq!(share(fleet(3)), Some(0.3));
    assert_eq!(acts(fleet(2), &policy).len(), 7);
    assert_eq!(acts(fleet(3), &policy).len(), 0);
    assert_eq!(why(fleet(3), &policy, "s1"), Reason::Breaker { breaker: Breaker::Silent });
    let mut usual_share = fleet(3);
    usual_share.silent_mean = Some(0.1);
    assert_eq!(acts(usual_share.clone(), &policy).len(), 8);
    for unreadable in [f64::NAN, -1.0, 7.0, f64::INFINITY] {
        usual_share.silent_mean = Some(unreadable);
        assert_eq!(acts(usual_share.clone(), &policy).len(), 0, "{unreadable}");
    }
    assert_eq!(share(unit(container(), [running("a")])), None);
}

#[test]
fn absence_is_not_evidence() {
    let absent = |state, since| {
        let Subject { id, record, .. } = idle("a", 900)
            .record(|record| {
                record.state = state;
                record.absent_since = since;
            })
            .subject();
        Subject { id, seen: None, record, probe: None }
    };
    let verdict = |complete, subject: Subject| {
        let mut unit = unit(container(), []);
        unit.listing.complete = complete;
        unit.set_subjects(vec![subject]);
        short(plan_of(unit, &policy(usual())).verdict(&id("a")).unwrap())
    };
    let since = Some(ago(hours(1)));
    assert_eq!(verdict(true, absent(State::Running, None)), Err((Reason::Absent { since: None }, None)));
    assert_eq!(verdict(true, absent(State::Suspended, since)), Err((Reason::Absent { since }, None)));
    assert_eq!(verdict(false, absent(State::Running, since)), Err((Reason::Inventory, None)));
    assert_eq!(verdict(true, absent(State::Gone, since)), Err((Reason::Gone, None)));
}

fn disk_policy() -> Policy {
    policy(Rules { disk_budget: Percent::new(80), idle_after: Some(mins(30)), ..rules() })
}

fn sized(name: &str, idle: Duration, caches: Option<u64>, dependencies: Option<u64>) -> Runtime {
    running(name).active(idle).seen(|seen| {
        seen.running_since = None;
        seen.files.caches = caches;
        seen.files.dependencies = dependencies;
    })
}

fn on_disk(used: u64, runtimes: impl IntoIterator<Item = Runtime>) -> UnitSnapshot {
    let mut unit = unit(worktree(), runtimes);
    unit.disk = Some(Disk { total: 1_000, used });
    unit
}

#[test]
fn a_full_disk_takes_caches_before_dependencies_the_longest_idle_first_until_it_is_under() {
    let fleet = || {
        [
            sized("a", hours(1), Some(10), Some(100)),
            sized("b", hours(3), Some(10), Some(100)),
            sized("c", hours(2), None, Some(100)),
            sized("d", days(9), Some(0), Some(60)),
            sized("e", days(8), Some(0), Some(60)),
            sized("busy", mins(5), Some(500), Some(500)),
        ]
    };
    assert_eq!(acts(on_disk(800, fleet()), &disk_policy()), Vec::<String>::new());
    // By how long they are idle in the list of items; which of them is what the disk needs.
    assert_eq!(acts(on_disk(805, fleet()), &disk_policy()), ["shed caches b"]);
    // What was not measured frees nothing that could be counted on.
    assert_eq!(acts(on_disk(815, fleet()), &disk_policy()), ["shed caches b", "shed caches c", "shed caches a"]);
    let all = ["shed dependencies d", "shed caches b", "shed caches c", "shed caches a"];
    assert_eq!(acts(on_disk(880, fleet()), &disk_policy()), all);
    let reason = Reason::DiskBudget { used: 82, budget: 80 };
    assert_eq!(why(on_disk(815, fleet()), &disk_policy(), "b"), reason);
    assert_eq!(why(on_disk(1_000, fleet()), &disk_policy(), "busy"), Reason::Active);
}

#[test]
fn what_goes_by_age_counts_for_the_disk_too_and_a_hold_keeps_also_files() {
    let mut policy = disk_policy();
    policy.rules[0].files = FileRules { caches: Some(hours(2)), dependencies: None };
    let fleet = [
        sized("a", hours(3), Some(50), None),
        sized("b", hours(1), Some(50), None),
        sized("c", days(9), Some(50), None).label("furlough.hold", ""),
    ];
    assert_eq!(acts(on_disk(840, fleet.clone()), &policy), ["shed caches a"]);
    assert_eq!(acts(on_disk(860, fleet), &policy), ["shed caches a", "shed caches b"]);
}

#[test]
fn a_zero_is_no_limit_also_where_the_disk_is_full() {
    let mut zero = disk_policy();
    zero.rules[0].idle_after = Some(Duration::ZERO);
    let plan = plan_of(on_disk(1_000, [sized("a", days(9), Some(50), Some(50))]), &zero);
    assert_eq!((plan.items, plan.headline.idle), (Vec::new(), 0));
}

#[test]
fn a_disk_that_is_not_known_is_not_over_budget() {
    let fleet = [sized("a", hours(3), Some(50), None)];
    let mut unit = on_disk(1_000, fleet);
    unit.disk = None;
    assert_eq!(acts(unit, &disk_policy()), Vec::<String>::new());
}

/// kortix-ai/suna#4228: 78 % of billed hours were dead.
#[test]
fn the_headline_is_idle_hours_and_what_they_cost_whatever_keeps_them() {
    let mut policy = policy(usual());
    policy.prices.insert(backend(), Prices { running: 80_000, suspended: 4_000 });
    let held = idle("held", 600).label("furlough.hold", "");
    let foreign = idle("foreign", 600).seen(|seen| seen.ownership = Ownership::Foreign);
    let fleet = unit(container(), [idle("a", 90), idle("b", 10), held, foreign, suspended("s", days(20))]);
    let plan = plan_of(fleet, &policy);
    let headline = Headline {
        runtimes: 4,
        idle: 2,
        idle_hours: 11.5,
        idle_cost_micros: 11 * 80_000 + 40_000,
        saves: Saves { micros_per_hour: 76_000 + 4_000, bytes: 0 },
    };
    assert_eq!(plan.headline, headline);
    let note = &plan.backends[0];
    assert_eq!((note.ours, note.foreign, note.unlabelled), (4, 1, 0));
    let first = &plan.opening()[0];
    assert_eq!(first, "11.5 idle hours; they cost 0.92; 2 of 4 runtimes are idle past their limit");
}

#[test]
fn items_come_in_an_order_that_does_what_can_be_taken_back_first() {
    let rules = Rules { files: FileRules { caches: Some(hours(1)), dependencies: None }, ..usual() };
    let no_limit = Rules { idle_after: None, matches: lifecycle::policy::Match::default(), ..rules.clone() };
    let mut labelled = rules.clone();
    labelled.matches.labels.insert("idle".into(), lifecycle::policy::Pattern::new("*"));
    let mut policy = policy(no_limit);
    policy.rules.insert(0, labelled);
    let fleet = [
        suspended("old", days(20)),
        idle("young", 40).label("idle", ""),
        idle("elder", 80).label("idle", ""),
        idle("cached", 90),
    ];
    let expected = ["shed caches cached", "suspend elder", "suspend young", "delete old"];
    assert_eq!(acts(unit(container(), fleet), &policy), expected);
}

#[test]
fn the_first_policy_that_matches_decides() {
    let short_limit = usual();
    let mut team = Rules { name: "team".into(), idle_after: Some(hours(9)), ..usual() };
    team.matches.labels.insert("team".into(), lifecycle::policy::Pattern::new("core-*"));
    let elsewhere = Rules {
        name: "elsewhere".into(),
        matches: lifecycle::policy::Match { backend: vec![lifecycle::policy::Pattern::new("e2b*")], ..<_>::default() },
        ..usual()
    };
    let mut both = policy(short_limit);
    both.rules.splice(0..0, [elsewhere.clone(), team]);
    let fleet = || unit(container(), [idle("a", 90), idle("b", 90).label("team", "core-1")]);
    assert_eq!(acts(fleet(), &both), ["suspend a"]);
    assert_eq!(why(fleet(), &policy(elsewhere), "a"), Reason::NoPolicy);
}

#[test]
fn a_row_of_another_backend_is_nobodys() {
    let stray = idle("a", 90).seen(|seen| seen.id = "other/a".parse().unwrap());
    let plan = plan_of(unit(container(), [stray]), &policy(usual()));
    assert_eq!(plan.items, []);
    assert_eq!(plan.kept[0].reason, Reason::Foreign);
}

/// software-agent-sdk#5196: 32 idle containers converge to none, in as many passes as the budget needs.
#[test]
fn a_backlog_converges_to_nothing_in_k_passes() {
    let mut fleet: Vec<_> = (0..32).map(|n| idle(&format!("r{n:02}"), 60 + n)).collect();
    let policy = budget(None, 5);
    let mut passes = 0;
    while fleet.iter().any(|runtime| runtime.seen.state == State::Running) {
        let plan = plan_of(unit(container(), fleet.clone()), &policy);
        assert!(!plan.items.is_empty(), "a pass with idle runtimes left must suspend some");
        for item in &plan.items {
            let runtime = fleet.iter_mut().find(|runtime| runtime.seen.id == item.runtime).unwrap();
            *runtime = suspended(item.runtime.encoded(), Duration::ZERO);
        }
        passes += 1;
    }
    assert_eq!(passes, 7);
}

#[test]
fn each_backend_has_budgets_of_its_own_and_the_order_of_backends_changes_nothing() {
    let mut other = unit(container(), []);
    other.backend = "a".parse().unwrap();
    let stray = |name: &str| idle(name, 40).seen(|seen| seen.id = format!("a/{name}").parse().unwrap()).subject();
    other.set_subjects(vec![stray("x"), stray("y")]);
    let one = unit(container(), [idle("x", 50), idle("y", 50)]);
    let forward = plan(&Snapshot { units: vec![one.clone(), other.clone()] }, &budget(None, 1), NOW);
    let backward = plan(&Snapshot { units: vec![other, one] }, &budget(None, 1), NOW);
    assert_eq!(forward, backward);
    let items: Vec<_> = forward.items.iter().map(|item| item.runtime.to_string()).collect();
    assert_eq!(items, ["b/x", "a/x"]);
    let kept: Vec<_> = forward.kept.iter().map(|kept| kept.runtime.to_string()).collect();
    assert_eq!(kept, ["a/y", "b/y"]);
}

#[test]
fn an_item_says_on_what_it_was_planned() {
    let plan = plan_of(unit(container(), [idle("a", 90), running("b").active(hours(2))]), &policy(usual()));
    let of = |name: &str| plan.items.iter().find(|item| item.runtime == id(name)).unwrap();
    let recorded = of("a");
    assert_eq!((recorded.epoch, recorded.token, recorded.state), (Some(1), Some(7), State::Running));
    assert_eq!(recorded.incarnation, Incarnation::new("run-1"));
    assert_eq!((of("b").epoch, of("b").token, of("b").action), (None, None, Action::Suspend));
    assert_eq!(Action::Shed(Tier::Caches).to_string(), "shed caches");
}
