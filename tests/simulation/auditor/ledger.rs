//! What each write of the ledger must keep.

use lifecycle::{RuntimeId, State, Time};
use serde_json::Value;

use super::{Asked, Auditor, Holder, Right, Row, kind};
use crate::simulation::{
    process::Process,
    scenario::{MINUTE, backend},
    trace::{Trace, offset},
    world::{By, Runtime, World},
};

/// One write of a record.
struct Write<'a> {
    process: &'a Process,
    asked: &'a Asked,
    id: &'a RuntimeId,
    old: Option<Row>,
    new: Row,
    now: Time,
}

impl Auditor {
    /// A request had its effect, or was refused.
    pub(crate) fn asked(
        &mut self,
        (process, asked): (&Process, &Asked),
        (done, answer): (bool, &Value),
        world: &World,
        trace: &mut Trace,
        now: Time,
    ) {
        self.called(process.name());
        self.count("requests to the ledger");
        let Some(key) = asked.partition() else {
            if asked.operation == "BatchGetItem" {
                self.switches_read(process, answer, now);
            }
            return;
        };
        if let Some(id) = asked.runtime().filter(|_| asked.is_record()) {
            let item = if asked.operation == "PutItem" { asked.body.get("Item") } else { answer.get("Attributes") };
            match item.filter(|_| done).and_then(Row::of) {
                Some(new) => {
                    let old = self.rows.insert(id.clone(), new.clone());
                    trace.note(now, process.name(), Some(&id), || {
                        format!("writes {}", Row::changes(old.as_ref(), &new))
                    });
                    self.written(&Write { process, asked, id: &id, old, new, now }, world);
                }
                None => self.not_written(process, asked, &id, trace, now),
            }
            if self.rows.get(&id).is_some_and(|row| row.state != State::Running) {
                self.hands(process.name()).turned_away = Some(now);
            }
        } else if done && asked.operation == "UpdateItem" {
            self.beside(process, asked, key, answer, trace, now);
        }
    }

    fn not_written(&mut self, process: &Process, asked: &Asked, id: &RuntimeId, trace: &mut Trace, now: Time) {
        if asked.operation == "GetItem" {
            let told = self.truth(id).acknowledged;
            self.hands(process.name()).reads.insert(id.clone(), (now, told));
            return;
        }
        let what = match (asked.uses(":owner"), asked.uses(":from")) {
            (true, true) => "a claim is lost",
            (true, false) => "a take-over or a wake is lost",
            _ => "another write is refused",
        };
        self.count(what);
        trace.note(now, process.name(), Some(id), || format!("is refused: {what}"));
    }

    /// A budget, a unit.
    fn beside(&mut self, process: &Process, asked: &Asked, key: &str, answer: &Value, trace: &mut Trace, now: Time) {
        if let Some(budget) = key.strip_prefix("budget/") {
            let kind = budget.split('/').nth(1).unwrap_or_default();
            let kind = ["suspend", "archive", "delete", "shed"].into_iter().find(|known| *known == kind);
            if let Some(kind) = kind {
                self.hands(process.name()).taken.entry(kind).or_default().push_back(key.to_owned());
            }
        }
        if key.starts_with("unit/") {
            let on = answer.get("Attributes").is_some_and(|unit| unit.get("paused_at").is_some());
            if on {
                self.switches.entry(key.to_owned()).or_insert(now);
            } else {
                self.switches.remove(key);
            }
            if asked.uses(":why") {
                self.count("a person pauses");
                trace.note(now, process.name(), None, || format!("pauses {key}"));
            }
            if asked.uses(":ahead") {
                trace.note(now, process.name(), None, || format!("unpauses {key}"));
            }
        }
    }

    fn switches_read(&mut self, process: &Process, answer: &Value, now: Time) {
        let found = answer.get("Responses").map(ToString::to_string).unwrap_or_default();
        if found.contains("paused_at") {
            self.count("a pass finds itself paused");
        } else {
            self.hands(process.name()).unpaused.push_back(now);
        }
    }

