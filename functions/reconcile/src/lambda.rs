//! A tick as a Lambda function.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use aws::Cloud;
use backend::Clock;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use ledger::{Ledger, Options, Tables};
use lifecycle::Time;
use serde_json::Value;
use settings::{
    Address, Kept, Secrets,
    system::{self, Variable},
};
use telemetry::metrics;

use crate::{Folder, Parts, Reports, Summary, tick};

/// A configuration that is older than this is read again.
const FRESH: Duration = Duration::from_secs(30);

/// Longer than any invocation runs, and before any time at which one could end: a month, in milliseconds.
const LONGEST_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// Answers events until the environment ends.
pub async fn run() -> Result<(), Error> {
    telemetry::function(system::env(Variable::Log)?.as_deref())?;
    let parts = &parts(&Cloud::here().await)?;
    lambda_runtime::run(service_fn(|event| handle(parts, event))).await
}

async fn handle(parts: &Parts, event: LambdaEvent<Value>) -> Result<Summary, Error> {
    let LambdaEvent { payload, context } = event;
    let deadline = deadline(context.deadline, parts.clock.now());
    let request: String = context.request_id.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let summary = tick(parts, payload, deadline, &format!("reconcile/{request}")).await;
    summary.inspect_err(|error| tracing::error!(%error, "the tick failed")).map_err(Error::from)
}

/// When the invocation ends. Lambda tells the time, in milliseconds; `cargo lambda watch` how long it lets it run.
fn deadline(told: u64, now: Time) -> Time {
    if told < LONGEST_MS {
        return now.plus(Duration::from_millis(told));
    }
    Time::from_millis(i64::try_from(told).unwrap_or(i64::MAX))
}

/// What the environment names. Nothing is asked yet.
fn parts(cloud: &Cloud) -> Result<Parts, Error> {
    let named = |variable: Variable| -> Result<Address, Error> { Ok(system::required(variable)?.parse()?) };
    let usual = Tables::default();
    let tables = Tables {
        main: system::env(Variable::Table)?.unwrap_or(usual.main),
        actions: system::env(Variable::ActionsTable)?.unwrap_or(usual.actions),
    };
    let config = named(Variable::Config)?;
    let name = config.to_string();
    let settings = Kept::new(cloud.origin(config), FRESH, move |text| {
        settings::parse(text, &name).map_err(|faults| faults.to_string())
    });
    let reports: Arc<dyn Reports> = match named(Variable::Reports)? {
        Address::Object { bucket, key } => Arc::new(Bucket { cloud: cloud.clone(), name: bucket, prefix: key }),
        Address::File(folder) => Arc::new(Folder(folder)),
        Address::Secret(arn) => {
            return Err(format!("reports can't go to `{arn}`; name `s3://BUCKET/PREFIX` or a folder").into());
        }
    };
    let vault = cloud.clone();
    Ok(Parts {
        secrets: Secrets::new(move |address| vault.origin(address)),
        ledger: Ledger::new(cloud.dynamodb(), Options { tables, ..Options::default() }),
        settings,
        reports,
        clock: Clock::new(system::now),
        out: metrics::stdout,
    })
}

/// Reports as objects of S3.
struct Bucket {
    cloud: Cloud,
    name: String,
    prefix: String,
}

#[async_trait]
impl Reports for Bucket {
    async fn put(&self, name: &str, body: Vec<u8>) -> Result<String, String> {
        let key = format!("{}/{name}", self.prefix.trim_end_matches('/'));
        self.cloud.put(&self.name, &key, body, "application/json").await?;
        Ok(format!("s3://{}/{key}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_time_or_as_cargo_lambda_has_it_a_duration() {
        let now: Time = "2026-11-30T20:00:00Z".parse().unwrap();
        assert_eq!(deadline(1_796_068_860_000, now), now.plus(Duration::from_mins(1)));
        assert_eq!(deadline(600_000, now), now.plus(Duration::from_mins(10)));
        assert_eq!(deadline(u64::MAX, now), Time::from_millis(i64::MAX));
    }
}
