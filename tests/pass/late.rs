//! What reaches the record between the claim and the act. A claim for files or for a notice changes no state and refuses
//! no heartbeat, so the record is read again, after the look and just before the act.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use backend::{BackendError, Inspectable, Sighting, fake::RuntimeSpec};
use ledger::{HoldRequest, Ledger};
use lifecycle::{Fate, RuntimeId, Tier, Time, record::Hold};

use super::stage::{DAY, HOUR, Stage, count, details};

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
