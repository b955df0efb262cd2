//! What is known of a backend beside its runtimes, and the planner asked about one runtime alone.

use std::{collections::BTreeMap, sync::Arc};

use ledger::LedgerError;
use lifecycle::{
    Action, Arming, Disk, Evidence, Item, Judge, Kept, PolicyHash, Snapshot, Subject, Sweep, Time, UnitSnapshot, plan,
    plan::BackendNote, policy::BudgetKind, snapshot::Listing,
};

use crate::context::Context;

/// Every kind of act that is counted.
const KINDS: [BudgetKind; 4] = [BudgetKind::Suspend, BudgetKind::Archive, BudgetKind::Delete, BudgetKind::Shed];

/// A backend as a whole, as it was read once in a pass.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) last_sweep: Option<Sweep>,
    pub(crate) silent_mean: Option<f64>,
    pub(crate) swept_under: Option<PolicyHash>,
    pub(crate) paused: bool,
    pub(crate) used: BTreeMap<BudgetKind, u64>,
    pub(crate) disk: Option<Disk>,
    /// How many runtimes the shares of the budgets are of: as many as the planner counts.
    pub(crate) fleet: u64,
    /// What could not be read, for the report. What is missing is the safe side.
    pub(crate) errors: Vec<Arc<str>>,
}

impl Scene {
    /// Reads it. A budget that can't be read is spent; a disk that can't be read is no disk.
    pub(crate) async fn read(cx: Context<'_>) -> Result<Self, LedgerError> {
        let (now, name) = (cx.now(), cx.name());
        let unit = cx.ledger().unit(name).await?;
        let mut scene = Self {
            fleet: unit.last_sweep.map_or(0, |sweep| sweep.count),
            last_sweep: unit.last_sweep,
            silent_mean: unit.silent_mean,
            swept_under: unit.policy,
            paused: unit.paused.is_some(),
            used: BTreeMap::new(),
            disk: None,
            errors: Vec::new(),
        };
        for kind in KINDS {
            let Some(budget) = cx.policy().budgets.of(kind) else { continue };
            let used = cx.ledger().used_budget(name, kind, budget.window(now)).await?;
            scene.used.insert(kind, used);
        }
        match cx.calls().disk().await {
            Ok(disk) => scene.disk = disk,
            Err(error) => scene.errors.push(format!("how full the disk is could not be read: {error}").into()),
        }
        Ok(scene)
    }

    /// One of which nothing is known: enough to say when what was just called back comes due.
    pub(crate) fn bare() -> Self {
        Self {
            last_sweep: None,
            silent_mean: None,
            swept_under: None,
            paused: false,
            used: BTreeMap::new(),
            disk: None,
            fleet: 0,
            errors: Vec::new(),
        }
    }

    /// A snapshot with all of it and no runtimes.
    pub(crate) fn snapshot(&self, cx: Context<'_>, listing: Listing) -> UnitSnapshot {
        self.furnish(UnitSnapshot::new(cx.name().clone(), cx.unit.backend.capabilities(), listing))
    }

    /// Puts all of it beside the runtimes.
    pub(crate) fn furnish(&self, mut unit: UnitSnapshot) -> UnitSnapshot {
        unit.last_sweep = self.last_sweep;
        unit.silent_mean = self.silent_mean;
        unit.paused = self.paused;
        unit.used.clone_from(&self.used);
        unit.disk = self.disk;
        unit
    }

    /// How many acts of `kind` a window allows.
    pub(crate) fn budget(&self, cx: Context<'_>, kind: BudgetKind) -> u64 {
        cx.policy().budgets.of(kind).map_or(0, |budget| budget.allows(self.fleet))
    }

    /// Before any sweep the shares are of what a complete listing found, as in the plan.
    pub(crate) fn count(&mut self, note: &BackendNote) {
        if self.last_sweep.is_none() && note.listing.complete {
            self.fleet = note.ours;
        }
    }

