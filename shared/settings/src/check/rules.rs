//! `[[policy]]`.

use lifecycle::{
    Signal, SignalSet,
    duration::Human,
    policy::{FileRules, Match, NativeMode, Overrides, Pattern, Percent, Retention, Rules, Window, WorkspaceRule},
};

use super::{never, twice};
use crate::{
    file::{FilesTable, List, MatchTable, OverridesTable, PolicyTable, WindowTable},
    log::{Log, Problem},
    read::At,
    scalar::{Days, Hours, Share, Text, Word},
};

/// A policy, with where it stands.
pub(super) struct Rule {
    pub(super) rules: Rules,
    pub(super) name: At<()>,
    /// The patterns of `match.backend`.
    pub(super) patterns: Vec<At<Pattern>>,
    pub(super) notice: Option<At<()>>,
    /// Where `native` stands, if it asks for anything.
    pub(super) native: Option<At<()>>,
}

pub(super) fn all(tables: Option<At<List<PolicyTable>>>, log: &mut Log<'_>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for table in tables.into_iter().flat_map(|list| list.value) {
        let rule = rule(table, log);
        if !rule.rules.name.is_empty() && rules.iter().any(|other| other.rules.name == rule.rules.name) {
            log.error(&rule.name.path, &rule.name.span, twice("policy", &rule.rules.name));
        }
        rules.push(rule);
    }
    rules
}

fn rule(At { value: table, span, path }: At<PolicyTable>, log: &mut Log<'_>) -> Rule {
    // A policy without a name is a fault already; the rest of it is looked at all the same.
    let name = table.name.unwrap_or_else(|| At { value: Text(String::new()), span, path });
    let (matches, patterns) = table.r#match.map_or_else(Default::default, |table| matched(table, log));
    let idle = table.idle.map(|table| table.value).unwrap_or_default();
    let retention = table.retention.map(|table| table.value).unwrap_or_default();
    let files = table.files.map(|table| table.value).unwrap_or_default();
    let notice = table.notice.and_then(|table| table.value.before_delete);
    let native = table.native.as_ref().filter(|word| word.value.0 != NativeMode::Off).map(place);
    let windows = table.windows.into_iter().flat_map(|list| list.value);
    let rules = Rules {
        name: name.value.0.as_str().into(),
        matches,
        idle_after: never(idle.after, log),
        signals: idle.signals.map_or(SignalSet::ALL, |list| signals(&list, log)),
        unknown_after: never(table.unknown.and_then(|table| table.value.after), log),
        lifetime_max: never(table.lifetime.and_then(|table| table.value.max), log),
        retention: Retention {
            suspended: never(retention.suspended, log),
            archived: never(retention.archived, log),
            workspace: never(retention.workspace, log),
        },
        files: tiers(files, log),
        disk_budget: table.disk.and_then(|table| table.value.budget).and_then(|share| fullness(&share, log)),
        workspace: table.workspace.map_or(WorkspaceRule::Save, |word| word.value.0),
        native: table.native.map_or(NativeMode::Off, |word| word.value.0),
        overrides: table.overrides.and_then(|table| overrides(table.value, log)),
        windows: windows.filter_map(|table| window(table.value, log)).collect(),
        notice_before_delete: notice.as_ref().map(|at| at.value.0),
    };
    let notice = notice.map(|at| {
        if at.value.0.is_zero() {
            let problem = "zero would delete without notice; leave it out to mean that, or name a duration";
            log.error(&at.path, &at.span, Problem::new(problem).wanting("a duration above zero"));
        }
        place(&at)
    });
    Rule { rules, name: place(&name), patterns, notice, native }
}

