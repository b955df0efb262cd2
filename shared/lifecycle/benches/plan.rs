//! How many runtimes a second `plan()` judges on one core, and what a kept one costs in memory.
//!
//! `cargo bench -p lifecycle`: prints both beside their limits, and fails when one is missed.
//! The inventory is a mixed one: four backends, three policies with labels, windows and overrides; most
//! runtimes are active, some idle, held, busy, unknown, suspended or foreign.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic, and prints what it measured")]

use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::Duration};

use lifecycle::{
    Activity, BackendName, Busy, Capabilities, Incarnation, Loss, Observation, Ownership, Plan, Policy, Record,
    RuntimeId, Signal, SignalSet, Snapshot, State, Subject, Survives, Sweep, Time, UnitSnapshot, plan,
    policy::{
        Breakers, Budget, BudgetKind, Budgets, FileRules, Match, Mode, NativeMode, Overrides, Pattern, Percent, Prices,
        Retention, Rules, Window, WorkspaceRule,
    },
    record::Hold,
    snapshot::Listing,
};

const RUNTIMES: u64 = 1_000_000;
const BACKENDS: u64 = 4;
const ROUNDS: usize = 5;
const LEAST_PER_SECOND: f64 = 1e6;
const MOST_BYTES_A_KEPT: u64 = 300;

fn main() -> ExitCode {
    let now = Time::from_millis(1_780_000_000_000);
    let policy = policy();
    let snapshot = Snapshot { units: (0..BACKENDS).map(|number| unit(number, now)).collect() };
    let before = resident_bytes();
    let first = plan(&snapshot, &policy, now);
    let grown = resident_bytes().saturating_sub(before);
    let fastest = (0..ROUNDS).map(|_| seconds(&snapshot, &policy, now)).fold(f64::INFINITY, f64::min);
    report(&first, grown, fastest)
}

#[expect(clippy::cast_precision_loss, reason = "a million is exact in an f64")]
fn report(plan: &Plan, grown: u64, fastest: f64) -> ExitCode {
    let judged = plan.items.len() + plan.kept.len();
    let per_second = judged as f64 / fastest;
    let each = grown / plan.kept.len() as u64;
    println!("{judged} runtimes judged: {} acts, {} kept", plan.items.len(), plan.kept.len());
    println!("{:.2} million runtimes/s on one core (at least 1.00)", per_second / 1e6);
    println!("{each} bytes a kept runtime, resident (at most {MOST_BYTES_A_KEPT}); {} in place", size_of_kept());
    let met = per_second >= LEAST_PER_SECOND && each <= MOST_BYTES_A_KEPT && judged as u64 == RUNTIMES;
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn size_of_kept() -> usize {
    size_of::<lifecycle::Kept>()
}

fn seconds(snapshot: &Snapshot, policy: &Policy, now: Time) -> f64 {
    let start = nanoseconds();
    let plan = plan(snapshot, policy, now);
    let spent = nanoseconds() - start;
    drop(std::hint::black_box(plan));
    Duration::from_nanos(spent).as_secs_f64()
}

/// What this thread spent on a processor, so that a busy machine doesn't count; where the system does not
/// tell (it is the first figure of `/proc/self/schedstat`), what passed.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; nothing that it measures reads it")]
fn nanoseconds() -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    let spent = std::fs::read_to_string("/proc/self/schedstat").ok();
    let spent = spent.and_then(|text| text.split_whitespace().next()?.parse().ok());
    spent.unwrap_or_else(|| u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The second figure of `/proc/self/statm`, in pages of 4 KiB; 0 where there is none.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

fn unit(number: u64, now: Time) -> UnitSnapshot {
    let backend = BackendName::new(&format!("backend-{number}")).unwrap();
    let can = Capabilities {
        suspend: Some(Survives::Disk),
        archive: number.is_multiple_of(2),
        delete: true,
        files: true,
        ..Capabilities::default()
    };
    let mut unit = UnitSnapshot::new(backend.clone(), can, Listing { complete: true, at: now, error: None });
    unit.set_subjects((0..RUNTIMES / BACKENDS).map(|runtime| subject(&backend, runtime, now)).collect());
    unit.last_sweep = Some(Sweep { at: now.minus(Duration::from_mins(10)), count: RUNTIMES / BACKENDS });
    let kinds = [BudgetKind::Suspend, BudgetKind::Archive, BudgetKind::Delete, BudgetKind::Shed];
    unit.used = kinds.into_iter().map(|kind| (kind, 0)).collect();
    unit
}

/// Runtime `n`: its figures are spread by a multiplication, so that neighbours differ.
fn subject(backend: &BackendName, n: u64, now: Time) -> Subject {
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let id = RuntimeId::new(backend, format!("runtime-{n:08}").as_bytes()).unwrap();
    let state = if spread.is_multiple_of(10) { State::Suspended } else { State::Running };
    let active = now.minus(Duration::from_secs(spread % 2_400));
    let incarnation = Incarnation::new(format!("run-{n}"));
    let observation = Observation {
        id: id.clone(),
        incarnation: incarnation.clone(),
        state,
        state_since: Some(now.minus(Duration::from_hours(spread % 500))),
        running_since: Some(now.minus(Duration::from_mins(spread % 1_500))),
        activity: if spread.is_multiple_of(7) { Activity::Unknown } else { Activity::At(active) },
        busy: if spread.is_multiple_of(11) { Busy::Until(now.plus(Duration::from_hours(1))) } else { Busy::No },
        ownership: if spread.is_multiple_of(50) { Ownership::Foreign } else { Ownership::Ours },
        labels: Arc::new(labels(spread)),
        cannot: Vec::new(),
        loss: Loss::Unknown,
        files: <_>::default(),
        native: None,
        sharers: 1,
        about: "an agent's runtime".into(),
    };
    Subject {
        id,
        seen: Some(Box::new(observation)),
        record: Some(Box::new(record(spread, state, incarnation, now))),
        probe: None,
    }
}

fn labels(spread: u64) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("managed-by".to_owned(), "furlough".to_owned()),
        ("team".to_owned(), format!("team-{}", spread % 40)),
    ]);
    if spread.is_multiple_of(20) {
        labels.insert("furlough.idle".to_owned(), "45m".to_owned());
    }
    labels
}

