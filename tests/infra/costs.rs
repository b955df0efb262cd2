//! What the deployment costs, from the list prices in `infra/costs.toml`; the README's figures are these.

use serde::Deserialize;

const COSTS: &str = include_str!("../../infra/costs.toml");
const README: &str = include_str!("../../README.md");

const HOURS_A_MONTH: f64 = 730.0;
const DAYS_A_MONTH: f64 = HOURS_A_MONTH / 24.0;
const MILLION: f64 = 1_000_000.0;
const GB: f64 = 1_000_000_000.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Costs {
    prices: Prices,
    heartbeat: Heartbeat,
    runtime: Runtime,
    fixed: Fixed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prices {
    as_of: String,
    dynamodb_write_per_million: f64,
    dynamodb_read_per_million: f64,
    dynamodb_gb_month: f64,
    dynamodb_recovery_gb_month: f64,
    lambda_per_million: f64,
    lambda_gb_second: f64,
    http_api_per_million: f64,
    scheduler_per_million: f64,
    logs_gb: f64,
    s3_put_per_thousand: f64,
    s3_gb_month: f64,
    alarm_month: f64,
    dashboard_month: f64,
    metric_month: f64,
    secret_month: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heartbeat {
    units: f64,
    memory_mb: f64,
    milliseconds: f64,
    log_bytes: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    hours_a_day: f64,
    heartbeat_seconds: f64,
    reclaims_a_day: f64,
    write_units_a_reclaim: f64,
    rearms_an_hour: f64,
    write_units_a_rearm: f64,
    read_units_a_sweep: f64,
    sweeps_an_hour: f64,
    kilobytes: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    ticks_an_hour: f64,
    memory_mb: f64,
    seconds_a_tick: f64,
    kilobytes_a_report: f64,
    report_days: f64,
    alarms: f64,
    secrets: f64,
    custom_metrics: f64,
}

impl Costs {
    fn read() -> Self {
        toml::from_str(COSTS).unwrap()
    }

    /// A function's run: its request, its time and memory.
    fn run(&self, memory_mb: f64, seconds: f64) -> f64 {
        self.prices.lambda_per_million / MILLION + memory_mb / 1_024.0 * seconds * self.prices.lambda_gb_second
    }

    fn write(&self, units: f64) -> f64 {
        units * self.prices.dynamodb_write_per_million / MILLION
    }

    /// One heartbeat, in a request of its own.
    fn heartbeat(&self) -> f64 {
        let Heartbeat { units, memory_mb, milliseconds, log_bytes } = self.heartbeat;
        self.prices.http_api_per_million / MILLION
            + self.run(memory_mb, milliseconds / 1_000.0)
            + self.write(units)
            + log_bytes / GB * self.prices.logs_gb
    }

    /// What a runtime costs in a month beside its heartbeats: it is kept, re-armed, looked at, reclaimed.
    fn kept(&self) -> f64 {
        let (prices, runtime) = (&self.prices, &self.runtime);
        let working = runtime.hours_a_day * DAYS_A_MONTH;
        let rearms = working * runtime.rearms_an_hour * self.write(runtime.write_units_a_rearm);
        let reclaims = runtime.reclaims_a_day * DAYS_A_MONTH * self.write(runtime.write_units_a_reclaim);
        let sweeps = HOURS_A_MONTH * runtime.sweeps_an_hour * runtime.read_units_a_sweep;
        let stored = runtime.kilobytes * 1_000.0 / GB * (prices.dynamodb_gb_month + prices.dynamodb_recovery_gb_month);
        rearms + reclaims + sweeps * prices.dynamodb_read_per_million / MILLION + stored
    }

    /// The heartbeats of a runtime in a month.
    fn heartbeats(&self) -> f64 {
        self.runtime.hours_a_day * DAYS_A_MONTH * 3_600.0 / self.runtime.heartbeat_seconds
    }

    /// What is paid in a month for one backend without a runtime.
    fn fixed(&self) -> f64 {
        let (prices, fixed) = (&self.prices, &self.fixed);
        let ticks = HOURS_A_MONTH * fixed.ticks_an_hour;
        let tick = prices.scheduler_per_million / MILLION
            + self.run(fixed.memory_mb, fixed.seconds_a_tick)
            + prices.s3_put_per_thousand / 1_000.0;
        let reports = fixed.ticks_an_hour * 24.0 * fixed.report_days * fixed.kilobytes_a_report * 1_000.0 / GB;
        ticks * tick
            + reports * prices.s3_gb_month
            + fixed.alarms * prices.alarm_month
            + prices.dashboard_month
            + fixed.custom_metrics * prices.metric_month
            + fixed.secrets * prices.secret_month
    }
}

/// Three significant digits: no assumption here has more.
fn dollars(amount: f64) -> String {
    let magnitude = 10_f64.powf(amount.log10().floor() - 2.0);
    let amount = (amount / magnitude).round() * magnitude;
    if amount >= 1_000.0 {
        let whole = format!("{amount:.0}");
        let (head, tail) = whole.split_at(whole.len() - 3);
        return format!("${head},{tail}");
    }
    if amount >= 100.0 { format!("${amount:.0}") } else { format!("${amount:.2}") }
}

/// The README's rows.
fn rows(costs: &Costs) -> [String; 4] {
    let heartbeats = costs.heartbeat() * MILLION;
    let kept = costs.kept() * MILLION;
    let beating = costs.heartbeats() * costs.heartbeat() * MILLION;
    [
        format!("| a million heartbeats, each in a request of its own | {} |", dollars(heartbeats)),
        format!("| a million runtimes for a month, beside their heartbeats | {} |", dollars(kept)),
        format!("| their heartbeats, one a minute for 8 h a day | {} |", dollars(beating)),
        format!("| a backend for a month, without a runtime | {} |", dollars(costs.fixed())),
    ]
}

#[test]
fn the_readme_has_the_figures_of_the_calculation() {
    let costs = Costs::read();
    let missing: Vec<_> = rows(&costs).into_iter().filter(|row| !README.contains(row)).collect();
    assert_eq!(missing, Vec::<String>::new(), "copy these rows into the README");
    assert!(README.contains(&format!("list prices of {}", costs.prices.as_of)));
}

#[test]
fn a_sum_by_hand_agrees() {
    let costs = Costs::read();
    // $1.00 the API, $0.20 the request, $0.625 the write, 10 ms of a quarter GB, 350 bytes of log.
    let by_hand = 1.00 + 0.20 + 0.625 + 1e6 * 0.01 * 0.25 * 0.000_016_666_7 + 1e6 * 350.0 * 0.5e-9;
    assert!((costs.heartbeat() * MILLION - by_hand).abs() < 1e-9);
    assert_eq!(["$1.23", "$2,050", "$57.60", "$304"].map(str::to_owned), [1.2345, 2_046.0, 57.6, 303.9].map(dollars));
}

#[test]
fn what_is_multiplied_is_what_is_deployed() {
    let (costs, stack) = (Costs::read(), super::template::Stack::new(super::TEMPLATE, &[]));
    let resources = stack.resources();
    assert_eq!(resources["Heartbeat"]["Properties"]["MemorySize"].as_f64(), Some(costs.heartbeat.memory_mb));
    assert_eq!(resources["Reconcile"]["Properties"]["MemorySize"].as_f64(), Some(costs.fixed.memory_mb));
    let count = |kind| f64::from(u32::try_from(stack.of(kind).len()).unwrap());
    assert!((count("AWS::CloudWatch::Alarm") - costs.fixed.alarms).abs() < 0.5, "{}", count("AWS::CloudWatch::Alarm"));
    assert!((count("AWS::SecretsManager::Secret") - costs.fixed.secrets).abs() < 0.5);
    assert_eq!(stack.declared("Every")["Default"].as_str(), Some("5"));
    assert_eq!(stack.declared("ReportDays")["Default"].as_f64(), Some(costs.fixed.report_days));
    // Each metric once in sum, and those of a pass once more for the backend.
    let written = telemetry::metrics::METRICS.iter();
    let of_requests = |name: &str| ["Heartbeats", "Workspace"].iter().any(|what| name.starts_with(what));
    let summed = ["Registrations", "ConfigFault"];
    let of_passes = written.clone().filter(|metric| !of_requests(metric.name()) && !summed.contains(&metric.name()));
    let most = written.count() + of_passes.count();
    assert!((f64::from(u32::try_from(most).unwrap()) - costs.fixed.custom_metrics).abs() < 0.5, "{most}");
}
