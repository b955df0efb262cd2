//! A backend's whole listing, and the ledger's records of it. Partial is said, never taken as empty.

use std::{collections::BTreeMap, collections::HashSet, sync::Arc};

use backend::PageToken;
use ledger::LedgerError;
use lifecycle::{Observation, Record, RuntimeId, Time, snapshot::Listing};

use crate::{context::Context, watch::Step};

/// How many unreadable rows are named in a report; the rest are counted.
const MOST_NAMED: usize = 5;

/// What a listing showed.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) listing: Listing,
    /// It came to its end, even if some rows on the way could not be read.
    pub(crate) ended: bool,
    pub(crate) rows: Vec<Observation>,
}

/// Lists to the end, or says why not. A token that comes twice would never end.
pub(crate) async fn list(cx: Context<'_>) -> Listed {
    let at = cx.now();
    let mut rows: Vec<Observation> = Vec::new();
    let mut unreadable: Vec<Arc<str>> = Vec::new();
    let mut tokens: HashSet<PageToken> = HashSet::new();
    let mut next: Option<PageToken> = None;
    let error = loop {
        if tokens.len() >= cx.limits().max_pages {
            break Some(format!("the listing did not end within {} pages", cx.limits().max_pages));
        }
        if let Some(why) = cx.out_of_time() {
            break Some(format!("the listing was not finished: {why}"));
        }
        let page = match cx.calls().page(next.as_ref()).await {
            Ok(page) => page,
            Err(error) => break Some(format!("the listing failed after {} runtimes: {error}", rows.len())),
        };
        rows.extend(page.seen);
        unreadable.extend(page.unreadable);
        cx.pass.watch.step(Step::Listed { backend: cx.name(), runtimes: rows.len() });
        match page.next {
            None => break None,
            Some(token) if !tokens.insert(token.clone()) => {
                break Some(format!("the listing names page `{}` twice, so it would never end", token.0));
            }
            Some(token) => next = Some(token),
        }
    };
    let ended = error.is_none();
    let error = error.or_else(|| named(&unreadable));
    Listed { listing: listing(at, error), ended, rows }
}

fn listing(at: Time, error: Option<String>) -> Listing {
    Listing { complete: error.is_none(), at, error: error.map(Into::into) }
}

fn named(unreadable: &[Arc<str>]) -> Option<String> {
    let named = unreadable.iter().take(MOST_NAMED).map(|row| &**row).collect::<Vec<_>>().join("; ");
    let more = unreadable.len().saturating_sub(MOST_NAMED);
    match (unreadable.len(), more) {
        (0, _) => None,
        (_, 0) => Some(format!("some of it can't be read: {named}")),
        (_, more) => Some(format!("some of it can't be read: {named}; and {more} more")),
    }
}

/// The ledger's records of a backend.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) records: BTreeMap<RuntimeId, Record>,
    /// Those that can't be read: they are there, so their runtimes are kept.
    pub(crate) unreadable: Vec<(RuntimeId, Arc<str>)>,
    /// What else went wrong.
    pub(crate) errors: Vec<Arc<str>>,
    /// Whether all of them were read.
    pub(crate) complete: bool,
}

/// Reads every record of the backend: one page of a scan costs less than a read each.
pub(crate) async fn known(cx: Context<'_>) -> Result<Known, LedgerError> {
    let mut known = Known::default();
    let mut cursor = None;
    for _ in 0..cx.limits().max_pages {
        let page = cx.ledger().records(cx.name(), cursor.take()).await?;
        known.records.extend(page.records);
        for (key, error) in page.unreadable {
            match key.strip_prefix("runtime/").unwrap_or(&key).parse::<RuntimeId>() {
                Ok(id) => known.unreadable.push((id, error.to_string().into())),
                Err(_) => known.errors.push(error.to_string().into()),
            }
        }
        match page.next {
            None => {
                known.complete = true;
                return Ok(known);
            }
            Some(next) => cursor = Some(next),
        }
    }
    known.errors.push(format!("the records did not end within {} pages", cx.limits().max_pages).into());
    Ok(known)
}

/// Rows of what can be judged: whose record can't be read is kept, whatever the backend shows.
pub(crate) fn readable(rows: Vec<Observation>, known: &Known) -> Vec<Observation> {
    let unreadable: HashSet<&RuntimeId> = known.unreadable.iter().map(|(id, _)| id).collect();
    rows.into_iter().filter(|row| !unreadable.contains(&row.id)).collect()
}
