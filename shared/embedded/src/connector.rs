//! One request of the SDK, answered by the database.

use std::{fmt, sync::Arc};

use aws_smithy_runtime_api::{
    client::{
        http::{HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use serde::{Serialize, de::DeserializeOwned};

use crate::file::Gate;

/// What comes before the operation's name in the header that names it.
pub(crate) const TARGET: &str = "DynamoDB_20120810.";

#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) database: Database,
    /// Held while tables are made or changed.
    pub(crate) gate: Gate,
    /// What error messages call the database.
    pub(crate) place: Arc<str>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({})", self.place)
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move { connector.answer(&request) })
    }
}

impl Connector {
    fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.strip_prefix(TARGET).unwrap_or(target);
        let Some(body) = request.body().bytes() else {
            return Err(ConnectorError::user("a streamed request body can't be read here".into()));
        };
        let (status, body) = self.told(operation, body);
        let status = StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }

    /// The status and the body of the answer.
    pub(crate) fn told(&self, operation: &str, body: &[u8]) -> (u16, String) {
        match self.dispatch(operation, body) {
            Ok(body) => (200, body),
            Err(error) => (error.status_code(), self.placed(error).to_json()),
        }
    }

    fn dispatch(&self, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
        let turn = match operation {
            "CreateTable" | "UpdateTable" | "DeleteTable" | "UpdateTimeToLive" => self.gate.close(),
            _ => Ok(None),
        };
        let turn = turn.map_err(|error| DynoxideError::InternalServerError(error.to_string()))?;
        let answer = dispatch(&self.database, operation, body);
        drop(turn);
        answer
    }

    /// A fault of the machine says which file it is about; DynamoDB's own answers stay as they are.
    fn placed(&self, error: DynoxideError) -> DynoxideError {
        match error.status_code() {
            500 => DynoxideError::InternalServerError(format!("{}: {}", self.place, plain(&error.to_string()))),
            _ => error,
        }
    }
}

/// SQLite's words and what to do about them.
fn plain(message: &str) -> String {
    let advice = [
        ("locked", "another process has been writing for more than 5 s; try again"),
        ("full", "free some space and try again"),
        ("readonly", "make it writable, or choose another data folder"),
        ("malformed", "it is damaged; move it away or restore it"),
        ("I/O error", "look at the disk it lies on"),
    ];
    let message = message.strip_prefix("Internal error: ").or(message.strip_prefix("backend: ")).unwrap_or(message);
    match advice.iter().find(|(word, _)| message.contains(word)) {
        Some((_, advice)) => format!("{message} ({advice})"),
        None => message.to_owned(),
    }
}

fn dispatch(database: &Database, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
    match operation {
        "PutItem" => answer(body, |request| database.put_item(request)),
        "GetItem" => answer(body, |request| database.get_item(request)),
        "UpdateItem" => answer(body, |request| database.update_item(request)),
        "DeleteItem" => answer(body, |request| database.delete_item(request)),
        "Query" => answer(body, |request| database.query(request)),
        "Scan" => answer(body, |request| database.scan(request)),
        "BatchGetItem" => answer(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => answer(body, |request| database.batch_write_item(request)),
        "TransactGetItems" => answer(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => answer(body, |request| database.transact_write_items(request)),
        "CreateTable" => answer(body, |request| database.create_table(request)),
        "DescribeTable" => answer(body, |request| database.describe_table(request)),
        "UpdateTable" => answer(body, |request| database.update_table(request)),
        "DeleteTable" => answer(body, |request| database.delete_table(request)),
        "ListTables" => answer(body, |request| database.list_tables(request)),
        "UpdateTimeToLive" => answer(body, |request| database.update_time_to_live(request)),
        "DescribeTimeToLive" => answer(body, |request| database.describe_time_to_live(request)),
        "ListTagsOfResource" => answer(body, |request| database.list_tags_of_resource(request)),
        other => Err(DynoxideError::UnsupportedCapability(other.to_owned())),
    }
}

fn answer<Request: DeserializeOwned, Response: Serialize>(
    body: &[u8],
    run: impl FnOnce(Request) -> Result<Response, DynoxideError>,
) -> Result<String, DynoxideError> {
    let request =
        serde_json::from_slice(body).map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
    let response = run(request)?;
    serde_json::to_string(&response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
