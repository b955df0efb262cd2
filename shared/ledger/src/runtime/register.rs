//! A new life of an id.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::{RuntimeId, Time, observation::Labels};

use crate::{
    Arming, Ledger, LedgerError, Lost, Registered, attribute,
    conditions::{self, Row},
    expression::Values,
    item,
    runtime::{claim::unexplained, finish},
    store::{DETAIL, Written},
};

impl Ledger {
    /// Begins a new life of an id: epoch + 1, token + 1, running and active now. A live claim refuses it.
    ///
    /// The run stays what was last observed, since only an observation knows it, and a hold goes on holding.
    pub async fn register(
        &self,
        id: &RuntimeId,
        labels: &Labels,
        arming: Arming,
        now: Time,
    ) -> Result<Registered, LedgerError> {
        let (set, remove) = finish::armed(&arming);
        let values = self.armed_values(self.values(id, now), id, &arming, now);
        let row = conditions::REGISTER;
        let update = finish::spliced(row.update, set, remove);
        match self.write_as_it_is(id, Row { update: &update, ..row }, &values).await? {
            Written::Done(record) => {
                self.label(id, labels, record.epoch).await?;
                Ok(Registered::Done(Box::new(record)))
            }
            Written::Refused(old) => match old.and_then(|old| self.claimed(&old, now)) {
                Some(Lost::Claimed { until }) => Ok(Registered::Claimed { until }),
                _ => Err(unexplained("register", id)),
            },
        }
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
