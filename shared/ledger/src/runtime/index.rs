//! The due index: what to look at, when to look again, and what has fallen out of it.

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::{BackendName, RuntimeId, State, Time, Token};

use crate::{
    Arming, Cursor, Due, Healed, Ledger, LedgerError, Rearmed,
    attribute::{Item, stored},
    conditions::{self, Row},
    error::asked,
    expression::{Values, names},
    item::{self, Reader},
    read::ScanSlice,
    runtime::finish,
    store::{RECORD, Written},
    tables::DUE_INDEX,
};

impl Ledger {
    /// What of a backend is due, soonest first, over all partitions of its index. The index may be behind the
    /// records for a moment; what is done next is conditional, so nothing rests on it.
    pub async fn due(&self, backend: &BackendName, now: Time, limit: usize) -> Result<Due, LedgerError> {
        let mut due = Due::default();
        for shard in 0..self.options.shards {
            self.due_in(&item::shard_name(backend, shard), now, limit, &mut due).await?;
        }
        due.ids.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        due.more |= due.ids.len() > limit;
        due.ids.truncate(limit);
        Ok(due)
    }

    /// The first `limit` of one partition.
    async fn due_in(&self, shard: &str, now: Time, limit: usize, due: &mut Due) -> Result<(), LedgerError> {
        let condition = "#due_shard = :shard AND #due_at <= :now";
        let values = Values::default().text("shard", shard).time("now", now);
        let (mut start, mut left) = (None, limit);
        loop {
            let page = i32::try_from(left.clamp(1, 1_000)).unwrap_or(1_000);
            let request = self
                .client
                .query()
                .table_name(&self.options.tables.main)
                .index_name(DUE_INDEX)
                .key_condition_expression(condition)
                .set_expression_attribute_names(names(&[condition]))
                .set_expression_attribute_values(values.used(&[condition]))
                .limit(page)
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| asked("due", &self.options.tables.main, &error))?;
            for found in page.items.unwrap_or_default() {
                left = left.saturating_sub(1);
                push_due(&found, due)?;
            }
            start = page.last_evaluated_key;
            match start {
                None => return Ok(()),
                Some(_) if left == 0 => {
                    due.more = true;
                    return Ok(());
                }
                Some(_) => {}
            }
        }
    }

    /// Puts a record that was active since it was armed back to when it is due next, without a read and
    /// without a policy. What has a hard deadline up to `horizon`, does not run or is claimed needs a look.
    pub async fn rearm(&self, id: &RuntimeId, seen_due: Time, horizon: Time) -> Result<Rearmed, LedgerError> {
        let values = self.values(id, seen_due).time("seen_due", seen_due).time("horizon", horizon);
        Ok(match self.write(id, conditions::REARM, &[], &values).await? {
            Written::Done(record) => match record.due_at {
                Some(due_at) => Rearmed::Until(due_at),
                None => Rearmed::Look(Some(Box::new(record))),
            },
            Written::Refused(old) => Rearmed::Look(old.map(Box::new)),
        })
    }

    /// Puts a record that was looked at to its next time, if nobody claimed or registered it since, and, with
    /// `seen_due`, if nothing made it due meanwhile.
    pub async fn reschedule(
        &self,
        id: &RuntimeId,
        token: Token,
        seen_due: Option<Time>,
        arming: Arming,
        now: Time,
    ) -> Result<bool, LedgerError> {
        let (set, remove) = finish::armed(&arming);
        let values = self.armed_values(self.values(id, now), id, &arming, now);
        let values = values.number("token", token).time("seen_due", seen_due.unwrap_or_default());
        let row = conditions::RESCHEDULE;
        let update = finish::spliced(row.update, set, remove);
        let demands: &[&str] = if seen_due.is_some() { &[conditions::SEEN_DUE] } else { &[] };
        let written = self.write(id, Row { update: &update, ..row }, demands, &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Looks through a page of a backend's records for such as are missing from the due index, and makes them
    /// due. The writes above never take one out, so each is a fault somewhere; a record of a newer format is
    /// left alone.
    pub async fn heal(&self, backend: &BackendName, page: Option<Cursor>, now: Time) -> Result<Healed, LedgerError> {
        let words = ["state", "v", "due_shard", "due_at"];
        let prefix = item::prefix(backend);
        let slice = ScanSlice { operation: "heal", prefix: &prefix, words: &words };
        let (items, next) = self.scan(&slice, page).await?;
        let mut healed = Healed { next, ..Healed::default() };
        for found in items {
            healed.scanned += 1;
            let Some(id) = missing(&found) else { continue };
            let row = conditions::HEAL;
            let key = item::key(&id);
            let values = self.values(&id, now);
            let written = self.update(row.operation, (&key, RECORD), Some(row.condition), row.update, &values).await?;
            if matches!(written, Written::Done(_)) {
                healed.healed.push(id);
            }
        }
        Ok(healed)
    }
}

fn push_due(found: &Item, due: &mut Due) -> Result<(), LedgerError> {
    let read = Reader::new("the due index", found);
    let key = read.text("pk")?.unwrap_or_default();
    match (item::runtime(key), read.time("due_at")?) {
        (Some(id), Some(at)) => due.ids.push((id, at)),
        _ => due.unreadable.push(key.to_owned()),
    }
    Ok(())
}

/// The runtime of an item that is in no index and ought to be.
fn missing(found: &Item) -> Option<RuntimeId> {
    let text = |word: &str| found.get(stored(word)).and_then(|value| value.as_s().ok());
    let indexed = text("due_shard").is_some() && matches!(found.get(stored("due_at")), Some(AttributeValue::N(_)));
    if indexed || text("state").is_some_and(|state| state == State::Gone.as_str()) {
        return None;
    }
    item::runtime(text("pk")?)
}
