//! Looking: complete, honest about what failed, and without a trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lifecycle::{Activity, BackendName, Observation, Ownership, RuntimeId, State};

use super::{Checked, Harness, NotApplicable, aim::failed, check, made, minute, see, violated};
use crate::{Backend, Sighting, Target};

/// More pages than any harness fills.
const MAX_PAGES: usize = 10_000;
/// What [`crate::Page::seen`] promises.
const MAX_A_PAGE: usize = 1_000;

/// The whole listing, page by page.
async fn list(backend: &Backend) -> Checked<Vec<Observation>> {
    let (mut seen, mut token, mut tokens) = (Vec::new(), None, BTreeSet::new());
    for _ in 0..MAX_PAGES {
        let page = match backend.list.list(token.as_ref()).await {
            Ok(page) => page,
            Err(error) => return violated(format!("a working backend's listing failed: {error}")),
        };
        check(page.seen.len() <= MAX_A_PAGE, || format!("a page has {}; at most {MAX_A_PAGE}", page.seen.len()))?;
        check(page.unreadable.is_empty(), || format!("something was unreadable: {:?}", page.unreadable))?;
        seen.extend(page.seen);
        let Some(next) = page.next else { return Ok(seen) };
        check(tokens.insert(next.0.clone()), || format!("the page `{}` came twice", next.0))?;
        token = Some(next);
    }
    violated(format!("the listing did not end within {MAX_PAGES} pages"))
}

async fn listed(harness: &dyn Harness, id: &RuntimeId) -> Checked<Option<Observation>> {
    Ok(list(&harness.backend()).await?.into_iter().find(|seen| seen.id == *id))
}

pub(super) async fn list_has_every_runtime_of_ours_once(harness: &dyn Harness) -> Checked {
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        ids.insert(harness.make(State::Running).await?);
    }
    check(ids.len() == 5, || format!("the harness made the same runtime twice: {ids:?}"))?;
    let mut times = BTreeMap::<_, u32>::new();
    for seen in list(&harness.backend()).await? {
        *times.entry(seen.id).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    check(twice.is_empty(), || format!("listed more than once: {twice:?}"))?;
    let missing: Vec<_> = ids.iter().filter(|id| !times.contains_key(*id)).collect();
    check(missing.is_empty(), || format!("not listed: {missing:?}"))
}

pub(super) async fn list_leaves_out_what_vanished(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    harness.vanish(&id).await?;
    let seen = listed(harness, &id).await?;
    check(seen.is_none(), || format!("a vanished runtime is listed: {seen:?}"))
}

pub(super) async fn list_shows_a_foreign_runtime_as_not_ours(harness: &dyn Harness) -> Checked {
    let id = harness.make_foreign().await?;
    not_ours(harness, &id).await
}

pub(super) async fn list_shows_an_unlabelled_runtime_as_not_ours(harness: &dyn Harness) -> Checked {
    let id = harness.make_unlabelled().await?;
    not_ours(harness, &id).await
}

async fn not_ours(harness: &dyn Harness, id: &RuntimeId) -> Checked {
    let listed = listed(harness, id).await?;
    let inspected = match harness.backend().inspect.inspect(id).await {
        Ok(Sighting::Seen(seen)) => Some(*seen),
        Ok(Sighting::NotThere) => None,
        Err(error) => return violated(format!("inspect of another's runtime failed: {error}")),
    };
    for seen in listed.iter().chain(&inspected) {
        check(seen.ownership != Ownership::Ours, || format!("`{id}` is not ours, but is shown as ours"))?;
    }
    Ok(())
}

pub(super) async fn list_and_inspect_agree(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    let Some(listed) = listed(harness, &id).await? else { return violated(format!("`{id}` is not listed")) };
    let inspected = see(harness, &id).await?;
    let key = |seen: &Observation| (Target::of(seen), seen.ownership, seen.labels.clone(), seen.state_since);
    check(key(&listed) == key(&inspected), || {
        format!("listed as {:?}, inspected as {:?}", key(&listed), key(&inspected))
    })
}