    fn written(&mut self, write: &Write<'_>, world: &World) {
        self.form(write);
        self.clock(write, world);
        self.held_anew(write);
        let claimed = write.old.as_ref().is_none_or(|old| old.token != write.new.token) && write.asked.uses(":owner");
        if claimed {
            self.claimed(write);
        } else {
            self.ended_by_holder(write);
        }
        match write.new.state {
            State::Gone => self.tombstone(write, world),
            _ => self.heard(write, world),
        }
        let stopped = |there: &Runtime| there.by == By::Us && there.state != State::Running;
        if write.new.state == State::Running && !world.runtimes.get(write.id).is_some_and(stopped) {
            self.truth(write.id).running = Some(write.now);
        }
        self.tell(write);
    }

    /// A hold in place of another, whose person may die before being told of it: what was written is what holds.
    fn held_anew(&mut self, write: &Write<'_>) {
        if write.asked.uses(":hold")
            && let Some((_, until)) = &mut self.truth(write.id).held
        {
            *until = write.new.held_until();
        }
    }

    /// Invariants 2 (the fence only grows) and 5 (what is not gone is in the index, whatever happens to it).
    fn form(&mut self, write: &Write<'_>) {
        let Write { id, new, now, .. } = write;
        let highest = self.truth(id).token;
        if new.token < highest {
            self.violated(2, *now, Some(id), format!("its token went back from {highest} to {}", new.token));
        }
        self.truth(id).token = highest.max(new.token);
        if (new.state == State::Gone) != new.due.is_none() {
            self.violated(5, *now, Some(id), format!("it is {} and its due time is {:?}", new.state, new.due));
        }
        let Some(until) = new.until else { return };
        let latest = until.plus(self.skew()).plus(self.scenario.options.coalesce).max(now.plus(10 * MINUTE));
        if new.due.is_none_or(|due| due > latest) {
            self.violated(5, *now, Some(id), "nobody will look at its claim when that ends".to_owned());
        }
    }

    /// Invariant 7: activity moves only forward, and by nothing but activity.
    fn clock(&mut self, write: &Write<'_>, world: &World) {
        let Write { process, asked, id, old, new, now } = write;
        let (now, skew) = (*now, self.skew());
        if new.idle_from > now.plus(skew) {
            self.violated(7, now, Some(id), format!("its clock is ahead: {}", offset(new.idle_from)));
        }
        let Some(old) = old else { return };
        // Two clocks may differ: what one stamps can lie so much before what another did.
        if new.idle_from.plus(skew) < old.idle_from {
            let what = format!("its clock went back from {} to {}", offset(old.idle_from), offset(new.idle_from));
            self.violated(7, now, Some(id), what);
        }
        // A pass that looked at what ran and runs: only what the runtime did itself can have moved the clock.
        let looked = old.state == State::Running && new.state == State::Running && old.token == new.token;
        let by_a_look = looked && asked.uses(":new_idle_from") && process.owner().starts_with("pass");
        if by_a_look && new.idle_from > old.idle_from {
            let lived = world.runtimes.get(id).map(|there| there.active.max(there.running_since));
            if lived.is_some_and(|lived| new.idle_from > lived.plus(skew)) {
                self.violated(7, now, Some(id), "a look moved its clock, and it did nothing".to_owned());
            }
        }
    }

    /// Invariants 1, 6 and 8, at the moment of a claim.
    fn claimed(&mut self, write: &Write<'_>) {
        let Write { process, asked, id, old, new, now } = write;
        let right = match (asked.uses(":from"), new.state) {
            (true, _) => Right::Act,
            (false, State::Resuming) if old.as_ref().is_some_and(|old| old.state != State::Resuming) => Right::Wake,
            (false, _) => Right::Look,
        };
        let until = new.until.unwrap_or_default();
        let holder = Holder { process: process.name().to_owned(), token: new.token, until, right, at: *now };
        let lost = self.truth(id).holder.replace(holder).filter(|lost| lost.process != process.name());
        match right {
            Right::Act => self.claims_to_act(write),
            Right::Wake => self.count("a wake is claimed"),
            Right::Look => {
                self.count("an expired claim is taken over");
                if lost.is_some() {
                    self.count(match new.state {
                        State::Suspending => "a suspend of another process is taken over",
                        State::Archiving => "an archive of another process is taken over",
                        State::Deleting => "a delete of another process is taken over",
                        State::Resuming => "a resume of another process is taken over",
                        _ => "a shed or a notice of another process is taken over",
                    });
                }
            }
        }
    }