    /// What the planner says of one runtime alone. Pause, breakers and budgets are not asked here: those are
    /// decided over all runtimes, and each claim takes its budget from the ledger.
    pub(crate) fn judge(&self, cx: Context<'_>, subject: Subject, now: Time) -> Verdict {
        let unit = self.alone(cx, subject, now);
        let mut plan = plan(&Snapshot { units: vec![unit] }, cx.policy(), now);
        match (plan.items.pop(), plan.kept.pop()) {
            (Some(item), _) => Verdict::Act(Box::new(item)),
            (None, Some(kept)) => Verdict::Keep(kept),
            (None, None) => Verdict::Nothing,
        }
    }

    /// When a runtime comes due.
    pub(crate) fn arming(&self, cx: Context<'_>, subject: &Subject, now: Time) -> Arming {
        let listing = Listing { complete: true, at: now, error: None };
        soon_enough(cx, subject, Judge::new(&self.snapshot(cx, listing), cx.policy(), now).arming(subject), now)
    }

    fn alone(&self, cx: Context<'_>, subject: Subject, now: Time) -> UnitSnapshot {
        let mut unit = self.snapshot(cx, Listing { complete: false, at: now, error: None });
        unit.last_sweep = Some(Sweep { at: now, count: u64::MAX });
        unit.silent_mean = Some(1.0);
        unit.paused = false;
        unit.used = KINDS.map(|kind| (kind, 0)).into();
        unit.set_subjects(vec![subject]);
        unit
    }
}

/// What failed is tried again when it is due: whatever else keeps it now may end before that, so it never waits for
/// longer than its failures say.
pub(crate) fn soon_enough(cx: Context<'_>, subject: &Subject, arming: Arming, now: Time) -> Arming {
    match subject.record.as_deref().map(|record| record.attempts).filter(|attempts| *attempts > 0) {
        None => arming,
        Some(attempts) => {
            let again = now.plus(cx.backoff(attempts));
            Arming { due_at: Some(arming.due_at.map_or(again, |due| due.min(again))), ..arming }
        }
    }
}

/// What the planner says of one runtime.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Act(Box<Item>),
    Keep(Kept),
    /// It is not in the snapshot at all.
    Nothing,
}

impl Verdict {
    /// Whether it is still the act of `item`, on the same run and the same evidence of activity. Else why not.
    pub(crate) fn still(&self, item: &Item) -> Result<(), String> {
        match self {
            Self::Act(now) => unmoved(item, now),
            Self::Keep(kept) => Err(kept.reason.to_string()),
            Self::Nothing => Err("nothing is known of it".to_owned()),
        }
    }

    /// When the planner would look next.
    pub(crate) fn next_check(&self) -> Option<Time> {
        match self {
            Self::Keep(kept) => kept.next_check,
            Self::Act(_) | Self::Nothing => None,
        }
    }
}

/// Act, run, state and activity are those that the item was planned on. Else what is another.
pub(crate) fn unmoved(item: &Item, now: &Item) -> Result<(), String> {
    if now.action != item.action {
        return Err(format!("it would now be another act: {}", now.action));
    }
    if now.incarnation != item.incarnation {
        let (planned, there) = (item.incarnation.as_str(), now.incarnation.as_str());
        return Err(format!("another run of it is there: `{there}`, planned was `{planned}`"));
    }
    if now.state != item.state {
        return Err(format!("its state is {}, planned was {}", now.state, item.state));
    }
    if moved(&item.evidence, &now.evidence, item.token.is_some()) {
        let (planned, there) = (item.evidence.idle_from, now.evidence.idle_from);
        return Err(format!("it was active since: idle from {there}, planned was {planned}"));
    }
    Ok(())
}

/// Whether the activity that an act rests on is another. Without a record the clock of an unknown activity
/// began with the look, so that only what was proved can be compared.
fn moved(planned: &Evidence, now: &Evidence, recorded: bool) -> bool {
    let proved = now.last_active > planned.last_active;
    proved || (recorded && now.idle_from > planned.idle_from)
}

/// Whether an act is aimed at what runs, so that the agent server inside can be asked.
pub(crate) fn may_ask(action: Action) -> bool {
    matches!(action, Action::Suspend | Action::Shed(_) | Action::Delete | Action::Notify)
}
