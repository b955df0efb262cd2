//! From tables to settings: the safe side of every key, and what keys mean together.
//!
//! | key | absent | zero or empty |
//! |---|---|---|
//! | `idle.after`, `unknown.after`, `lifetime.max`, `retention.*`, `files.*`, `disk.budget`, a window's `idle.after` | never | never, with a warning |
//! | `budget.*` | nothing may be done | `max = "0%"`: nothing may be done, with a warning; `min = 0`: no floor; `per`: refused |
//! | `breaker.*` | the default | refused: it would be off, or always open |
//! | `clock.*`, `trash.keep`, `plan.valid`, `pass.*`, `stop_grace` | the default | refused |
//! | `workspaces.*` | the default; `store`: the data folder | refused |
//! | `notice.before_delete` | deletions give no notice | refused |
//! | `overrides.min`, `.max`, `idle.signals` | refused; all signals | refused |
//! | `match`, `match.*` | every runtime | refused: all or none could be meant |
//! | `scope` | nothing is ours | nothing is ours, with a warning |
//! | `url` | the provider's own | refused |
//! | `api_key` | refused | refused |
//! | `scope.*` | no such condition | refused: all or none could be meant |
//! | `price` | free | free |
//! | any text | | refused |

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use lifecycle::{
    Policy,
    duration::Human,
    policy::{Breakers, Budget, Budgets, Mode, Percent},
};

use crate::{
    Faults, Notify, PassLimits, Settings, Source, Webhook,
    file::{BreakerTable, BudgetTable, File, NotifyTable, PassTable, ShareTable},
    log::{Log, Problem, shown},
    read::{At, Node, Read},
    scalar::{Period, Share},
    text,
};

mod backend;
mod cross;
mod rules;
mod workspaces;

pub use workspaces::NotABucket;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);

/// What a text means depends on these; [`parse`] has none of them.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// What relative paths are relative to.
    pub(crate) folder: Option<PathBuf>,
    /// What `~` is.
    pub(crate) home: Option<PathBuf>,
    /// The engine of a `docker` backend that names none.
    pub(crate) docker_host: Option<String>,
}

/// Reads a configuration from `text`; faults call it `name`. Pure: paths stay as they are written.
pub fn parse(text: &str, name: &str) -> Result<Settings, Faults> {
    parse_in(text, name, &Surroundings::default())
}

pub(crate) fn parse_in(text: &str, name: &str, around: &Surroundings) -> Result<Settings, Faults> {
    let mut log = Log::new(text, name);
    let Some(tree) = text::tree(text, &mut log) else { return Err(log.into_faults()) };
    let node = Node { value: &tree, span: 0..0, path: String::new() };
    let Some(file) = File::read(&node, &mut log) else { return Err(log.into_faults()) };
    let mut settings = assemble(file, name, around, &mut log);
    settings.warnings = log.finish()?;
    Ok(settings)
}

fn assemble(file: File, name: &str, around: &Surroundings, log: &mut Log<'_>) -> Settings {
    let backends = backend::all(file.backend, around, log);
    let rules = rules::all(file.policy, log);
    if file.notify.is_none() {
        cross::nobody_told(&rules, log);
    }
    let notify = file.notify.and_then(|table| notify(table.value, log));
    let clock = file.clock.map(|table| table.value).unwrap_or_default();
    let policy = Policy {
        mode: file.mode.map_or(Mode::Report, |mode| mode.value.0),
        coalesce: between(clock.coalesce, Duration::from_secs(30), SECOND..=HOUR, log),
        skew: between(clock.skew, Duration::from_secs(10), SECOND..=HOUR, log),
        trash_keep: between(file.trash.and_then(|table| table.value.keep), 7 * DAY, HOUR..=3650 * DAY, log),
        plan_valid: between(file.plan.and_then(|table| table.value.valid), HOUR, SECOND..=7 * DAY, log),
        prices: backends.iter().map(|backend| (backend.settings.name.clone(), backend.prices)).collect(),
        budgets: budgets(file.budget.map(|table| table.value).unwrap_or_default(), log),
        breakers: breakers(file.breaker.map(|table| table.value).unwrap_or_default(), log),
        rules: rules.iter().map(|rule| rule.rules.clone()).collect(),
    };
    cross::check(&policy, &rules, &backends, log);
    Settings {
        policy,
        backends: backends.into_iter().map(|backend| backend.settings).collect(),
        notify,
        pass: pass(file.pass.map(|table| table.value).unwrap_or_default(), log),
        workspaces: workspaces::workspaces(file.workspaces.map(|table| table.value).unwrap_or_default(), log),
        source: Source::Text(name.to_owned()),
        warnings: Vec::new(),
    }
}

