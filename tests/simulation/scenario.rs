//! What a seed makes of a run before it begins: the fleet, the policy, the limits, and how rough it gets.

use std::time::Duration;

use ledger::Options;
use lifecycle::{
    BackendName, Policy, Rules, RuntimeId, SignalSet, Time,
    policy::{Breakers, Budget, Budgets, FileRules, Match, Mode, NativeMode, Percent, Retention, WorkspaceRule},
};
use pass::Limits;

use super::chance::Chance;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// How long faults and people are at work.
pub(crate) const STORM: Duration = Duration::from_hours(1);

/// 2026-11-30T12:00:00Z.
pub(crate) fn start() -> Time {
    Time::from_millis(1_796_040_000_000)
}

/// What one seed makes of a run.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) runtimes: Vec<Kind>,
    pub(crate) passes: u64,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) options: Options,
    /// The backend archives between suspend and delete.
    pub(crate) archives: bool,
    /// A verb of the provider is under way for so long after its answer; zero: it is done when it answers.
    pub(crate) takes: Duration,
    /// A resume begins another run.
    pub(crate) anew: bool,
    /// Rows a page.
    pub(crate) page: usize,
    pub(crate) storm: Storm,
    /// Half of the fleet vanishes at once.
    pub(crate) collapse: bool,
}

/// How often things go wrong, in a thousand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    /// Requests to the ledger.
    pub(crate) ledger: u64,
    /// Calls of the provider.
    pub(crate) provider: u64,
    /// Rows of a listing.
    pub(crate) rows: u64,
    /// A process dies at a call.
    pub(crate) crash: u64,
    /// An agent comes back just when somebody is at its runtime.
    pub(crate) nudge: u64,
    /// A call takes long.
    pub(crate) slow: u64,
    /// A client of the ledger tries again by itself what failed.
    pub(crate) retries: bool,
}

impl Storm {
    /// Nothing goes wrong.
    pub(crate) const NONE: Self = Self { ledger: 0, provider: 0, rows: 0, crash: 0, nudge: 0, slow: 0, retries: false };

    /// How often a request is tried.
    pub(crate) fn tries(self, most: usize) -> usize {
        if self.retries { most } else { 1 }
    }
}

/// What a runtime is, and how its activity can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its agent sends heartbeats.
    pub(crate) beats: bool,
    /// What else tells of its activity.
    pub(crate) shows: Shows,
    /// The provider suspends it by itself after so long without activity.
    pub(crate) native: Option<Duration>,
    pub(crate) whose: Whose,
    /// Its agent works on after the storm.
    pub(crate) lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The provider's own clock.
    Provider,
    /// The agent server inside, when it is asked.
    Probe,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Foreign,
    Unlabelled,
}

impl Kind {
    /// Nothing ever tells of its activity.
    pub(crate) fn mute(self) -> bool {
        !self.beats && self.shows == Shows::Nothing
    }
}

pub(crate) fn backend() -> BackendName {
    BackendName::new("box").unwrap()
}

/// The runtime's id by its number.
pub(crate) fn id(number: usize) -> RuntimeId {
    RuntimeId::new(&backend(), format!("r{number}").as_bytes()).unwrap()
}

impl Scenario {
    pub(crate) fn of(seed: u64) -> Self {
        let chance = Chance::named(seed, "scenario");
        let runtimes = (0..3 + chance.below(5)).map(|_| kind(&chance)).collect();
        let policy = policy(&chance);
        let options = Options {
            shards: 1 + u32::try_from(chance.below(2)).unwrap(),
            coalesce: policy.coalesce,
            skew: policy.skew,
            ..Options::default()
        };
        Self {
            runtimes,
            passes: 2 + chance.below(2),
            limits: limits(&chance),
            options,
            archives: chance.mille(500),
            takes: if chance.mille(250) { chance.seconds(20..=200) } else { Duration::ZERO },
            anew: chance.mille(700),
            page: 2 + usize::try_from(chance.below(4)).unwrap(),
            storm: storm(&chance),
            collapse: policy.breakers.inventory_drop.is_some() && chance.mille(500),
            policy,
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.policy.rules[0]
    }
}

fn kind(chance: &Chance) -> Kind {
    let (beats, shows) = *chance.pick(&[
        (true, Shows::Nothing),
        (true, Shows::Nothing),
        (true, Shows::Provider),
        (true, Shows::Probe),
        (false, Shows::Provider),
        (false, Shows::Provider),
        (false, Shows::Probe),
        (false, Shows::Nothing),
    ]);
    let whose = match chance.below(16) {
        0 => Whose::Foreign,
        1 => Whose::Unlabelled,
        _ => Whose::Ours,
    };
    let native = chance.mille(150).then(|| chance.seconds(600..=1_500));
    Kind { beats, shows, native, whose, lasting: chance.mille(250) }
}

fn storm(chance: &Chance) -> Storm {
    let of = |most: u64| *chance.pick(&[0, most / 4, most / 2, most]);
    Storm {
        ledger: of(40),
        provider: of(120),
        rows: of(150),
        crash: of(16),
        nudge: of(300),
        slow: of(40),
        retries: chance.mille(300),
    }
}

fn policy(chance: &Chance) -> Policy {
    let budget = |chance: &Chance, often: u64| {
        let min = if chance.mille(often) { 1 + u32::try_from(chance.below(2)).unwrap() } else { 20 };
        Some(Budget { max: None, min, per: 10 * MINUTE })
    };
    Policy {
        mode: Mode::Enforce,
        coalesce: *chance.pick(&[Duration::ZERO, 30 * SECOND]),
        skew: 10 * SECOND,
        trash_keep: 60 * MINUTE,
        plan_valid: 30 * MINUTE,
        rules: vec![rules(chance)],
        prices: <_>::default(),
        budgets: Budgets {
            suspend: budget(chance, 300),
            archive: budget(chance, 200),
            delete: budget(chance, 300),
            shed: budget(chance, 200),
        },
        breakers: Breakers {
            inventory_drop: chance.mille(300).then(|| Percent::new(40)).flatten(),
            silent: chance.mille(150).then(|| Percent::new(50)).flatten(),
        },
    }
}

fn rules(chance: &Chance) -> Rules {
    let native = if chance.mille(200) { NativeMode::Prefer } else { NativeMode::Off };
    Rules {
        name: "all".into(),
        matches: Match::default(),
        idle_after: Some(10 * MINUTE),
        signals: SignalSet::ALL,
        unknown_after: chance.mille(400).then_some(20 * MINUTE),
        lifetime_max: chance.mille(200).then_some(35 * MINUTE),
        retention: Retention {
            suspended: chance.mille(700).then_some(12 * MINUTE),
            archived: chance.mille(700).then_some(12 * MINUTE),
            workspace: None,
        },
        notice_before_delete: chance.mille(400).then_some(6 * MINUTE),
        files: FileRules { caches: chance.mille(400).then_some(6 * MINUTE), dependencies: None },
        disk_budget: None,
        workspace: if chance.mille(800) { WorkspaceRule::Discard } else { WorkspaceRule::Save },
        native,
        overrides: None,
        windows: Vec::new(),
    }
}

fn limits(chance: &Chance) -> Limits {
    Limits {
        concurrency: 1 + usize::try_from(chance.below(3)).unwrap(),
        sweep_every: chance.seconds(300..=900),
        max_items: *chance.pick(&[2, 100, 100, 100]),
        max_pages: 20,
        backoff: MINUTE,
        backoff_max: 8 * MINUTE,
        ..Limits::default()
    }
}
