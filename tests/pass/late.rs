//! What reaches the record between the claim and the act. A claim for files or for a notice changes no state and refuses
//! no heartbeat, so the record is read again, after the look and just before the act.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Sighting, fake::RuntimeSpec};
use ledger::{Heartbeat, HoldRequest, Ledger};
use lifecycle::{Fate, RuntimeId, Tier, Time, record::Hold};

use super::stage::{DAY, HOUR, Stage, count, details, errors};

/// What comes while the runtime is looked at under the claim.
#[derive(Debug, Clone, Copy)]
enum Late {
    Heartbeat,
    Hold,
}

struct LateLook {
    inner: Arc<dyn Inspectable>,
    looks: AtomicUsize,
    ledger: Ledger,
    now: Time,
    late: Late,
}

#[async_trait]
impl Inspectable for LateLook {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        let seen = self.inner.inspect(id).await;
        // Look 0 is the sweep's, look 1 is the one under the claim.
        if self.looks.fetch_add(1, Ordering::Relaxed) == 1 {
            match self.late {
                Late::Heartbeat => drop(self.ledger.heartbeat(id, None, None, self.now).await.unwrap()),
                Late::Hold => {
                    let hold = HoldRequest { hold: Hold::Forever, why: "ask first", by: "a person" };
                    drop(self.ledger.hold(id, &hold, None, self.now).await.unwrap());
                }
            }
        }
        seen
    }
}

#[tokio::test]
async fn a_heartbeat_or_a_hold_between_the_claim_and_a_shed_wins() {
    for late in [Late::Heartbeat, Late::Hold] {
        let stage = Stage::new().await.rules(|rules| {
            rules.files.caches = Some(HOUR);
            rules.idle_after = None;
        });
        let old = stage.now().minus(DAY);
        stage.add(RuntimeSpec::running("a").active(old).since(old).shedable(Tier::Caches, "cache", "12345"));
        let mut backend = stage.fake.backend();
        let (ledger, now) = (stage.ledger.clone(), stage.now());
        backend.inspect = Arc::new(LateLook { inner: backend.inspect, looks: AtomicUsize::new(0), ledger, now, late });
        let outcome = stage.pass_of("pass-1", vec![backend]).run().await;
        let told = details(&outcome.report.entries);
        assert_eq!(stage.effects(), [""; 0], "{late:?}: {told:?}");
        assert_eq!(count(&outcome.report.entries, Fate::Moved), 1, "{late:?}: {told:?}");
        assert_eq!(stage.record("a").await.claim, None, "{late:?}");
    }
}

/// More is due than a pass looks at, and the pass sweeps: what it had no room for stays due, and the next calls it back.
#[tokio::test]
async fn what_is_wanted_and_had_no_room_is_not_put_off_by_a_sweep() {
    let stage = Stage::new().await.limits(|limits| limits.max_items = 1);
    for name in ["a", "b"] {
        stage.add(RuntimeSpec::suspended(name).since(stage.now().minus(HOUR)));
    }
    stage.tick().await;
    for name in ["a", "b"] {
        stage.advance(Duration::from_secs(1));
        assert!(matches!(stage.heartbeat(name).await, Heartbeat::NotRunning { .. }));
    }
    stage.advance(HOUR);
    let swept = stage.ticked().await;
    assert_eq!((swept.upkeep.swept.len(), stage.effects()), (1, vec!["a resumed".to_owned()]));
    stage.tick().await;
    assert_eq!(stage.effects(), ["a resumed", "b resumed"]);
}

/// What can't be called back is told of, and waits behind what can.
#[tokio::test]
async fn what_is_wanted_and_cannot_be_called_back_takes_no_place_of_others() {
    let stage = Stage::new().await.limits(|limits| limits.max_items = 1);
    let old = stage.now().minus(HOUR);
    for name in ["a", "b"] {
        stage.add(RuntimeSpec::suspended(name).since(old));
    }
    stage.tick().await;
    stage.add(RuntimeSpec::suspended("a").since(old).foreign());
    for name in ["a", "b"] {
        stage.advance(Duration::from_secs(1));
        assert!(matches!(stage.heartbeat(name).await, Heartbeat::NotRunning { .. }));
    }
    stage.advance(Duration::from_secs(1));
    let told = errors(&stage.pass().run().await);
    assert!(told[0].contains("box/a: it is wanted and could not be called back"), "{told:?}");
    assert_eq!(stage.effects(), [""; 0]);
    stage.tick().await;
    assert_eq!(stage.effects(), ["b resumed"]);
}
