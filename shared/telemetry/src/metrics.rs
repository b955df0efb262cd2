//! Metrics in CloudWatch's embedded format: a line of JSON in the log, which CloudWatch turns into metrics. No call is
//! made, and none can fail.
//!
//! Every metric is in [`METRICS`] with what it means; alarms and dashboards are held to that list.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{Mutex, PoisonError},
};

use serde_json::{Map, Value, json};

/// The namespace of all of them.
pub const NAMESPACE: &str = "Furlough";

/// The dimension of what is counted for each backend, beside the sum over all.
pub const BACKEND: &str = "Backend";

/// What a metric is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// A duration.
    Seconds,
}

impl Unit {
    /// As CloudWatch names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Seconds => "Seconds",
        }
    }
}

macro_rules! metrics {
    ($( $variant:ident: $unit:ident, $meaning:literal; )*) => {
        /// A metric. Its name is the variant's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $( #[doc = $meaning] $variant, )*
        }

        impl Metric {
            /// Its name in CloudWatch.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )* }
            }

            /// What it is counted in.
            pub const fn unit(self) -> Unit {
                match self { $( Self::$variant => Unit::$unit, )* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $meaning, )* }
            }
        }

        /// Every metric.
        pub const METRICS: &[Metric] = &[ $( Metric::$variant ),* ];
    };
}

metrics! {
    HeartbeatsRecorded: Count, "signs of activity that moved a runtime's clock";
    HeartbeatsCoalesced: Count, "signs of activity that said nothing new";
    HeartbeatsRefused: Count, "signs of activity of a runtime that is unknown, gone, superseded or not running";
    HeartbeatsUnauthorized: Count, "requests without a credential that is good for them";
    HeartbeatsMalformed: Count, "requests that can't be read";
    HeartbeatsFailed: Count, "requests that our side could not answer; nothing was acknowledged";
    Registrations: Count, "runtimes that began a new life";
    ConfigFault: Count, "a configuration or a document of keys that could not be used; the last good one stays";
    WorkspaceRequests: Count, "requests of hosts and sandboxes about workspaces that were done, or are on their way";
    WorkspaceRefused: Count, "requests about workspaces that were refused, or that a sandbox did not take";
    WorkspaceFailed: Count, "requests about workspaces that our side could not answer";
    PassCompleted: Count, "passes over a backend that came to their end";
    PassUnfinished: Count, "passes over a backend that left something due to the next";
    PassBusy: Count, "passes that found another one at work on the backend";
    PassFailed: Count, "passes over a backend that could not ask it, or the ledger";
    PassSeconds: Seconds, "how long a pass took";
    ActsDone: Count, "acts that were done";
    ActsRefused: Count, "acts that a backend, a hold, a budget or a breaker refused";
    ActsMoved: Count, "acts that were not done because the runtime had moved";
    ActsLeft: Count, "acts that were left: the time was up, or the mode is report";
    ActsFailed: Count, "acts that failed";
    ActsUnknown: Count, "acts that got no answer";
    Runtimes: Count, "runtimes that were looked at";
    RuntimesIdle: Count, "runtimes that are idle past their limit";
    RuntimesGone: Count, "runtimes whose absence was seen twice";
    RuntimesStuck: Count, "runtimes that failed several times in a row";
    ClaimsRecovered: Count, "claims that had outlived their holder";
    RecordsHealed: Count, "records that were missing from the index; expected 0";
    BreakerOpen: Count, "passes over a backend that only reported, because a breaker was open";
    Paused: Count, "passes over a backend that was paused";
}

