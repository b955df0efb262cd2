//! How each kind of value is written, and what is not one.

use std::time::Duration;

use settings::{Faults, Settings, parse};

const HOUR: Duration = Duration::from_hours(1);

/// A policy with `line` in it.
fn policy(line: &str) -> Result<Settings, Faults> {
    parse(&format!("[[policy]]\nname = \"a\"\n{line}\n"), "t")
}

/// A docker backend with `line` in it.
fn backend(line: &str) -> Result<Settings, Faults> {
    parse(&format!("[[backend]]\nname = \"d\"\nkind = \"docker\"\nopenhands = true\n{line}\n"), "t")
}

/// The one fault's problem and what it thinks was meant.
fn fault(read: Result<Settings, Faults>) -> (String, Option<String>) {
    let faults = read.unwrap_err().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    (faults[0].problem.clone(), faults[0].nearest.clone())
}

#[test]
fn durations_have_units() {
    for (text, expected) in [
        ("30m", HOUR / 2),
        ("1h30m", HOUR * 3 / 2),
        ("1h 30m", HOUR * 3 / 2),
        ("7d", HOUR * 168),
        ("2w", HOUR * 336),
        ("90s", Duration::from_secs(90)),
        ("1500ms", Duration::from_millis(1500)),
        ("36500d", HOUR * 24 * 36_500),
    ] {
        let settings = policy(&format!("idle.after = {text:?}")).unwrap();
        assert_eq!(settings.policy.rules[0].idle_after, Some(expected), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_told_with_the_nearest() {
    let cases = [
        ("\"30\"", "`30`: not whole numbers with a unit each", None),
        ("\"m\"", "`m`: not whole numbers with a unit each", None),
        ("\"1.5h\"", "`1.5h`: not whole numbers with a unit each", None),
        ("\"-5m\"", "`-5m`: not whole numbers with a unit each", None),
        ("\"30min\"", "`30min`: `min` is not a unit of time", Some("30m")),
        ("\"1h30minuts\"", "`1h30minuts`: `minuts` is not a unit of time", Some("1h30m")),
        ("\"7Days\"", "`7Days`: `Days` is not a unit of time", Some("7d")),
        ("\"30M\"", "`30M`: `M` is not a unit of time", Some("30m")),
        ("\"3months\"", "`3months`: `months` is not a unit of time", None),
        ("\"30m1h\"", "`30m1h`: `h` is out of order; units go from the largest to the smallest, each once", None),
        ("\"36501d\"", "`36501d`: longer than `36500d`, the longest", None),
        ("30", "the bare number 30 has no unit", None),
        (
            "true",
            "expected a duration with units (w, d, h, m, s, ms), such as `30m`, `7d` or `1h30m`, found `true`",
            None,
        ),
    ];
    for (text, problem, nearest) in cases {
        let found = fault(policy(&format!("idle.after = {text}")));
        assert_eq!(found, (problem.to_owned(), nearest.map(str::to_owned)), "{text}");
    }
}

#[test]
fn windows_have_days_and_hours() {
    let window = |days: &str, hours: &str| {
        let line = format!("windows = [{{ tz = \"UTC\", days = {days:?}, hours = {hours:?}, idle.after = \"1h\" }}]");
        policy(&line).map(|settings| settings.policy.rules[0].windows[0].clone())
    };
    let days = |text: &str| {
        let days = window(text, "08-18").unwrap().days;
        days.map(|on| if on { 'x' } else { '.' }).iter().collect::<String>()
    };
    assert_eq!(days("mon-fri"), "xxxxx..");
    assert_eq!(days("sat,sun"), ".....xx");
    assert_eq!(days("mon,wed-fri"), "x.xxx..");
    assert_eq!(days("sat-mon"), "x....xx");
    assert_eq!(days("tue"), ".x.....");
    let hours = |text: &str| {
        let window = window("mon", text).unwrap();
        (window.from_minute, window.to_minute)
    };
    assert_eq!(hours("08-18"), (480, 1080));
    assert_eq!(hours("08:30-18"), (510, 1080));
    assert_eq!(hours("22-06"), (1320, 360), "past midnight");
    assert_eq!(hours("00-24"), (0, 1440));
    for wrong in ["", "8", "8-18", "08-25", "08-24:30", "08:60-18", "08-08", "24-06", "08 - 18", "08–18", "a-b"] {
        assert!(window("mon", wrong).is_err(), "{wrong}");
    }
    for (wrong, nearest) in [("monday", "mon"), ("Mon", "mon"), ("mon-fry", "fri"), ("thur", "thu"), ("weds", "wed")] {
        let (_, meant) = fault(policy(&format!("windows = [{{ tz = \"UTC\", days = {wrong:?} }}]")));
        assert_eq!(meant.as_deref(), Some(nearest), "{wrong}");
    }
    for wrong in ["", ",", "mon-", "mon,,tue", "mon fri"] {
        assert!(window(wrong, "08-18").is_err(), "{wrong}");
    }
}

#[test]
fn time_zones_are_those_of_the_database() {
    let zone = |name: &str| policy(&format!("windows = [{{ tz = {name:?} }}]"));
    for name in ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires", "Asia/Kolkata"] {
        let settings = zone(name).unwrap();
        assert_eq!(settings.policy.rules[0].windows[0].tz.iana_name(), Some(name));
    }
    for (wrong, nearest) in [
        ("Europe/Berln", Some("Europe/Berlin")),
        ("Berlin", Some("Europe/Berlin")),
        ("Americas/New_York", Some("America/New_York")),
        ("Mars/Olympus_Mons", None),
        ("Etc/Unknown", None),
    ] {
        let (problem, meant) = fault(zone(wrong));
        assert_eq!(problem, format!("`{wrong}`: no such time zone"));
        if nearest.is_some() {
            assert_eq!(meant.as_deref(), nearest, "{wrong}");
        }
    }
}

#[test]
fn prices_are_by_the_hour_or_the_day() {
    let price = |text: &str| {
        let settings = backend(&format!("price.running = {text:?}"))?;
        Ok::<_, Faults>(settings.policy.prices[&settings.backends[0].name].running)
    };
    for (text, micros) in [("0.08/h", 80_000), ("2.4/d", 100_000), ("0/h", 0), ("1/h", 1_000_000), ("0.000001/h", 1)] {
        assert_eq!(price(text).unwrap(), micros, "{text}");
    }
    for wrong in ["0.08", "$0.08/h", "-1/h", "0,08/h", "0.08/m", "1e3/h", ".5/h", "1./h", "0.0000001/h", "10000000/h"] {
        assert!(price(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rates_are_per_second_minute_or_hour() {
    let interval = |text: &str| Ok::<_, Faults>(backend(&format!("rate = {text:?}"))?.backends[0].rate.interval());
    for (text, millis) in [("5/s", 200), ("30/m", 2_000), ("60/h", 60_000)] {
        assert_eq!(interval(text).unwrap(), Duration::from_millis(millis), "{text}");
    }
    for wrong in ["5", "0/s", "-5/s", "5/d", "5/10s", "+5/s", "5 /s", "99999999999/s", "0.5/s"] {
        assert!(interval(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn shares_are_whole() {
    let share = |text: &str| policy(&format!("disk.budget = {text}"));
    assert_eq!(share("\"100%\"").unwrap().policy.rules[0].disk_budget.map(lifecycle::policy::Percent::get), Some(100));
    assert_eq!(fault(share("80")).1.as_deref(), Some("80%"));
    for wrong in ["\"101%\"", "\"80\"", "\"0.8\"", "0.8", "\"-1%\"", "\"%\"", "\"8 0%\"", "800", "\"080%%\""] {
        assert!(share(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn numbers_are_whole_and_in_bounds() {
    let concurrency =
        |text: &str| parse(&format!("[pass]\nconcurrency = {text}"), "t").map(|s| s.pass.concurrency.get());
    assert_eq!(concurrency("256").unwrap(), 256);
    assert_eq!(concurrency("0x10").unwrap(), 16);
    for wrong in ["0", "257", "-1", "1.0", "\"8\"", "99999999999999999999"] {
        assert!(concurrency(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn addresses_are_never_repeated_whole() {
    let notify = |url: &str| parse(&format!("[notify]\nurl = {url:?}"), "t");
    let settings = notify("https://hooks.example.com:8443/T0/secret").unwrap();
    assert!(!format!("{settings:?}").contains("T0"), "{settings:?}");
    let webhook = settings.notify.unwrap().url;
    assert_eq!(webhook.to_string(), "https://hooks.example.com:8443/…");
    assert_eq!(webhook.reveal(), "https://hooks.example.com:8443/T0/secret");
    for wrong in
        ["ftp://h/secret", "h/secret", "https:///secret", "https://", "https://u:secret@h/", "https://h/a secret"]
    {
        let text = notify(wrong).unwrap_err().to_string();
        assert!(!text.contains("secret") || text.contains("notify.secret"), "{text}");
        assert!(!text.contains("/secret") && !text.contains("u:"), "{text}");
    }
}
