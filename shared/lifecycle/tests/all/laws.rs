//! Laws that hold for any inventory, any policy and any moment.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lifecycle::{
    Action, Activity, Busy, Cannot, Capabilities, Claim, Disk, Explanation, Incarnation, Loss, NativeDeadline,
    NativeEffect, NativeObserved, Ownership, Plan, Policy, Reason, Role, Signal, SignalSet, Snapshot, SnapshotBuilder,
    State, Subject, Survives, Sweep, Tier, Time, UnitSnapshot, Verdict,
    activity::MAX_BUSY,
    arming, explain,
    explain::Said,
    plan,
    policy::{
        Breakers, Budget, BudgetKind, Budgets, FileRules, NativeMode, Overrides, Percent, Retention, Rules, Window,
        WorkspaceRule,
    },
    record::Hold,
};
use proptest::{option, prelude::*, sample::select};

use super::worlds::{self, NOW, Runtime, ago, backend, days, hours, mins, policy, rules, running};

const KINDS: [BudgetKind; 4] = [BudgetKind::Suspend, BudgetKind::Archive, BudgetKind::Delete, BudgetKind::Shed];

/// Limits and ages come from the same few lengths, so that borders are met often.
fn length() -> impl Strategy<Value = Duration> {
    let lengths = [mins(1), mins(30), hours(1), hours(3), hours(12), days(1), days(7), days(14), days(40)];
    let slack = Duration::from_secs(40);
    let off = [Duration::ZERO, slack, slack + Duration::from_millis(1), slack * 2];
    (select(lengths.to_vec()), select(off.to_vec())).prop_map(|(length, off)| length + off)
}

/// Mostly in the past, sometimes ahead.
fn time() -> impl Strategy<Value = Time> {
    prop_oneof![9 => length().prop_map(ago), 1 => length().prop_map(|ahead| NOW.plus(ahead))]
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![6 => Just(State::Running), 4 => Just(State::Suspended), 1 => Just(State::Archived), 2 => select(State::ALL.to_vec())]
}

fn activity() -> impl Strategy<Value = Activity> {
    prop_oneof![2 => Just(Activity::Unknown), 5 => time().prop_map(Activity::At), 1 => Just(Activity::Frozen)]
}

fn busy() -> impl Strategy<Value = Busy> {
    let ahead = length().prop_map(|ahead| Busy::Until(NOW.plus(ahead)));
    prop_oneof![6 => Just(Busy::No), 1 => time().prop_map(Busy::Until), 2 => ahead, 1 => Just(Busy::Unread)]
}

fn hold() -> impl Strategy<Value = Option<Hold>> {
    let hold = prop_oneof![3 => time().prop_map(Hold::Until), 1 => Just(Hold::Forever), 1 => Just(Hold::Unreadable)];
    option::weighted(0.1, hold)
}

fn label() -> impl Strategy<Value = Option<(&'static str, String)>> {
    let hold = prop_oneof![time().prop_map(|until| until.to_string()), Just(String::new()), Just("soon".to_owned())];
    let wish = select(vec!["45m", "9h", "", "x"]).prop_map(str::to_owned);
    let label =
        prop_oneof![hold.prop_map(|text| ("furlough.hold", text)), wish.prop_map(|text| ("furlough.idle", text))];
    option::weighted(0.3, label)
}

fn native() -> impl Strategy<Value = Option<Box<NativeObserved>>> {
    let effect = select(vec![NativeEffect::Suspend, NativeEffect::Archive, NativeEffect::Destroy]);
    let deadline = option::of((time(), effect).prop_map(|(at, effect)| NativeDeadline { at, effect }));
    let native = (option::of(length()), option::of(length()), option::of(length()), deadline);
    let native = native.prop_map(|(idle_suspend, archive, delete, deadline)| {
        Box::new(NativeObserved { idle_suspend, archive, delete, mutable: false, hidden: false, deadline })
    });
    option::weighted(0.2, native)
}

