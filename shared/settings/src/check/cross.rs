//! What keys mean together.

use lifecycle::{
    BackendName, Policy,
    policy::{BudgetKind, Match, Rules},
};

use super::{backend::Checked, rules::Rule};
use crate::log::{Log, Problem};

pub(super) fn check(policy: &Policy, rules: &[Rule], backends: &[Checked], log: &mut Log<'_>) {
    let names: Vec<&BackendName> = backends.iter().map(|backend| &backend.settings.name).collect();
    if log.failed() {
        // Warnings about what a broken configuration may mean are noise.
        return;
    }
    emptiness(rules, &names, log);
    unreachable(rules, &names, log);
    without_timers(rules, backends, log);
    budgets(policy, rules, log);
}

/// For a configuration without `[notify]`.
pub(super) fn nobody_told(rules: &[Rule], log: &mut Log<'_>) {
    for notice in rules.iter().filter_map(|rule| rule.notice.as_ref()) {
        let problem = "notice needs somewhere to go, and there is no `notify.url`; nothing would ever be deleted";
        log.error(&notice.path, &notice.span, Problem::new(problem).wanting("`url` in a `[notify]` table"));
    }
}

fn emptiness(rules: &[Rule], names: &[&BackendName], log: &mut Log<'_>) {
    if names.is_empty() {
        log.warn("backend", &(0..0), Problem::new("no `[[backend]]`: nothing is looked at"));
        return;
    }
    if rules.is_empty() {
        log.warn("policy", &(0..0), Problem::new("no `[[policy]]`: nothing is ever reclaimed"));
    }
    for pattern in rules.iter().flat_map(|rule| &rule.patterns) {
        if !names.iter().any(|name| pattern.value.matches(name.as_str())) {
            let known: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            let meant = crate::nearest::nearest(pattern.value.as_str(), known.iter().copied());
            let problem = format!("no backend is named so; there are: {}", crate::read::listed(&known));
            log.warn(&pattern.path, &pattern.span, Problem::new(problem).meant(meant));
        }
    }
}

fn unreachable(rules: &[Rule], names: &[&BackendName], log: &mut Log<'_>) {
    for (index, rule) in rules.iter().enumerate() {
        let covering = |earlier: &&Rule| covers(&earlier.rules.matches, &rule.rules.matches, names);
        if let Some(earlier) = rules[..index].iter().find(covering) {
            let problem =
                format!("never reached: policy `{}` before it matches all that it matches", earlier.rules.name);
            log.warn(&rule.name.path, &rule.name.span, Problem::new(problem));
        }
    }
}

/// Whether `earlier` matches whatever `later` does, for the backends that there are.
fn covers(earlier: &Match, later: &Match, names: &[&BackendName]) -> bool {
    let mut later_has = names.iter().filter(|name| later.backend(name)).peekable();
    let backends = later_has.peek().is_some() && later_has.all(|name| earlier.backend(name));
    let labels = earlier.labels.iter().all(|(key, pattern)| {
        later.labels.get(key).is_some_and(|narrower| pattern == narrower || pattern.as_str() == "*")
    });
    backends && labels
}

/// `native` is about a provider's own timers, and what runs on this machine has none.
fn without_timers(rules: &[Rule], backends: &[Checked], log: &mut Log<'_>) {
    for rule in rules {
        let mut its = backends.iter().filter(|one| rule.rules.matches.backend(&one.settings.name)).peekable();
        if let Some(native) = rule.native.as_ref().filter(|_| its.peek().is_some())
            && its.all(|one| !one.settings.kind.has_timers())
        {
            let problem = "no backend that this policy matches has timers of its own: `native` has no effect";
            log.warn(&native.path, &native.span, Problem::new(problem));
        }
    }
}

/// A rule without its budget does nothing, which is safe and may surprise.
fn budgets(policy: &Policy, rules: &[Rule], log: &mut Log<'_>) {
    for kind in [BudgetKind::Suspend, BudgetKind::Delete, BudgetKind::Shed] {
        if policy.budgets.of(kind).is_some() {
            continue;
        }
        if let Some(rule) = rules.iter().find(|rule| needs(&rule.rules, kind)) {
            let problem = format!("`budget.{kind}` is not there: this policy can {kind} nothing");
            log.warn(&rule.name.path, &rule.name.span, Problem::new(problem));
        }
    }
}

fn needs(rules: &Rules, kind: BudgetKind) -> bool {
    match kind {
        BudgetKind::Suspend => {
            let windows = rules.windows.iter().any(|window| window.idle_after.is_some());
            windows || rules.idle_after.is_some() || rules.unknown_after.is_some() || rules.lifetime_max.is_some()
        }
        BudgetKind::Delete => rules.retention.suspended.is_some() || rules.retention.archived.is_some(),
        BudgetKind::Shed => {
            rules.files.caches.is_some() || rules.files.dependencies.is_some() || rules.disk_budget.is_some()
        }
        BudgetKind::Archive => false,
    }
}
