//! A client of S3's over a plain HTTP client. The SDK's own would double the build's dependencies.

use std::fmt;

use aws_sdk_s3::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region, StalledStreamProtectionConfig, retry::RetryConfig},
};
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

/// A client of the server at `endpoint`, which tries nothing twice.
pub(super) fn client(endpoint: &str) -> Client {
    let http = SharedHttpClient::new(Sends(reqwest::Client::new()));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .http_client(http)
        .build();
    Client::from_conf(config)
}

#[derive(Clone)]
struct Sends(reqwest::Client);

impl fmt::Debug for Sends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sends")
    }
}

impl HttpClient for Sends {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Sends {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let method = request.method().parse().unwrap();
        let mut sent = self.0.request(method, request.uri());
        for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
            sent = sent.header(name, value);
        }
        let sent = sent.body(request.body().bytes().expect("what is sent is in memory").to_vec());
        HttpConnectorFuture::new(async move {
            let failed = |error: reqwest::Error| ConnectorError::io(error.into());
            let answer = sent.send().await.map_err(failed)?;
            let status = StatusCode::try_from(answer.status().as_u16()).unwrap();
            let headers = answer.headers().clone();
            let mut response = HttpResponse::new(status, SdkBody::from(answer.bytes().await.map_err(failed)?));
            for (name, value) in &headers {
                response.headers_mut().append(name.as_str().to_owned(), value.to_str().unwrap().to_owned());
            }
            Ok(response)
        })
    }
}