prop_compose! {
    fn bare()(
        name in "[a-h]",
        (state, state_since, running_since) in (state(), option::of(time()), option::of(time())),
        (activity, busy, native) in (activity(), busy(), native()),
        owner in prop_oneof![8 => Just(Ownership::Ours), 1 => Just(Ownership::Foreign), 1 => Just(Ownership::Unlabelled)],
        label in label(),
        cannot in option::weighted(0.1, select(vec![Role::Suspend, Role::Archive, Role::Delete, Role::Files])),
        loss in select(vec![Loss::Unknown, Loss::Nothing, Loss::Work(vec!["work".into()])]),
        sizes in (option::of(0..90_u64), option::of(0..90_u64)),
        incarnation in prop_oneof![9 => Just("run-1"), 1 => Just("run-2")],
    ) -> Runtime {
        running(&name).seen(|seen| {
            seen.incarnation = Incarnation::new(incarnation);
            (seen.state, seen.state_since, seen.running_since) = (state, state_since, running_since);
            (seen.activity, seen.busy, seen.native, seen.ownership) = (activity, busy, native, owner);
            seen.cannot = cannot.into_iter().map(|role| Cannot { role, why: "it can't".into() }).collect();
            seen.loss = loss;
            (seen.files.caches, seen.files.dependencies) = sizes;
            seen.labels = Arc::new(label.into_iter().map(|(key, text)| (key.to_owned(), text)).collect());
        })
    }
}

prop_compose! {
    /// Anything, also what never occurs.
    fn anything()(
        bare in bare().boxed(),
        recorded in prop::bool::weighted(0.8),
        agrees in prop::bool::weighted(0.8),
        other in state(),
        (idle_from, state_since, first_seen) in (time(), time(), time()),
        source in option::of(select(vec![Signal::Heartbeat, Signal::Provider, Signal::Probe])),
        times in proptest::array::uniform7(option::weighted(0.25, time())),
        hold in hold(),
        claim in option::weighted(0.1, time()),
        (attempts, shed) in (0..2_u32, option::of(select(vec![Tier::Caches, Tier::Dependencies]))),
        probe in option::weighted(0.2, (option::of(time()), busy())),
    ) -> Runtime {
        let mut runtime = bare;
        if let Some((last_active, busy)) = probe {
            runtime = runtime.probed(last_active, busy);
        }
        if !recorded {
            return runtime;
        }
        let mut runtime = runtime.recorded().record(|record| {
            record.incarnation = Some(Incarnation::new("run-1"));
            (record.idle_from, record.state_since, record.first_seen) = (idle_from, state_since, first_seen);
            (record.last_active, record.last_source) = (source.map(|_| idle_from), source);
            let [busy_until, running_since, frozen, wanted, condemned, noticed, saved] = times;
            (record.busy_until, record.running_since, record.frozen_since) = (busy_until, running_since, frozen);
            (record.wanted_at, record.condemned_at, record.noticed_at) = (wanted, condemned, noticed);
            (record.saved_as_of, record.hold_until, record.shed, record.attempts) = (saved, hold, shed, attempts);
            record.claim = claim.map(|until| Claim { owner: "pass".into(), until });
            record.due_at = Some(state_since);
        });
        if !agrees && let Some(record) = &mut runtime.record {
            record.state = other;
        }
        runtime
    }
}

prop_compose! {
    /// What most runtimes are, so that plans have acts in them: seen, recorded, idle for a while or suspended for
    /// long; sometimes with one thing that must keep it.
    fn ordinary()(name in "[a-h]", idle in length(), asleep in prop::bool::weighted(0.4), other in anything().boxed(), part in 0..11_u8) -> Runtime {
        let runtime = if asleep { worlds::suspended(&name, idle).recorded() } else { running(&name).heartbeat(idle) };
        let (seen, record) = (other.seen, other.record);
        match part {
            0 => runtime.seen(|ours| ours.ownership = seen.ownership),
            1 => runtime.seen(|ours| ours.labels = seen.labels),
            2 => runtime.seen(|ours| ours.busy = seen.busy),
            3 => runtime.seen(|ours| ours.cannot = seen.cannot),
            4 => runtime.record(|ours| ours.hold_until = record.and_then(|record| record.hold_until).or(Some(Hold::Forever))),
            5 => runtime.record(|ours| ours.claim = record.and_then(|record| record.claim)),
            6 => runtime.seen(|ours| ours.activity = seen.activity),
            8 => {
                let deadline = NativeDeadline { at: NOW.plus(days(1)), effect: NativeEffect::Suspend };
                let ahead = NativeObserved { deadline: Some(deadline), ..NativeObserved::default() };
                runtime.seen(|ours| ours.native = seen.native.or(Some(Box::new(ahead))))
            }
            7 => runtime.record(|ours| (ours.last_active, ours.last_source) = (None, None)),
            _ => runtime.seen(|ours| ours.loss = seen.loss),
        }
    }
}

fn runtime() -> BoxedStrategy<Runtime> {
    prop_oneof![1 => anything().boxed(), 2 => ordinary().boxed()].boxed()
}

