//! The router as a Lambda function behind an HTTP API.

use std::{sync::Arc, time::Duration};

use aws::Cloud;
use lambda_http::{lambda_runtime::Error, tower::ServiceBuilder};
use ledger::{Ledger, Options, Tables, Workspaces};
use settings::{
    Bucket, Kept,
    system::{self, Variable},
};
use telemetry::metrics::{self, Meter};
use workspace::{blobs::s3::S3, time::Clock};

use crate::{App, Iam, Origin, client, keys::Keys, router};

/// Keys that are older than this are read again.
const FRESH: Duration = Duration::from_mins(1);
/// How long a signed request is good for. It is asked for again by whoever needs it for longer.
const VALID: Duration = Duration::from_mins(15);
/// How long a lease is given for: as long as a sidecar holds it without a word.
const LEASE: Duration = Duration::from_mins(15);
/// How long a sidecar is waited for. With what is asked before it, it stays below the 30 s of an HTTP API.
const PATIENCE: Duration = Duration::from_secs(18);

/// Answers events until the environment ends.
pub async fn run() -> Result<(), Error> {
    telemetry::function(system::env(Variable::Log)?.as_deref())?;
    let app = Arc::new(app(&Cloud::here().await)?);
    let service = ServiceBuilder::new().map_request(identified).service(router(app));
    lambda_http::run(service).await
}

/// What the environment names. Nothing is asked yet.
fn app(cloud: &Cloud) -> Result<App, Error> {
    let tables = Tables::default();
    let tables = Tables { main: system::env(Variable::Table)?.unwrap_or(tables.main), ..tables };
    let ledger = Ledger::new(cloud.dynamodb(), Options { tables, ..Options::default() });
    let keys = Kept::new(cloud.origin(system::required(Variable::WorkspaceKeys)?.parse()?), FRESH, Keys::read);
    let store: Bucket = system::required(Variable::Workspaces)?.parse()?;
    let clock = Clock::new(|| system::now().millis());
    Ok(App {
        commit: Arc::new(Workspaces::new(ledger, clock.clone())),
        blobs: Arc::new(S3::new(cloud.objects(), store.name, store.prefix, VALID, clock)),
        keys,
        clock: Arc::new(system::now),
        meter: Meter::new(metrics::stdout),
        origin: Origin(system::required(Variable::Origin)?),
        lease: LEASE,
        patience: PATIENCE,
        client: client()?,
    })
}

/// Hands over the principal that the gateway authenticated.
fn identified(mut request: lambda_http::Request) -> lambda_http::Request {
    if let Some(principal) = aws::gateway::principal(&request) {
        request.extensions_mut().insert(Iam(principal));
    }
    request
}
