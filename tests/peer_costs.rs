//! What a sign of life costs on our design and on the peer's, and that both stop the same.

use crate::peer::{
    Hour,
    fleet::{Fleet, HOUR},
    furlough,
    meter::Spent,
    monitor,
};

const SMALL: Fleet = Fleet { size: 100 };

/// Requests, write units and read units of the heartbeats; how many were stopped.
fn of(hour: Hour) -> (Spent, u64) {
    assert!(hour.whole().spent.requests > hour.heartbeats.spent.requests);
    (hour.heartbeats.spent, hour.stopped)
}

#[tokio::test]
async fn both_stop_who_fell_silent_and_a_sign_of_life_costs_one_unit_or_three() {
    let signs = (0..=HOUR).map(|second| SMALL.signs(second).count() as u64).sum();
    let spent = |writes| Spent { requests: signs, writes, reads: 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let units = signs as f64;
    assert_eq!(of(furlough::hour(SMALL).await), (spent(units), SMALL.silent()));
    assert_eq!(of(monitor::hour(SMALL).await), (spent(3.0 * units), SMALL.silent()));
}
