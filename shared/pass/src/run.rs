//! A tick: every unit at once, each under its own lease and with its own trouble.

use futures::{StreamExt, stream};
use lifecycle::{Snapshot, plan};

use crate::{Pass, context::Context, outcome::Outcome, unit_run};

impl Pass {
    /// One pass under the configured mode. What went wrong with a backend is in the report; a slow one holds up
    /// none of the others.
    pub async fn run(&self) -> Outcome {
        let began = self.clock.now();
        let deadline = began.plus(self.limits.duration);
        let empty = plan(&Snapshot::default(), &self.policy, began);
        let units = stream::iter(&self.units).map(|unit| {
            let cx = Context { pass: self, unit, deadline };
            unit_run::run(cx, empty.clone())
        });
        let mut parts: Vec<_> = units.buffer_unordered(self.units.len().max(1)).collect().await;
        parts.sort_by(|a, b| a.backend().cmp(&b.backend()));
        let outcome = Outcome::of(parts, &empty, self.policy.mode, self.clock.now());
        outcome.log();
        outcome
    }
}
