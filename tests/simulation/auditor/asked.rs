//! A request to the ledger, as the auditor reads it.

use std::fmt;

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use lifecycle::RuntimeId;
use serde_json::Value;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) operation: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = request.body().bytes().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
        Self { operation, body }
    }

    /// The item's partition, where the request is about one item of the main table.
    pub(crate) fn partition(&self) -> Option<&str> {
        self.key("pk")
    }

    /// It is about what conditions test, not about what people want to know.
    pub(crate) fn is_record(&self) -> bool {
        self.key("sk") == Some("record")
    }

    fn key(&self, name: &str) -> Option<&str> {
        let item = self.body.get("Key").or_else(|| self.body.get("Item"))?;
        item.get(name)?.get("S")?.as_str()
    }

    pub(crate) fn runtime(&self) -> Option<RuntimeId> {
        self.partition()?.strip_prefix("runtime/")?.parse().ok()
    }

    /// Whether its expressions use this value.
    pub(crate) fn uses(&self, value: &str) -> bool {
        self.body.get("ExpressionAttributeValues").is_some_and(|values| values.get(value).is_some())
    }

    pub(crate) fn update(&self) -> &str {
        self.body.get("UpdateExpression").and_then(Value::as_str).unwrap_or_default()
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.key("sk") == Some("detail") { " (detail)" } else { "" };
        write!(f, "{} {}{kind}", self.operation, self.partition().unwrap_or("-"))
    }
}
