//! The simulation at length: `cargo run --release -p furlough-tests --example simulate -- SEEDS [FROM]`.
//!
//! Runs so many seeds over all cores and prints how often each event came, in how many of them, and seeds per second. The
//! first seed that breaks an invariant ends it, with its trace. `-- seed N` runs one seed and prints its whole trace.
//! `-- cover SEEDS` names few of so many seeds that together reach all that must be reached, which a thousand seeds
//! always must.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails loudly"
)]

mod simulation;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use simulation::{REACHED, account, run};

/// So many seeds must reach all that matters.
const ENOUGH: u64 = 1_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number of seeds, or of a seed");
    match words[..] {
        ["seed", seed] => one(number(seed)),
        ["cover", seeds] => cover(number(seeds)),
        [seeds] => many(0, number(seeds)),
        [seeds, from] => many(number(from), number(seeds)),
        _ => {
            println!("simulate SEEDS [FROM] | simulate seed N | simulate cover SEEDS");
            ExitCode::from(2)
        }
    }
}

fn one(seed: u64) -> ExitCode {
    let ran = run(seed, true);
    println!("{}", ran.trace.text(None));
    let Some(violation) = ran.violation else { return ExitCode::SUCCESS };
    println!("{violation}");
    ExitCode::FAILURE
}

/// The seed that reaches most of what is left, again and again.
fn cover(seeds: u64) -> ExitCode {
    let mut reach: BTreeMap<u64, Vec<&str>> =
        (0..seeds).map(|seed| (seed, run(seed, false).counts.into_keys().collect())).collect();
    let mut left = REACHED.to_vec();
    while let Some((seed, _)) = reach
        .iter()
        .map(|(seed, events)| (*seed, left.iter().filter(|event| events.contains(event)).count()))
        .filter(|(_, new)| *new > 0)
        .max_by_key(|(seed, new)| (*new, u64::MAX - seed))
    {
        let events = reach.remove(&seed).unwrap_or_default();
        let new: Vec<_> = left.iter().filter(|event| events.contains(event)).collect();
        println!("{seed}: {new:?}");
        left.retain(|event| !events.contains(event));
    }
    println!("never: {left:?}");
    if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn many(from: u64, seeds: u64) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time; nothing that it measures reads it")]
    let began = Instant::now();
    let (next, end) = (AtomicU64::new(from), AtomicU64::new(from + seeds));
    let counts = Mutex::new(BTreeMap::<&'static str, (u64, u64)>::new());
    let broken = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let ran = run(seed, false);
                    let mut counts = counts.lock().unwrap();
                    for (event, times) in ran.counts {
                        let (all, seeds) = counts.entry(event).or_default();
                        *all += times;
                        *seeds += 1;
                    }
                    if ran.violation.is_some() {
                        broken.lock().unwrap().push(seed);
                        end.store(0, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("       times    seeds");
    for (event, (times, seeds)) in &*counts.lock().unwrap() {
        println!("{times:>12} {seeds:>8}  {event}");
    }
    if let Some(seed) = broken.into_inner().unwrap().into_iter().min() {
        println!("{}", account(seed));
        return ExitCode::FAILURE;
    }
    let counts = counts.into_inner().unwrap();
    let never: Vec<_> = REACHED.iter().filter(|event| !counts.contains_key(*event)).collect();
    if seeds >= ENOUGH && !never.is_empty() {
        println!("never happened in {seeds} seeds: {never:?}");
        return ExitCode::FAILURE;
    }
    let millis = began.elapsed().as_millis().max(1);
    let tenths = u128::from(seeds) * 10_000 / millis;
    println!("{seeds} seeds from {from}, 0 violations, {} s, {}.{} seeds/s", millis / 1_000, tenths / 10, tenths % 10);
    ExitCode::SUCCESS
}
