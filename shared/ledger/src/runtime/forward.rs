//! Observations and probes: read, step, write if the record is still as it was read.

use lifecycle::{Incarnation, Observation, Record, RuntimeId, Signal, State, Time};

use crate::{
    Arming, Ledger, LedgerError, Lost, Noted, ProbeSeen, ROUNDS, attribute,
    conditions::{self, Row},
    expression::Values,
    item::{self, VERSION},
    runtime::{finish, observe},
    store::{Written, contended},
};

impl Ledger {
    /// Takes an observation into the record, which it makes where there is none. Forward only; a record on
    /// whose middle state somebody has a claim is left to that. Writes nothing when nothing changed.
    pub async fn observe(&self, seen: &Observation, arming: Arming, now: Time) -> Result<Record, LedgerError> {
        let known = self.get(&seen.id).await?;
        self.observe_known(known, seen, |_| arming, now).await
    }

    /// The same for a record that the caller has read already (`None`: it read that there is none). `arm`
    /// tells from the record as it will be written when it comes due.
    pub async fn observe_known(
        &self,
        known: Option<Record>,
        seen: &Observation,
        arm: impl Fn(&Record) -> Arming,
        now: Time,
    ) -> Result<Record, LedgerError> {
        item::check_run(&seen.id, &seen.incarnation)?;
        let mut known = known;
        for _ in 0..ROUNDS {
            let next = match &known {
                None => observe::fresh(seen, now),
                Some(old) => observe::step(old, seen, self.options.skew, now),
            };
            let arming = self.stored(&seen.id, &arm(&next), now);
            let next = observe::armed(next, known.as_ref(), &arming);
            let written = match &known {
                None => self.create(&seen.id, &next).await?,
                Some(old) => self.forward(&seen.id, old, &next, now).await?,
            };
            match written {
                Written::Done(record) => return Ok(record),
                Written::Refused(Some(now_there)) if superseded(known.as_ref(), &now_there) => return Ok(now_there),
                Written::Refused(now_there) => known = now_there,
            }
        }
        Err(contended("observe", &seen.id))
    }

    /// Takes into the record what a probe of this run told. Forward only; an unread probe tells nothing.
    pub async fn probed(
        &self,
        id: &RuntimeId,
        run: &Incarnation,
        told: ProbeSeen,
        now: Time,
    ) -> Result<Noted, LedgerError> {
        let mut known = self.get(id).await?;
        for _ in 0..ROUNDS {
            let Some(old) = known else { return Ok(Noted::Lost(Lost::NoRecord)) };
            if let Some(lost) = not_this(&old, run) {
                return Ok(Noted::Lost(lost));
            }
            let mut next = old.clone();
            if let Some(at) = told.last_active.filter(|at| at.millis() >= 1) {
                observe::active(&mut next, at.min(now), Signal::Probe);
            }
            next.busy_until = next.busy_until.max(observe::busy(told.busy, now));
            match self.forward(id, &old, &next, now).await? {
                Written::Done(record) => return Ok(Noted::Record(Box::new(record))),
                Written::Refused(now_there) => known = now_there,
            }
        }
        Err(contended("probe", id))
    }

    /// Writes what differs, if the record is still what it was read as. Nothing differs: nothing is written.
    async fn forward(
        &self,
        id: &RuntimeId,
        old: &Record,
        next: &Record,
        now: Time,
    ) -> Result<Written<Record>, LedgerError> {
        let Some((update, values)) = self.difference(id, old, next, now) else {
            return Ok(Written::Done(old.clone()));
        };
        let run = if old.incarnation.is_some() { conditions::SAME_RUN } else { conditions::NO_RUN };
        let demands = [
            run,
            conditions::SAME_BUSY[usize::from(old.busy_until.is_some())],
            conditions::SAME_WANTED[usize::from(old.wanted_at.is_some())],
        ];
        let values = values
            .time("known_busy", old.busy_until.unwrap_or(now))
            .time("known_wanted", old.wanted_at.unwrap_or(now))
            .number("token", old.token)
            .number("epoch", old.epoch)
            .text("state", old.state.as_str())
            .time("idle_from", old.idle_from)
            .text("incarnation", old.incarnation.as_ref().map_or("", |run| run.as_str()));
        let row = Row { operation: "observe", condition: conditions::FORWARD, update: &update };
        self.write(id, row, &demands, &values).await
    }

    /// The update from one record to another.
    fn difference(&self, id: &RuntimeId, old: &Record, next: &Record, now: Time) -> Option<(String, Values)> {
        let (before, after) = (item::attributes(old), item::attributes(next));
        if before == after && old.v == VERSION {
            return None;
        }
        let mut values = self.values(id, now);
        let (mut set, mut remove) = (String::new(), String::new());
        for (word, value) in conditions::FORWARDED {
            let name = attribute::stored(word);
            match (before.get(name), after.get(name)) {
                (before, after) if before == after => {}
                (_, Some(after)) => {
                    values = values.with(value, after.clone());
                    set = format!("{set}, #{word} = :{value}");
                }
                (_, None) => remove = format!("{remove}, #{word}"),
            }
        }
        if old.state == State::Gone && next.state != State::Gone {
            remove = format!("{remove}, #expires_at");
        }
        let set = format!("SET #v = :v, #due_shard = :due_shard{set}");
        Some((finish::spliced(&set, "", &remove), values))
    }
}

/// Somebody claimed or registered it since it was read: what was seen is of before that, and would undo it.
fn superseded(known: Option<&Record>, now_there: &Record) -> bool {
    known.is_some_and(|known| known.token != now_there.token)
}

/// Why what was probed is not what the record is about.
fn not_this(old: &Record, run: &Incarnation) -> Option<Lost> {
    match old.state {
        State::Gone => Some(Lost::Gone),
        State::Running if old.incarnation.as_ref() == Some(run) => None,
        State::Running => Some(Lost::Moved { incarnation: old.incarnation.clone() }),
        state => Some(Lost::State { state }),
    }
}
