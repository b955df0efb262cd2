//! Counts what goes through an HTTP client of the SDK: requests, and capacity units as the engine tells them.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    },
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::body::SdkBody;
use embedded::Embedded;
use serde_json::Value;

/// Requests, and capacity units of tables and indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) writes: f64,
    pub(crate) reads: f64,
}

impl Spent {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Meter {
    inner: SharedHttpClient,
    spent: Arc<Mutex<Spent>>,
}

impl Meter {
    pub(crate) fn new(store: &Embedded) -> Self {
        Self { inner: store.http_client(), spent: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        embedded::client_over(SharedHttpClient::new(self.clone()))
    }

    /// What was spent since the last time this was asked.
    pub(crate) fn take(&self) -> Spent {
        std::mem::take(&mut *self.spent.lock().unwrap())
    }
}

impl HttpClient for Meter {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Metered { inner, spent: self.spent.clone() })
    }
}

#[derive(Debug)]
struct Metered {
    inner: SharedHttpConnector,
    spent: Arc<Mutex<Spent>>,
}

impl HttpConnector for Metered {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let operation = request.headers().get("x-amz-target").unwrap().rsplit('.').next().unwrap().to_owned();
        let mut keys = 0;
        if !operation.contains("Table") && !operation.contains("TimeToLive") {
            let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            keys = tables.filter_map(|(_, asked)| Some(asked["Keys"].as_array()?.len())).sum();
            body["ReturnConsumedCapacity"] = "TOTAL".into();
            *request.body_mut() = SdkBody::from(body.to_string());
        }
        let (spent, inner) = (self.spent.clone(), self.inner.clone());
        HttpConnectorFuture::new(async move {
            let response = inner.call(request).await?;
            let units =
                units(&response.body().bytes().map_or(Value::Null, |body| serde_json::from_slice(body).unwrap()));
            let mut spent = spent.lock().unwrap();
            spent.requests += 1;
            match operation.as_str() {
                // A consistent read of one item; the engine adds the items' sizes up before it rounds, and AWS rounds each.
                "BatchGetItem" => spent.reads += f64::from(u32::try_from(keys).unwrap()),
                "GetItem" | "Query" | "Scan" => spent.reads += units,
                // A condition that failed is not told of, and costs what reading the item for it does: no record is
                // larger than one unit.
                _ if !response.status().is_success() => spent.writes += 1.0,
                _ => spent.writes += units,
            }
            drop(spent);
            Ok(response)
        })
    }
}

/// Of one table, or of each table of a batch.
fn units(answer: &Value) -> f64 {
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum(),
        one => one["CapacityUnits"].as_f64().unwrap_or(0.0),
    }
}
