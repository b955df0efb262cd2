//! A new life of an id.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::{Record, RuntimeId, State, Time, observation::Labels};

use crate::{
    Arming, Ledger, LedgerError, Lost, ROUNDS, Registered, attribute,
    conditions::{self, Row},
    expression::Values,
    item,
    runtime::finish,
    store::{DETAIL, Written, contended},
};

impl Ledger {
    /// Begins a new life of an id: epoch + 1, token + 1, running and active now. A live claim refuses it, and so does
    /// what the record knows of a later time than `now`, which is when the sender saw it run.
    ///
    /// The run stays what was last observed, since only an observation knows it, and so does since when it runs, where its
    /// record says that it does; a hold goes on holding.
    pub async fn register(
        &self,
        id: &RuntimeId,
        labels: &Labels,
        arming: Arming,
        now: Time,
    ) -> Result<Registered, LedgerError> {
        let (set, remove) = finish::armed(&arming);
        let values = self.armed_values(self.values(id, now), id, &arming, now);
        let values = values.time("ahead", now.plus(self.options.skew));
        let mut row = conditions::REGISTER;
        for _ in 0..ROUNDS {
            let update = finish::spliced(row.update, set, remove);
            let refused = match self.write_as_it_is(id, Row { update: &update, ..row }, &values).await? {
                Written::Done(record) => {
                    self.label(id, labels, record.epoch).await?;
                    return Ok(Registered::Done(Box::new(record)));
                }
                Written::Refused(old) => old,
            };
            if let Some(refused) = refused.as_ref().and_then(|old| self.not_now(old, now)) {
                return Ok(refused);
            }
            row = over(refused.as_ref(), now);
        }
        Err(contended("register", id))
    }

    /// Why what stands there refuses a registration of `now`.
    fn not_now(&self, old: &Record, now: Time) -> Option<Registered> {
        if let Some(Lost::Claimed { until }) = self.claimed(old, now) {
            return Some(Registered::Claimed { until });
        }
        let skew = self.options.skew;
        let until = if old.state == State::Running {
            (old.idle_from > now.plus(skew)).then(|| old.idle_from.minus(skew))
        } else {
            let rests = (old.state_since > self.expired(now)).then(|| old.state_since.plus(skew));
            rests.max((old.idle_from > now).then_some(old.idle_from))
        };
        until.map(|until| Registered::Overtaken { until })
    }

    /// Keeps the labels of the newest registration.
    async fn label(&self, id: &RuntimeId, labels: &Labels, epoch: u64) -> Result<(), LedgerError> {
        let map: HashMap<_, _> = labels.iter().map(|(key, value)| (key.clone(), attribute::text(value))).collect();
        let values = Values::default().with("labels", AttributeValue::M(map)).number("epoch", epoch);
        let newest = "attribute_not_exists(#epoch) OR #epoch <= :epoch";
        let key = item::key(id);
        let update = "SET #epoch = :epoch, #labels = :labels";
        self.update("register", (&key, DETAIL), Some(newest), update, &values).await.map(drop)
    }
}

/// The row for a registration over this record.
fn over(old: Option<&Record>, now: Time) -> Row<'static> {
    match old.filter(|old| old.state == State::Running) {
        Some(old) if old.idle_from > now => conditions::REGISTER_BEHIND,
        Some(_) => conditions::REGISTER_RUNNING,
        None => conditions::REGISTER,
    }
}
