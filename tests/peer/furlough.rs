//! The same hour on Furlough: the production ledger and pass, a backend in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use backend::{
    Clock,
    fake::{Fake, RuntimeSpec, What},
};
use ledger::{Heartbeat, Ledger, Options, Registered};
use lifecycle::{Arming, BackendName, RuntimeId, Time, report::Standing};
use pass::{Gate, Limits, Pass, Unit, Unwatched};

use super::{
    Hour, add,
    fleet::{Fleet, HOUR, Way},
    meter::Meter,
    now,
};

/// 2026-11-30T12:00:00Z.
const START: i64 = 1_796_040_000_000;

/// The seconds between two ticks.
const EVERY: i64 = 60;

/// Suspended when idle for half an hour, as many as are.
const CONFIGURATION: &str = r#"
mode = "enforce"
[[backend]]
name = "box"
kind = "docker"
[[policy]]
name = "all"
idle.after = "30m"
[budget]
suspend = { max = "100%", per = "1h" }
"#;

/// The hour on this design.
pub(crate) async fn hour(fleet: Fleet) -> Hour {
    let hands = Arc::new(AtomicI64::new(START - EVERY * 1_000));
    let clock = {
        let hands = hands.clone();
        Clock::new(move || Time::from_millis(hands.load(Ordering::Relaxed)))
    };
    let meter = Meter::new(&embedded::memory().unwrap());
    let (pass, fake) = swept(fleet, &meter, clock).await;
    hands.store(START - 1_000, Ordering::Relaxed);
    while !pass.run().await.upkeep.more_due.is_empty() {}
    let _ = meter.take();
    let mut hour = Hour::default();
    for second in 0..=HOUR {
        let at = Time::from_millis(START + second * 1_000);
        hands.store(at.millis(), Ordering::Relaxed);
        let begun = now();
        for number in fleet.signs(second) {
            let told = pass.ledger.heartbeat(&id(number), None, None, at).await.unwrap();
            assert_eq!(told, Heartbeat::Recorded, "{number} at {second} s");
        }
        add(&mut hour.heartbeats, &meter, begun.elapsed());
        if second > 0 && second % EVERY == 0 {
            let begun = now();
            let outcome = pass.run().await;
            let took = begun.elapsed();
            assert_eq!(outcome.report.standing(), Standing::AllDone, "{:?}", outcome.report);
            let part = if second == HOUR { &mut hour.sweep } else { &mut hour.ticks };
            add(part, &meter, took);
        }
    }
    hour.stopped = fake.effects().iter().filter(|effect| effect.what == What::Suspended).count() as u64;
    hour
}

/// The fleet: seen by a sweep, and what runs registered by its host.
async fn swept(fleet: Fleet, meter: &Meter, clock: Clock) -> (Pass, Fake) {
    let policy = settings::parse(CONFIGURATION, "furlough.toml").unwrap().policy;
    let options = Options { coalesce: policy.coalesce, skew: policy.skew, ..Options::default() };
    let ledger = Ledger::new(meter.client(), options);
    ledger.create_tables().await.unwrap();
    let fake = Fake::new(backend(), clock.clone());
    for (number, way) in fleet.runtimes() {
        let name = name(number);
        let spec = if way == Way::AtRest { RuntimeSpec::suspended(&name) } else { RuntimeSpec::running(&name) };
        // Its activity is told by heartbeats alone.
        fake.add(spec.unknown().no_agent_server());
    }
    let pass = Pass {
        ledger,
        units: vec![Unit { backend: fake.builder().suspends().build(), gate: Gate::open() }],
        policy: Arc::new(policy),
        clock,
        owner: "bench".to_owned(),
        limits: Limits { sweep_every: Duration::from_secs(HOUR.unsigned_abs()), ..Limits::default() },
        notifier: None,
        watch: Arc::new(Unwatched),
    };
    let swept = pass.run().await;
    assert_eq!(swept.report.backends[0].note.ours, u64::from(fleet.size));
    for (number, _) in fleet.runtimes().filter(|(_, way)| *way != Way::AtRest) {
        let now = pass.clock.now();
        let due = Arming { due_at: Some(now), ..Arming::default() };
        let told = pass.ledger.register(&id(number), &<_>::default(), due, now).await.unwrap();
        assert!(matches!(told, Registered::Done(_)), "{told:?}");
    }
    (pass, fake)
}

fn backend() -> BackendName {
    BackendName::new("box").unwrap()
}

fn name(number: u32) -> String {
    format!("runtime-{number:08}")
}

fn id(number: u32) -> RuntimeId {
    RuntimeId::new(&backend(), name(number).as_bytes()).unwrap()
}
