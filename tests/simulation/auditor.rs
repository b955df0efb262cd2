//! The auditor: knows what is true and what was answered, and checks every invariant at every step.
//!
//! It sees each request to the ledger at the moment of its effect and each change of the provider's world, and keeps
//! books of its own: when somebody was last told that his activity is recorded, who claimed what when, what was held,
//! paused, counted. A record is read for its form alone (is it claimed, in a middle state, in the index), never for
//! what is true.

mod asked;
mod ending;
mod ledger;
mod provider;
mod row;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::Duration,
};

use lifecycle::{RuntimeId, State, Time, verdict::Breaker};

pub(crate) use self::{
    asked::Asked,
    ending::{TICK, Wrong, promised, promised_at_rest},
    row::Row,
};
use super::{
    scenario::Scenario,
    trace::offset,
    world::{Runtime, Verb},
};

/// An invariant of the design that did not hold.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    /// Its number.
    pub(crate) invariant: u8,
    pub(crate) at: Time,
    pub(crate) runtime: Option<RuntimeId>,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runtime = self.runtime.as_ref().map_or("-", RuntimeId::encoded);
        write!(f, "invariant {} broken at {}: {runtime}: {}", self.invariant, offset(self.at), self.what)
    }
}

#[derive(Debug)]
pub(crate) struct Auditor {
    scenario: Scenario,
    rows: BTreeMap<RuntimeId, Row>,
    truths: BTreeMap<RuntimeId, Truth>,
    processes: BTreeMap<String, Hands>,
    /// What each switch says, by its key: since when it is on.
    switches: BTreeMap<String, Time>,
    /// How many claims each window of a budget has paid for.
    spent: BTreeMap<String, u64>,
    /// How often each event came.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) violation: Option<Violation>,
}

/// What is true of one runtime, beside what the world shows.
#[derive(Debug, Default)]
struct Truth {
    /// When somebody's activity was last recorded or acknowledged.
    acknowledged: Option<Time>,
    /// Until when work was acknowledged to be under way.
    busy: Option<Time>,
    /// When a heartbeat that is answered with "it does not run" last met its record.
    refused: Option<Time>,
    /// When its record last said that it runs, and that we had not stopped it: since then heartbeats are heard again.
    running: Option<Time>,
    /// Held since then, until then (`None`: until released).
    held: Option<(Time, Option<Time>)>,
    /// Who has the newest claim.
    holder: Option<Holder>,
    /// A verb under way.
    flights: Vec<Flight>,
    /// When notice of its deletion was last delivered.
    noticed: Option<Time>,
    /// The highest token ever.
    token: u64,
}

#[derive(Debug, Clone)]
struct Holder {
    process: String,
    token: u64,
    until: Time,
    right: Right,
    at: Time,
}

/// What a claim gives the right to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    /// To act on the evidence of the claim.
    Act,
    /// To look, then finish or give back.
    Look,
    /// To call it back.
    Wake,
}

#[derive(Debug, Clone)]
struct Flight {
    process: String,
    verb: Verb,
}

/// What one process has done lately.
#[derive(Debug, Default)]
struct Hands {
    /// Reads of the switches that found them off, not yet used by a claim.
    unpaused: VecDeque<Time>,
    /// Budgets taken and not yet used by a claim, by kind.
    taken: BTreeMap<&'static str, VecDeque<String>>,
    /// Its last look at each runtime: what was there.
    looks: BTreeMap<RuntimeId, Look>,
    /// When it last met the record of what does not run.
    turned_away: Option<Time>,
    /// When it last read each record, and what that told of activity.
    reads: BTreeMap<RuntimeId, (Time, Option<Time>)>,
    /// When its pass began, and the calls that it has made since.
    pass: Option<(Time, u64)>,
    /// Acts that it has claimed in this pass.
    claims: u64,
}

#[derive(Debug, Clone)]
struct Look {
    at: Time,
    /// `None`: it saw nothing.
    there: Option<Runtime>,
    /// It asked the agent server inside since, and got no answer.
    unread: bool,
}

/// How many calls one pass may make, whatever happens to it.
const MOST_CALLS: u64 = 2_000;

