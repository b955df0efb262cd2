//! Runtimes, policies and backends in few words.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lifecycle::{
    Activity, BackendName, Busy, Capabilities, Incarnation, Loss, Observation, Ownership, Plan, Policy, ProbeAnswer,
    Record, RuntimeId, Signal, SignalSet, Snapshot, State, Subject, Survives, Time, UnitSnapshot, Verdict, plan,
    policy::{
        Breakers, Budget, BudgetKind, Budgets, FileRules, Match, Mode, NativeMode, Retention, Rules, WorkspaceRule,
    },
    snapshot::Listing,
};

/// 2026-06-15T12:00:00Z, a Monday.
pub(crate) const NOW: Time = Time::from_millis(1_781_524_800_000);

pub(crate) const fn mins(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

pub(crate) const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

pub(crate) const fn days(days: u64) -> Duration {
    hours(days * 24)
}

pub(crate) fn ago(duration: Duration) -> Time {
    NOW.minus(duration)
}

/// Coalesce and skew of the policies here.
pub(crate) const SLACK: Duration = Duration::from_secs(40);

/// The first moment at which something that counts from `from` is past `limit`.
pub(crate) fn just_past(from: Time, limit: Duration) -> Time {
    from.plus(limit + SLACK + Duration::from_millis(1))
}

pub(crate) fn backend() -> BackendName {
    BackendName::new("b").unwrap()
}

pub(crate) fn id(name: &str) -> RuntimeId {
    RuntimeId::new(&backend(), name.as_bytes()).unwrap()
}

/// A policy with every optional key absent.
pub(crate) fn rules() -> Rules {
    Rules {
        name: "agents".into(),
        matches: Match::default(),
        idle_after: None,
        signals: SignalSet::ALL,
        unknown_after: None,
        lifetime_max: None,
        retention: Retention::default(),
        notice_before_delete: None,
        files: FileRules::default(),
        disk_budget: None,
        workspace: WorkspaceRule::Save,
        native: NativeMode::Prefer,
        overrides: None,
        windows: Vec::new(),
    }
}

/// Suspend after 30 minutes, delete two weeks later, whatever is lost.
pub(crate) fn usual() -> Rules {
    Rules {
        idle_after: Some(mins(30)),
        retention: Retention { suspended: Some(days(14)), archived: Some(days(180)), workspace: None },
        workspace: WorkspaceRule::Discard,
        ..rules()
    }
}

/// With budgets that no test here reaches.
pub(crate) fn policy(rules: Rules) -> Policy {
    let plenty = Some(Budget { max: None, min: 1_000_000, per: mins(10) });
    Policy {
        mode: Mode::Enforce,
        coalesce: Duration::from_secs(30),
        skew: Duration::from_secs(10),
        trash_keep: days(7),
        plan_valid: hours(1),
        rules: vec![rules],
        prices: BTreeMap::new(),
        budgets: Budgets { suspend: plenty, archive: plenty, delete: plenty, shed: plenty },
        breakers: Breakers::default(),
    }
}

/// Suspends, deletes and sheds files, as a local container engine with a files role would.
pub(crate) fn container() -> Capabilities {
    Capabilities { suspend: Some(Survives::Disk), delete: true, files: true, ..Capabilities::default() }
}

/// A container that archives too.
pub(crate) fn archiving() -> Capabilities {
    Capabilities { archive: true, ..container() }
}

/// Its runtimes run nothing of their own; its delete saves first.
pub(crate) fn worktree() -> Capabilities {
    Capabilities { rests: true, delete: true, saves_first: true, files: true, undo: true, ..Capabilities::default() }
}

/// One runtime, told as a story.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(crate) seen: Observation,
    pub(crate) record: Option<Record>,
    pub(crate) probe: Option<ProbeAnswer>,
}

/// Running for ten days; nothing is known of its activity, and there is no record.
pub(crate) fn running(name: &str) -> Runtime {
    let seen = Observation {
        id: id(name),
        incarnation: Incarnation::new("run-1"),
        state: State::Running,
        state_since: None,
        running_since: Some(ago(days(10))),
        activity: Activity::Unknown,
        busy: Busy::No,
        ownership: Ownership::Ours,
        labels: Arc::default(),
        cannot: Vec::new(),
        loss: Loss::Unknown,
        files: <_>::default(),
        native: None,
        sharers: 1,
        about: name.into(),
    };
    Runtime { seen, record: None, probe: None }
}

/// Suspended for so long.
pub(crate) fn suspended(name: &str, duration: Duration) -> Runtime {
    running(name).seen(|seen| {
        seen.state = State::Suspended;
        seen.state_since = Some(ago(duration));
        seen.running_since = None;
    })
}

