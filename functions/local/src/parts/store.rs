//! The ledger on this machine: DynamoDB in this process, in the data folder.

use std::path::Path;

use embedded::{Embedded, EmbeddedError};
use ledger::{Ledger, Options};
use lifecycle::Policy;

use super::ledger_fault;
use crate::answer::Fault;

/// The records as they are now, in memory: what is written to them goes nowhere, and nothing is made on disk.
pub(super) async fn looking(data: &Path, policy: &Policy) -> Result<Ledger, Fault> {
    let copy = embedded::open_existing(data).map_err(|error| fault(&error))?;
    let store = match copy {
        Some(copy) => copy,
        None => embedded::memory().map_err(|error| fault(&error))?,
    };
    ledger(&store, policy).await
}

/// The records themselves. Other processes may use them at the same time.
pub(super) async fn acting(data: &Path, policy: &Policy) -> Result<Ledger, Fault> {
    opened(data, policy).await.map(|(_, ledger)| ledger)
}

/// The same, with the store that they are in.
pub(super) async fn opened(data: &Path, policy: &Policy) -> Result<(Embedded, Ledger), Fault> {
    let store = embedded::open(data).map_err(|error| fault(&error))?;
    let ledger = ledger(&store, policy).await?;
    Ok((store, ledger))
}

async fn ledger(store: &Embedded, policy: &Policy) -> Result<Ledger, Fault> {
    let options = Options { coalesce: policy.coalesce, skew: policy.skew, ..Options::default() };
    let ledger = Ledger::new(store.client(), options);
    ledger.create_tables().await.map_err(ledger_fault)?;
    Ok(ledger)
}

/// The message says what to do; the system's own words follow it.
fn fault(error: &EmbeddedError) -> Fault {
    let source = std::error::Error::source(error).map_or(String::new(), |source| format!(": {source}"));
    Fault::failed("data_folder", format!("{error}{source}"))
}