    fn claims_to_act(&mut self, write: &Write<'_>) {
        let Write { process, asked, id, old, new, now } = write;
        let (now, skew) = (*now, self.skew());
        let notice = asked.update().contains("#condemned_at");
        let kind = kind(new.state);
        self.count(match (kind, notice) {
            (_, true) => "a notice is claimed",
            ("suspend", _) => "a suspend is claimed",
            ("archive", _) => "an archive is claimed",
            ("delete", _) => "a delete is claimed",
            _ => "a shed is claimed",
        });
        self.hands(process.name()).claims += 1;
        if self.truth(id).held.is_some_and(|(_, until)| until.is_none_or(|until| until > now.plus(skew))) {
            self.violated(6, now, Some(id), "it was claimed although it is held".to_owned());
        }
        if old.as_ref().is_some_and(|old| old.wanted.is_some()) {
            self.violated(1, now, Some(id), "it was claimed although a refused heartbeat asked for it".to_owned());
        }
        self.within_budget(process, id, (kind, notice), now);
        self.not_paused(process, id, now);
    }

    /// Invariant 8: each claim was counted before, and no window pays for more than it allows.
    fn within_budget(&mut self, process: &Process, id: &RuntimeId, (kind, notice): (&'static str, bool), now: Time) {
        if notice {
            return;
        }
        let window = self.hands(process.name()).taken.entry(kind).or_default().pop_front();
        let Some(window) = window else {
            return self.violated(8, now, Some(id), format!("a {kind} was claimed without taking its budget"));
        };
        let budgets = self.scenario.policy.budgets;
        let budget = match kind {
            "suspend" => budgets.suspend,
            "archive" => budgets.archive,
            "delete" => budgets.delete,
            _ => budgets.shed,
        };
        let spent = self.spent.entry(window.clone()).or_default();
        *spent += 1;
        let (spent, allowed) = (*spent, budget.map_or(0, |budget| u64::from(budget.min)));
        if spent == allowed {
            self.count("a budget is spent");
        }
        if spent > allowed {
            self.violated(8, now, Some(id), format!("{spent} claims in `{window}`, which allows {allowed}"));
        }
    }

    /// Invariant 8: the switches were read before each claim, after they were last turned on.
    fn not_paused(&mut self, process: &Process, id: &RuntimeId, now: Time) {
        let on = [format!("unit/{}", backend()), "unit/*".to_owned()];
        let since = on.iter().filter_map(|key| self.switches.get(key)).min().copied();
        let read = self.hands(process.name()).unpaused.pop_front();
        match (since, read) {
            (_, None) => self.violated(8, now, Some(id), "it was claimed without reading the switches".to_owned()),
            (Some(since), Some(_)) if now.since(since) > 3 * MINUTE => {
                self.violated(8, now, Some(id), format!("it was claimed although paused since {}", offset(since)));
            }
            _ => {}
        }
    }

    /// Invariant 2: only its holder ends a claim.
    fn ended_by_holder(&mut self, write: &Write<'_>) {
        let Write { process, id, old, new, now, .. } = write;
        let Some(old) = old.as_ref().filter(|old| old.until.is_some() && new.until.is_none()) else { return };
        let holder = self.truth(id).holder.clone();
        let registered = new.epoch != old.epoch;
        let expired = old.until.is_some_and(|until| until <= *now);
        let free = expired && (registered || new.state == State::Gone);
        if !free && holder.as_ref().is_none_or(|holder| holder.process != process.name() || holder.token != new.token) {
            let what = format!("{} ended a claim of {:?}", process.name(), holder.map(|holder| holder.process));
            self.violated(2, *now, Some(id), what);
        }
    }

    /// Invariant 4: a tombstone is of what is no more.
    fn tombstone(&mut self, write: &Write<'_>, world: &World) {
        let Write { id, old, now, .. } = write;
        let deleted = old.as_ref().is_some_and(|old| old.state == State::Deleting && old.until.is_some());
        let absent = old.as_ref().is_some_and(|old| old.absent.is_some());
        self.count(if absent { "absent twice" } else { "a delete is completed" });
        self.truth(id).held = None;
        let Some(there) = world.runtimes.get(id) else { return };
        let first = old.as_ref().and_then(|old| old.absent);
        if first.is_some_and(|first| there.born.plus(self.skew()) < first) {
            self.violated(4, *now, Some(id), "its record is a tombstone, and it is there".to_owned());
        }
        let same = old.as_ref().and_then(|old| old.run.as_deref()) == Some(there.incarnation().as_str());
        if deleted && !absent && same {
            self.violated(4, *now, Some(id), "its deletion was completed, and it is there".to_owned());
        }
    }

    /// Invariant 1: what an agent is told is true.
    fn heard(&mut self, write: &Write<'_>, world: &World) {
        let Write { process, id, old, new, now, .. } = write;
        if !process.owner().starts_with("agent") {
            return;
        }
        let before = old.as_ref();
        let moved = before.is_none_or(|old| new.idle_from > old.idle_from || new.epoch > old.epoch);
        let recorded = moved || before.is_some_and(|old| new.busy > old.busy);
        if before.is_some_and(|old| old.wanted != new.wanted && new.wanted.is_some()) {
            self.count("a runtime is wanted");
            return;
        }
        if !recorded {
            return;
        }
        self.count("activity is recorded");
        let (sent, skew) = (process.true_time(new.idle_from), self.skew());
        let truth = self.truth(id);
        truth.acknowledged = truth.acknowledged.max(Some(sent).filter(|_| moved));
        truth.busy = new.busy.map(|busy| busy.minus(skew)).max(truth.busy);
        let Some(there) = world.runtimes.get(id) else { return };
        let by_us = there.by == By::Us;
        if by_us
            && !matches!(there.state, State::Running | State::Resuming)
            && before.is_some_and(|old| old.epoch == new.epoch)
        {
            let what = format!("a heartbeat was recorded, and it is {} by us", there.state);
            self.violated(1, *now, Some(id), what);
        }
    }

    /// Counts what ought to happen in some run.
    fn tell(&mut self, write: &Write<'_>) {
        let Write { old, new, .. } = write;
        let Some(old) = old else { return self.count("a runtime is first seen") };
        if old.epoch != new.epoch {
            self.count("a runtime is registered");
        }
        if old.run.is_some() && old.run != new.run && old.epoch == new.epoch {
            self.count("another run of an id is observed");
        }
        if old.state == State::Gone && new.state != State::Gone {
            self.count("an id comes back from a tombstone");
        }
        if old.absent.is_none() && new.absent.is_some() {
            self.count("absent once");
        }
        if old.absent.is_some() && new.absent.is_none() && new.state != State::Gone {
            self.count("there again after an absence");
        }
        if old.until.is_some() && new.until.is_none() && old.state.is_middle() && new.state == State::Running {
            self.count(if old.state == State::Resuming { "a resume is completed" } else { "a claim is given back" });
        }
        if old.attempts < new.attempts {
            self.count("an attempt fails");
        }
        if old.until.is_some() && new.until.is_some() && old.token == new.token {
            self.count("a long act is handed over");
        }
        if old.wanted.is_some() && new.state == State::Resuming && old.state != State::Resuming {
            self.count("what is wanted is woken");
        }
    }
}