impl Runtime {
    /// The backend shows activity so long ago.
    pub(crate) fn active(self, before: Duration) -> Self {
        self.seen(|seen| seen.activity = Activity::At(ago(before)))
    }

    /// A record that was made with the runtime, and lives by heartbeats, the last one so long ago.
    pub(crate) fn heartbeat(self, before: Duration) -> Self {
        self.recorded().record(|record| {
            record.idle_from = ago(before);
            record.last_active = Some(ago(before));
            record.last_source = Some(Signal::Heartbeat);
        })
    }

    /// A record as the first observation makes it: ten days ago, never seen active.
    pub(crate) fn recorded(mut self) -> Self {
        let since = ago(days(10));
        self.record = Some(Record {
            v: 1,
            epoch: 1,
            incarnation: Some(self.seen.incarnation.clone()),
            state: self.seen.state,
            state_since: self.seen.state_since.unwrap_or(since),
            first_seen: since,
            idle_from: since,
            last_active: None,
            last_source: None,
            frozen_since: None,
            busy_until: None,
            running_since: self.seen.running_since,
            idle_ms: None,
            cap_at: None,
            armed: None,
            hold_until: None,
            wanted_at: None,
            absent_since: None,
            attempts: 0,
            shed: None,
            condemned_at: None,
            noticed_at: None,
            saved_as_of: None,
            claim: None,
            token: 7,
            due_at: None,
        });
        self
    }

    pub(crate) fn seen(mut self, change: impl FnOnce(&mut Observation)) -> Self {
        change(&mut self.seen);
        self
    }

    pub(crate) fn record(mut self, change: impl FnOnce(&mut Record)) -> Self {
        change(self.record.as_mut().expect("tell first that it is recorded"));
        self
    }

    pub(crate) fn label(self, key: &str, value: &str) -> Self {
        self.seen(|seen| {
            Arc::make_mut(&mut seen.labels).insert(key.to_owned(), value.to_owned());
        })
    }

    pub(crate) fn probed(mut self, last_active: Option<Time>, busy: Busy) -> Self {
        self.probe = Some(ProbeAnswer { last_active, busy });
        self
    }

    pub(crate) fn subject(self) -> Subject {
        let id = self.seen.id.clone();
        Subject { id, seen: Some(Box::new(self.seen)), record: self.record.map(Box::new), probe: self.probe }
    }
}

/// A backend whose listing is complete, and no budget of which is used.
pub(crate) fn unit(can: Capabilities, runtimes: impl IntoIterator<Item = Runtime>) -> UnitSnapshot {
    let listing = Listing { complete: true, at: NOW, error: None };
    let mut unit = UnitSnapshot::new(backend(), can, listing);
    unit.set_subjects(runtimes.into_iter().map(Runtime::subject).collect());
    let kinds = [BudgetKind::Suspend, BudgetKind::Archive, BudgetKind::Delete, BudgetKind::Shed];
    unit.used = kinds.into_iter().map(|kind| (kind, 0)).collect();
    unit
}

/// The plan for one backend; in each of them every runtime has its one verdict.
pub(crate) fn plan_of(unit: UnitSnapshot, policy: &Policy) -> Plan {
    let runtimes = unit.subjects().len();
    let plan = plan(&Snapshot { units: vec![unit] }, policy, NOW);
    assert_eq!(plan.items.len() + plan.kept.len(), runtimes, "each runtime has one verdict");
    plan
}

/// The verdict on one runtime that is alone on its backend.
pub(crate) fn verdict(can: Capabilities, rules: Rules, runtime: Runtime) -> Verdict {
    verdict_at(can, rules, runtime, NOW)
}

pub(crate) fn verdict_at(can: Capabilities, rules: Rules, runtime: Runtime, now: Time) -> Verdict {
    let id = runtime.seen.id.clone();
    let snapshot = Snapshot { units: vec![unit(can, [runtime])] };
    plan(&snapshot, &policy(rules), now).verdict(&id).expect("a plan is total")
}

/// The same without the evidence: `Ok` for an act, `Err` for a keep.
pub(crate) type Short = Result<(lifecycle::Action, lifecycle::Reason), (lifecycle::Reason, Option<Time>)>;

pub(crate) fn short(verdict: Verdict) -> Short {
    match verdict {
        Verdict::Act(action, reason, _) => Ok((action, reason)),
        Verdict::Keep(reason, next) => Err((reason, next)),
    }
}

/// What is decided of one runtime that is alone on its backend.
pub(crate) fn decided(can: Capabilities, rules: Rules, runtime: Runtime) -> Short {
    short(verdict(can, rules, runtime))
}
