//! One tick: an event in, a pass, a summary out.

use std::{sync::Arc, time::Duration};

use backend::Clock;
use ledger::Ledger;
use lifecycle::{BackendName, Policy, Time, policy::Mode};
use pass::{Notifier, Pass, Unwatched, Webhook};
use serde::Deserialize;
use serde_json::Value;
use settings::{Kept, KeptError, Secret, SecretError, SecretSource, Secrets, Settings};
use telemetry::metrics::{self, Metric};

use crate::{
    limits::{self, TooShort},
    metered,
    reports::Reports,
    summary::{self, Ended, Summary},
    units::{self, UnitError},
};

/// A pass that has not come to its end by then is dropped, so that it is the pass that fails and not the invocation
/// that vanishes.
const MARGIN: Duration = Duration::from_secs(2);

/// The most errors that a failed invocation quotes.
const QUOTED: usize = 3;

/// What is asked of a tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Only these backends; none: all.
    pub backends: Vec<BackendName>,
    /// Whether nothing may be done, whatever the configuration says.
    pub report_only: bool,
}

/// An event that asks for nothing that a tick does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the event is none of ours: {why}; send `{{\"backend\": NAME}}`, or `{{\"mode\": \"report\", \"backends\": [NAME, …]}}`"
)]
pub struct EventError {
    /// What is wrong with it.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    backend: Option<String>,
    #[serde(default)]
    backends: Vec<String>,
    #[serde(default)]
    mode: Option<Careful>,
}

/// An event can't make a pass act where the configuration does not.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Careful {
    Report,
}

impl Event {
    /// Reads an event: ours, or the one that a schedule without an input of its own sends.
    pub fn read(event: Value) -> Result<Self, EventError> {
        let refused = |why: String| EventError { why };
        if event.get("detail-type").and_then(Value::as_str) == Some("Scheduled Event") {
            return Ok(Self::default());
        }
        if !event.is_object() {
            return Err(refused("an event is an object".to_owned()));
        }
        let Written { backend, backends, mode } =
            serde_json::from_value(event).map_err(|error| refused(error.to_string()))?;
        let names = backends.into_iter().chain(backend).map(|name| BackendName::new(&name));
        let backends = names.collect::<Result<_, _>>().map_err(|error| refused(error.to_string()))?;
        Ok(Self { backends, report_only: mode.is_some() })
    }
}

/// Everything that a tick needs.
pub struct Parts {
    /// Where records are.
    pub ledger: Ledger,
    /// The configuration.
    pub settings: Kept<Settings>,
    /// The secrets that it names.
    pub secrets: Secrets,
    /// Where reports go.
    pub reports: Arc<dyn Reports>,
    /// The time.
    pub clock: Clock,
    /// Where metrics go.
    pub out: fn(&str),
}