/// What is dearer to rebuild goes later.
fn tiers(files: FilesTable, log: &mut Log<'_>) -> FileRules {
    let placed = files.dependencies.as_ref().map(place);
    let rules = FileRules { caches: never(files.caches, log), dependencies: never(files.dependencies, log) };
    if let (Some(at), Some((caches, dependencies))) = (placed, rules.caches.zip(rules.dependencies))
        && dependencies < caches
    {
        let problem = format!("sooner than `caches` ({}), which are cheaper to rebuild and go first", Human(caches));
        log.error(&at.path, &at.span, Problem::new(problem).wanting("a duration no shorter than that of `caches`"));
    }
    rules
}

fn place<T>(at: &At<T>) -> At<()> {
    At { value: (), span: at.span.clone(), path: at.path.clone() }
}

fn matched(table: At<MatchTable>, log: &mut Log<'_>) -> (Match, Vec<At<Pattern>>) {
    let At { value: MatchTable { backend, labels }, span, path } = table;
    let empty = [
        (backend.is_none() && labels.is_none()).then_some((&path, &span)),
        backend.as_ref().filter(|list| list.value.is_empty()).map(|list| (&list.path, &list.span)),
        labels.as_ref().filter(|labels| labels.value.is_empty()).map(|labels| (&labels.path, &labels.span)),
    ];
    for (path, span) in empty.into_iter().flatten() {
        if !log.told(path) {
            let problem =
                "an empty `match` could mean every runtime or none; name something, or leave it out for every runtime";
            log.error(path, span, Problem::new(problem));
        }
    }
    let pattern = |at: At<Text>| At { value: Pattern::new(at.value.0), span: at.span, path: at.path };
    let patterns: Vec<_> = backend.into_iter().flat_map(|list| list.value).map(pattern).collect();
    let labels = labels.into_iter().flat_map(|labels| labels.value);
    let matches = Match {
        backend: patterns.iter().map(|at| at.value.clone()).collect(),
        labels: labels.map(|(key, value)| (key, Pattern::new(value.value.0))).collect(),
    };
    (matches, patterns)
}

fn signals(list: &At<List<Word<Signal>>>, log: &mut Log<'_>) -> SignalSet {
    let has = |signal| list.value.iter().any(|word| word.value.0 == signal);
    if list.value.is_empty() && !log.told(&list.path) {
        let problem = "without a signal nothing would ever count as activity; leave it out for all of them";
        log.error(&list.path, &list.span, Problem::new(problem).wanting("at least one signal"));
    }
    SignalSet { heartbeat: has(Signal::Heartbeat), provider: has(Signal::Provider), probe: has(Signal::Probe) }
}

fn fullness(at: &At<Share>, log: &mut Log<'_>) -> Option<Percent> {
    let percent = Percent::new(at.value.0);
    if percent.is_none() {
        let problem = "`0%` means never, as if it were left out; leave it out, or name a share";
        log.warn(&at.path, &at.span, Problem::new(problem));
    }
    percent
}

fn overrides(table: OverridesTable, log: &mut Log<'_>) -> Option<Overrides> {
    let (label, min, max) = (table.label?, table.min?, table.max?);
    for bound in [&min, &max] {
        if bound.value.0.is_zero() {
            let problem = "zero would let a runtime ask to be idle at once; name a duration";
            log.error(&bound.path, &bound.span, Problem::new(problem).wanting("a duration above zero"));
        }
    }
    if min.value.0 > max.value.0 && !max.value.0.is_zero() {
        log.error(&min.path, &min.span, Problem::new("`min` is longer than `max`, so that no wish can be granted"));
    }
    Some(Overrides { label: label.value.0.into(), min: min.value.0, max: max.value.0 })
}

fn window(table: WindowTable, log: &mut Log<'_>) -> Option<Window> {
    let Hours { from, to } = table.hours.map_or(Hours { from: 0, to: 24 * 60 }, |hours| hours.value);
    let Days(days) = table.days.map_or(Days([true; 7]), |days| days.value);
    let idle_after = never(table.idle.and_then(|table| table.value.after), log);
    Some(Window { tz: table.tz?.value.0, days, from_minute: from, to_minute: to, idle_after })
}
