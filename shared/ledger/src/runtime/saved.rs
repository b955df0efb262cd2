//! What of a runtime's work is kept: told by the runtime, and held to the record of its workspace.

use std::time::Duration;

use lifecycle::{RuntimeId, State, Time, record::Epoch};
use workspace::key::Name;

use crate::{
    Ledger, LedgerError, ROUNDS, Saved, conditions,
    expression::Values,
    item,
    store::{DETAIL, Written, contended},
};

/// A save as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// Where it is.
    pub workspace: Name,
    /// In this generation, or a later one.
    pub generation: u64,
    /// How long before it was told its scan had begun, by the clock of whoever scanned: only how long, so that it need
    /// not agree with ours about the time.
    pub age: Duration,
}

impl Ledger {
    /// Notes until when a runtime's work is kept. 1 write unit, and one for people.
    ///
    /// It is kept until its scan began, less the skew, which the request may have been on its way, and less `coalesce`,
    /// within which activity need not have been told: what is noted is never later than what is kept.
    pub async fn saved(
        &self,
        id: &RuntimeId,
        epoch: Option<Epoch>,
        save: &Save,
        now: Time,
    ) -> Result<Saved, LedgerError> {
        let generation = self.generation(&save.workspace).await?;
        if generation.is_none_or(|generation| generation < save.generation) {
            return Ok(Saved::NotThere { generation });
        }
        let (coalesce, skew) = (self.options.coalesce, self.options.skew);
        let as_of = now.minus(save.age).minus(coalesce).minus(skew);
        let demands: Vec<_> = epoch.map(|_| conditions::SAME_EPOCH).into_iter().collect();
        let values = self.values(id, now).number("epoch", epoch.unwrap_or_default()).time("saved_as_of", as_of);
        for _ in 0..ROUNDS {
            let old = match self.write(id, conditions::SAVED, &demands, &values).await? {
                Written::Done(_) => {
                    self.tell_save(id, save, as_of).await?;
                    return Ok(Saved::Noted { as_of });
                }
                Written::Refused(None) => return Ok(Saved::Unknown),
                Written::Refused(Some(old)) => old,
            };
            if old.state == State::Gone {
                return Ok(Saved::Gone);
            }
            if epoch.is_some_and(|epoch| epoch != old.epoch) {
                return Ok(Saved::Superseded { epoch: old.epoch });
            }
            if let Some(as_of) = old.saved_as_of.filter(|known| *known >= as_of) {
                return Ok(Saved::Noted { as_of });
            }
        }
        Err(contended("saved", id))
    }

    /// Where the work is, for people, unless a newer save was told meanwhile.
    async fn tell_save(&self, id: &RuntimeId, save: &Save, as_of: Time) -> Result<(), LedgerError> {
        let place = format!("workspace {}, generation {}", save.workspace, save.generation);
        let values = Values::default().text("saved_in", place).time("saved_as_of", as_of);
        let newest = "attribute_not_exists(#saved_as_of) OR #saved_as_of <= :saved_as_of";
        let update = "SET #saved_in = :saved_in, #saved_as_of = :saved_as_of";
        let key = item::key(id);
        self.update("saved", (&key, DETAIL), Some(newest), update, &values).await.map(drop)
    }
}
