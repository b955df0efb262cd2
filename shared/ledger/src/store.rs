//! The one way in which an item is written: a condition, an update, and what stood there when it was refused.

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::{put_item::PutItemError, update_item::UpdateItemError},
    types::{ReturnValue, ReturnValuesOnConditionCheckFailure},
};
use lifecycle::{Record, RuntimeId, Signal, State, Time};

use crate::{
    Ledger, LedgerError, ROUNDS,
    attribute::{Item, text},
    conditions::{self, Row},
    error::asked,
    expression::{Values, names},
    item::{self, VERSION},
};

/// The sort key of what conditions test.
pub(crate) const RECORD: &str = "record";

/// The sort key of what people want to know.
pub(crate) const DETAIL: &str = "detail";

/// The answer to a conditional write.
#[derive(Debug)]
pub(crate) enum Written<T> {
    /// It was written, and is now so.
    Done(T),
    /// It was not. This stood there.
    Refused(Option<T>),
}

impl Ledger {
    /// Updates one item under a condition.
    pub(crate) async fn update(
        &self,
        operation: &'static str,
        key: (&str, &str),
        condition: Option<&str>,
        update: &str,
        values: &Values,
    ) -> Result<Written<Item>, LedgerError> {
        let table = &self.options.tables.main;
        let texts = [condition.unwrap_or_default(), update];
        let request = self
            .client
            .update_item()
            .table_name(table)
            .key("pk", text(key.0))
            .key("sk", text(key.1))
            .set_condition_expression(condition.map(str::to_owned))
            .update_expression(update)
            .set_expression_attribute_names(names(&texts))
            .set_expression_attribute_values(values.used(&texts))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(written) => Ok(Written::Done(written.attributes.unwrap_or_default())),
            Err(SdkError::ServiceError(error)) if error.err().is_conditional_check_failed_exception() => {
                let UpdateItemError::ConditionalCheckFailedException(refused) = error.into_err() else {
                    return Err(LedgerError::Unavailable { operation, why: "the refusal can't be read".to_owned() });
                };
                Ok(Written::Refused(refused.item))
            }
            Err(error) => Err(asked(operation, table, &error)),
        }
    }

    /// Puts a record where there is none.
    pub(crate) async fn create(&self, id: &RuntimeId, record: &Record) -> Result<Written<Record>, LedgerError> {
        let table = &self.options.tables.main;
        let mut attributes = item::attributes(record);
        attributes.extend(item::page_key(&item::key(id), RECORD));
        if record.due_at.is_some() {
            attributes.insert("due_shard".to_owned(), text(self.shard(id)));
        }
        let request = self
            .client
            .put_item()
            .table_name(table)
            .set_item(Some(attributes))
            .condition_expression(conditions::CREATE)
            .set_expression_attribute_names(names(&[conditions::CREATE]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(_) => Ok(Written::Done(record.clone())),
            Err(SdkError::ServiceError(error)) if error.err().is_conditional_check_failed_exception() => {
                let PutItemError::ConditionalCheckFailedException(refused) = error.into_err() else {
                    return Err(LedgerError::Unavailable { operation: "observe", why: "no item".to_owned() });
                };
                let old = refused.item.map(|item| item::record(id, &item)).transpose()?;
                Ok(Written::Refused(old))
            }
            Err(error) => Err(asked("observe", table, &error)),
        }
    }

    /// Writes a runtime's record under a row of the table and the demands beside it.
    ///
    /// A record of an older format is upgraded first. One of a newer format, or one that can't be read, is an
    /// error, and is left as it is.
    pub(crate) async fn write(
        &self,
        id: &RuntimeId,
        row: Row<'_>,
        demands: &[&str],
        values: &Values,
    ) -> Result<Written<Record>, LedgerError> {
        let condition = [&[conditions::FORMAT, row.condition], demands].concat().join(" AND ");
        self.write_as_it_is(id, Row { condition: &condition, ..row }, values).await
    }

    /// The same for a row that says itself what it demands of the format.
    pub(crate) async fn write_as_it_is(
        &self,
        id: &RuntimeId,
        row: Row<'_>,
        values: &Values,
    ) -> Result<Written<Record>, LedgerError> {
        let key = item::key(id);
        for _ in 0..ROUNDS {
            let key = (key.as_str(), RECORD);
            match self.update(row.operation, key, Some(row.condition), row.update, values).await? {
                Written::Done(new) => return Ok(Written::Done(item::record(id, &new)?)),
                Written::Refused(None) => return Ok(Written::Refused(None)),
                Written::Refused(Some(old)) => {
                    let old = item::record(id, &old)?;
                    if old.v == VERSION {
                        return Ok(Written::Refused(Some(old)));
                    }
                    self.upgrade(id, &old).await?;
                }
            }
        }
        Err(contended(row.operation, id))
    }

    /// Brings an older item up to this format, as it was read. A race is no matter: the caller looks again.
    async fn upgrade(&self, id: &RuntimeId, old: &Record) -> Result<(), LedgerError> {
        let row = conditions::UPGRADE;
        let values = self.values(id, old.idle_from).time("first_seen", old.first_seen);
        let key = item::key(id);
        self.update(row.operation, (&key, RECORD), Some(row.condition), row.update, &values).await.map(drop)
    }

    /// What most rows use.
    pub(crate) fn values(&self, id: &RuntimeId, now: Time) -> Values {
        let states = [State::Running, State::Suspended, State::Archived, State::Resuming, State::Gone];
        let values = Values::default()
            .number("v", VERSION)
            .number("zero", 0)
            .number("one", 1)
            .time("now", now)
            .time("expired", self.expired(now))
            .text("due_shard", self.shard(id))
            .text("heartbeat", Signal::Heartbeat.as_str());
        states.into_iter().fold(values, |values, state| values.text(state.as_str(), state.as_str()))
    }
}

/// Others wrote between each read and write of ours.
pub(crate) fn contended(operation: &'static str, id: &RuntimeId) -> LedgerError {
    LedgerError::Contended { operation, item: id.to_string(), rounds: ROUNDS }
}