pub(super) async fn a_look_is_plausible(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    let seen = see(harness, &id).await?;
    // A file system or an engine stamps by its own clock: a second ahead is no lie.
    let latest = harness.now().plus(Duration::from_secs(1));
    check(seen.id == id && id.backend() == &harness.backend().name, || format!("`{id}` is seen as `{}`", seen.id))?;
    check(!seen.incarnation.as_str().is_empty(), || "the incarnation is empty".to_owned())?;
    check(seen.ownership == Ownership::Ours, || format!("a runtime of ours is {:?}", seen.ownership))?;
    let activity = match seen.activity {
        Activity::At(at) => Some(at),
        Activity::Unknown | Activity::Frozen => None,
    };
    let times = [seen.state_since, seen.running_since, activity];
    check(times.iter().flatten().all(|at| *at <= latest), || format!("something is later than now: {times:?}"))
}

pub(super) async fn a_vanished_runtime_is_not_there(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    see(harness, &id).await?;
    harness.vanish(&id).await?;
    not_there(harness, &id).await
}

pub(super) async fn a_runtime_that_never_was_is_not_there(harness: &dyn Harness) -> Checked {
    not_there(harness, &harness.never_was()).await
}

async fn not_there(harness: &dyn Harness, id: &RuntimeId) -> Checked {
    let looked = harness.backend().inspect.inspect(id).await;
    check(looked == Ok(Sighting::NotThere), || format!("inspect should be NotThere, but answered {looked:?}"))
}

pub(super) async fn a_runtime_of_another_backend_is_not_seen(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    let other = match BackendName::new("another-backend") {
        Ok(name) => RuntimeId::new(&name, &id.provider_id()),
        Err(error) => Err(error),
    };
    let other = other.map_err(|error| NotApplicable::because(error.to_string()))?;
    let looked = harness.backend().inspect.inspect(&other).await;
    check(!matches!(looked, Ok(Sighting::Seen(_))), || format!("`{other}` is of another backend, but is seen"))
}

pub(super) async fn a_broken_backend_is_an_error_never_an_empty_page(harness: &dyn Harness) -> Checked {
    failed("list", &harness.broken().await?.list.list(None).await)
}

pub(super) async fn a_broken_backend_is_an_error_never_an_absence(harness: &dyn Harness) -> Checked {
    let id = harness.make(State::Running).await?;
    let broken = harness.broken().await?;
    failed("inspect", &broken.inspect.inspect(&id).await)?;
    failed("inspect", &broken.inspect.inspect(&harness.never_was()).await)
}

pub(super) async fn own_looks_leave_no_trace(harness: &dyn Harness) -> Checked {
    let (target, content) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    look_at_everything(harness, &target).await?;
    let after = see(harness, &target.id).await?;
    check(before == after, || format!("looking changed it:\n{before:?}\n{after:?}"))?;
    let left = super::holds(harness, &target.id).await?;
    check(left == content, || "looking changed its files".to_owned())
}

pub(super) async fn own_looks_leave_no_trace_as_time_passes(harness: &dyn Harness) -> Checked {
    let (target, _) = made(harness, State::Running).await?;
    let before = see(harness, &target.id).await?;
    for _ in 0..3 {
        harness.advance(Duration::from_mins(20)).await?;
        look_at_everything(harness, &target).await?;
    }
    let after = see(harness, &target.id).await?;
    check(before == after, || format!("an hour of looks changed it:\n{before:?}\n{after:?}"))
}

/// Every question that a pass asks.
async fn look_at_everything(harness: &dyn Harness, target: &Target) -> Checked {
    let backend = harness.backend();
    list(&backend).await?;
    see(harness, &target.id).await?;
    backend.list.disk().await.or_else(|error| violated(format!("the disk can't be measured: {error}")))?;
    if let Some(probe) = &backend.probe {
        // Where no agent server answers, that is an error; it is no trace either way.
        drop(probe.probe(target, minute(harness)).await);
    }
    if let Some(undo) = &backend.undo {
        undo.trashed().await.or_else(|error| violated(format!("the trash can't be listed: {error}")))?;
    }
    if let Some(native) = &backend.native
        && let Err(error) = native.native(target, minute(harness)).await
    {
        return violated(format!("the provider's timers can't be read: {error}"));
    }
    Ok(())
}
