//! The world around a record: a runtime, its agent, two passes whose clocks differ, a person, and what was promised.
//!
//! A pass reads, asks whether it is paused, claims, acts, and ends its claim, each as a step of its own; between any
//! two of them anybody else may take any of theirs, and a pass may die.

use std::{cell::RefCell, collections::HashSet};

use lifecycle::State;

use super::{
    fault::Fault,
    observed::{Active, Seen},
    record::{Arm, Held, Rec, SKEW, Tick},
    step::Step,
    table::{Answer, Ask, End, Op, Rule, apply},
};

/// A runtime is idle when nothing was heard of it for longer than this, which is longer than clocks differ.
const IDLE: Tick = 1;

/// How long a claim lasts, and how long before a deletion its notice is given.
const CLAIM: Tick = 2;
const NOTICE: Tick = 1;

/// How far apart two sightings of an absence are: more than clocks differ, or they could be of one moment.
const APART: Tick = SKEW + 1;

/// What happens within the bounds of one search.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one kind of step is taken, independently of the others"
)]
pub(crate) struct Scope {
    /// The last tick.
    pub(crate) ticks: Tick,
    /// How many claims there may be, and how many registrations.
    pub(crate) claims: u8,
    pub(crate) lives: u8,
    /// A registration may be long on its way.
    pub(crate) late: bool,
    /// No heartbeat comes at all; they come by the clock that is ahead too; the agent says that it is at work.
    pub(crate) quiet: bool,
    pub(crate) ahead: bool,
    pub(crate) works: bool,
    /// What rests is given notice of, and deleted.
    pub(crate) deletes: bool,
    /// People call runtimes back, hold them, and pull the switch.
    pub(crate) wakes: bool,
    pub(crate) holds: bool,
    pub(crate) pauses: bool,
    /// A listing that is behind misses the runtime once, and people stop it or remove it.
    pub(crate) drifts: bool,
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum There {
    Runs,
    Rests,
    Nothing,
}

/// What a pass claims a runtime for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Suspend,
    Notify,
    Delete,
    Wake,
    /// To look at what an expired claim left in this state.
    Recover(State),
}

/// Where a pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Nothing,
    /// It has read the record and wants to act on it.
    Wants {
        act: Act,
        epoch: u8,
        token: i32,
        cutoff: Tick,
    },
    /// It has claimed it.
    Holds {
        act: Act,
        token: i32,
        until: Tick,
        cutoff: Tick,
        acted: bool,
    },
}

/// A pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pass {
    doing: Doing,
    /// What it was told when it asked whether all is paused.
    allowed: Option<bool>,
    /// Its claims since the switch was pulled.
    since_paused: u8,
}

/// Everything, and what was promised to whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about one state")]
pub(crate) struct World {
    now: Tick,
    rec: Option<Rec>,
    there: There,
    passes: [Pass; 2],
    paused: bool,
    claims: u8,
    missed: bool,
    hidden: bool,
    /// When the registration was sent that is on its way.
    sent: Option<Tick>,
    /// The newest activity that somebody was told is recorded.
    acknowledged: Tick,
    /// Somebody was refused and has not got his runtime back.
    owed: bool,
    /// Somebody was told that it is held.
    held: bool,
    /// Notice was delivered then, and nothing has happened since that takes it back.
    noticed: Option<Tick>,
    /// The pass whose claim is the present one.
    holder: Option<usize>,
}

/// An invariant that was broken, by its number, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Breach(pub(crate) u8, pub(crate) &'static str);

/// One transition that was taken, for the comparison with the ledger.
pub(crate) type Case = (Option<Rec>, Op, Tick);

/// Transitions, each once, in the order in which they were taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    known: HashSet<Case>,
    pub(crate) cases: Vec<Case>,
}

impl Taken {
    pub(crate) fn note(&mut self, case: Case) {
        if self.known.insert(case) {
            self.cases.push(case);
        }
    }
}

/// The model with a fault, or none, and what it keeps of its transitions.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) scope: Scope,
    pub(crate) fault: Option<Fault>,
    pub(crate) taken: Option<RefCell<Taken>>,
}

impl Scope {
    pub(crate) fn model(self, fault: Option<Fault>) -> Model {
        Model { scope: self, fault, taken: None }
    }
}

