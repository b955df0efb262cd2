//! Which entries of the trash go for ever.

use std::time::Duration;

use lifecycle::{
    Disk, Policy, Tier, Time,
    policy::{Match, Pattern, Percent, Rules},
    trash::{TrashDue, TrashEntry, TrashReason, due, saves_before},
};

use super::worlds::{NOW, ago, backend, days, hours, policy, rules};

fn entry(name: &str, tier: Tier, before: Duration, bytes: u64) -> TrashEntry {
    TrashEntry { entry: name.into(), tier, at: ago(before), bytes }
}

fn names(due: &[TrashDue]) -> Vec<&str> {
    due.iter().map(|due| &*due.entry.entry).collect()
}

fn budgeted() -> Policy {
    policy(Rules { disk_budget: Percent::new(80), ..rules() })
}

const FULL: Option<Disk> = Some(Disk { total: 1_000, used: 850 });

#[test]
fn what_lay_there_for_longer_than_it_is_kept_goes_and_nothing_else() {
    let entries = [
        entry("new", Tier::Caches, days(1), 5),
        entry("at the limit", Tier::Caches, days(7), 5),
        entry("work", Tier::Runtime, days(8), 5),
        entry("old", Tier::Dependencies, days(9), 5),
        TrashEntry { at: NOW.plus(days(30)), ..entry("ahead", Tier::Caches, days(1), 5) },
    ];
    let gone = due(&entries, &backend(), FULL, &policy(rules()), NOW);
    assert_eq!(names(&gone), ["old", "work"]);
    assert_eq!(gone[0].reason, TrashReason::Expired { keep: days(7) });
    let roomy = Some(Disk { total: 1_000, used: 800 });
    assert_eq!(names(&due(&entries, &backend(), roomy, &budgeted(), NOW)), ["old", "work"]);
    assert_eq!(names(&due(&entries, &backend(), None, &budgeted(), NOW)), ["old", "work"]);
}

#[test]
fn a_full_disk_takes_what_can_be_rebuilt_oldest_first_until_it_is_under_and_never_work() {
    let entries = [
        entry("c", Tier::Caches, days(1), 20),
        entry("b", Tier::Dependencies, days(2), 20),
        entry("a", Tier::Caches, days(3), 20),
        entry("work", Tier::Runtime, days(6), 500),
    ];
    let gone = due(&entries, &backend(), FULL, &budgeted(), NOW);
    assert_eq!(names(&gone), ["a", "b", "c"]);
    assert_eq!(gone[0].reason, TrashReason::DiskBudget { budget: 80 });
    let nearly = Some(Disk { total: 1_000, used: 840 });
    assert_eq!(names(&due(&entries, &backend(), nearly, &budgeted(), NOW)), ["a", "b"]);
    // What expires makes room too.
    let expired = [entry("old", Tier::Runtime, days(8), 45), entry("a", Tier::Caches, days(3), 20)];
    assert_eq!(names(&due(&expired, &backend(), nearly, &budgeted(), NOW)), ["old"]);
}

#[test]
fn the_strictest_budget_of_the_policies_for_this_backend_counts() {
    let mut both = budgeted();
    both.rules.push(Rules { disk_budget: Percent::new(83), ..rules() });
    let elsewhere = Match { backend: vec![Pattern::new("other")], ..Match::default() };
    both.rules.push(Rules { disk_budget: Percent::new(1), matches: elsewhere, ..rules() });
    let entries = [entry("b", Tier::Caches, days(1), 20), entry("a", Tier::Caches, days(3), 20)];
    let nearly = Some(Disk { total: 1_000, used: 815 });
    assert_eq!(names(&due(&entries, &backend(), nearly, &both, NOW)), ["a"]);
}

#[test]
fn a_keep_of_zero_keeps() {
    let zero = Policy { trash_keep: Duration::ZERO, ..policy(rules()) };
    assert_eq!(due(&[entry("a", Tier::Runtime, hours(9), 5)], &backend(), FULL, &zero, NOW), []);
    let never = Policy { trash_keep: Duration::MAX, ..policy(rules()) };
    assert_eq!(due(&[entry("a", Tier::Runtime, hours(9), 5)], &backend(), FULL, &never, Time::MAX), []);
}

#[test]
fn saves_go_when_every_policy_of_the_backend_says_so_and_after_the_longest() {
    let keeps = |keep: Option<Duration>| {
        let mut rules = rules();
        rules.retention.workspace = keep;
        rules
    };
    let before = |rules: Vec<Rules>| saves_before(&backend(), &Policy { rules, ..policy(self::rules()) }, NOW);
    let slack = policy(rules()).slack();
    assert_eq!(before(vec![]), None, "no policy says anything");
    assert_eq!(before(vec![keeps(Some(days(30)))]), Some(ago(days(30)).minus(slack)));
    assert_eq!(before(vec![keeps(Some(days(30))), keeps(Some(days(90)))]), Some(ago(days(90)).minus(slack)));
    assert_eq!(before(vec![keeps(Some(days(30))), keeps(None)]), None, "one keeps for ever");
    assert_eq!(before(vec![keeps(Some(Duration::ZERO))]), None, "zero is never");
    let elsewhere = Match { backend: vec![Pattern::new("elsewhere")], ..Match::default() };
    let other = Rules { matches: elsewhere, ..keeps(None) };
    assert_eq!(before(vec![other, keeps(Some(days(30)))]), Some(ago(days(30)).minus(slack)));
}
