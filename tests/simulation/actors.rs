//! Everybody who acts.

use std::time::Duration;

use ledger::{Arming, Heartbeat, HoldRequest, HoldSet, Ledger, Registered};
use lifecycle::{RuntimeId, State, record::Hold};
use pass::{Pass, Woken};
use tokio::time::sleep;

use super::{
    chance::Chance,
    process::Process,
    scenario::{SECOND, backend, id},
    sim::Sim,
    world::{By, Runtime},
};

/// An agent and whoever uses it: works, falls silent, and comes back, often just when somebody is at its runtime.
/// When a heartbeat is refused, it asks again for a while, as somebody who waits for it does.
pub(crate) async fn agent(sim: Sim, number: usize) {
    let chance = Chance::named(sim.seed(), &format!("agent-{number}"));
    let process = Process::new(&sim, &format!("agent-{number}"), 0);
    let ledger = sim.ledger(&process);
    let kind = sim.scenario().runtimes[number];
    let id = id(number);
    let mut epoch = None;
    if kind.beats && chance.mille(700) {
        epoch = register(&process, &ledger, &id).await;
    }
    loop {
        for _ in 0..=chance.below(6) {
            work(&process, &ledger, &chance, (&id, epoch)).await;
            sleep(chance.seconds(20..=100)).await;
        }
        tokio::select! {
            biased;
            () = sim.returns(number) => {
                sim.count("an agent returns while somebody is at its runtime");
                if kind.beats && chance.mille(200) {
                    epoch = register(&process, &ledger, &id).await.or(epoch);
                }
            }
            _ = sim.waits(silence(&chance)) => {}
        }
        if sim.is_calm() {
            if !kind.lasting {
                return;
            }
            sleep(chance.seconds(60..=120)).await;
        }
        if chance.mille(60) && kind.beats {
            let registered = register(&process, &ledger, &id).await;
            // Else somebody beside it did that, and it goes on with what it knows.
            if chance.mille(500) {
                epoch = registered.or(epoch);
            }
        }
    }
}

/// How long an agent is silent: often about as long as the policy gives it.
fn silence(chance: &Chance) -> Duration {
    match chance.below(4) {
        0 => chance.seconds(60..=400),
        1 | 2 => chance.seconds(590..=720),
        _ => chance.seconds(900..=2_400),
    }
}

async fn work(process: &Process, ledger: &Ledger, chance: &Chance, (id, epoch): (&RuntimeId, Option<u64>)) {
    let sim = process.sim();
    let now = sim.now();
    let busy = chance.mille(200).then(|| chance.seconds(60..=400));
    let kind = sim.with(|state| {
        let there = state.world.runtimes.get(id)?;
        let kind = there.kind;
        if there.state == State::Running {
            state.world.change(id, now, |there| {
                there.active = now;
                there.busy_until = busy.map(|busy| now.plus(busy)).max(there.busy_until);
                if chance.mille(60) {
                    there.silent_until = Some(now.plus(chance.seconds(30..=1_500)));
                }
            });
            state.trace.note(now, process.name(), Some(id), || "works".to_owned());
        }
        Some(kind)
    });
    if kind.is_some_and(|kind| kind.beats) {
        beat(process, ledger, (id, epoch), busy).await;
    }
}

async fn beat(process: &Process, ledger: &Ledger, (id, epoch): (&RuntimeId, Option<u64>), busy: Option<Duration>) {
    let sim = process.sim();
    let since = sim.now();
    let told = ledger.heartbeat(id, epoch, busy, process.now()).await;
    sim.note(process.name(), Some(id), || match &told {
        Ok(told) => format!("is told {told:?}"),
        Err(_) => "is told nothing".to_owned(),
    });
    match told {
        Ok(Heartbeat::Coalesced) => {
            sim.count("a heartbeat is coalesced");
            sim.with(|state| state.auditor.acknowledged(id, since));
        }
        Ok(Heartbeat::NotRunning { .. }) => {
            sim.with(|state| state.auditor.refused(process.name(), id));
        }
        Ok(Heartbeat::Superseded { .. }) => sim.count("a heartbeat of an earlier life"),
        Ok(Heartbeat::Gone) => sim.count("a heartbeat to what is no more"),
        Ok(Heartbeat::Unknown) => sim.count("a heartbeat to what was never seen"),
        Ok(Heartbeat::Recorded) | Err(_) => {}
    }
}