fn window() -> impl Strategy<Value = Window> {
    (any::<[bool; 7]>(), 0..1_440_u16, 0..=1_440_u16, option::of(length())).prop_map(
        |(days, from_minute, to_minute, idle_after)| {
            let tz = jiff::tz::TimeZone::get("Europe/Berlin").unwrap();
            Window { tz, days, from_minute, to_minute, idle_after }
        },
    )
}

prop_compose! {
    fn any_rules()(
        (idle_after, unknown_after, lifetime_max) in (option::weighted(0.8, length()), option::of(length()), option::weighted(0.3, length())),
        (suspended, archived, notice) in (option::weighted(0.7, length()), option::of(length()), option::weighted(0.3, length())),
        (caches, dependencies) in (option::weighted(0.3, length()), option::weighted(0.3, length())),
        disk_budget in option::weighted(0.5, 1..=100_u8),
        signals in prop_oneof![3 => Just(SignalSet::ALL), 1 => any::<[bool; 3]>().prop_map(|[heartbeat, provider, probe]| SignalSet { heartbeat, provider, probe })],
        workspace in select(vec![WorkspaceRule::Save, WorkspaceRule::Discard]),
        native in select(vec![NativeMode::Prefer, NativeMode::Backstop, NativeMode::Off]),
        wishes in any::<bool>(),
        windows in proptest::collection::vec(window(), 0..3),
    ) -> Rules {
        let overrides = Overrides { label: "furlough.idle".into(), min: mins(10), max: hours(8) };
        Rules {
            idle_after,
            unknown_after,
            lifetime_max,
            retention: Retention { suspended, archived, workspace: None },
            notice_before_delete: notice,
            files: FileRules { caches, dependencies },
            disk_budget: disk_budget.and_then(Percent::new),
            signals,
            workspace,
            native,
            overrides: wishes.then_some(overrides),
            windows,
            ..rules()
        }
    }
}

prop_compose! {
    fn capabilities()(rests in prop::bool::weighted(0.3), suspend in prop::bool::weighted(0.9), rest in proptest::array::uniform4(prop::bool::weighted(0.8))) -> Capabilities {
        let [archive, delete, saves_first, files] = rest;
        Capabilities { rests, suspend: suspend.then_some(Survives::Disk), archive, delete, saves_first, files, undo: false }
    }
}

/// A backend with its policy, nothing of which limits it as a whole.
#[derive(Debug, Clone)]
struct World {
    unit: UnitSnapshot,
    policy: Policy,
}

impl World {
    fn snapshot(&self) -> Snapshot {
        Snapshot { units: vec![self.unit.clone()] }
    }

    fn plan(&self) -> Plan {
        self.plan_at(NOW)
    }

    fn plan_at(&self, now: Time) -> Plan {
        plan(&self.snapshot(), &self.policy, now)
    }

    fn replaced(&self, subject: Subject) -> Self {
        let mut world = self.clone();
        let mut subjects = self.unit.subjects().to_vec();
        subjects.retain(|other| other.id != subject.id);
        subjects.push(subject);
        world.unit.set_subjects(subjects);
        world
    }
}

prop_compose! {
    fn world()(can in capabilities(), rules in any_rules(), runtimes in proptest::collection::vec(runtime(), 1..8)) -> World {
        World { unit: worlds::unit(can, runtimes), policy: policy(rules) }
    }
}

prop_compose! {
    fn budget()(max in option::of(1..=100_u8), min in 0..4_u32, per in select(vec![mins(10), hours(1), days(1)])) -> Budget {
        Budget { max: max.and_then(Percent::new), min, per }
    }
}

