//! What a pass would do, without a trace: nothing is written, not even a record.

use std::{collections::HashSet, sync::Arc};

use futures::{StreamExt, stream};
use lifecycle::{Kept, Plan, Reason, Snapshot, SnapshotBuilder, UnitSnapshot, plan, snapshot::Listing};

use crate::{
    Pass, PassError, Unit,
    context::Context,
    examine::{self, Writes, told},
    listing,
    scene::Scene,
};

/// One unit, looked at closely, and what of it can't be judged.
struct Previewed {
    unit: UnitSnapshot,
    unreadable: Vec<Kept>,
}

/// A plan and all that it is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// What was seen, with the records.
    pub snapshot: Snapshot,
    /// The plan.
    pub plan: Plan,
}

impl Pass {
    /// Lists every backend, looks closer at what would be acted on, and plans. Reads only.
    ///
    /// A backend that can't be listed is in the plan with its error, and all its runtimes are kept.
    pub async fn preview(&self) -> Result<Plan, PassError> {
        self.survey().await.map(|survey| survey.plan)
    }

    /// The same, with all that the plan is made from: for `list` and `explain`.
    pub async fn survey(&self) -> Result<Survey, PassError> {
        let deadline = self.clock.now().plus(self.limits.duration);
        let units = stream::iter(&self.units).map(|unit| self.preview_unit(unit, deadline));
        let units: Vec<_> = units.buffer_unordered(self.units.len().max(1)).collect().await;
        let mut snapshot = Snapshot::default();
        let mut unreadable = Vec::new();
        for previewed in units {
            let previewed = previewed?;
            snapshot.units.push(previewed.unit);
            unreadable.extend(previewed.unreadable);
        }
        let mut plan = plan(&snapshot, &self.policy, self.clock.now());
        if !unreadable.is_empty() {
            plan.kept.extend(unreadable);
            plan.kept.sort_by(|a, b| a.runtime.cmp(&b.runtime));
        }
        Ok(Survey { snapshot, plan })
    }

    async fn preview_unit(&self, unit: &Unit, deadline: lifecycle::Time) -> Result<Previewed, PassError> {
        let cx = Context { pass: self, unit, deadline };
        let scene = Scene::read(cx).await?;
        let known = listing::known(cx).await?;
        let listed = listing::list(cx).await;
        let rows = listing::readable(listed.rows, &known).into_iter().map(|row| told(cx, row));
        let mut errors: Vec<Arc<str>> = scene.errors.clone();
        errors.extend(known.errors.iter().cloned());
        errors.extend(known.unreadable.iter().map(|(_, error)| error.clone()));
        let built = SnapshotBuilder::new(cx.name().clone(), unit.backend.capabilities(), listed.listing)
            .seen(rows)
            .records(known.records)
            .build();
        let examined = examine::examine(cx, &scene, scene.furnish(built), HashSet::new(), Writes::Nothing).await;
        errors.extend(examined.errors.iter().map(|error| error.as_str().into()));
        let unreadable = known.unreadable.into_iter().map(|(runtime, _)| kept_unread(runtime)).collect();
        let mut unit = examined.unit;
        unit.listing = saying(unit.listing, &errors);
        Ok(Previewed { unit, unreadable })
    }
}

fn kept_unread(runtime: lifecycle::RuntimeId) -> Kept {
    Kept { runtime, reason: Reason::Unread, next_check: None, native_deadline: None, native_hidden: false }
}

/// What went wrong is said beside the listing; whether that is complete is its own.
fn saying(listing: Listing, errors: &[Arc<str>]) -> Listing {
    if errors.is_empty() {
        return listing;
    }
    let all: Vec<_> = listing.error.iter().chain(errors).map(|error| &**error).collect();
    Listing { error: Some(all.join("; ").into()), ..listing }
}
