//! What hosts and sidecars ask of workspaces, at home: the records of this machine, and the store that is configured.

use std::{path::Path, sync::Arc, time::Duration};

use axum::Router;
use ledger::{Ledger, Workspaces};
use settings::{FileOrigin, Kept, system};
use telemetry::metrics::Meter;
use workspace::{blobs::Blobs, time::Clock};
use workspace_function::{App, Origin, client, keys::Keys};

use super::{keys::Places, objects};
use crate::{answer::Fault, commands::workspace::kept, parts::Plant};

/// The keys are looked at this often.
const FRESH: Duration = Duration::from_secs(10);
/// How long a lease is given for: as long as a sidecar holds it without a word.
const LEASE: Duration = Duration::from_mins(15);
/// How long a sidecar is waited for.
const PATIENCE: Duration = Duration::from_secs(25);

/// The routes of workspaces and, where their bytes are in the data folder, of these. `origin`: where sidecars ask.
pub(crate) async fn routes(plant: &Plant, ledger: &Ledger, places: &Places, origin: &str) -> Result<Router, Fault> {
    let clock = Clock::new(|| system::now().millis());
    let folder = plant.data.join("workspaces");
    let (blobs, objects) = match &plant.settings.workspaces.store {
        Some(bucket) => (kept::bucket(bucket, &clock).await, Router::new()),
        None => in_folder(&folder, origin, &clock)?,
    };
    let app = App {
        commit: Arc::new(Workspaces::new(ledger.clone(), clock)),
        blobs,
        keys: Kept::new(Arc::new(FileOrigin(places.workspace_keys.clone())), FRESH, Keys::read),
        clock: Arc::new(system::now),
        meter: Meter::new(|_| {}),
        origin: Origin(origin.to_owned()),
        lease: LEASE,
        patience: PATIENCE,
        client: client().map_err(|error| Fault::failed("machine", error))?,
    };
    Ok(workspace_function::routes(Arc::new(app)).merge(objects))
}

fn in_folder(folder: &Path, origin: &str, clock: &Clock) -> Result<(Arc<dyn Blobs>, Router), Fault> {
    let at = format!("{}{}", origin.trim_end_matches('/'), objects::PATH);
    let store = kept::directory(folder, clock)?.served_at(&at);
    Ok((Arc::new(store.clone()), objects::routes(store, at)))
}