impl World {
    /// A registered runtime, seen as run 1, that has just been active.
    pub(crate) fn begin() -> Self {
        let (rec, _) = apply(None, None, &Op::Register { arm: Arm::at(2) }, 0);
        let seen = World::seen(There::Runs);
        let (rec, _) = apply(None, rec.as_ref(), &Op::Observe { seen, arm: Arm::at(2) }, 0);
        let pass = Pass { doing: Doing::Nothing, allowed: None, since_paused: 0 };
        Self {
            now: 0,
            rec: rec.map(kept),
            there: There::Runs,
            passes: [pass; 2],
            paused: false,
            claims: 0,
            missed: false,
            hidden: false,
            sent: None,
            acknowledged: 0,
            owed: false,
            held: false,
            noticed: None,
            holder: None,
        }
    }

    fn seen(there: There) -> Seen {
        let state = if there == There::Rests { State::Suspended } else { State::Running };
        Seen { run: 1, state, state_since: None, running_since: None, active: Active::Unknown, busy_until: None }
    }

    /// The first pass's clock is behind the second's by as much as clocks may differ.
    fn clock(&self, pass: usize) -> Tick {
        if pass == 0 { self.now } else { self.now + SKEW }
    }

    fn lives(&self) -> u8 {
        self.rec.map_or(0, |rec| rec.epoch)
    }

    fn state(&self) -> Option<State> {
        self.rec.map(|rec| rec.state)
    }
}

/// What no condition of these searches reads is left out of the record, so that fewer are different.
fn kept(rec: Rec) -> Rec {
    Rec {
        first_seen: 0,
        last_active: rec.last_active.map(|_| 0),
        running_since: None,
        armed: Some(0).filter(|_| rec.armed.is_some()),
        attempts: rec.attempts.min(1),
        ..rec
    }
}

impl World {
    pub(crate) fn time(&self) -> Tick {
        self.now
    }

    /// The record, as a line of a counterexample.
    pub(crate) fn record(&self) -> String {
        let Some(rec) = self.rec else { return "no record".to_owned() };
        let Rec { state, idle_from, token, .. } = rec;
        let at = |what: &str, tick: Option<Tick>| tick.map_or(String::new(), |tick| format!(", {what} {tick}"));
        let claim = rec.claim.map_or(String::new(), |claim| format!(", pass {} until {}", claim.owner, claim.until));
        let rest = [at("wanted", rec.wanted_at), at("noticed", rec.noticed_at), at("due", rec.due_at)].concat();
        format!("{state}, idle from {idle_from}, token {token}{claim}{rest}; there: {:?}", self.there)
    }
}

impl Model {
    /// Does one operation and keeps it. Breaks off where the record itself shows a breach.
    fn does(&self, world: &mut World, op: Op, clock: Tick) -> Result<Answer, Breach> {
        if let Some(taken) = &self.taken {
            taken.borrow_mut().note((world.rec, op, clock));
        }
        let (new, answer) = apply(self.fault, world.rec.as_ref(), &op, clock);
        if let (Some(old), Some(new)) = (world.rec, new) {
            moved(&old, &new, &op, clock)?;
        }
        world.rec = new.map(kept);
        Ok(answer)
    }

    /// What must be so in every state.
    pub(crate) fn holds(&self, world: &World) -> Result<(), Breach> {
        world.stands()?;
        self.recovers(world)
    }

    /// Every step that can be taken, and what comes of it.
    pub(crate) fn steps(&self, world: &World) -> Vec<(Step, Result<World, Breach>)> {
        let mut steps = self.others(world);
        for pass in 0..world.passes.len() {
            steps.extend(self.of(world, pass));
        }
        steps.into_iter().filter_map(|step| Some((step, self.take(world, step).transpose()?))).collect()
    }