/// Values of some metrics at one moment, as the line that CloudWatch reads. `backend`: counted for it too, beside the
/// sum over all. `more`: what is searched for in the log and is no metric.
pub fn line(at_millis: i64, backend: Option<&str>, values: &[(Metric, f64)], more: &Map<String, Value>) -> String {
    let dimensions = if backend.is_some() { json!([[], [BACKEND]]) } else { json!([[]]) };
    let metrics: Vec<_> =
        values.iter().map(|(metric, _)| json!({ "Name": metric.name(), "Unit": metric.unit().as_str() })).collect();
    let directive = json!({ "Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics });
    let mut root = more.clone();
    root.insert("_aws".to_owned(), json!({ "Timestamp": at_millis, "CloudWatchMetrics": [directive] }));
    if let Some(backend) = backend {
        root.insert(BACKEND.to_owned(), backend.into());
    }
    root.extend(values.iter().map(|(metric, value)| (metric.name().to_owned(), json!(value))));
    Value::Object(root).to_string()
}

/// Writes lines to stdout, where a function's log is read from.
pub fn stdout(line: &str) {
    // Nobody is left to tell when stdout is closed.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// How often a meter writes, in milliseconds, unless something failed.
const EVERY_MILLIS: i64 = 60_000;

/// Counts, and writes the sums now and then: a line for each heartbeat would cost more than the heartbeat.
pub struct Meter {
    out: fn(&str),
    state: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    counts: BTreeMap<Metric, u64>,
    written: Option<i64>,
}

impl Meter {
    /// One that writes to `out`.
    pub const fn new(out: fn(&str)) -> Self {
        Self { out, state: Mutex::new(Counts { counts: BTreeMap::new(), written: None }) }
    }

    /// Counts. The sums are written at the first count, a minute later, or at once when it is `urgent`; what the last
    /// minute of an environment that ends has counted is lost.
    pub fn count(&self, metric: Metric, urgency: Urgency, at_millis: i64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.counts.entry(metric).or_default() += 1;
        let old = state.written.is_none_or(|written| at_millis.saturating_sub(written) >= EVERY_MILLIS);
        if old || urgency == Urgency::Now {
            #[expect(clippy::cast_precision_loss, reason = "a minute has fewer than 2^53 requests")]
            let values: Vec<_> = state.counts.iter().map(|(metric, count)| (*metric, *count as f64)).collect();
            (self.out)(&line(at_millis, None, &values, &Map::new()));
            *state = Counts { counts: BTreeMap::new(), written: Some(at_millis) };
        }
    }
}

/// When a count is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// With the others.
    Later,
    /// At once: an alarm waits for it.
    Now,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_line_is_what_cloudwatch_reads() {
        let more = Map::from_iter([("Report".to_owned(), json!("s3://b/k"))]);
        let line =
            line(1_764_500_000_123, Some("docker"), &[(Metric::ActsDone, 2.0), (Metric::PassSeconds, 1.5)], &more);
        let expected = json!({
            "_aws": {
                "Timestamp": 1_764_500_000_123_i64,
                "CloudWatchMetrics": [{
                    "Namespace": "Furlough",
                    "Dimensions": [[], ["Backend"]],
                    "Metrics": [{ "Name": "ActsDone", "Unit": "Count" }, { "Name": "PassSeconds", "Unit": "Seconds" }],
                }],
            },
            "Backend": "docker", "ActsDone": 2.0, "PassSeconds": 1.5, "Report": "s3://b/k",
        });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        assert!(!line.contains('\n'), "one line");
    }

    #[test]
    fn every_metric_has_its_own_name_and_a_meaning() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), METRICS.len());
        assert!(METRICS.iter().all(|metric| !metric.meaning().is_empty()));
    }

    #[test]
    fn a_meter_writes_at_once_then_each_minute_and_whatever_is_urgent() {
        static LINES: Mutex<Vec<Value>> = Mutex::new(Vec::new());
        let meter = Meter::new(|line| LINES.lock().unwrap().push(serde_json::from_str(line).unwrap()));
        let lines = || LINES.lock().unwrap().len();
        meter.count(Metric::HeartbeatsRecorded, Urgency::Later, 0);
        assert_eq!(lines(), 1);
        meter.count(Metric::HeartbeatsRecorded, Urgency::Later, 10);
        meter.count(Metric::HeartbeatsRecorded, Urgency::Later, 59_999);
        assert_eq!(lines(), 1);
        meter.count(Metric::HeartbeatsFailed, Urgency::Now, 59_999);
        assert_eq!(lines(), 2);
        meter.count(Metric::HeartbeatsRecorded, Urgency::Later, 119_998);
        assert_eq!(lines(), 2);
        meter.count(Metric::HeartbeatsRecorded, Urgency::Later, 119_999);
        let lines = LINES.lock().unwrap();
        let counted: Vec<_> = lines.iter().map(|line| line["HeartbeatsRecorded"].as_f64()).collect();
        assert_eq!(counted, [Some(1.0), Some(2.0), Some(2.0)]);
        assert_eq!(lines[1]["HeartbeatsFailed"].as_f64(), Some(1.0));
    }
}