fn record(spread: u64, state: State, incarnation: Incarnation, now: Time) -> Record {
    let idle_from = now.minus(Duration::from_secs(spread % 2_400));
    Record {
        v: 1,
        epoch: 1,
        incarnation: Some(incarnation),
        state,
        state_since: now.minus(Duration::from_hours(spread % 500)),
        first_seen: now.minus(Duration::from_hours(600)),
        idle_from,
        last_active: (!spread.is_multiple_of(7)).then_some(idle_from),
        last_source: Some(Signal::Heartbeat),
        frozen_since: None,
        busy_until: None,
        running_since: None,
        idle_ms: None,
        cap_at: None,
        armed: None,
        hold_until: (spread.is_multiple_of(30)).then_some(Hold::Forever),
        wanted_at: None,
        absent_since: None,
        attempts: 0,
        shed: None,
        condemned_at: None,
        noticed_at: None,
        saved_as_of: None,
        claim: None,
        token: 3,
        due_at: None,
    }
}

fn policy() -> Policy {
    let hours = Duration::from_hours;
    let team = |pattern: &str| BTreeMap::from([("team".to_owned(), Pattern::new(pattern))]);
    let general = Rules {
        name: "general".into(),
        matches: Match::default(),
        idle_after: Some(Duration::from_mins(30)),
        signals: SignalSet::ALL,
        unknown_after: Some(hours(168)),
        lifetime_max: Some(hours(24)),
        retention: Retention { suspended: Some(hours(336)), archived: Some(hours(4_320)), workspace: None },
        notice_before_delete: Some(hours(48)),
        files: FileRules { caches: Some(hours(1)), dependencies: Some(hours(72)) },
        disk_budget: Percent::new(80),
        workspace: WorkspaceRule::Discard,
        native: NativeMode::Prefer,
        overrides: Some(Overrides { label: "furlough.idle".into(), min: Duration::from_mins(10), max: hours(8) }),
        windows: vec![Window {
            tz: jiff::tz::TimeZone::get("Europe/Berlin").unwrap(),
            days: [true, true, true, true, true, false, false],
            from_minute: 480,
            to_minute: 1_080,
            idle_after: Some(hours(2)),
        }],
    };
    let patient = Rules {
        name: "patient".into(),
        matches: Match { labels: team("team-1*"), ..Match::default() },
        ..general.clone()
    };
    let other = Rules {
        name: "other".into(),
        matches: Match { backend: vec![Pattern::new("other-*")], ..Match::default() },
        ..general.clone()
    };
    let budget = Some(Budget { max: Percent::new(2), min: 5, per: Duration::from_mins(10) });
    Policy {
        mode: Mode::Enforce,
        coalesce: Duration::from_secs(30),
        skew: Duration::from_secs(10),
        trash_keep: hours(168),
        plan_valid: hours(1),
        rules: vec![other, patient, general],
        prices: BTreeMap::from([(
            BackendName::new("backend-0").unwrap(),
            Prices { running: 80_000, suspended: 4_000 },
        )]),
        budgets: Budgets { suspend: budget, archive: budget, delete: budget, shed: budget },
        breakers: Breakers { inventory_drop: Percent::new(30), silent: Percent::new(90) },
    }
}