    /// What the agent, time and people may do.
    fn others(&self, world: &World) -> Vec<Step> {
        let scope = self.scope;
        let mut steps = Vec::new();
        let mut may = |step: Step, it_may: bool| steps.extend(Some(step).filter(|_| it_may));
        may(Step::Tick, world.now < scope.ticks);
        may(Step::Registers, world.lives() < scope.lives);
        may(
            Step::Sends,
            scope.late && world.sent.is_none() && world.there == There::Runs && world.lives() < scope.lives,
        );
        may(Step::Arrives, world.sent.is_some());
        may(Step::Beats { ahead: false, busy: false }, !scope.quiet);
        may(Step::Beats { ahead: true, busy: false }, scope.ahead);
        may(Step::Beats { ahead: false, busy: true }, scope.works);
        may(Step::Holds, scope.holds && !world.held);
        may(Step::Releases, scope.holds && world.held);
        may(Step::Pauses, scope.pauses && !world.paused);
        may(Step::Stops, scope.drifts && world.there == There::Runs);
        may(Step::Removes, scope.drifts && world.there != There::Nothing);
        may(Step::Hides, scope.drifts && !world.missed);
        steps
    }

    /// What a pass may do.
    fn of(&self, world: &World, pass: usize) -> Vec<Step> {
        match world.passes[pass].doing {
            Doing::Nothing if self.scope.drifts => vec![Step::Reads(pass), Step::Looks(pass)],
            Doing::Nothing if self.scope.wakes => vec![Step::Reads(pass), Step::Calls(pass)],
            Doing::Nothing => vec![Step::Reads(pass)],
            Doing::Wants { .. } if self.scope.pauses && world.passes[pass].allowed.is_none() => vec![Step::Asks(pass)],
            Doing::Wants { .. } => vec![Step::Claims(pass), Step::Dies(pass)],
            Doing::Holds { act: Act::Recover(_), .. } => vec![Step::Ends(pass), Step::Dies(pass)],
            Doing::Holds { acted: false, .. } => {
                vec![Step::Acts(pass), Step::Abandons(pass), Step::Fails(pass), Step::Dies(pass)]
            }
            Doing::Holds { .. } => vec![Step::Ends(pass), Step::Dies(pass)],
        }
    }

    /// The world after a step; none where it changes nothing.
    fn take(&self, world: &World, step: Step) -> Result<Option<World>, Breach> {
        let mut next = world.clone();
        match step {
            Step::Tick => (next.now, next.hidden) = (world.now + 1, false),
            Step::Registers => self.registers(&mut next)?,
            Step::Sends => next.sent = Some(world.now),
            Step::Arrives => self.arrives(&mut next)?,
            Step::Beats { ahead, busy } => self.beats(&mut next, if ahead { SKEW } else { 0 }, busy)?,
            Step::Holds => {
                next.held = self.does(&mut next, Op::Hold { hold: Held::Forever }, world.now)? == Answer::Written;
                next.noticed = None;
            }
            Step::Releases => {
                self.does(&mut next, Op::Release, world.now)?;
                next.held = false;
            }
            Step::Pauses => next.paused = true,
            Step::Stops => next.there = There::Rests,
            Step::Removes => next.there = There::Nothing,
            Step::Hides => (next.hidden, next.missed) = (true, true),
            Step::Reads(pass) => self.reads(&mut next, pass),
            Step::Asks(pass) => {
                next.passes[pass].allowed = Some(!world.paused);
                if world.paused {
                    next.passes[pass].doing = Doing::Nothing;
                }
            }
            Step::Claims(pass) => self.claims(&mut next, pass)?,
            Step::Acts(pass) => acts(&mut next, pass)?,
            Step::Ends(pass) => self.ends(&mut next, pass)?,
            Step::Abandons(pass) => self.abandons(&mut next, pass, false)?,
            Step::Fails(pass) => self.abandons(&mut next, pass, true)?,
            Step::Dies(pass) => next.passes[pass].doing = Doing::Nothing,
            Step::Looks(pass) => self.looks(&mut next, pass)?,
            Step::Calls(pass) => calls(&mut next, pass),
        }
        Ok(Some(next).filter(|next| next != world))
    }

    fn registers(&self, world: &mut World) -> Result<(), Breach> {
        let now = world.now;
        if self.does(world, Op::Register { arm: Arm::at(now + 2) }, now)? == Answer::Written {
            (world.acknowledged, world.owed, world.noticed, world.holder) = (now, false, None, None);
            world.there = There::Runs;
        }
        Ok(())
    }

