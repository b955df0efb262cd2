//! The tables of the file, as written: every key, what is said of it in the schema, and which must be there.

use std::collections::BTreeMap;

use lifecycle::{
    Signal,
    policy::{Mode, NativeMode, WorkspaceRule},
};

use crate::{
    SecretSource,
    read::{At, table},
    scalar::{Count, Days, Hours, Period, Share, Text, Word, Zone},
};

mod backend;
mod secret;

pub(crate) use backend::{
    BackendTable, CloudflareTable, DaytonaTable, DockerTable, E2bTable, ModalTable, OpenHandsTable, PriceTable,
    RepositoryTable, ScopeTable, WorktreeTable,
};

/// `[[key]]`, or a list.
pub(crate) type List<T> = Vec<At<T>>;
/// Names with a text each.
pub(crate) type Labels = BTreeMap<String, At<Text>>;

table! {
    /// The whole file.
    File {
        /// `report` (the default): passes only report. `enforce`: passes act. `apply` works in both.
        mode: Word<Mode>,
        /// How far clocks and heartbeats may be off.
        clock: ClockTable,
        /// Who is told of deletions before they happen.
        notify: NotifyTable,
        /// Where runtimes are.
        backend: List<BackendTable>,
        /// What happens to them; the first that matches wins.
        policy: List<PolicyTable>,
        /// How much may be done per time. What is not named may not be done at all.
        budget: BudgetTable,
        /// When a pass only reports.
        breaker: BreakerTable,
        /// What was reclaimed from disk.
        trash: TrashTable,
        /// Plan files.
        plan: PlanTable,
        /// The limits of a pass.
        pass: PassTable,
        /// Where workspaces are kept, and how much of them.
        workspaces: WorkspacesTable,
    }
}

table! {
    /// `[clock]`
    ClockTable {
        /// A heartbeat may be this late. Default `30s`.
        coalesce: Period,
        /// The most that any two clocks differ. Default `10s`.
        skew: Period,
    }
}

table! {
    /// `[notify]`
    NotifyTable {
        /// A POST goes here per event. Needed where `notice.before_delete` is used.
        url: Text = required,
        /// What the events are signed with.
        secret: SecretSource,
    }
}

table! {
    /// `[[policy]]`
    PolicyTable {
        /// Its name in reports.
        name: Text = required,
        /// What it applies to; all of it must hold. Left out: everything.
        r#match: MatchTable,
        /// What counts as idle.
        idle: IdleTable,
        /// What happens to a runtime that was never seen active.
        unknown: UnknownTable,
        /// How long a runtime may run.
        lifetime: LifetimeTable,
        /// How long each stage is kept.
        retention: RetentionTable,
        /// What is told before it happens.
        notice: NoticeTable,
        /// Which files are shed first.
        files: FilesTable,
        /// How full the disk may be.
        disk: DiskTable,
        /// `save` (the default): what is not saved is not deleted. `discard`: it may be lost.
        workspace: Word<WorkspaceRule>,
        /// How the provider's own settings are used: `prefer`, `backstop`, or `off` (the default).
        native: Word<NativeMode>,
        /// A runtime's own wish for `idle.after`, by label, within bounds.
        overrides: OverridesTable,
        /// Times of the week with an `idle.after` of their own; the first that applies wins.
        windows: List<WindowTable>,
    }
    unkept {
    }
}

table! {
    /// What a policy applies to.
    MatchTable {
        /// Names of backends, one of which must match; `*` stands for any characters.
        backend: List<Text>,
        /// Labels that must be there, with values that match; `*` stands for any characters.
        labels: Labels,
    }
}

table! {
    /// What counts as idle.
    IdleTable {
        /// Suspend after this long without activity.
        after: Period,
        /// What counts as activity. Default: all of it.
        signals: List<Word<Signal>>,
    }
}

table! {
    /// Never seen active.
    UnknownTable {
        /// Suspend (never delete) this long after it was first seen.
        after: Period,
    }
}

table! {
    /// How long a runtime may run.
    LifetimeTable {
        /// Suspend this long after it last started, even if busy.
        max: Period,
    }
}

table! {
    /// How long each stage is kept.
    RetentionTable {
        /// A suspended one; then archive, or delete where there is no archive.
        suspended: Period,
        /// An archived one; then delete.
        archived: Period,
        /// The saved workspace of a deleted one; then it goes too.
        workspace: Period,
    }
}

table! {
    /// What is told before it happens.
    NoticeTable {
        /// Delete only when notice was delivered this long ago.
        before_delete: Period,
    }
}

table! {
    /// Which files are shed first, and after how long without activity.
    FilesTable {
        /// Caches of tools.
        caches: Period,
        /// Git-ignored dependency and build directories.
        dependencies: Period,
    }
}

table! {
    /// How full the disk may be.
    DiskTable {
        /// Shed the longest idle first until the disk is under this.
        budget: Share,
    }
}

table! {
    /// A runtime's own wish.
    OverridesTable {
        /// The label that carries a duration.
        label: Text = required,
        /// The shortest that it can ask for.
        min: Period = required,
        /// The longest that it can ask for.
        max: Period = required,
    }
}

table! {
    /// A part of each week.
    WindowTable {
        /// Whose wall clock counts.
        tz: Zone = required,
        /// Which days. Default: every day. A window past midnight belongs to the day that it begins on.
        days: Days,
        /// Which hours. Default: the whole day.
        hours: Hours,
        /// What applies then.
        idle: WindowIdleTable,
    }
}

table! {
    /// What applies in a window.
    WindowIdleTable {
        /// Suspend after this long without activity. Left out: never, in this window.
        after: Period,
    }
}

table! {
    /// `[budget]`
    BudgetTable {
        /// Suspends.
        suspend: ShareTable,
        /// Archives.
        archive: ShareTable,
        /// Deletes.
        delete: ShareTable,
        /// File tiers shed.
        shed: ShareTable,
    }
}

table! {
    /// The larger of `max` and `min` may be done in each `per`.
    ShareTable {
        /// A share of the last complete sweep. `0%`: nothing at all.
        max: Share,
        /// So many in any case. Default 0.
        min: Count,
        /// The length of a window, from `1s` to `30d`.
        per: Period = required,
    }
}

table! {
    /// `[breaker]`
    BreakerTable {
        /// A complete listing that shrank by more than this opens it. Default `30%`.
        inventory_drop: Share,
        /// More heartbeat-fed runtimes than this fell silent, over their trailing mean. Default `20%`.
        silent: Share,
    }
}

table! {
    /// `[trash]`
    TrashTable {
        /// How long `undo` can bring it back. Default `7d`.
        keep: Period,
    }
}

table! {
    /// `[plan]`
    PlanTable {
        /// How long a plan file may be applied. Default `1h`.
        valid: Period,
    }
}

table! {
    /// `[pass]`
    PassTable {
        /// `furlough run` makes a pass this often. Default `1m`.
        every: Period,
        /// Every runtime is listed and looked at this often; passes between look at what is due. Default `15m`.
        sweep: Period,
        /// After this long a pass leaves the rest to the next. Default `5m`.
        deadline: Period,
        /// So many runtimes are acted on at once, from 1 to 256. Default 8.
        concurrency: Count,
    }
}

table! {
    /// `[workspaces]`
    WorkspacesTable {
        /// The bucket that they are kept in: `s3://BUCKET` or `s3://BUCKET/PREFIX`. Left out: the data folder.
        store: Text,
        /// So many generations of each are kept, from 1 to 1,000. Default 3.
        keep: Count,
        /// What is no longer referred to stays so long. Longer than the longest push and pull. Default `1d`.
        grace: Period,
    }
}