/// A duration for which zero means never.
fn never(period: Option<At<Period>>, log: &mut Log<'_>) -> Option<Duration> {
    let At { value: Period(duration), span, path } = period?;
    if duration.is_zero() {
        let problem = "zero means never, as if it were left out; leave it out, or name a duration";
        log.warn(&path, &span, Problem::new(problem));
        return None;
    }
    Some(duration)
}

/// A duration that can't be zero, within bounds.
fn between(
    period: Option<At<Period>>,
    absent: Duration,
    bounds: std::ops::RangeInclusive<Duration>,
    log: &mut Log<'_>,
) -> Duration {
    let Some(At { value: Period(duration), span, path }) = period else { return absent };
    if !bounds.contains(&duration) {
        let expected = format!("a duration from `{}` to `{}`", Human(*bounds.start()), Human(*bounds.end()));
        let problem = format!("`{}` is out of bounds; expected {expected}", Human(duration));
        log.error(&path, &span, Problem::new(problem).wanting(expected).having(Human(duration).to_string()));
    }
    duration
}

fn budgets(table: BudgetTable, log: &mut Log<'_>) -> Budgets {
    let mut budget = |table: Option<At<ShareTable>>| table.and_then(|table| budget(table, log));
    Budgets {
        suspend: budget(table.suspend),
        archive: budget(table.archive),
        delete: budget(table.delete),
        shed: budget(table.shed),
    }
}

/// `None`: nothing may be done.
fn budget(table: At<ShareTable>, log: &mut Log<'_>) -> Option<Budget> {
    let At { value: ShareTable { max, min, per }, span, path } = table;
    let per = between(per, HOUR, SECOND..=30 * DAY, log);
    let min = min.map_or(0, |min| min.value.0);
    let none = "nothing may be done, as if the budget were left out";
    match max {
        Some(max) if max.value.0 == 0 => {
            log.warn(&max.path, &max.span, Problem::new(format!("`0%` means that {none}")));
            None
        }
        None if min == 0 => {
            log.warn(&path, &span, Problem::new(format!("neither `max` nor `min`: {none}")));
            None
        }
        max => Some(Budget { max: max.and_then(|max| Percent::new(max.value.0)), min, per }),
    }
}

fn breakers(table: BreakerTable, log: &mut Log<'_>) -> Breakers {
    let mut share = |share: Option<At<Share>>, absent: u8| {
        let Some(At { value: Share(share), span, path }) = share else { return Percent::new(absent) };
        if share == 0 {
            let problem = "`0%` would keep the breaker open for ever; use `furlough pause` to stop all passes";
            log.error(&path, &span, Problem::new(problem).wanting("a share from `1%` to `100%`").having("`0%`"));
        }
        Percent::new(share)
    };
    Breakers { inventory_drop: share(table.inventory_drop, 30), silent: share(table.silent, 20) }
}

fn pass(table: PassTable, log: &mut Log<'_>) -> PassLimits {
    let concurrency = table.concurrency.map_or(8, |at| {
        let count = at.value.0;
        if !(1..=256).contains(&count) {
            let expected = "a number from 1 to 256";
            let problem = format!("`{count}` is out of bounds; expected {expected}");
            log.error(&at.path, &at.span, Problem::new(problem).wanting(expected).having(format!("`{count}`")));
        }
        count
    });
    PassLimits {
        every: between(table.every, Duration::from_mins(1), SECOND..=DAY, log),
        sweep_every: between(table.sweep, Duration::from_mins(15), SECOND..=DAY, log),
        deadline: between(table.deadline, Duration::from_mins(5), SECOND..=DAY, log),
        concurrency: NonZeroU32::new(concurrency).unwrap_or(NonZeroU32::MIN),
    }
}

fn notify(table: NotifyTable, log: &mut Log<'_>) -> Option<Notify> {
    let At { value: url, span, path } = table.url?;
    let secret = table.secret.map(|secret| secret.value);
    match webhook(&url.0) {
        Ok(url) => Some(Notify { url, secret }),
        Err(why) => {
            log.error(&path, &span, Problem::new(why).wanting("an address such as `https://host/path`"));
            None
        }
    }
}

/// Checks what can be checked without asking, and never repeats the address.
fn webhook(url: &str) -> Result<Webhook, String> {
    let scheme = ["https://", "http://"].into_iter().find(|scheme| url.starts_with(scheme));
    let scheme = scheme.ok_or("not an `https://` or `http://` address")?;
    let authority = url[scheme.len()..].split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a password in the address would end up in logs; sign with `notify.secret` instead".to_owned());
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err("the address has no host".to_owned());
    }
    if url.contains(char::is_whitespace) {
        return Err("the address has a space in it".to_owned());
    }
    Ok(Webhook { url: Arc::from(url), host: format!("{scheme}{authority}").into() })
}

/// A name that stands twice.
fn twice(what: &str, name: &str) -> Problem {
    Problem::new(format!("a second {what} named {}; each name stands once", shown(name)))
}
