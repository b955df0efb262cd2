//! What people read.

use std::time::Duration;

use lifecycle::{
    Fate, Loss, Report, Standing,
    policy::{Mode, Prices},
    report::{Bytes, Money},
};

use super::worlds::{backend, container, days, hours, mins, plan_of, policy, running, suspended, unit, usual};

fn plan() -> lifecycle::Plan {
    let mut policy = policy(usual());
    policy.prices.insert(backend(), Prices { running: 80_000, suspended: 4_000 });
    let old = suspended("old", days(20)).seen(|seen| {
        seen.files.total = Some(9_900_000);
        seen.loss = Loss::Work(vec!["2 unpushed commits".into(), "3 untracked files".into()]);
    });
    let fleet = [running("a").heartbeat(hours(2)), old, running("c"), running("d").active(mins(3)), running("e")];
    plan_of(unit(container(), fleet), &policy)
}

#[test]
fn a_plan_reads_as_a_table_and_as_markdown() {
    let plan = plan();
    let rows = plan.table().rows;
    let why = "suspended for 20d, over the retention of 14d";
    let saves = "0.004/h, 9.9 MB";
    assert_eq!(rows[0], ["b/a", "a", "suspend", "idle for 2h, over the limit of 30m", "0.07/h", ""]);
    assert_eq!(rows[1], ["b/old", "old", "delete", why, saves, "NOT saved: 2 unpushed commits, 3 untracked files"]);
    let markdown = plan.markdown();
    let expected = format!(
        "# Plan\n\n\
         - 2 idle hours; they cost 0.16; 1 of 5 runtimes are idle past their limit\n\
         - planned: 2 acts, which saves 0.08/h, 9.9 MB\n\
         - valid until 2026-06-15T13:00:00Z, under policy `{}`\n\n\
         ## to be done\n\n\
         | runtime | what | action | why | saves | work in it |\n\
         | --- | --- | --- | --- | --- | --- |\n\
         | b/a | a | suspend | idle for 2h, over the limit of 30m | 0.07/h |  |\n\
         | b/old | old | delete | {why} | {saves} | NOT saved: 2 unpushed commits, 3 untracked files |\n\n\
         ## kept, by reason\n\n\
         | reason | runtimes |\n\
         | --- | --- |\n\
         | active | 1 |\n\
         | unknown | 2 |\n\n\
         ## kept\n\n\
         | runtime | why it is kept | next check |\n\
         | --- | --- | --- |\n\
         | b/c | nothing is known of its activity | – |\n\
         | b/d | active recently enough | 2026-06-15T12:27:40.001Z |\n\
         | b/e | nothing is known of its activity | – |\n\n",
        plan.policy
    );
    assert_eq!(markdown, expected);
}

#[test]
fn a_report_begins_with_everything_left_and_says_what_became_of_each() {
    let mut report = Report::of(&plan(), Mode::Enforce);
    assert_eq!(report.standing(), Standing::SomeNotDone);
    assert_eq!(report.counts().into_iter().collect::<Vec<_>>(), [(Fate::Left, 2)]);
    report.settle(0, Fate::Done, None, None);
    report.settle(1, Fate::Moved, Some("it was used a minute ago".into()), None);
    report.settle(9, Fate::Failed, None, None);
    report.took = Duration::from_secs(3);
    assert_eq!(report.standing(), Standing::SomeNotDone);
    let opening = [
        "2 idle hours; they cost 0.16; 1 of 5 runtimes are idle past their limit",
        "1 done, 1 moved; saved 0.07/h, in 3s",
    ];
    assert_eq!(report.opening(), opening);
    let rows = report.table().rows;
    assert_eq!(rows[0], ["b/a", "suspend", "done", "idle for longer than the limit of 30m", "0.07/h"]);
    assert_eq!(rows[1], ["b/old", "delete", "moved", "it was used a minute ago", "0.004/h, 9.9 MB"]);
    report.settle(1, Fate::Done, Some("undo: x".into()), Some(1_500));
    assert_eq!(report.standing(), Standing::AllDone);
    assert_eq!((report.saved().bytes, report.saved().micros_per_hour), (1_500, 80_000));
    report.fail(&backend(), "the engine does not answer");
    (report.healed, report.not_due) = (2, 988);
    assert_eq!(report.standing(), Standing::SomeFailed);
    let opening = report.opening();
    assert_eq!(opening[2], "988 runtimes were not due and were not looked at");
    assert_eq!(opening[3], "2 records were in no index and were put back; 0 is expected");
    assert_eq!(opening[4], "`b`: the engine does not answer");
}

#[test]
fn names_from_outside_move_no_cursor_and_make_no_mark_up() {
    let nasty = running("a").heartbeat(hours(2)).seen(|seen| seen.about = "\u{1b}[2Jx|y\n# <b> \u{202e}z".into());
    let plan = plan_of(unit(container(), [nasty]), &policy(usual()));
    assert_eq!(plan.table().rows[0][1], "\u{fffd}[2Jx|y\u{fffd}# <b> \u{fffd}z");
    assert!(plan.markdown().contains("| \u{fffd}\\[2Jx\\|y\u{fffd}\\# \\<b\\> \u{fffd}z |"));
}

#[test]
fn amounts_are_as_people_write_them() {
    let bytes = |bytes| Bytes(bytes).to_string();
    assert_eq!(bytes(0), "0 B");
    assert_eq!(bytes(999), "999 B");
    assert_eq!(bytes(9_949_999), "9.9 MB");
    assert_eq!(bytes(154_000_000_000), "154.0 GB");
    assert_eq!(bytes(u64::MAX), "18446.7 PB");
    let money = |micros| Money(micros).to_string();
    assert_eq!(money(0), "0.00");
    assert_eq!(money(80_000), "0.08");
    assert_eq!(money(4_000), "0.004");
    assert_eq!(money(12_345_678), "12.34");
}

#[test]
fn each_reason_reads_as_a_sentence_and_has_the_code_of_its_json() {
    for kept in plan().kept {
        let json = serde_json::to_value(&kept.reason).unwrap();
        assert_eq!(json["code"], kept.reason.code());
    }
    let paused = lifecycle::Reason::Paused;
    assert_eq!((paused.code(), paused.to_string().as_str()), ("paused", "paused"));
}