    /// What was true when it was sent need not be so any more.
    fn arrives(&self, world: &mut World) -> Result<(), Breach> {
        let Some(sent) = world.sent.take() else { return Ok(()) };
        if self.does(world, Op::Register { arm: Arm::at(sent + 2) }, sent)? == Answer::Written {
            if world.there != There::Runs {
                return Err(Breach(1, "its record says that it runs, and we have stopped it"));
            }
            world.acknowledged = world.acknowledged.max(sent);
            (world.owed, world.noticed, world.holder) = (false, None, None);
        }
        Ok(())
    }

    fn beats(&self, world: &mut World, ahead: Tick, busy: bool) -> Result<(), Breach> {
        let clock = world.now + ahead;
        match self.does(world, Op::Beat { epoch: None, busy: if busy { 2 } else { 0 } }, clock)? {
            Answer::Recorded | Answer::Coalesced => {
                world.acknowledged = world.acknowledged.max(clock);
                world.noticed = None;
            }
            Answer::NotRunning(..) => world.owed = true,
            _ => {}
        }
        Ok(())
    }

    /// What a pass wants of what it reads.
    fn reads(&self, world: &mut World, pass: usize) {
        let clock = world.clock(pass);
        let Some(rec) = world.rec else { return };
        let due = rec.due_at.is_some_and(|due| due <= clock);
        let act = match (rec.state, rec.claim) {
            (state, Some(_)) if !rec.is_claimed(clock) => Some((Act::Recover(state), clock)),
            (_, Some(_)) => None,
            _ if rec.is_held(clock) => None,
            (State::Running, None) if rec.wanted_at.is_none() && rec.busy_until.is_none_or(|busy| busy <= clock) => {
                Some((Act::Suspend, rec.idle_from)).filter(|_| clock - rec.idle_from > IDLE)
            }
            (State::Suspended, None) if rec.wanted_at.is_some() && due => Some((Act::Wake, clock)),
            (State::Suspended, None) if self.scope.deletes && rec.wanted_at.is_none() => match rec.noticed_at {
                None => Some((Act::Notify, rec.state_since.max(rec.idle_from))),
                Some(at) => Some((Act::Delete, rec.state_since)).filter(|_| clock - at >= NOTICE),
            },
            _ => None,
        };
        if self.fault != Some(Fault::PauseReadOnce) {
            world.passes[pass].allowed = None;
        }
        if let Some((act, cutoff)) = act {
            world.passes[pass].doing = Doing::Wants { act, epoch: rec.epoch, token: rec.token, cutoff };
        }
    }

    fn claims(&self, world: &mut World, pass: usize) -> Result<(), Breach> {
        let Doing::Wants { act, epoch, token, cutoff } = world.passes[pass].doing else { return Ok(()) };
        let clock = world.clock(pass);
        let (owner, until) = (u8::from(pass == 1), clock + CLAIM);
        let ask = |from, to| Ask { from, to, epoch, run: Some(1), token: None, owner, until };
        let op = match act {
            Act::Recover(_) => Op::TakeOver { token, owner, until },
            Act::Wake => Op::Wake { owner, until },
            Act::Suspend => Op::Claim { ask: ask(State::Running, State::Suspending), rule: Rule::Idle { cutoff } },
            Act::Notify => Op::Claim { ask: ask(State::Suspended, State::Suspended), rule: Rule::Notify { cutoff } },
            Act::Delete => {
                let rule = Rule::Delete { cutoff, noticed: Some(clock - NOTICE), saved: None, resting: None };
                Op::Claim { ask: ask(State::Suspended, State::Deleting), rule }
            }
        };
        world.passes[pass].doing = Doing::Nothing;
        if world.claims == self.scope.claims || self.does(world, op, clock)? != Answer::Written {
            return Ok(());
        }
        world.claims += 1;
        world.won(pass, act, cutoff)?;
        let token = world.rec.map_or(0, |rec| rec.token);
        world.passes[pass].doing = Doing::Holds { act, token, until, cutoff, acted: false };
        Ok(())
    }

    /// The end of a claim: of what was done, or of what a look at the runtime tells.
    fn ends(&self, world: &mut World, pass: usize) -> Result<(), Breach> {
        let Doing::Holds { act, token, .. } = world.passes[pass].doing else { return Ok(()) };
        let clock = world.clock(pass);
        let arm = Arm::at(clock + 2);
        let done = |end| Op::Complete { token, end, saved: None, arm };
        let op = match (act, world.there) {
            (Act::Suspend, _) | (Act::Recover(State::Suspending), There::Rests) => done(End::Suspended),
            (Act::Notify, _) => done(End::Noticed),
            (Act::Delete, _) | (Act::Recover(_), There::Nothing) => done(End::Deleted),
            (Act::Wake, _) | (Act::Recover(State::Resuming), There::Runs) => done(End::Resumed(1)),
            (Act::Recover(_), there) => {
                let back_to = World::seen(there).state;
                Op::Abandon { token, back_to, failed: true, due: clock + 1 }
            }
        };
        self.under(world, pass, op)
    }