prop_compose! {
    /// A world with everything that limits a backend as a whole: budgets, breakers, pause, a disk, absences.
    fn limited()(
        world in world(),
        budgets in proptest::array::uniform4(option::weighted(0.8, budget())),
        used in proptest::array::uniform4(option::weighted(0.8, 0..4_u64)),
        sweep in option::of(0..9_u64),
        (complete, paused) in (prop::bool::weighted(0.8), prop::bool::weighted(0.1)),
        (inventory_drop, silent) in (option::weighted(0.3, 1..=100_u8), option::weighted(0.3, 1..=100_u8)),
        mean in option::of(0.0..1.0),
        disk in option::of(prop_oneof![(0..2_000_u64, 1..2_000_u64), (0..80_u64, Just(0_u64))]),
        absent in proptest::collection::vec(any::<bool>(), 8),
    ) -> World {
        let World { mut unit, mut policy } = world;
        let [suspend, archive, delete, shed] = budgets;
        policy.budgets = Budgets { suspend, archive, delete, shed };
        let percent = |percent: Option<u8>| percent.and_then(Percent::new);
        policy.breakers = Breakers { inventory_drop: percent(inventory_drop), silent: percent(silent) };
        unit.used = KINDS.into_iter().zip(used).filter_map(|(kind, used)| Some((kind, used?))).collect();
        unit.last_sweep = sweep.map(|count| Sweep { at: ago(hours(1)), count });
        unit.listing.complete = complete;
        unit.paused = paused;
        unit.silent_mean = mean;
        // Without a total: so much over the policy's budget that a few files bring it under.
        let budget = policy.rules[0].disk_budget.map_or(50, Percent::get);
        unit.disk = disk.map(|(used, total)| match total {
            0 => Disk { total: 1_000, used: u64::from(budget) * 10 + used },
            total => Disk { total, used },
        });
        let subjects = unit.subjects().iter().cloned().zip(absent).map(|(mut subject, absent)| {
            if absent && subject.record.is_some() {
                subject.seen = None;
            }
            subject
        });
        let subjects = subjects.collect();
        unit.set_subjects(subjects);
        World { unit, policy }
    }
}

/// How much an act takes away; what only informs takes nothing.
fn severity(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Keep(..) | Verdict::Act(Action::Notify, ..) => 0,
        Verdict::Act(Action::Shed(Tier::Caches), ..) => 1,
        Verdict::Act(Action::Shed(_), ..) => 2,
        Verdict::Act(Action::Suspend, ..) => 3,
        Verdict::Act(Action::Archive, ..) => 4,
        Verdict::Act(Action::Delete, ..) => 5,
    }
}

/// How much a verdict heads for: a notice is the deletion that it announces, and it goes before a tier's turn.
fn intent(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Act(Action::Notify, reason, evidence) => {
            severity(&Verdict::Act(Action::Delete, reason.clone(), evidence.clone()))
        }
        other => severity(other),
    }
}

/// In how many ways [`more_active`] makes a runtime so.
const WAYS: usize = 13;

/// Makes a runtime more active in one way; the ways that need a record or a source do nothing without.
fn more_active(mut subject: Subject, signals: SignalSet, way: usize, by: Duration) -> Subject {
    let knows = told(&subject, signals);
    let (Some(seen), record) = (&mut subject.seen, &mut subject.record) else { return subject };
    let later = |time: Option<Time>| time.map(|time| time.plus(by));
    match (way, seen.activity, record) {
        (0, Activity::At(at), _) => seen.activity = Activity::At(at.plus(by)),
        (0, ..) => seen.activity = Activity::At(NOW),
        (1, ..) => seen.running_since = later(seen.running_since),
        (2, ..) => seen.state_since = later(seen.state_since),
        (3, ..) => seen.busy = seen.busy.join(Busy::Until(NOW.plus(by))),
        (4, ..) => seen.busy = Busy::Unread,
        (5, _, Some(record)) => record.idle_from = record.idle_from.plus(by),
        (6, _, Some(record)) if signals.heartbeat => {
            // A heartbeat now, where the policy takes them, which moves forward what does not lie ahead already.
            record.idle_from = record.idle_from.max(NOW);
            if record.last_active <= Some(NOW) {
                (record.last_active, record.last_source) = (Some(NOW), Some(Signal::Heartbeat));
            }
        }
        (7, _, Some(record)) => record.busy_until = record.busy_until.max(Some(NOW.plus(by))),
        (8, _, Some(record)) => record.running_since = later(record.running_since),
        (9, _, Some(record)) => record.wanted_at = record.wanted_at.max(Some(NOW)),
        (10, _, Some(record)) => record.state_since = record.state_since.plus(by),
        _ => {
            // A further sign of activity proves no less where there was one already, however old it is itself.
            let last_active = if way == 11 && knows { NOW.minus(by) } else { NOW };
            let answer = lifecycle::ProbeAnswer { last_active: Some(last_active), busy: Busy::No };
            subject.probe = Some(subject.probe.map_or(answer, |probe| probe.join(answer)));
        }
    }
    subject
}

/// Whether one of these signals has told of activity.
fn told(subject: &Subject, signals: SignalSet) -> bool {
    let (seen, record) = (subject.seen.as_ref(), subject.record.as_ref());
    let recorded = record.is_some_and(|record| record.last_source.is_some_and(|source| signals.has(source)));
    let shown = signals.provider && seen.is_some_and(|seen| seen.activity != Activity::Unknown);
    let probed = signals.probe && subject.probe.is_some_and(|probe| probe.last_active.is_some());
    recorded || shown || probed
}

