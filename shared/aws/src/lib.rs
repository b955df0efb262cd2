//! The AWS services that the functions use beside the ledger's table: objects and secrets.
//!
//! ```text
//! Cloud (one SDK configuration) ──► ledger's client      (aws-sdk-dynamodb)
//!                               ├─► origin(Address)      (aws-sdk-s3, -secretsmanager) as settings::Origin
//!                               └─► put(bucket, key, …)  (aws-sdk-s3)
//! ```
//!
//! **Invariants.** Nothing is asked before it is needed: clients are made at their first use, and a file needs
//! none. Every call has a limit in time. A secret is in no error and no log. Where an endpoint is set by the SDK's
//! own variables (`AWS_ENDPOINT_URL_DYNAMODB`, …) it is used, with no code path of its own.
//!
//! **Why no parameters of Systems Manager.** Their SDK alone takes longer to compile than all others together, for one
//! call; an object of S3 has versions too, and is read again for nothing while it has not changed.
//!
//! **Must never know**: what the texts and bytes mean that it carries.

#[cfg(feature = "gateway")]
pub mod gateway;
mod origin;

use std::{sync::Arc, time::Duration};

use aws_config::{BehaviorVersion, SdkConfig, timeout::TimeoutConfig};
use settings::{Address, FileOrigin, Origin};

/// How long a call may take, all attempts together, and each attempt.
const CALL: Duration = Duration::from_secs(8);
const ATTEMPT: Duration = Duration::from_secs(3);
const CONNECT: Duration = Duration::from_secs(2);
/// How long a call to a store of workspaces may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// The account that this process runs in, as its environment says.
#[derive(Debug, Clone)]
pub struct Cloud {
    config: SdkConfig,
}

impl Cloud {
    /// From the environment. Asks nobody anything yet where that has a region and credentials, as a function's has.
    pub async fn here() -> Self {
        let limits = TimeoutConfig::builder()
            .operation_timeout(CALL)
            .operation_attempt_timeout(ATTEMPT)
            .connect_timeout(CONNECT)
            .build();
        Self { config: aws_config::defaults(BehaviorVersion::latest()).timeout_config(limits).load().await }
    }

    /// The client of the ledger.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::new(&self.config)
    }

    /// The client of a store of workspaces. To put an object of thousands of parts together takes its time.
    pub fn objects(&self) -> aws_sdk_s3::Client {
        let limits = TimeoutConfig::builder().operation_timeout(PATIENCE).connect_timeout(CONNECT).build();
        s3(&self.config.to_builder().timeout_config(limits).build())
    }

    /// What is read from `address`.
    pub fn origin(&self, address: Address) -> Arc<dyn Origin> {
        match address {
            Address::File(path) => Arc::new(FileOrigin(path)),
            other => Arc::new(origin::Remote::new(self.config.clone(), other)),
        }
    }

    /// Puts an object of S3. The error is for people.
    pub async fn put(&self, bucket: &str, key: &str, body: Vec<u8>, content_type: &str) -> Result<(), String> {
        let request = s3(&self.config).put_object().bucket(bucket).key(key);
        let sent = request.content_type(content_type).body(body.into()).send().await;
        sent.map(drop).map_err(|error| format!("can't put `s3://{bucket}/{key}`: {}", origin::said(&error)))
    }
}

/// A stand-in for S3 on this machine has one name for all buckets.
fn s3(config: &SdkConfig) -> aws_sdk_s3::Client {
    let local = config.endpoint_url().is_some();
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(config).force_path_style(local).build())
}
