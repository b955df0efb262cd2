//! The router as a Lambda function behind an HTTP API.

use std::{sync::Arc, time::Duration};

use aws::Cloud;
use lambda_http::{lambda_runtime::Error, tower::ServiceBuilder};
use ledger::{Ledger, Options, Tables};
use settings::{
    Address, Kept,
    system::{self, Variable},
};
use telemetry::metrics::{self, Meter};

use crate::{App, Iam, Terms, keys::Keys, router};

/// A configuration and keys that are older than this are read again.
const FRESH: Duration = Duration::from_mins(1);

/// Answers events until the environment ends.
pub async fn run() -> Result<(), Error> {
    telemetry::function(system::env(Variable::Log)?.as_deref())?;
    let app = Arc::new(app(&Cloud::here().await)?);
    let service = ServiceBuilder::new().map_request(identified).service(router(app));
    lambda_http::run(service).await
}

/// What the environment names. Nothing is asked yet.
fn app(cloud: &Cloud) -> Result<App, Error> {
    let named = |variable: Variable| -> Result<Address, Error> { Ok(system::required(variable)?.parse()?) };
    let tables = Tables::default();
    let tables = Tables { main: system::env(Variable::Table)?.unwrap_or(tables.main), ..tables };
    let ledger = Ledger::new(cloud.dynamodb(), Options { tables, ..Options::default() });
    let keys = Kept::new(cloud.origin(named(Variable::Keys)?), FRESH, Keys::read);
    let config = named(Variable::Config)?;
    let name = config.to_string();
    let terms = Kept::new(cloud.origin(config), FRESH, move |text| {
        settings::parse(text, &name).map(|settings| Terms::from(&settings)).map_err(|faults| faults.to_string())
    });
    Ok(App::new(ledger, keys, terms, Arc::new(system::now), Meter::new(metrics::stdout)))
}

/// Hands over the principal that the gateway authenticated.
fn identified(mut request: lambda_http::Request) -> lambda_http::Request {
    if let Some(principal) = aws::gateway::principal(&request) {
        request.extensions_mut().insert(Iam(principal));
    }
    request
}