    fn abandons(&self, world: &mut World, pass: usize, failed: bool) -> Result<(), Breach> {
        let Doing::Holds { act, token, .. } = world.passes[pass].doing else { return Ok(()) };
        let back_to = if act == Act::Suspend { State::Running } else { State::Suspended };
        let due = world.clock(pass) + 1;
        self.under(world, pass, Op::Abandon { token, back_to, failed, due })
    }

    /// A write under a claim. Of a holder whose claim is another's by now, it must do nothing.
    fn under(&self, world: &mut World, pass: usize, op: Op) -> Result<(), Breach> {
        let before = world.rec;
        self.does(world, op, world.clock(pass))?;
        world.passes[pass].doing = Doing::Nothing;
        if world.rec != before {
            if world.holder != Some(pass) {
                return Err(Breach(2, "somebody whose claim is over has written the record"));
            }
            world.holder = None;
        }
        world.owed &= !matches!(world.state(), Some(State::Running | State::Gone) | None);
        Ok(())
    }

    /// A look by a listing, which may be behind: an absence is noted, and a second one later is the end.
    fn looks(&self, world: &mut World, pass: usize) -> Result<(), Breach> {
        let clock = world.clock(pass);
        let Some(rec) = world.rec.filter(|rec| rec.state != State::Gone) else { return Ok(()) };
        if !world.hidden && world.there != There::Nothing {
            let seen = World::seen(world.there);
            self.does(world, Op::Observe { seen, arm: Arm::at(clock + 2) }, clock)?;
            world.owed &= world.state() != Some(State::Running);
            return Ok(());
        }
        let Rec { token, state, idle_from, .. } = rec;
        match rec.absent_since {
            None => self.does(world, Op::Absent { token, state, idle_from }, clock)?,
            Some(since) if clock - since < APART && self.fault != Some(Fault::SecondSightingDropped) => return Ok(()),
            Some(since) => self.does(world, Op::Gone { token, since }, clock)?,
        };
        if world.state() == Some(State::Gone) {
            if world.there != There::Nothing {
                return Err(Breach(4, "gone, and it was only missed once"));
            }
            (world.owed, world.holder) = (false, None);
        }
        Ok(())
    }

    /// Were everybody to die now, the pass that reads the due index when the record is due ends what was begun.
    fn recovers(&self, world: &World) -> Result<(), Breach> {
        let Some(rec) = world.rec.filter(|rec| rec.claim.is_some() || rec.state.is_middle()) else { return Ok(()) };
        let Some(due) = rec.due_at else { return Err(Breach(5, "a claim or a middle state that is in no index")) };
        // A wish makes it due sooner; it stays so until the claim has ended.
        let free = rec.claim.map_or(due, |claim| claim.until + SKEW);
        if due > free.max(world.now + SKEW) {
            return Err(Breach(5, "nobody looks when the claim has ended"));
        }
        let due = free.max(due);
        let take = Op::TakeOver { token: rec.token, owner: 1, until: due + CLAIM };
        let (taken, answer) = apply(self.fault, Some(&rec), &take, due);
        if answer != Answer::Written {
            return Err(Breach(5, "it is due, and whoever looks then can't take it over"));
        }
        let taken = taken.unwrap_or(rec);
        let op = Op::Abandon { token: taken.token, back_to: State::Suspended, failed: true, due: due + 1 };
        match apply(self.fault, Some(&taken), &op, due) {
            (Some(ended), _) if ended.claim.is_none() && ended.due_at.is_some() => Ok(()),
            _ => Err(Breach(5, "what an expired claim left can't be ended")),
        }
    }
}