/// Nobody used a budget, and each is for one act less than is wanted.
fn one_short(mut world: World) -> World {
    let plenty = policy(rules()).budgets;
    world.policy.budgets = plenty;
    world.unit.used = KINDS.into_iter().map(|kind| (kind, 0)).collect();
    let items = world.plan().items;
    let less = |kind: BudgetKind| {
        let wanted = items.iter().filter(|item| item.action.budget() == Some(kind)).count();
        let min = u32::try_from(wanted.saturating_sub(1)).unwrap();
        Some(Budget { max: None, min, per: mins(10) })
    };
    let [suspend, archive, delete, shed] = KINDS.map(less);
    world.policy.budgets = Budgets { suspend, archive, delete, shed };
    world
}

fn of<'a>(unit: &'a UnitSnapshot, item: &lifecycle::Item) -> &'a Subject {
    unit.subject(&item.runtime).expect("an item is of the snapshot")
}

proptest! {
    #[test]
    fn every_runtime_has_exactly_one_verdict(world in limited()) {
        let plan = world.plan();
        let acts = plan.items.iter().map(|item| &item.runtime);
        let mut judged: Vec<_> = acts.chain(plan.kept.iter().map(|kept| &kept.runtime)).collect();
        judged.sort();
        let all: Vec<_> = world.unit.subjects().iter().map(|subject| &subject.id).collect();
        prop_assert_eq!(judged, all.clone());
        prop_assert!(all.is_sorted_by(|a, b| a < b), "a runtime that comes in several rows is one");
        prop_assert!(plan.kept.is_sorted_by(|a, b| a.runtime < b.runtime));
    }

    #[test]
    fn planning_twice_gives_the_same_plan_also_through_a_file(world in limited()) {
        let plan = world.plan();
        prop_assert_eq!(&world.plan(), &plan);
        let file = plan.to_json();
        let read = Plan::from_json(&file);
        prop_assert_eq!(read.as_ref().map(Plan::to_json), Ok(file));
        prop_assert_eq!(read, Ok(plan));
        let tight = one_short(world);
        let plan = tight.plan();
        for _ in 0..4 {
            prop_assert_eq!(&tight.plan(), &plan, "which of them the budget is for is no matter of chance");
        }
    }

    #[test]
    fn the_target_of_an_act_is_the_runtime_of_its_evidence(world in world()) {
        for item in world.plan().items {
            let subject = of(&world.unit, &item);
            let seen = subject.seen.as_ref().unwrap();
            prop_assert_eq!((&item.incarnation, item.state, &item.evidence.about), (&seen.incarnation, seen.state, &seen.about));
            let fence = subject.record.as_ref().map(|record| (record.epoch, record.token));
            prop_assert_eq!(item.epoch.zip(item.token), fence);
            prop_assert_eq!(item.evidence.idle, NOW.since(item.evidence.idle_from));
        }
    }

    #[test]
    fn unknown_is_never_idle(world in world()) {
        let signals = world.policy.rules[0].signals;
        for item in world.plan().items {
            let subject = of(&world.unit, &item);
            let seen = subject.seen.as_ref().unwrap();
            if seen.state == State::Running && !told(subject, signals) {
                prop_assert!(matches!(item.reason, Reason::Lifetime { .. } | Reason::NeverActive { .. }), "{item:?}");
                prop_assert_eq!(item.action, Action::Suspend);
            }
            if seen.busy == Busy::Unread {
                prop_assert!(matches!(item.reason, Reason::Lifetime { .. }), "{item:?}");
            }
        }
    }

    #[test]
    fn more_activity_never_makes_a_runtime_more_reclaimable(world in world(), by in length()) {
        let plan = world.plan();
        for (subject, way) in world.unit.subjects().iter().flat_map(|subject| (0..WAYS).map(move |way| (subject, way))) {
            let before = plan.verdict(&subject.id).unwrap();
            let busier = more_active(subject.clone(), world.policy.rules[0].signals, way, by);
            let after = world.replaced(busier).plan().verdict(&subject.id).unwrap();
            prop_assert!(severity(&after) <= intent(&before), "in way {way} from {before:?} to {after:?}");
        }
    }

    #[test]
    fn a_held_one_is_never_touched(world in world()) {
        for item in world.plan().items {
            let subject = of(&world.unit, &item);
            let hold = subject.record.as_ref().and_then(|record| record.hold_until);
            prop_assert!(hold.is_none_or(|hold| !hold.holds(NOW)));
            let label = subject.seen.as_ref().unwrap().labels.get("furlough.hold");
            prop_assert!(label.is_none_or(|text| text.parse::<Time>().is_ok_and(|until| until <= NOW)));
        }
    }

    #[test]
    fn what_is_not_ours_claimed_on_its_way_or_another_run_is_never_touched(world in world()) {
        for item in world.plan().items {
            let subject = of(&world.unit, &item);
            let seen = subject.seen.as_ref().unwrap();
            prop_assert_eq!(seen.ownership, Ownership::Ours);
            prop_assert!(!seen.state.is_middle() && seen.state != State::Gone);
            if let Some(record) = &subject.record {
                prop_assert!(!record.claimed(NOW) && !record.state.is_middle() && record.state != State::Gone);
                prop_assert_eq!(record.incarnation.as_ref(), Some(&seen.incarnation));
            }
        }
    }

    #[test]
    fn budgets_hold_for_any_inventory(world in limited()) {
        let plan = world.plan();
        let ours = plan.backends[0].ours;
        let fleet = world.unit.last_sweep.map_or(if world.unit.listing.complete { ours } else { 0 }, |sweep| sweep.count);
        let mut planned: BTreeMap<BudgetKind, u64> = BTreeMap::new();
        for kind in plan.items.iter().filter_map(|item| item.action.budget()) {
            *planned.entry(kind).or_default() += 1;
        }
        for (kind, planned) in planned {
            let allowed = world.policy.budgets.of(kind).map_or(0, |budget| {
                let share = budget.max.map_or(0, |max| fleet * u64::from(max.get()) / 100);
                share.max(u64::from(budget.min))
            });
            let used = world.unit.used.get(&kind).copied();
            prop_assert!(used.is_some_and(|used| used + planned <= allowed), "{kind}: {planned} of {allowed}, {used:?} used");
        }
        if world.unit.paused {
            prop_assert_eq!(plan.items, []);
        }
    }

    #[test]
    fn nothing_is_deleted_from_running_unless_it_rests(world in world()) {
        for item in world.plan().items.iter().filter(|item| item.action == Action::Delete && item.state == State::Running) {
            prop_assert!(world.unit.can.rests, "{item:?}");
        }
    }

    #[test]
    fn nothing_is_deleted_whose_work_would_be_lost_or_without_the_notice_that_is_due(world in world()) {
        let rules = &world.policy.rules[0];
        for item in world.plan().items.iter().filter(|item| item.action == Action::Delete) {
            let subject = of(&world.unit, item);
            let (loss, record) = (&subject.seen.as_ref().unwrap().loss, subject.record.as_ref());
            let saved = record.and_then(|record| record.saved_as_of).is_some_and(|saved| saved >= item.evidence.idle_from);
            let safe = *loss == Loss::Nothing || saved || world.unit.can.saves_first;
            prop_assert!(rules.workspace == WorkspaceRule::Discard || safe, "{item:?}");
            if let Some(before) = rules.notice_before_delete {
                let sent = record.and_then(|record| record.noticed_at);
                prop_assert!(sent.is_some_and(|sent| NOW.since(sent) > before), "{item:?}");
            }
        }
    }

    #[test]
    fn work_under_way_vetoes_for_twelve_hours_at_most_and_never_the_lifetime(world in world(), until in time()) {
        let mut rules = rules();
        rules.idle_after = world.policy.rules[0].idle_after;
        rules.lifetime_max = world.policy.rules[0].lifetime_max;
        let world = World { policy: policy(rules), ..world };
        let ahead = |subject: &&Subject| subject.record.as_ref().is_some_and(|record| record.idle_from > NOW);
        for subject in world.unit.subjects().iter().filter(|subject| !ahead(subject)) {
            let mut busy = subject.clone();
            busy.seen.as_mut().unwrap().busy = Busy::Until(until);
            let busy = world.replaced(busy);
            let verdict = |world: &World, now| world.plan_at(now).verdict(&subject.id).unwrap();
            if let Verdict::Keep(Reason::Busy { until: told }, _) = verdict(&busy, NOW) {
                prop_assert!(NOW < told && told <= NOW.plus(MAX_BUSY));
            }
            let after = verdict(&busy, NOW.plus(MAX_BUSY));
            prop_assert!(!matches!(after, Verdict::Keep(Reason::Busy { .. }, _)), "still {after:?}");
            if let Verdict::Act(action, reason @ Reason::Lifetime { .. }, _) = verdict(&world, NOW) {
                let unmoved = matches!(verdict(&busy, NOW), Verdict::Act(a, r, _) if (a, &r) == (action, &reason));
                prop_assert!(unmoved, "busy kept it from {reason:?}");
            }
        }
    }

    #[test]
    fn a_policy_with_every_optional_key_absent_or_zero_never_acts(world in limited(), zero in any::<bool>()) {
        let nothing = zero.then_some(Duration::ZERO);
        let mut rules = rules();
        rules.workspace = WorkspaceRule::Discard;
        (rules.idle_after, rules.unknown_after, rules.lifetime_max) = (nothing, nothing, nothing);
        rules.retention = Retention { suspended: nothing, archived: nothing, workspace: nothing };
        rules.files = FileRules { caches: nothing, dependencies: nothing };
        rules.disk_budget = Percent::new(1);
        rules.overrides = Some(Overrides { label: "furlough.idle".into(), min: mins(10), max: hours(8) });
        let policy = Policy { budgets: policy(rules.clone()).budgets, ..policy(rules) };
        prop_assert_eq!(World { policy, ..world }.plan().items, []);
    }

    #[test]
    fn before_the_next_check_time_alone_changes_nothing(world in world(), part in 0.0..1.0, far in length()) {
        for kept in world.plan().kept {
            let last = kept.next_check.map(|next| next.minus(Duration::from_millis(1)));
            let between = last.map(|last| NOW.plus(last.since(NOW).mul_f64(part)));
            for now in [last.unwrap_or(NOW.plus(days(400))), between.unwrap_or(NOW.plus(far))] {
                let again = world.plan_at(now.max(NOW)).verdict(&kept.runtime).unwrap();
                prop_assert!(matches!(again, Verdict::Keep(..)), "{:?} became {again:?} at {now}", &kept);
            }
        }
    }

    #[test]
    fn the_due_index_is_never_later_than_what_can_come_true_by_time_alone(world in world()) {
        for subject in world.unit.subjects() {
            let arming = arming(subject, &world.unit, &world.policy, NOW);
            match world.plan().verdict(&subject.id).unwrap() {
                Verdict::Act(..) => prop_assert_eq!(arming.due_at, Some(NOW)),
                Verdict::Keep(Reason::Middle { .. }, _) => prop_assert!(arming.due_at.is_some()),
                Verdict::Keep(Reason::Claimed { until }, _) => prop_assert_eq!(arming.due_at, Some(until.plus(world.policy.skew))),
                Verdict::Keep(_, next) => {
                    // Whatever keeps it, a claim that ended is looked at.
                    let claim = subject.record.as_ref().and_then(|record| record.claim.as_ref());
                    let freed = claim.map(|claim| claim.until.plus(world.policy.skew));
                    prop_assert_eq!(arming.due_at, next.into_iter().chain(freed).min());
                }
            }
        }
    }

    /// A re-arm by a heartbeat knows no policy: it adds `idle_ms` to the clock, and must not come too late.
    #[test]
    fn a_heartbeat_re_arms_in_time(world in world(), later in length()) {
        for subject in world.unit.subjects() {
            let Some(mut beaten) = subject.record.clone() else { continue };
            (beaten.idle_from, beaten.last_active, beaten.last_source) = (NOW, Some(NOW), Some(Signal::Heartbeat));
            let subject = Subject { record: Some(beaten), ..subject.clone() };
            let arming = arming(&subject, &world.unit, &world.policy, NOW);
            let due = arming.idle_ms.map(|idle| NOW.plus(Duration::from_millis(idle)));
            let world = world.replaced(subject.clone());
            let now = NOW.plus(later);
            let Verdict::Act(_, reason, evidence) = world.plan_at(now).verdict(&subject.id).unwrap() else { continue };
            if evidence.idle_from == NOW && matches!(reason, Reason::Idle { .. } | Reason::TierAge { .. }) {
                prop_assert!(due.is_some_and(|due| due <= now), "{reason:?} at {now}, but {arming:?}");
            }
            if matches!(reason, Reason::Lifetime { .. }) {
                prop_assert!(arming.cap_at.is_some_and(|cap| cap <= now), "{reason:?} at {now}, but {arming:?}");
            }
        }
    }

    #[test]
    fn an_explanation_never_disagrees_with_the_plan(world in limited()) {
        let plan = world.plan();
        for subject in world.unit.subjects() {
            let explanation = explain(subject, &world.unit, &world.policy, NOW);
            prop_assert_eq!(Some(explanation.verdict.clone()), plan.verdict(&subject.id));
            prop_assert!(leads_to(&explanation), "{explanation:#?}");
        }
    }

    /// `explain` looks again: what it saw replaces the row of the listing, and nothing else.
    #[test]
    fn an_explanation_of_a_fresher_look_is_the_plan_with_that_look(world in limited(), way in 0..WAYS, by in length(), which in any::<prop::sample::Index>()) {
        let signals = world.policy.rules[0].signals;
        let fresher = more_active(which.get(world.unit.subjects()).clone(), signals, way, by);
        let explanation = explain(&fresher, &world.unit, &world.policy, NOW);
        let again = world.replaced(fresher.clone());
        prop_assert_eq!(Some(explanation.verdict.clone()), again.plan().verdict(&fresher.id));
        prop_assert!(leads_to(&explanation), "{explanation:#?}");
    }

    /// Order, page size, and rows that come twice.
    #[test]
    fn the_order_of_the_inventory_changes_nothing(
        world in limited(),
        rows in proptest::collection::vec(runtime(), 1..12),
        shuffle in any::<u64>(),
        page in 1..5_usize,
    ) {
        let build = |rows: &[Runtime], page: usize| {
            let mut builder = SnapshotBuilder::new(backend(), world.unit.can, world.unit.listing.clone());
            for page in rows.chunks(page) {
                builder = builder.seen(page.iter().map(|row| row.seen.clone()));
                builder = builder.records(page.iter().filter_map(|row| Some((row.seen.id.clone(), row.record.clone()?))));
                for row in page {
                    builder = row.probe.into_iter().fold(builder, |builder, probe| builder.probe(row.seen.id.clone(), probe));
                }
            }
            builder.build()
        };
        let mut shuffled = rows.clone();
        shuffled.sort_by_cached_key(|row| hash_of(shuffle, row));
        let one = build(&rows, rows.len());
        let other = build(&shuffled, page);
        prop_assert_eq!(&one, &other);
        let mut set = UnitSnapshot::new(backend(), world.unit.can, world.unit.listing.clone());
        set.set_subjects(shuffled.into_iter().map(Runtime::subject).collect());
        prop_assert_eq!(&set, &one);
        let plan = |unit| World { unit, policy: world.policy.clone() }.plan();
        prop_assert_eq!(plan(one), plan(other));
    }

    #[test]
    fn of_two_rows_the_one_that_is_less_reclaimable_counts(world in world(), way in 0..5_usize, by in length()) {
        let subject = world.unit.subjects()[0].clone();
        // A row that does not know is not a row that knows of less.
        let knows = matches!(subject.seen.as_ref().unwrap().activity, Activity::At(_));
        let way = if knows { way } else { way.max(1) };
        let (id, record, probe) = (subject.id.clone(), subject.record.clone(), subject.probe);
        let busier = Subject { record, probe, ..more_active(subject.clone(), world.policy.rules[0].signals, way, by) };
        let least = [&subject, &busier].map(|one| severity(&world.replaced(one.clone()).plan().verdict(&id).unwrap()));
        let mut both = world.clone();
        both.unit.set_subjects(vec![subject, busier]);
        prop_assert!(severity(&both.plan().verdict(&id).unwrap()) <= least.into_iter().min().unwrap());
    }
}

/// Whether the verdict is what the first step that decides says, or, where none does, what a step waits for; but for
/// what concerns the backend as a whole.
fn leads_to(explanation: &Explanation) -> bool {
    let steps = || explanation.steps.iter().map(|step| &step.said);
    let decides = steps().find(|said| matches!(said, Said::Act(..) | Said::Keep(_)));
    let as_a_whole =
        |reason: &Reason| matches!(reason, Reason::Paused | Reason::Breaker { .. } | Reason::Budget { .. });
    match (&explanation.verdict, decides) {
        (Verdict::Act(action, reason, _), Some(Said::Act(said, why))) => (action, reason) == (said, why),
        (Verdict::Keep(reason, _), Some(Said::Act(..))) => as_a_whole(reason),
        (Verdict::Keep(reason, _), Some(Said::Keep(why))) => reason == why,
        (Verdict::Keep(reason, _), None) => {
            let waits = steps().any(|said| matches!(said, Said::Wait(why) if why == reason));
            waits || matches!(reason, Reason::NoRule { .. })
        }
        _ => false,
    }
}

fn hash_of(seed: u64, row: &Runtime) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    format!("{row:?}").hash(&mut hasher);
    hasher.finish()
}