async fn register(process: &Process, ledger: &Ledger, id: &RuntimeId) -> Option<u64> {
    let sim = process.sim();
    let runs = |there: &Runtime| there.ours() && there.state == State::Running;
    if !sim.with(|state| state.world.runtimes.get(id).is_some_and(runs)) {
        return None;
    }
    let policy = &sim.scenario().policy;
    let idle = policy.rules[0].idle_after.unwrap_or_default() + policy.slack();
    let now = process.now();
    let idle_ms = u64::try_from(idle.as_millis()).ok();
    let arming = Arming { idle_ms, cap_at: None, due_at: Some(now.plus(idle)) };
    let told = ledger.register(id, &<_>::default(), arming, now).await;
    match told {
        Ok(Registered::Done(record)) => Some(record.epoch),
        Ok(Registered::Claimed { .. }) => {
            sim.count("a registration is refused");
            None
        }
        Ok(Registered::Overtaken { .. }) => {
            sim.count("a registration is overtaken");
            None
        }
        Err(_) => None,
    }
}

/// A scheduled program: a pass now and then, in one life after another.
pub(crate) async fn scheduler(sim: Sim, number: u64) {
    let chance = Chance::named(sim.seed(), &format!("scheduler-{number}"));
    for life in 0.. {
        let process = Process::new(&sim, &format!("pass-{number}"), life);
        let pass = sim.pass(&process);
        loop {
            if !sim.waits(chance.seconds(30..=330)).await {
                return;
            }
            if !tick(&sim, &process, &pass).await {
                break;
            }
        }
    }
}

/// One pass. Whether the process lives on.
pub(crate) async fn tick(sim: &Sim, process: &Process, pass: &Pass) -> bool {
    let began = sim.now();
    sim.with(|state| state.auditor.pass_begins(process.name(), began));
    sim.note(process.name(), None, || "begins a pass".to_owned());
    let Some(outcome) = process.run(Box::pin(pass.run())).await else { return false };
    let now = sim.now();
    sim.note(process.name(), None, || {
        let entries = outcome.report.entries.iter();
        let acts: Vec<_> = entries
            .map(|entry| {
                let detail = entry.detail.as_deref().unwrap_or_default();
                format!("{} {}: {} ({detail})", entry.action, entry.runtime.encoded(), entry.fate)
            })
            .collect();
        format!("ends its pass: {acts:?}, kept {:?}", outcome.report.kept)
    });
    sim.with(|state| {
        let auditor = &mut state.auditor;
        auditor.pass_ends(process.name(), now);
        auditor.healed(outcome.report.healed, now);
        if !outcome.upkeep.busy.is_empty() {
            auditor.count("a pass finds its backend leased");
        }
        if !outcome.upkeep.more_due.is_empty() {
            auditor.count("more is due than a pass takes");
        }
        if !outcome.upkeep.stuck.is_empty() {
            auditor.count("a runtime is reported as stuck");
        }
        if outcome.report.kept.contains_key("budget") {
            auditor.count("a runtime is kept for the budget's sake");
        }
        for backend in &outcome.report.backends {
            auditor.breaker(process.name(), backend.note.breaker, now);
        }
    });
    sim.heed();
    true
}

/// A person at the command line: wakes, holds, releases, pauses, and applies plans that have grown old.
pub(crate) async fn person(sim: Sim) {
    let chance = Chance::named(sim.seed(), "person");
    for life in 0.. {
        if !sim.waits(chance.seconds(60..=400)).await {
            return;
        }
        let process = Process::new(&sim, "pass-person", life);
        let id = id(usize::try_from(chance.below(sim.scenario().runtimes.len() as u64)).unwrap_or_default());
        let deed = chance.below(10);
        let _ = process.run(Box::pin(by_hand(&sim, &process, &chance, &id, deed))).await;
    }
}