/// What must be so whenever a record changes.
fn moved(old: &Rec, new: &Rec, op: &Op, clock: Tick) -> Result<(), Breach> {
    let enters = new.state == State::Running && old.state != State::Running;
    let begins = matches!(op, Op::Register { .. });
    let heard = matches!(op, Op::Beat { .. } | Op::Observe { .. } | Op::Probed { .. });
    if new.idle_from < old.idle_from && (begins || !enters) {
        return Err(Breach(7, "the clock of its activity went backwards"));
    }
    if new.idle_from != old.idle_from && !enters && !begins && !heard {
        return Err(Breach(7, "an act of ours was taken for activity"));
    }
    if enters && new.idle_from < clock {
        return Err(Breach(1, "it runs again, and is idle since before"));
    }
    if new.token < old.token {
        return Err(Breach(2, "the fence went backwards"));
    }
    if new.due_at.is_none() && new.state != State::Gone {
        return Err(Breach(5, "it is in no index"));
    }
    Ok(())
}

impl World {
    /// What must be so when a claim is won.
    fn won(&mut self, pass: usize, act: Act, cutoff: Tick) -> Result<(), Breach> {
        let clock = self.clock(pass);
        let live = |other: usize| match self.passes[other].doing {
            Doing::Holds { until, .. } => self.holder == Some(other) && self.clock(other) < until,
            _ => false,
        };
        if live(1 - pass) {
            return Err(Breach(2, "two passes have a right to act at once"));
        }
        self.holder = Some(pass);
        if matches!(act, Act::Recover(_) | Act::Wake) {
            self.noticed = self.noticed.filter(|_| act != Act::Wake);
            return Ok(());
        }
        if act == Act::Suspend && self.acknowledged > cutoff {
            return Err(Breach(1, "claimed over activity that was acknowledged"));
        }
        if self.owed {
            return Err(Breach(1, "claimed, though somebody waits for it to come back"));
        }
        if self.held {
            return Err(Breach(6, "claimed under a hold"));
        }
        if act == Act::Delete && self.noticed.is_none_or(|at| at > clock - NOTICE) {
            return Err(Breach(3, "to be deleted without notice, or after it was taken back"));
        }
        self.passes[pass].since_paused += u8::from(self.paused);
        if self.passes[pass].since_paused > 1 {
            return Err(Breach(8, "a pass goes on claiming after the switch was pulled"));
        }
        Ok(())
    }

    /// What must be so at every moment.
    fn stands(&self) -> Result<(), Breach> {
        let Some(rec) = self.rec.filter(|_| self.owed) else { return Ok(()) };
        if rec.wanted_at.is_none() {
            return Err(Breach(1, "a heartbeat was refused, and nothing remembers it"));
        }
        let waits = rec.claim.is_none() && rec.attempts == 0 && rec.due_at.is_none_or(|due| due > self.now + SKEW);
        if waits {
            return Err(Breach(1, "somebody waits for it, and nobody will look soon"));
        }
        Ok(())
    }
}

/// Somebody wants what rests, and tells a pass so.
fn calls(world: &mut World, pass: usize) {
    if let Some(rec) = world.rec.filter(|rec| rec.state == State::Suspended) {
        let Rec { epoch, token, .. } = rec;
        world.passes[pass].doing = Doing::Wants { act: Act::Wake, epoch, token, cutoff: world.now };
    }
}

/// A call of the provider, under a claim.
fn acts(world: &mut World, pass: usize) -> Result<(), Breach> {
    let clock = world.clock(pass);
    let Doing::Holds { act, until, cutoff, .. } = world.passes[pass].doing else { return Ok(()) };
    if clock >= until {
        // What can't end before the claim does is not begun.
        world.passes[pass].doing = Doing::Nothing;
        return Ok(());
    }
    if world.holder != Some(pass) {
        return Err(Breach(2, "it acts under a claim that is another's by now"));
    }
    match act {
        Act::Suspend if world.acknowledged > cutoff => return Err(Breach(1, "a live runtime was suspended")),
        Act::Suspend | Act::Wake if world.there == There::Nothing => {}
        Act::Suspend => world.there = There::Rests,
        Act::Delete => world.there = There::Nothing,
        Act::Wake => world.there = There::Runs,
        Act::Notify => world.noticed = Some(clock),
        Act::Recover(_) => {}
    }
    if let Doing::Holds { acted, .. } = &mut world.passes[pass].doing {
        *acted = true;
    }
    Ok(())
}
