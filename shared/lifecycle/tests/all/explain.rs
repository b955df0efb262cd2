//! Explanations: every rule in order, what it saw, what it said.

use lifecycle::{
    Action, Disk, Policy, Reason, Sweep, UnitSnapshot, Verdict, explain,
    explain::Said,
    policy::{Breakers, Budget, BudgetKind, Percent, Rules},
    verdict::Breaker,
};

use super::worlds::{NOW, container, days, hours, id, just_past, mins, policy, running, short, unit, usual};

#[test]
fn every_rule_is_shown_in_order_also_after_the_one_that_decides() {
    let rules = Rules { lifetime_max: Some(days(30)), ..usual() };
    let runtime = running("a").heartbeat(hours(2)).label("furlough.hold", "");
    let unit = unit(container(), [runtime]);
    let explanation = explain(&unit.subjects()[0], &unit, &policy(rules), NOW);
    assert_eq!(short(explanation.verdict.clone()), Err((Reason::HoldUnreadable, None)));
    let names: Vec<_> = explanation.steps.iter().map(|step| step.rule).collect();
    let expected = [
        "gone",
        "incarnation",
        "claim",
        "middle state",
        "hold",
        "wanted",
        "backing off",
        "policy",
        "lifetime.max",
        "busy",
        "probe",
        "idle.after",
        "unknown.after",
        "retention at rest",
        "files",
        "pause",
        "breaker.inventory_drop",
        "breaker.silent",
        "disk.budget",
    ];
    assert_eq!(names, expected);
    let step = |rule| explanation.steps.iter().find(|step| step.rule == rule).unwrap();
    assert_eq!(step("hold").said, Said::Keep(Reason::HoldUnreadable));
    let lifetime = step("lifetime.max");
    assert_eq!(lifetime.age, Some(days(10)));
    assert_eq!(lifetime.next, Some(just_past(NOW.minus(days(10)), days(30))));
    let idle = step("idle.after");
    let saw = "idle since 2026-06-15T10:00:00Z, limit 30m, last seen active by heartbeat";
    assert_eq!((idle.saw.as_str(), idle.age), (saw, Some(hours(2))));
    assert_eq!(idle.said, Said::Act(Action::Suspend, Reason::Idle { after: mins(30) }));
    assert_eq!(step("files").said, Said::Pass);
}

#[test]
fn the_verdict_is_the_plans_also_where_the_rules_alone_would_act() {
    let mut policy = policy(usual());
    policy.budgets.suspend = None;
    let unit = unit(container(), [running("a").heartbeat(hours(2))]);
    let explanation = explain(&unit.subjects()[0], &unit, &policy, NOW);
    let kept = Reason::Budget { kind: BudgetKind::Suspend, limit: 0 };
    assert_eq!(short(explanation.verdict.clone()), Err((kept, None)));
    assert!(explanation.opening()[2].starts_with("kept: there is no budget for suspend"));
}

/// Each key of the policy that concerns a backend as a whole is a step with the figures that it was decided by.
#[test]
fn what_concerns_the_backend_as_a_whole_is_shown_with_its_figures() {
    let rules = Rules { disk_budget: Percent::new(80), ..usual() };
    let mut policy = policy(rules);
    policy.budgets.suspend = Some(Budget { max: Percent::new(20), min: 3, per: mins(10) });
    policy.breakers = Breakers { inventory_drop: Percent::new(30), silent: Percent::new(20) };
    let mut unit = unit(container(), [running("a").heartbeat(hours(2)), running("b").heartbeat(mins(1))]);
    unit.last_sweep = Some(Sweep { at: NOW.minus(hours(1)), count: 2 });
    unit.silent_mean = Some(0.45);
    unit.disk = Some(Disk { total: 1_000, used: 700 });
    unit.used.insert(BudgetKind::Suspend, 3);
    let last = |unit: &UnitSnapshot, policy: &Policy| {
        let steps = explain(&unit.subjects()[0], unit, policy, NOW).steps;
        steps[steps.len() - 5..].iter().map(|step| (step.rule, step.saw.clone(), step.said.clone())).collect::<Vec<_>>()
    };
    let spent = Said::Keep(Reason::Budget { kind: BudgetKind::Suspend, limit: 3 });
    let expected = [
        ("pause", "not paused", Said::Pass),
        ("breaker.inventory_drop", "2 runtimes, 2 at the last sweep, limit 30% fewer", Said::Pass),
        ("breaker.silent", "50% silent, 45% on average, limit 20% more", Said::Pass),
        ("disk.budget", "70% full, budget 80%", Said::Pass),
        ("budget.suspend", "3 of 3 used in this window of 10m", spent),
    ];
    assert_eq!(last(&unit, &policy), expected.map(|(rule, saw, said)| (rule, saw.to_owned(), said)));
    unit.silent_mean = Some(0.1);
    let silent = Said::Keep(Reason::Breaker { breaker: Breaker::Silent });
    assert_eq!(last(&unit, &policy)[2].2, silent);
    unit.last_sweep = Some(Sweep { at: NOW.minus(hours(1)), count: 3 });
    let shrunk = Said::Keep(Reason::Breaker { breaker: Breaker::InventoryDrop });
    assert_eq!(last(&unit, &policy)[1].2, shrunk);
    unit.paused = true;
    assert_eq!(last(&unit, &policy)[0].2, Said::Keep(Reason::Paused));
}

/// A fresher look than the listing's replaces it.
#[test]
fn a_fresher_look_counts() {
    let unit = unit(container(), [running("a").heartbeat(hours(2)), running("b").heartbeat(hours(2))]);
    let fresh = running("a").heartbeat(mins(1)).subject();
    let explanation = explain(&fresh, &unit, &policy(usual()), NOW);
    assert!(matches!(explanation.verdict, Verdict::Keep(Reason::Active, _)));
    let stranger = running("z").heartbeat(hours(2)).subject();
    let explanation = explain(&stranger, &unit, &policy(usual()), NOW);
    assert!(matches!(explanation.verdict, Verdict::Act(Action::Suspend, ..)));
    assert_eq!(explanation.runtime, id("z"));
}

#[test]
fn what_is_foreign_is_explained_in_one_line() {
    let foreign = running("a").seen(|seen| seen.ownership = lifecycle::Ownership::Foreign);
    let unit = unit(container(), [foreign]);
    let explanation = explain(&unit.subjects()[0], &unit, &policy(usual()), NOW);
    let steps: Vec<_> = explanation.steps.iter().map(|step| (step.rule, step.saw.as_str())).collect();
    assert_eq!(steps, [("scope", "ownership foreign")]);
    assert_eq!(explanation.table().rows.len(), 1);
}