impl Auditor {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            scenario: scenario.clone(),
            rows: BTreeMap::new(),
            truths: BTreeMap::new(),
            processes: BTreeMap::new(),
            switches: BTreeMap::new(),
            spent: BTreeMap::new(),
            counts: BTreeMap::new(),
            violation: None,
        }
    }

    pub(crate) fn count(&mut self, event: &'static str) {
        *self.counts.entry(event).or_default() += 1;
    }

    /// The first one counts: what follows from it only hides it.
    fn violated(&mut self, invariant: u8, at: Time, runtime: Option<&RuntimeId>, what: String) {
        self.violation.get_or_insert_with(|| Violation { invariant, at, runtime: runtime.cloned(), what });
    }

    fn truth(&mut self, id: &RuntimeId) -> &mut Truth {
        self.truths.entry(id.clone()).or_default()
    }

    fn hands(&mut self, process: &str) -> &mut Hands {
        self.processes.entry(process.to_owned()).or_default()
    }

    fn skew(&self) -> Duration {
        self.scenario.policy.skew
    }

    /// A heartbeat, or a registration, was answered as recorded already. `since`: when it was sent.
    pub(crate) fn acknowledged(&mut self, id: &RuntimeId, since: Time) {
        let truth = self.truth(id);
        truth.acknowledged = truth.acknowledged.max(Some(since));
    }

    /// A heartbeat was answered with "it does not run". Between its record's saying so and the answer it may run again.
    pub(crate) fn refused(&mut self, process: &str, id: &RuntimeId) {
        self.count("a heartbeat is refused");
        let turned_away = self.hands(process).turned_away;
        let truth = self.truth(id);
        truth.refused = truth.refused.max(turned_away);
    }

    /// A person was told that it is held.
    pub(crate) fn held(&mut self, id: &RuntimeId, now: Time, until: Option<Time>) {
        self.count("a person holds a runtime");
        self.truth(id).held = Some((now, until));
    }

    /// A person asks for its release: from now on it may count as held or not.
    pub(crate) fn releasing(&mut self, id: &RuntimeId) {
        self.count("a person releases a runtime");
        self.truth(id).held = None;
    }

    /// Notice of its deletion was delivered.
    pub(crate) fn noticed(&mut self, id: &RuntimeId, now: Time) {
        self.count("notice of a deletion is delivered");
        self.truth(id).noticed = Some(now);
    }

    /// A process begins a pass.
    pub(crate) fn pass_begins(&mut self, process: &str, now: Time) {
        let hands = self.hands(process);
        hands.pass = Some((now, 0));
        hands.claims = 0;
        hands.unpaused.clear();
        hands.taken.clear();
    }

    /// Invariant 11: a pass ends, in bounded time. What it began it ends: the last claim may have been made just
    /// before its time was up, and each of its calls has its own limit.
    pub(crate) fn pass_ends(&mut self, process: &str, now: Time) {
        let limits = &self.scenario.limits;
        let longest = limits.duration + limits.act_timeout + 20 * limits.look_timeout;
        let Some((began, calls)) = self.hands(process).pass.take() else { return };
        let took = now.since(began);
        if took > longest || calls > MOST_CALLS {
            let what = format!("a pass of {process} took {took:?} and {calls} calls");
            self.violated(11, now, None, what);
        }
    }

    /// Invariant 8: over a breaker's limit a pass only reports.
    pub(crate) fn breaker(&mut self, process: &str, open: Option<Breaker>, now: Time) {
        let Some(open) = open else { return };
        self.count(match open {
            Breaker::InventoryDrop => "the breaker of a shrunken inventory is open",
            Breaker::Silent => "the breaker of silent heartbeats is open",
        });
        let claims = self.hands(process).claims;
        if claims > 0 {
            self.violated(8, now, None, format!("{process} claimed {claims} although {open:?} is open"));
        }
    }

    fn called(&mut self, process: &str) {
        if let Some((_, calls)) = &mut self.hands(process).pass {
            *calls += 1;
        }
    }
}

/// What is acted on with a budget of its own, by the state that its claim leads to.
fn kind(to: State) -> &'static str {
    match to {
        State::Suspending => "suspend",
        State::Archiving => "archive",
        State::Deleting => "delete",
        _ => "shed",
    }
}
