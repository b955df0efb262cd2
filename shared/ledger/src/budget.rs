//! Budgets: how many acts of a kind a backend's window has used, counted before each claim.

use lifecycle::{BackendName, Time, policy::BudgetKind};

use crate::{
    Ledger, LedgerError, Taken,
    attribute::Item,
    expression::Values,
    item::Reader,
    store::{RECORD, Written},
};

/// One window of one budget.
fn key(backend: &BackendName, kind: BudgetKind, window: i64) -> String {
    format!("budget/{backend}/{kind}/{window}")
}

/// What is used; what can't be read, a count below zero and a window without a count are spent.
fn used(found: &Item) -> u64 {
    Reader::new("budget", found).number("used").ok().flatten().unwrap_or(u64::MAX)
}

impl Ledger {
    /// Takes one of `limit` from a window, over all processes. It is not given back: an act that fails has
    /// used it too. The window's count is removed some time after `expires`.
    pub async fn take_budget(
        &self,
        backend: &BackendName,
        kind: BudgetKind,
        window: i64,
        limit: u64,
        expires: Time,
    ) -> Result<Taken, LedgerError> {
        if limit == 0 {
            return Ok(Taken::Spent { used: self.used_budget(backend, kind, window).await? });
        }
        let values = Values::default()
            .number("one", 1)
            .number("zero", 0)
            .number("limit", limit)
            .number("expires", expires.millis().div_euclid(1000).saturating_add(1));
        let condition = "attribute_not_exists(#pk) OR (#used >= :zero AND #used < :limit)";
        let update = "SET #expires_at = :expires ADD #used :one";
        let key = key(backend, kind, window);
        Ok(match self.update("budget", (&key, RECORD), Some(condition), update, &values).await? {
            Written::Done(new) => Taken::Taken { used: used(&new) },
            Written::Refused(old) => Taken::Spent { used: old.as_ref().map_or(u64::MAX, used) },
        })
    }

    /// How many a window has used. A count that can't be read: `u64::MAX`.
    pub async fn used_budget(&self, backend: &BackendName, kind: BudgetKind, window: i64) -> Result<u64, LedgerError> {
        let found = self.item(&key(backend, kind, window), RECORD, "budget").await?;
        Ok(found.as_ref().map_or(0, used))
    }
}
