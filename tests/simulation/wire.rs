//! Every request of a process to the ledger: a moment at which others may run, may fail in each way, and seen by
//! the auditor at the moment of its effect.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::{
    client::{
        http::{
            HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
            SharedHttpConnector,
        },
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use tokio::time::sleep;

use super::{
    auditor::Asked,
    process::{Fault, Process},
};

/// How long a client waits for the ledger.
const PATIENCE: Duration = Duration::from_secs(10);

/// How late a request that its client gave up can still arrive.
pub(crate) const LATEST: Duration = Duration::from_secs(90);

/// How often a client that tries again does.
const TRIES: usize = 3;

/// The client of `process`.
pub(crate) fn client(process: &Process) -> Client {
    let inner = process.sim().store().http_client();
    embedded::client_over(SharedHttpClient::new(Wire { inner, process: process.clone() }))
}

#[derive(Debug, Clone)]
struct Wire {
    inner: SharedHttpClient,
    process: Process,
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Hop { inner, process: self.process.clone() })
    }
}

#[derive(Debug, Clone)]
struct Hop {
    inner: SharedHttpConnector,
    process: Process,
}

impl HttpConnector for Hop {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let hop = self.clone();
        HttpConnectorFuture::new(async move { hop.send(request).await })
    }
}

impl Hop {
    async fn send(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let mut answer = Err(unanswered());
        for _ in 0..self.process.sim().scenario().storm.tries(TRIES) {
            let Some(again) = request.try_clone() else { break };
            answer = self.once(again).await;
            if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                break;
            }
            if answer.as_ref().is_ok_and(|answer| answer.status().as_u16() == 400 && !throttled_is(answer)) {
                break;
            }
        }
        answer
    }

    async fn once(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let asked = Asked::of(&request);
        let runtime = asked.runtime();
        self.process.way(runtime.as_ref(), || format!("before {asked}")).await;
        let storm = self.process.sim().storm();
        let fault = self.process.fault(storm.ledger, LATEST);
        if let Some(fault) = fault {
            self.process.sim().count("a request to the ledger fails");
            self.process.sim().note(self.process.name(), runtime.as_ref(), || format!("{asked} FAILS {fault:?}"));
        }
        match fault {
            None => {
                let answer = self.arrive(&asked, request).await;
                self.process.way(runtime.as_ref(), || format!("after {asked}")).await;
                answer
            }
            Some(Fault::Before) => Err(unanswered()),
            Some(Fault::Throttled) => throttled(),
            Some(Fault::After) => {
                let _ = self.arrive(&asked, request).await;
                self.process.way(runtime.as_ref(), || format!("after {asked}")).await;
                Err(unanswered())
            }
            Some(Fault::TimesOut { arrives }) => {
                if let Some(arrives) = arrives {
                    let hop = self.clone();
                    tokio::spawn(async move {
                        sleep(arrives).await;
                        let _ = hop.arrive(&asked, request).await;
                    });
                }
                sleep(PATIENCE).await;
                Err(unanswered())
            }
        }
    }

    /// The moment of its effect.
    async fn arrive(&self, asked: &Asked, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let answer = self.inner.call(request).await?;
        let told = answer.body().bytes().and_then(|body| serde_json::from_slice::<Value>(body).ok());
        self.process.sim().asked(&self.process, asked, answer.status().is_success(), &told.unwrap_or_default());
        Ok(answer)
    }
}

fn unanswered() -> ConnectorError {
    ConnectorError::timeout("no answer came".into())
}

const THROTTLED: &str = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";

fn throttled() -> Result<HttpResponse, ConnectorError> {
    let status = StatusCode::try_from(400).map_err(|error| ConnectorError::other(error.into(), None))?;
    let body = format!(r#"{{"__type":"{THROTTLED}","message":"a planted fault"}}"#);
    Ok(HttpResponse::new(status, SdkBody::from(body)))
}

fn throttled_is(answer: &HttpResponse) -> bool {
    answer.body().bytes().is_some_and(|body| body.windows(THROTTLED.len()).any(|part| part == THROTTLED.as_bytes()))
}