async fn by_hand(sim: &Sim, process: &Process, chance: &Chance, id: &RuntimeId, deed: u64) {
    let ledger = sim.ledger(process);
    match deed {
        0 | 1 => {
            let woken = Box::pin(sim.pass(process).wake(id)).await;
            sim.note(process.name(), Some(id), || format!("wakes it: {woken:?}"));
            if matches!(woken, Woken::Running(_)) {
                sim.count("a person wakes a runtime");
            }
        }
        2 => {
            let until = chance.mille(500).then(|| process.now().plus(chance.seconds(120..=1_800)));
            let hold = until.map_or(Hold::Forever, Hold::Until);
            let request = HoldRequest { hold, why: "ask first", by: "a person" };
            let told = ledger.hold(id, &request, None, process.now()).await;
            sim.note(process.name(), Some(id), || format!("holds it: {}", told.is_ok()));
            if matches!(told, Ok(HoldSet::Held(_))) {
                let now = sim.now();
                sim.with(|state| state.auditor.held(id, now, until));
            }
        }
        3 | 4 => {
            sim.with(|state| state.auditor.releasing(id));
            let _ = ledger.release(id, process.now()).await;
        }
        5 => {
            let which = backend();
            let which = chance.mille(500).then_some(&which);
            let _ = ledger.pause(which, "look first", "a person", process.now()).await;
            sleep(chance.seconds(30..=600)).await;
            let _ = ledger.unpause(which, process.now()).await;
        }
        6 => {
            let now = sim.now();
            sim.with(|state| state.world.change(id, now, |there| there.hold_label = !there.hold_label));
            sim.note(process.name(), Some(id), || "changes its label".to_owned());
        }
        _ => {
            let pass = sim.pass(process);
            let Ok(plan) = Box::pin(pass.preview()).await else { return };
            sleep(chance.seconds(0..=500)).await;
            let now = sim.now();
            sim.with(|state| state.auditor.pass_begins(process.name(), now));
            if let Ok(report) = Box::pin(pass.apply(&plan)).await {
                sim.count("a person applies a plan");
                sim.note(process.name(), None, || format!("applied a plan: {:?}", report.counts()));
                let now = sim.now();
                sim.with(|state| state.auditor.pass_ends(process.name(), now));
            }
        }
    }
}

/// Whoever else uses the provider: stops, starts, removes, and takes an id again for another run.
pub(crate) async fn outsider(sim: Sim) {
    let chance = Chance::named(sim.seed(), "outsider");
    let collapse = sim.scenario().collapse.then(|| sim.now().plus(chance.seconds(1_200..=2_400)));
    let mut collapsed = false;
    loop {
        if !sim.waits(chance.seconds(60..=500)).await {
            return;
        }
        let now = sim.now();
        if collapse.is_some_and(|at| now >= at) && !collapsed {
            collapsed = true;
            for number in (0..sim.scenario().runtimes.len()).skip(1) {
                sim.with(|state| state.world.remove(&id(number), now));
                sim.note("outsider", Some(&id(number)), || "removes it, with most of the fleet".to_owned());
            }
            sim.count("most of the fleet vanishes");
            continue;
        }
        let number = usize::try_from(chance.below(sim.scenario().runtimes.len() as u64)).unwrap_or_default();
        meddle(&sim, &chance, number);
    }
}

fn meddle(sim: &Sim, chance: &Chance, number: usize) {
    let (now, id, kind) = (sim.now(), id(number), sim.scenario().runtimes[number]);
    let deed = chance.below(8);
    sim.with(|state| {
        let there = state.world.runtimes.get(&id).map(|there| there.state);
        let what = match (deed, there) {
            (0 | 1, Some(State::Running)) => {
                state.world.change(&id, now, |there| there.enter(State::Suspended, By::Outside, now));
                "stops it"
            }
            (2 | 3, Some(State::Suspended)) => {
                state.world.change(&id, now, |there| there.enter(State::Running, By::Outside, now));
                "starts it again, the same run"
            }
            (4, Some(_)) => {
                state.world.remove(&id, now);
                "removes it"
            }
            (5, Some(_)) | (_, None) => {
                state.world.begin(&id, kind, now);
                "puts another run under its id"
            }
            _ => return,
        };
        state.auditor.count(match there {
            None => "an id is taken again",
            Some(_) if deed == 5 => "a run is replaced by another",
            Some(_) => "somebody else meddles",
        });
        state.trace.note(now, "outsider", Some(&id), || what.to_owned());
    });
}

/// The provider's own idle timer.
pub(crate) async fn provider_timer(sim: Sim) {
    loop {
        sleep(15 * SECOND).await;
        let now = sim.now();
        sim.with(|state| {
            let due = |there: &Runtime| there.native_deadline().is_some_and(|at| at <= now);
            let ids: Vec<_> =
                state.world.runtimes.iter().filter(|(_, there)| due(there)).map(|(id, _)| id.clone()).collect();
            for id in ids {
                state.world.change(&id, now, |there| there.enter(State::Suspended, By::Provider, now));
                state.auditor.count("the provider suspends by itself");
                state.trace.note(now, "provider", Some(&id), || "suspends it by its own timer".to_owned());
            }
        });
    }
}
