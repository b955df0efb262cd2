//! Absence: twice, apart in time, and never against a claim. Notices.

use lifecycle::{Record, RuntimeId, Time, Token};

use crate::{Completed, Ledger, LedgerError, TOMBSTONE_KEEP, conditions, store::Written};

impl Ledger {
    /// Marks the first sighting of an absence, if the runtime is still what was read. `false`: it is not, it
    /// is claimed, or the absence is known already.
    pub async fn absent(&self, id: &RuntimeId, record: &Record, now: Time) -> Result<bool, LedgerError> {
        let values = self
            .values(id, now)
            .number("token", record.token)
            .text("state", record.state.as_str())
            .time("idle_from", record.idle_from);
        let written = self.write(id, conditions::ABSENT, &[], &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// Makes a tombstone of what was absent since `seen_absent_since` and is again, later. Not against a live
    /// claim, and not when it was seen in between.
    pub async fn gone(
        &self,
        id: &RuntimeId,
        token: Token,
        seen_absent_since: Time,
        now: Time,
    ) -> Result<Completed, LedgerError> {
        let values = self
            .values(id, now)
            .number("token", token)
            .time("seen", seen_absent_since)
            .number("expires_at", now.plus(TOMBSTONE_KEEP).millis() / 1000);
        Ok(match self.write(id, conditions::GONE, &[], &values).await? {
            Written::Done(_) => Completed::Done { wanted: false },
            Written::Refused(_) => Completed::Fenced,
        })
    }

    /// Notice of the deletion was delivered. `false`: activity, a hold or a wake has cleared it since.
    pub async fn noticed(&self, id: &RuntimeId, token: Token, now: Time) -> Result<bool, LedgerError> {
        let values = self.values(id, now).number("token", token);
        let written = self.write(id, conditions::NOTICED, &[], &values).await?;
        Ok(matches!(written, Written::Done(_)))
    }
}
