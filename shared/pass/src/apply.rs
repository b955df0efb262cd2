//! Doing what a plan lists, and nothing else.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use lifecycle::{BackendName, Fate, Item, Plan, Report};

use crate::{Pass, PassError, attempt::Fated, context::Context, scene::Scene, unit_run};

impl Pass {
    /// Does the items of `plan`, in its order within each backend. A plan that expired or was made under another
    /// policy is refused whole; an item whose runtime moved since is refused by name, in the report.
    ///
    /// Works in report mode too: a person has read the plan. Budgets, pause, holds and claims count as ever.
    pub async fn apply(&self, plan: &Plan) -> Result<Report, PassError> {
        let began = self.clock.now();
        plan.check(&self.policy, began)?;
        let mut by_unit: BTreeMap<&BackendName, Vec<(usize, &Item)>> = BTreeMap::new();
        for (at, item) in plan.items.iter().enumerate() {
            by_unit.entry(item.runtime.backend()).or_default().push((at, item));
        }
        if let Some(backend) = by_unit.keys().find(|name| self.units.iter().all(|unit| unit.backend.name != ***name)) {
            return Err(PassError::NoBackend { backend: (*backend).clone() });
        }
        let deadline = began.plus(self.limits.duration);
        let units = self.units.iter().filter_map(|unit| {
            let items = by_unit.remove(&unit.backend.name)?;
            Some(apply_unit(Context { pass: self, unit, deadline }, plan, items))
        });
        let units: Vec<_> = units.collect();
        let many = units.len().max(1);
        let done: Vec<_> = stream::iter(units).buffer_unordered(many).collect().await;
        let mut report = Report::of(plan, self.policy.mode);
        report.at = began;
        for (at, fated) in done.into_iter().flatten() {
            if let Some(entry) = report.entries.get_mut(at) {
                entry.fate = fated.fate;
                entry.detail = fated.detail;
                entry.saves.bytes = fated.bytes.unwrap_or(entry.saves.bytes);
            }
        }
        report.took = self.clock.now().since(began);
        Ok(report)
    }
}

async fn apply_unit(cx: Context<'_>, plan: &Plan, items: Vec<(usize, &Item)>) -> Vec<(usize, Fated)> {
    let mut scene = match Scene::read(cx).await {
        Ok(scene) => scene,
        Err(error) => {
            let fated = Fated::new(Fate::Failed, error.to_string());
            return items.into_iter().map(|(at, _)| (at, fated.clone())).collect();
        }
    };
    for note in plan.backends.iter().filter(|note| note.backend == *cx.name()) {
        scene.count(note);
    }
    let scene = &scene;
    let acts = stream::iter(items).map(|(at, item)| async move { (at, unit_run::one(cx, scene, item, None).await) });
    acts.buffered(cx.concurrency()).collect().await
}
