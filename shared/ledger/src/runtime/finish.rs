//! The end of a claim: complete, hand over, abandon. All under the token.

use lifecycle::{Record, RuntimeId, State, Time, Token};

use crate::{
    Arming, Completed, Completion, Ended, Failure, Ledger, LedgerError, TOMBSTONE_KEEP,
    conditions::{self, Row},
    expression::Values,
    item,
    store::Written,
};

impl Ledger {
    /// Ends a claim well. `Fenced`: it is no longer ours. A retry of an end that was written answers as it did.
    pub async fn complete(
        &self,
        id: &RuntimeId,
        token: Token,
        done: &Completion,
        now: Time,
    ) -> Result<Completed, LedgerError> {
        if let Ended::Resumed(run) = &done.ended {
            item::check_run(id, run)?;
        }
        let (set, remove) = armed(&done.arming);
        let saved = done.saved_as_of.map_or("", |_| ", #saved_as_of = :saved_as_of");
        let values = self
            .armed_values(self.values(id, now), id, &done.arming, now)
            .number("token", token)
            .time("saved_as_of", done.saved_as_of.unwrap_or_default());
        let (values, rows, into) = ending(done, values, now);
        let mut old = None;
        for row in rows {
            let update = match done.ended {
                Ended::Deleted => row.update.to_owned(),
                _ => spliced(row.update, &format!("{set}{saved}"), remove),
            };
            match self.write(id, Row { update: &update, ..row }, &[], &values).await? {
                Written::Done(new) => return Ok(Completed::Done { wanted: new.wanted_at.is_some() }),
                Written::Refused(record) => old = record,
            }
        }
        Ok(ended_before(old.as_ref(), token, into))
    }

    /// Gives a long act's claim back while the act goes on; the record is due again at `look_again`, and not before
    /// clocks can agree that the claim has ended.
    pub async fn hand_over(
        &self,
        id: &RuntimeId,
        token: Token,
        look_again: Time,
        now: Time,
    ) -> Result<Completed, LedgerError> {
        let due_at = look_again.max(now.plus(self.options.skew));
        let values = self.values(id, now).number("token", token).time("due_at", due_at);
        Ok(match self.write(id, conditions::HAND_OVER, &[], &values).await? {
            Written::Done(new) => Completed::Done { wanted: new.wanted_at.is_some() },
            Written::Refused(_) => Completed::Fenced,
        })
    }

    /// Gives a claim back, into the state that it had left. Back to running counts as an entry to running: a
    /// whole idle period passes before it is idle again. Back to rest, or out of a claim that had left no
    /// state, moves no clock: nothing was active.
    pub async fn abandon(
        &self,
        id: &RuntimeId,
        token: Token,
        back_to: State,
        failed: Failure,
        now: Time,
    ) -> Result<Completed, LedgerError> {
        let (due_at, attempts, mut rows) = match failed {
            Failure::No { due_at } => (due_at, "", vec![conditions::ABANDON, conditions::ABANDON_WANTED]),
            Failure::Yes { due_at } => {
                (due_at, ", #attempts = if_not_exists(#attempts, :zero) + :one", vec![conditions::ABANDON_FAILED])
            }
        };
        let to_running = spliced(conditions::ABANDON_TO_RUNNING.update, attempts, "");
        if back_to == State::Running {
            rows.insert(0, Row { update: &to_running, ..conditions::ABANDON_TO_RUNNING });
        }
        let values = self.values(id, now).number("token", token).text("to", back_to.as_str()).time("due_at", due_at);
        let mut old = None;
        for row in rows {
            match self.write(id, row, &[], &values).await? {
                Written::Done(new) => return Ok(Completed::Done { wanted: new.wanted_at.is_some() }),
                Written::Refused(record) => old = record,
            }
        }
        Ok(ended_before(old.as_ref(), token, Some(back_to)))
    }

    /// The values of an arming as it is stored.
    pub(crate) fn armed_values(&self, values: Values, id: &RuntimeId, arming: &Arming, now: Time) -> Values {
        let stored = self.stored(id, arming, now);
        values
            .number("idle_ms", stored.idle_ms.unwrap_or_default())
            .time("cap_at", stored.cap_at.unwrap_or_default())
            .time("due_at", stored.due_at.unwrap_or(now))
    }

    /// An arming as it is stored: later by the runtime's jitter, and always with a time to look again.
    pub(crate) fn stored(&self, id: &RuntimeId, arming: &Arming, now: Time) -> Arming {
        let due_at = arming.due_at.unwrap_or_else(|| now.plus(crate::RECHECK));
        Arming {
            idle_ms: arming.idle_ms.map(|millis| millis.saturating_add(self.jitter(id))),
            cap_at: arming.cap_at,
            due_at: Some(self.jittered(id, due_at)),
        }
    }
}

/// What is written of an arming: what to set, what to remove. `due_at` is in every row.
pub(crate) fn armed(arming: &Arming) -> (&'static str, &'static str) {
    match (arming.idle_ms, arming.cap_at) {
        (Some(_), Some(_)) => (", #idle_ms = :idle_ms, #cap_at = :cap_at", ""),
        (Some(_), None) => (", #idle_ms = :idle_ms", ", #cap_at"),
        (None, Some(_)) => (", #cap_at = :cap_at", ", #idle_ms"),
        (None, None) => ("", ", #idle_ms, #cap_at"),
    }
}

/// Puts more into the SET and the REMOVE of an update that has both.
pub(crate) fn spliced(update: &str, set: &str, remove: &str) -> String {
    let (sets, removes) = update.split_once(" REMOVE ").unwrap_or((update, ""));
    let removes = [removes, remove].concat();
    match removes.trim_start_matches(", ") {
        "" => format!("{sets}{set}"),
        removes => format!("{sets}{set} REMOVE {removes}"),
    }
}

/// The rows that can end a claim so, in the order to try them, and the state that each leads to.
fn ending(done: &Completion, values: Values, now: Time) -> (Values, Vec<Row<'static>>, Option<State>) {
    let settled = vec![conditions::SETTLED, conditions::SETTLED_WANTED];
    let to = |state: State| (values.clone().text("to", state.as_str()), settled, Some(state));
    match &done.ended {
        Ended::Suspended => to(State::Suspended),
        Ended::Archived => to(State::Archived),
        Ended::Stayed => (values, vec![conditions::STAYED, conditions::STAYED_WANTED], None),
        Ended::Noticed => (values, vec![conditions::NOTIFIED, conditions::STAYED, conditions::STAYED_WANTED], None),
        Ended::Shed(tier) => {
            (values.text("shed", tier.as_str()), vec![conditions::SHED, conditions::SHED_WANTED], None)
        }
        Ended::Resumed(run) => {
            (values.text("incarnation", run.as_str()), vec![conditions::RESUMED], Some(State::Running))
        }
        Ended::Deleted => {
            let expires = now.plus(TOMBSTONE_KEEP).millis() / 1000;
            (values.number("expires_at", expires), vec![conditions::DELETED], Some(State::Gone))
        }
    }
}

/// Our own end, answered again: the token is still ours, no claim is left, and the state is what we wrote.
fn ended_before(old: Option<&Record>, token: Token, into: Option<State>) -> Completed {
    match old {
        Some(old) if old.token == token && old.claim.is_none() && into.is_none_or(|state| state == old.state) => {
            Completed::Done { wanted: old.wanted_at.is_some() }
        }
        _ => Completed::Fenced,
    }
}
