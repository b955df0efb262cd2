//! Holds: nobody touches it.

use lifecycle::{Observation, Record, RuntimeId, State, Time, record::Hold};

use crate::{
    Arming, HoldRequest, HoldSet, Ledger, LedgerError, ROUNDS, attribute, conditions,
    expression::Values,
    item,
    runtime::observe,
    store::{DETAIL, Written, contended},
};

impl Ledger {
    /// Holds a runtime; a record is made for one that has none, from `seen` where the caller has looked.
    ///
    /// Without a look the new record says running, first seen now, never seen active: neither active nor
    /// idle, until an observation knows better. A hold that is given while a claim is live is kept, and the
    /// claim, which was made before, may yet be finished: it is in the record that is returned.
    pub async fn hold(
        &self,
        id: &RuntimeId,
        hold: &HoldRequest<'_>,
        seen: Option<&Observation>,
        now: Time,
    ) -> Result<HoldSet, LedgerError> {
        let values = self.values(id, now).with("hold", item::hold(hold.hold));
        for _ in 0..ROUNDS {
            match self.write(id, conditions::HOLD, &[], &values).await? {
                Written::Done(record) => {
                    self.tell_hold(id, hold, now).await?;
                    return Ok(HoldSet::Held(Box::new(record)));
                }
                Written::Refused(Some(_)) => return Ok(HoldSet::Gone),
                Written::Refused(None) => {}
            }
            let record = self.held(id, hold.hold, seen, now);
            if let Written::Done(record) = self.create(id, &record).await? {
                self.tell_hold(id, hold, now).await?;
                return Ok(HoldSet::Held(Box::new(record)));
            }
        }
        Err(contended("hold", id))
    }

    fn held(&self, id: &RuntimeId, hold: Hold, seen: Option<&Observation>, now: Time) -> Record {
        let arming = self.stored(id, &Arming { due_at: Some(now), ..Arming::default() }, now);
        let record = seen.map_or_else(|| observe::unseen(now), |seen| observe::fresh(seen, now));
        let mut record = observe::armed(record, None, &arming);
        record.hold_until = Some(match hold {
            Hold::Unreadable => Hold::Forever,
            hold => hold,
        });
        record
    }

    async fn tell_hold(&self, id: &RuntimeId, hold: &HoldRequest<'_>, now: Time) -> Result<(), LedgerError> {
        let values = Values::default().text("why", hold.why).text("by", hold.by).time("now", now);
        let key = item::key(id);
        let update = "SET #hold_why = :why, #hold_by = :by, #hold_at = :now";
        self.update("hold", (&key, DETAIL), None, update, &values).await.map(drop)
    }

    /// Ends a hold, one that can't be read too. `false`: there was none.
    pub async fn release(&self, id: &RuntimeId, now: Time) -> Result<bool, LedgerError> {
        let released = self.write(id, conditions::RELEASE, &[], &self.values(id, now)).await?;
        if matches!(released, Written::Refused(None)) {
            return Ok(false);
        }
        let names = ["hold_why", "hold_by", "hold_at"].map(|word| format!("#{}", attribute::stored(word)));
        let update = format!("REMOVE {}", names.join(", "));
        let key = item::key(id);
        self.update("release", (&key, DETAIL), None, &update, &Values::default()).await?;
        Ok(matches!(released, Written::Done(Record { state, .. }) if state != State::Gone))
    }
}