/// Why a tick failed. The invocation fails with it, so that an alarm and the failure destination hear of it.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// There is no configuration.
    #[error(transparent)]
    Settings(#[from] KeptError),
    /// A backend that the event names and the configuration does not.
    #[error("no backend is called `{0}` in the configuration")]
    NoBackend(BackendName),
    /// A backend that can't be made.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// Too little time.
    #[error(transparent)]
    TooShort(#[from] TooShort),
    /// A secret that the configuration names.
    #[error("`{key}`: {error}")]
    Secret {
        /// Under which key.
        key: &'static str,
        /// Why there is none.
        error: SecretError,
    },
    /// Nobody can be told of deletions.
    #[error("notify: {0}")]
    Notify(String),
    /// It did not end in its time.
    #[error("the pass did not end in the invocation's time; what it began is found and ended by a later one")]
    Overran,
    /// Backends or the ledger could not be asked.
    #[error("the pass failed for {backends}: {errors}; the report is `{report}`")]
    Unasked {
        /// For which.
        backends: String,
        /// The first errors.
        errors: String,
        /// Where the rest is.
        report: String,
    },
    /// It was made, and its report is lost.
    #[error("the pass was made, and its report was not kept: {0}")]
    Unreported(String),
}

/// Makes one pass, within the time until `deadline`. `owner`: who acts, for claims and for people.
pub async fn tick(parts: &Parts, event: Value, deadline: Time, owner: &str) -> Result<Summary, Failed> {
    let event = Event::read(event)?;
    let now = parts.clock.now();
    let reading = parts.settings.get(now).await.inspect_err(|_| faulty(parts, now))?;
    if let Some(fault) = &reading.fault {
        tracing::error!(%fault, "the configuration can't be used as it is now; the last good one stays");
        faulty(parts, now);
    }
    let settings = reading.value;
    if let Some(unknown) = event.backends.iter().find(|name| !settings.backends.iter().any(|b| b.name == **name)) {
        return Err(Failed::NoBackend(unknown.clone()));
    }
    let pass = pass(parts, &settings, &event, deadline, owner).await?;
    let left = deadline.since(parts.clock.now());
    let Ok(outcome) = tokio::time::timeout(left.saturating_sub(MARGIN), pass.run()).await else {
        return Err(Failed::Overran);
    };
    let body = serde_json::to_vec(&outcome).map_err(|error| Failed::Unreported(error.to_string()))?;
    let put = parts.reports.put(&name(&event, now, owner), body).await;
    let report = put.as_ref().map_or_else(|_| String::new(), Clone::clone);
    let summary = Summary { report, backends: summary::units(&outcome) };
    for line in metered::lines(&outcome, &summary, parts.clock.now()) {
        (parts.out)(&line);
    }
    failed(&outcome, &summary)?;
    put.map_err(Failed::Unreported)?;
    Ok(summary)
}

fn faulty(parts: &Parts, now: Time) {
    (parts.out)(&metrics::line(now.millis(), None, &[(Metric::ConfigFault, 1.0)], &serde_json::Map::new()));
}

async fn pass(parts: &Parts, settings: &Settings, event: &Event, deadline: Time, owner: &str) -> Result<Pass, Failed> {
    let notifier = notifier(parts, settings).await?;
    let key = async |source: &_| secret(parts, "api_key", source).await.map_err(|error| error.to_string());
    let units = units::units(settings, None, &event.backends, &parts.clock, key).await?;
    // What was read until now took of the invocation's time.
    let left = deadline.since(parts.clock.now());
    let mode = if event.report_only { Mode::Report } else { settings.policy.mode };
    Ok(Pass {
        ledger: parts.ledger.timed(settings.policy.coalesce, settings.policy.skew),
        limits: limits::limits(settings, left)?,
        units,
        policy: Arc::new(Policy { mode, ..settings.policy.clone() }),
        clock: parts.clock.clone(),
        owner: owner.to_owned(),
        notifier,
        watch: Arc::new(Unwatched),
    })
}

async fn notifier(parts: &Parts, settings: &Settings) -> Result<Option<Arc<dyn Notifier>>, Failed> {
    let Some(notify) = &settings.notify else { return Ok(None) };
    let secret = match &notify.secret {
        Some(source) => {
            let read = secret(parts, "notify.secret", source).await;
            Some(read.map_err(|error| Failed::Secret { key: "notify.secret", error })?)
        }
        None => None,
    };
    let secret = secret.as_ref().map(|secret| secret.reveal().as_bytes());
    let webhook = Webhook::new(notify.url.reveal(), secret, parts.clock.clone());
    Ok(Some(Arc::new(webhook.map_err(|error| Failed::Notify(error.to_string()))?)))
}

/// The secret that the configuration names under `key`. Of one that could not be read again the last good one stays.
async fn secret(parts: &Parts, key: &'static str, source: &SecretSource) -> Result<Arc<Secret>, SecretError> {
    let now = parts.clock.now();
    let reading = parts.secrets.read(source, now).await.inspect_err(|_| faulty(parts, now))?;
    if let Some(fault) = &reading.fault {
        tracing::error!(key, %fault, "a secret can't be used as it is now; the last good one stays");
        faulty(parts, now);
    }
    Ok(reading.value)
}

/// `2026-11-30/20-15-07.123Z-docker-1a2b3c4d.json`: a day is a folder, and no two are the same.
fn name(event: &Event, now: Time, owner: &str) -> String {
    let at = now.to_string();
    let (day, time) = at.split_once('T').unwrap_or((&at, ""));
    let whose = match &event.backends[..] {
        [one] => one.as_str(),
        _ => "all",
    };
    let unique = owner.rsplit('/').next().unwrap_or(owner);
    format!("{day}/{}-{whose}-{unique}.json", time.replace(':', "-"))
}

/// A pass that could not ask for a backend fails the invocation, after everything else was done.
fn failed(outcome: &pass::Outcome, summary: &Summary) -> Result<(), Failed> {
    let failed: Vec<_> = summary.backends.iter().filter(|unit| unit.ended == Ended::Failed).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = failed.iter().map(|unit| format!("`{}`", unit.backend)).collect();
    let reports = outcome.report.backends.iter();
    let reports = reports.filter(|report| failed.iter().any(|unit| unit.backend == report.note.backend));
    let errors: Vec<_> = reports.flat_map(|report| &report.errors).take(QUOTED).map(ToString::to_string).collect();
    Err(Failed::Unasked { backends: names.join(", "), errors: errors.join("; "), report: summary.report.clone() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn backends(names: &[&str]) -> Vec<BackendName> {
        names.iter().map(|name| BackendName::new(name).unwrap()).collect()
    }

    #[test]
    fn an_event_names_backends_and_can_only_be_more_careful() {
        let read = |event| Event::read(event).map_err(|error| error.why);
        assert_eq!(read(json!({})), Ok(Event::default()));
        let one = Event { backends: backends(&["docker"]), report_only: false };
        assert_eq!(read(json!({ "backend": "docker" })), Ok(one));
        let two = Event { backends: backends(&["docker", "e2b"]), report_only: true };
        assert_eq!(read(json!({ "mode": "report", "backends": ["docker", "e2b"] })), Ok(two));
        assert_eq!(read(json!({ "mode": "enforce" })).unwrap_err(), "unknown variant `enforce`, expected `report`");
        assert!(read(json!({ "backend": "docker", "shards": 3 })).unwrap_err().starts_with("unknown field `shards`"));
        assert!(read(json!({ "backend": "a/b" })).unwrap_err().contains("has a character other than"));
        assert!(read(json!("docker")).is_err() && read(json!(null)).is_err());
    }

    #[test]
    fn a_schedule_without_an_input_means_all() {
        let sent = json!({
            "version": "0", "id": "5f3c0f4b-7a0e-4f0a-9a5e-0b8f3f1c2d3e", "detail-type": "Scheduled Event",
            "source": "aws.scheduler", "account": "123456789012", "time": "2026-11-30T20:00:00Z",
            "region": "eu-central-1", "resources": [], "detail": "{}",
        });
        assert_eq!(Event::read(sent), Ok(Event::default()));
    }

    #[test]
    fn a_report_has_a_name_of_its_own() {
        let now: Time = "2026-11-30T20:15:07.123Z".parse().unwrap();
        let one = Event { backends: backends(&["docker"]), report_only: false };
        assert_eq!(name(&one, now, "reconcile/1a2b3c4d"), "2026-11-30/20-15-07.123Z-docker-1a2b3c4d.json");
        assert_eq!(name(&Event::default(), now, "x"), "2026-11-30/20-15-07.123Z-all-x.json");
    }

    proptest! {
        #[test]
        fn any_event_is_read_or_refused(key in "(backend|backends|mode|[a-z]{1,5})", value in "\\PC{0,20}") {
            let _ = Event::read(json!({ key: value }));
        }
    }
}
