//! The peer's design beside ours: `cargo bench -p furlough-tests --bench peer [-- SIZE …]`.
//!
//! For each size of a fleet one hour on both designs (see [`peer`]): requests, write and read units as the engine tells
//! them, and wall time, then ours as a ratio to the peer's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails loudly"
)]

mod peer;

use peer::{Hour, Part, fleet::Fleet};

fn main() {
    let given: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![1_000, 10_000, 100_000] } else { given };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("| runtimes | part | requests | write units | read units | wall |");
    println!("|---|---|---|---|---|---|");
    for size in sizes {
        let fleet = Fleet { size };
        let ours = runtime.block_on(peer::furlough::hour(fleet));
        let theirs = runtime.block_on(peer::monitor::hour(fleet));
        assert_eq!((ours.stopped, theirs.stopped), (fleet.silent(), fleet.silent()));
        for (name, part) in parts(ours).into_iter().zip(parts(theirs)) {
            print(size, name, part);
        }
    }
}

/// Each part of an hour with its name.
fn parts(hour: Hour) -> [(&'static str, Part); 4] {
    [("heartbeats", hour.heartbeats), ("ticks", hour.ticks), ("sweep", hour.sweep), ("all", hour.whole())]
}

fn print(size: u32, (name, ours): (&str, Part), (_, theirs): (&str, Part)) {
    for (whose, Part { spent, wall }) in [("Furlough", ours), ("the monitor", theirs)] {
        let (requests, writes, reads) = (spent.requests, spent.writes, spent.reads);
        println!("| {size} | {name}, {whose} | {requests} | {writes:.0} | {reads:.0} | {wall:.2?} |");
    }
    let ratio = |ours: f64, theirs: f64| if theirs > 0.0 { format!("{:.2}", ours / theirs) } else { "–".to_owned() };
    #[expect(clippy::cast_precision_loss, reason = "some millions")]
    let requests = ratio(ours.spent.requests as f64, theirs.spent.requests as f64);
    let writes = ratio(ours.spent.writes, theirs.spent.writes);
    let reads = ratio(ours.spent.reads, theirs.spent.reads);
    let wall = ratio(ours.wall.as_secs_f64(), theirs.wall.as_secs_f64());
    println!("| {size} | {name}, ratio | {requests} | {writes} | {reads} | {wall} |");
}
