//! A policy: what the configuration says, checked and typed. Parsing is `settings`' part.
//!
//! Everything optional here is absent = never. Zero does not exist: `settings` turns it into absent
//! where that is the safe side, and refuses it where it would not be.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{BackendName, SignalSet};

pub mod matching;
pub mod window;

pub use matching::{Match, Pattern};
pub use window::Window;

/// Whether passes act or only report. `apply` works in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Passes only report.
    Report,
    /// Passes act.
    Enforce,
}

/// The whole policy of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Policy {
    /// Report or enforce.
    pub mode: Mode,
    /// How late a heartbeat may be. Default 30 s.
    pub coalesce: Duration,
    /// The most that any two clocks differ. Default 10 s.
    pub skew: Duration,
    /// How long what was reclaimed from disk stays in the trash. Default 7 days.
    pub trash_keep: Duration,
    /// How long a plan may be applied. Default 1 hour.
    pub plan_valid: Duration,
    /// `[[policy]]`, in order: the first match wins.
    pub rules: Vec<Rules>,
    /// What each backend costs.
    pub prices: BTreeMap<BackendName, Prices>,
    /// How much may be done per time.
    pub budgets: Budgets,
    /// When a pass only reports.
    pub breakers: Breakers,
}

/// One `[[policy]]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rules {
    /// Its name, for people.
    pub name: Arc<str>,
    /// What it applies to.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Suspend after this long without activity.
    pub idle_after: Option<Duration>,
    /// What counts as activity.
    pub signals: SignalSet,
    /// Suspend what was never seen active, this long after it was first seen. Never deletes.
    pub unknown_after: Option<Duration>,
    /// Suspend this long after it last started running, even if busy.
    pub lifetime_max: Option<Duration>,
    /// How long each stage is kept.
    pub retention: Retention,
    /// Delete only when notice of it was delivered this long ago.
    pub notice_before_delete: Option<Duration>,
    /// Shed files of a tier after this long without activity.
    pub files: FileRules,
    /// Shed the longest idle first until the disk is under this fullness.
    pub disk_budget: Option<Percent>,
    /// What must be saved before files are lost.
    pub workspace: WorkspaceRule,
    /// How the provider's own settings are used.
    pub native: NativeMode,
    /// A runtime's own wish, within bounds.
    pub overrides: Option<Overrides>,
    /// Times of the week with an `idle.after` of their own; the first that applies wins.
    pub windows: Vec<Window>,
}

/// How long each stage is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Retention {
    /// A suspended one; then archive, or delete where there is no archive.
    pub suspended: Option<Duration>,
    /// An archived one; then delete.
    pub archived: Option<Duration>,
    /// A saved workspace of a deleted one.
    pub workspace: Option<Duration>,
}

/// Shedding by age, per tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileRules {
    /// Caches of tools.
    pub caches: Option<Duration>,
    /// Git-ignored dependency and build directories.
    pub dependencies: Option<Duration>,
}

/// What must be saved before files are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceRule {
    /// Not saved means not deleted.
    Save,
    /// The user said that it may be lost.
    Discard,
}

/// How a provider's own settings are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeMode {
    /// The provider does what it can; the loop does the rest, and what is overdue.
    Prefer,
    /// Ours first, the provider later.
    Backstop,
    /// Never written.
    Off,
}

/// A runtime's own wish for `idle.after`, by label, within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overrides {
    /// The label that carries a duration.
    pub label: Arc<str>,
    /// The shortest that it can ask for.
    pub min: Duration,
    /// The longest that it can ask for.
    pub max: Duration,
}

/// The label whose value (RFC 3339) holds a runtime until then. Unreadable: it holds.
pub const HOLD_LABEL: &str = "furlough.hold";

/// A share, 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Percent(u8);

impl Percent {
    /// 1 to 100, else `None`.
    pub fn new(percent: u8) -> Option<Self> {
        (1..=100).contains(&percent).then_some(Self(percent))
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// This share of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        u64::try_from(u128::from(whole) * u128::from(self.0) / 100).unwrap_or(u64::MAX)
    }
}

/// Millionths of a currency unit per hour.
pub type MicrosPerHour = u64;

/// What a runtime of a backend costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Prices {
    /// While running.
    pub running: MicrosPerHour,
    /// While suspended.
    pub suspended: MicrosPerHour,
}

/// How much may be done per time. Missing means zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Budgets {
    /// Suspends.
    pub suspend: Option<Budget>,
    /// Archives.
    pub archive: Option<Budget>,
    /// Deletes.
    pub delete: Option<Budget>,
    /// File tiers shed.
    pub shed: Option<Budget>,
}

/// The kinds of act that have a budget of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Suspends.
    Suspend,
    /// Archives.
    Archive,
    /// Deletes.
    Delete,
    /// File tiers shed.
    Shed,
}

impl BudgetKind {
    /// The word in policies, keys and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Archive => "archive",
            Self::Delete => "delete",
            Self::Shed => "shed",
        }
    }
}

impl std::fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// `max(min, max % of the last complete sweep)` acts in each window of `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// A share of the last complete sweep.
    pub max: Option<Percent>,
    /// Allowed however small the fleet is.
    pub min: u32,
    /// The window's length, at least a second.
    pub per: Duration,
}

impl Budgets {
    /// The budget of `kind`; `None` allows nothing.
    pub fn of(&self, kind: BudgetKind) -> Option<Budget> {
        match kind {
            BudgetKind::Suspend => self.suspend,
            BudgetKind::Archive => self.archive,
            BudgetKind::Delete => self.delete,
            BudgetKind::Shed => self.shed,
        }
    }
}

impl Budget {
    /// How many acts a window allows when the last complete sweep counted `fleet` (0 when there was none).
    pub fn allows(self, fleet: u64) -> u64 {
        self.max.map_or(0, |share| share.of(fleet)).max(u64::from(self.min))
    }

    /// The number of the window in which `now` lies, from the Unix epoch.
    pub fn window(self, now: crate::Time) -> i64 {
        let per = i64::try_from(self.per.as_millis()).unwrap_or(i64::MAX).max(1);
        now.millis().div_euclid(per)
    }

    /// When the next window begins.
    pub fn next_window(self, now: crate::Time) -> crate::Time {
        let per = i64::try_from(self.per.as_millis()).unwrap_or(i64::MAX).max(1);
        crate::Time::from_millis(self.window(now).saturating_add(1).saturating_mul(per))
    }
}

/// When a pass only reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Breakers {
    /// A complete inventory that shrank by more than this since the last.
    pub inventory_drop: Option<Percent>,
    /// The share of heartbeat-fed records that fell silent, over its trailing mean: ingestion is down.
    pub silent: Option<Percent>,
}

/// Names a policy by its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyHash(String);

impl PolicyHash {
    /// The text: 16 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// From a record or a plan file. Any text is taken; it only ever has to equal.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for PolicyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Policy {
    /// Names this policy by everything that can change a verdict. `mode` can't, and is left out, so
    /// that a plan made in report mode can be applied after the switch to enforce.
    pub fn hash(&self) -> PolicyHash {
        let named = Self { mode: Mode::Report, ..self.clone() };
        let bytes = serde_json::to_vec(&named).unwrap_or_default();
        PolicyHash(blake3::hash(&bytes).to_hex()[..16].to_owned())
    }

    /// What time alone must exceed beyond `idle.after`: a heartbeat may be that late, and clocks differ.
    pub fn slack(&self) -> Duration {
        self.coalesce.saturating_add(self.skew)
    }
}
