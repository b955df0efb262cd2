//! CloudWatch, as far as alarms on one metric need it: samples from lines of the embedded format, and what an alarm says
//! to them.

use serde_json::{Map, Value};

/// One value of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at: i64,
    pub(crate) namespace: String,
    pub(crate) metric: String,
    pub(crate) dimensions: Map<String, Value>,
    pub(crate) value: f64,
}

/// What CloudWatch takes out of a line in its embedded format: each metric once for each set of dimensions.
pub(crate) fn samples(line: &Value) -> Vec<Sample> {
    let mut samples = Vec::new();
    for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
        for set in directive["Dimensions"].as_array().unwrap() {
            let dimension = |name: &Value| (name.as_str().unwrap().to_owned(), line[name.as_str().unwrap()].clone());
            let dimensions: Map<_, _> = set.as_array().unwrap().iter().map(dimension).collect();
            for metric in directive["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                samples.push(Sample {
                    at: line["_aws"]["Timestamp"].as_i64().unwrap(),
                    namespace: directive["Namespace"].as_str().unwrap().to_owned(),
                    metric: name.to_owned(),
                    dimensions: dimensions.clone(),
                    value: line[name].as_f64().unwrap(),
                });
            }
        }
    }
    samples
}

/// What an alarm says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    Alarm,
}

/// What `alarm` (its properties, resolved) says at `now`, the end of a period. Every period that it evaluates is one of
/// the last; CloudWatch looks further back only to replace missing ones, and what is missing counts here at once.
pub(crate) fn state(alarm: &Value, samples: &[Sample], now: i64) -> State {
    let number = |name: &str| alarm[name].as_f64().unwrap_or_else(|| panic!("{name} of {alarm}"));
    let (period, threshold) = (alarm["Period"].as_i64().unwrap() * 1_000, number("Threshold"));
    let periods = alarm["EvaluationPeriods"].as_i64().unwrap();
    let needed = alarm["DatapointsToAlarm"].as_i64().unwrap_or(periods);
    let wanted: Map<String, Value> = alarm["Dimensions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|dimension| (dimension["Name"].as_str().unwrap().to_owned(), dimension["Value"].clone()))
        .collect();
    let ours = |sample: &&Sample| {
        alarm["Namespace"] == *sample.namespace && alarm["MetricName"] == *sample.metric && sample.dimensions == wanted
    };
    let breaching = (0..periods).filter(|back| {
        let (start, end) = (now - (back + 1) * period, now - back * period);
        let values: Vec<_> =
            samples.iter().filter(ours).filter(|s| (start..end).contains(&s.at)).map(|s| s.value).collect();
        if values.is_empty() {
            return match alarm["TreatMissingData"].as_str() {
                Some("breaching") => true,
                Some("notBreaching") => false,
                other => panic!("missing data as {other:?} is not read here"),
            };
        }
        let value = match alarm["Statistic"].as_str() {
            Some("Sum") => values.iter().sum(),
            Some("Maximum") => values.iter().copied().fold(f64::MIN, f64::max),
            other => panic!("the statistic {other:?} is not read here"),
        };
        match alarm["ComparisonOperator"].as_str() {
            Some("LessThanThreshold") => value < threshold,
            Some("GreaterThanThreshold") => value > threshold,
            Some("GreaterThanOrEqualToThreshold") => value >= threshold,
            other => panic!("the comparison {other:?} is not read here"),
        }
    });
    if i64::try_from(breaching.count()).unwrap() >= needed { State::Alarm } else { State::Ok }
}
