//! Reading records: one, many, a page.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use lifecycle::{BackendName, Record, RuntimeId};

use crate::{
    Cursor, Detail, Ledger, LedgerError, Many, ROUNDS, RecordPage,
    attribute::Item,
    error::asked,
    expression::{Values, names},
    item::{self, Reader},
    store::{DETAIL, RECORD},
};

/// The most that one batch may ask for.
const BATCH: usize = 100;

/// How many items one page of a scan looks at.
const SCAN_PAGE: i32 = 1_000;

/// Which part of the table a scan reads.
pub(crate) struct ScanSlice<'a> {
    pub(crate) operation: &'static str,
    /// What their partition keys begin with.
    pub(crate) prefix: &'a str,
    /// The words of the attributes that it returns; none: all.
    pub(crate) words: &'a [&'static str],
}

impl Ledger {
    /// One record, as every acknowledged write has left it.
    pub async fn get(&self, id: &RuntimeId) -> Result<Option<Record>, LedgerError> {
        let found = self.item(&item::key(id), RECORD, "get").await?;
        found.map(|found| item::record(id, &found)).transpose()
    }

    /// One item, strongly consistent.
    pub(crate) async fn item(&self, pk: &str, sk: &str, operation: &'static str) -> Result<Option<Item>, LedgerError> {
        let table = &self.options.tables.main;
        let request = self.client.get_item().table_name(table).set_key(Some(item::page_key(pk, sk)));
        let found = request.consistent_read(true).send().await;
        Ok(found.map_err(|error| asked(operation, table, &error))?.item)
    }

    /// Many records, as every acknowledged write has left them. Those without one are left out; one that
    /// can't be read takes none of the others along.
    pub async fn get_many(&self, ids: &[RuntimeId]) -> Result<Many, LedgerError> {
        let mut many = Many::default();
        let by_key: HashMap<String, &RuntimeId> = ids.iter().map(|id| (item::key(id), id)).collect();
        let mut keys: Vec<&String> = by_key.keys().collect();
        keys.sort();
        for batch in keys.chunks(BATCH) {
            for found in self.batch("get many", batch).await? {
                let key = found.get("pk").and_then(|key| key.as_s().ok());
                let Some(id) = key.and_then(|key| by_key.get(key)) else { continue };
                match item::record(id, &found) {
                    Ok(record) => drop(many.records.insert((*id).clone(), record)),
                    Err(error) => many.unreadable.push(((*id).clone(), error)),
                }
            }
        }
        many.unreadable.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(many)
    }

    /// One batch. Keys that the store leaves unprocessed are asked for again as long as there are fewer each
    /// time; more waiting than that is for the next pass.
    pub(crate) async fn batch(&self, operation: &'static str, keys: &[&String]) -> Result<Vec<Item>, LedgerError> {
        let table = &self.options.tables.main;
        let mut left: Vec<Item> = keys.iter().map(|key| item::page_key(key, RECORD)).collect();
        let mut found = Vec::with_capacity(left.len());
        for _ in 0..ROUNDS {
            let asked_for = left.len();
            let request = KeysAndAttributes::builder().set_keys(Some(left)).consistent_read(true).build();
            let request = request.map_err(|error| LedgerError::Request { operation, why: error.to_string() })?;
            let answer = self.client.batch_get_item().request_items(table, request).send().await;
            let answer = answer.map_err(|error| asked(operation, table, &error))?;
            found.extend(answer.responses.unwrap_or_default().remove(table).unwrap_or_default());
            left = answer.unprocessed_keys.unwrap_or_default().remove(table).map(|keys| keys.keys).unwrap_or_default();
            if left.is_empty() {
                return Ok(found);
            }
            if left.len() >= asked_for {
                break;
            }
        }
        Err(LedgerError::Throttled { operation })
    }

    /// What people want to know of a runtime. What can't be read of it is left out: it decides nothing.
    pub async fn detail(&self, id: &RuntimeId) -> Result<Option<Detail>, LedgerError> {
        let Some(found) = self.item(&item::key(id), DETAIL, "detail").await? else { return Ok(None) };
        let name = id.to_string();
        let read = Reader::new(&name, &found);
        let text = |word: &str| read.text(word).ok().flatten().map(str::to_owned);
        let labels = found.get("labels").and_then(|labels| labels.as_m().ok());
        let label = |(key, value): (&String, &AttributeValue)| Some((key.clone(), value.as_s().ok()?.clone()));
        Ok(Some(Detail {
            labels: labels.into_iter().flatten().filter_map(label).collect::<std::collections::BTreeMap<_, _>>().into(),
            action: text("action"),
            reason: text("reason"),
            evidence: text("evidence"),
            claim_token: read.number("claim_token").ok().flatten(),
            hold_why: text("hold_why"),
            hold_by: text("hold_by"),
            hold_at: read.time("hold_at").ok().flatten(),
            saved_in: text("saved_in"),
        }))
    }

    /// A page of a backend's records. It reads through the whole table, a page a call: for a listing by a
    /// person, for absences, not for a tick.
    pub async fn records(&self, backend: &BackendName, page: Option<Cursor>) -> Result<RecordPage, LedgerError> {
        let prefix = item::prefix(backend);
        let slice = ScanSlice { operation: "records", prefix: &prefix, words: &[] };
        let (items, next) = self.scan(&slice, page).await?;
        let mut records = RecordPage { next, ..RecordPage::default() };
        for found in items {
            let key = found.get("pk").and_then(|key| key.as_s().ok()).cloned().unwrap_or_default();
            let Some(id) = item::runtime(&key) else {
                let error = Reader::new(&key, &found).malformed("pk", "it is no runtime's key");
                records.unreadable.push((key, error));
                continue;
            };
            match item::record(&id, &found) {
                Ok(record) => records.records.push((id, record)),
                Err(error) => records.unreadable.push((id.to_string(), error)),
            }
        }
        Ok(records)
    }

    /// A page of a scan over records.
    pub(crate) async fn scan(
        &self,
        slice: &ScanSlice<'_>,
        page: Option<Cursor>,
    ) -> Result<(Vec<Item>, Option<Cursor>), LedgerError> {
        let table = &self.options.tables.main;
        let filter = "begins_with(#pk, :prefix) AND #sk = :record";
        let values = Values::default().text("prefix", slice.prefix).text("record", RECORD);
        let words: Vec<_> = ["pk"].iter().chain(slice.words).map(|word| format!("#{word}")).collect();
        let projection = (!slice.words.is_empty()).then(|| words.join(", "));
        let request = self
            .client
            .scan()
            .table_name(table)
            .filter_expression(filter)
            .set_expression_attribute_names(names(&[filter, projection.as_deref().unwrap_or_default()]))
            .set_expression_attribute_values(values.used(&[filter]))
            .set_projection_expression(projection)
            .consistent_read(true)
            .limit(SCAN_PAGE)
            .set_exclusive_start_key(page.map(|cursor| item::page_key(&cursor.pk, &cursor.sk)));
        let page = request.send().await.map_err(|error| asked(slice.operation, table, &error))?;
        let next = page.last_evaluated_key.and_then(|mut key| {
            let mut part = |name: &str| match key.remove(name) {
                Some(AttributeValue::S(part)) => Some(part),
                _ => None,
            };
            Some(Cursor { pk: part("pk")?, sk: part("sk")? })
        });
        Ok((page.items.unwrap_or_default(), next))
    }
}
