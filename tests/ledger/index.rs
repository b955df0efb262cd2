//! The due index: paging, shards, jitter, re-arming, healing.

use std::{collections::BTreeSet, time::Duration};

use ledger::{Arming, Ledger, Options, Rearmed};
use lifecycle::{BackendName, Record, RuntimeId};

use super::fixture::{at, backend, due, id, number, seen, text, won, world, world_with};

#[tokio::test]
async fn what_is_due_is_found_over_all_shards_and_pages_soonest_first() {
    let world = world().await;
    for n in 0..120 {
        let look = seen(&format!("r{n:03}"));
        world.ledger.observe(&look, due(1_000 + n), at(0)).await.unwrap();
    }
    let shards: BTreeSet<_> = futures::future::join_all((0..120).map(|n| world.item_of(n)))
        .await
        .into_iter()
        .map(|item| item["due_shard"].as_s().unwrap().clone())
        .collect();
    assert_eq!(shards, (0..4).map(|shard| format!("box/{shard}")).collect());

    let none = world.ledger.due(&backend(), at(999), 1_000).await.unwrap();
    assert_eq!((none.ids, none.more), (Vec::new(), false));
    let all = world.ledger.due(&backend(), at(1_200), 1_000).await.unwrap();
    let expected: Vec<_> = (0..120).map(|n| (id(&format!("r{n:03}")), at(1_000 + n))).collect();
    assert_eq!((all.ids, all.more, all.unreadable), (expected.clone(), false, Vec::new()));
    let some = world.ledger.due(&backend(), at(1_200), 7).await.unwrap();
    assert_eq!((some.ids, some.more), (expected[..7].to_vec(), true));
    let exact = world.ledger.due(&backend(), at(1_006), 7).await.unwrap();
    assert_eq!((exact.ids, exact.more), (expected[..7].to_vec(), false));
    let others = world.ledger.due(&BackendName::new("bo").unwrap(), at(9_000), 10).await.unwrap();
    assert_eq!(others.ids, Vec::new(), "another backend's are not ours");
}

impl super::fixture::World {
    async fn item_of(&self, n: i64) -> super::fixture::Item {
        self.item(&format!("r{n:03}")).await.unwrap()
    }
}

#[tokio::test]
async fn more_are_due_than_one_page_of_the_store_holds() {
    let world = world().await;
    // A page of a query has at most 1 MB, and keys of 521 bytes are the longest: 2,200 of them are more.
    let long = BackendName::new(&"b".repeat(128)).unwrap();
    let options = Options { shards: 1, ..super::fixture::options() };
    let ledger = Ledger::new(world.client.clone(), options);
    let mut expected = BTreeSet::new();
    for n in 0..2_200_u32 {
        let name = [&n.to_be_bytes()[..], &[b'/'; 124]].concat();
        let look = lifecycle::Observation { id: RuntimeId::new(&long, &name).unwrap(), ..seen("x") };
        ledger.observe_known(None, &look, |_| due(1_000), at(0)).await.unwrap();
        expected.insert(look.id);
    }
    world.wire.calls();
    let found = ledger.due(&long, at(2_000), 5_000).await.unwrap();
    assert_eq!(found.ids.into_iter().map(|(id, _)| id).collect::<BTreeSet<_>>(), expected);
    assert!(world.wire.calls().len() > 1, "it took more than one page");
}

#[tokio::test]
async fn re_arming_needs_no_read_and_no_policy() {
    let world = world().await;
    world.runtime("a").await;
    let rearm = async |seen, horizon| world.ledger.rearm(&id("a"), at(seen), at(horizon)).await.unwrap();
    let record = world.record("a").await;
    assert_eq!(rearm(3_600, 4_000).await, Rearmed::Look(Some(Box::new(record))), "silent since it was armed");
    let beat = world.ledger.heartbeat(&id("a"), None, None, at(3_000)).await.unwrap();
    assert_eq!(beat, ledger::Heartbeat::Recorded);
    assert!(matches!(rearm(3_599, 4_000).await, Rearmed::Look(Some(_))), "another due time than the one that was seen");
    world.wire.calls();
    assert_eq!(rearm(3_600, 4_000).await, Rearmed::Until(at(4_800)));
    assert_eq!(world.wire.calls().len(), 1);
    let record = world.record("a").await;
    assert_eq!((record.due_at, record.armed, record.idle_from), (Some(at(4_800)), Some(at(3_000)), at(3_000)));
    assert_eq!(world.ledger.rearm(&id("none"), at(1), at(2)).await.unwrap(), Rearmed::Look(None));
}

#[tokio::test]
async fn what_has_a_hard_deadline_is_claimed_or_does_not_run_needs_a_look() {
    let world = world().await;
    let rearm = async |name: &str, seen, horizon| world.ledger.rearm(&id(name), at(seen), at(horizon)).await.unwrap();
    let capped = Arming { cap_at: Some(at(5_000)), ..due(3_600) };
    world.runtime("capped").await;
    world.ledger.observe(&seen("capped"), capped, at(1)).await.unwrap();
    let beat = world.ledger.heartbeat(&id("capped"), None, None, at(3_000)).await.unwrap();
    assert_eq!(beat, ledger::Heartbeat::Recorded);
    assert!(matches!(rearm("capped", 3_600, 5_000).await, Rearmed::Look(Some(_))));
    assert!(matches!(rearm("capped", 3_600, 4_999).await, Rearmed::Until(_)));

    world.runtime("claimed").await;
    let claimed = won(world.suspend_claim("claimed", 0, 2_000).await);
    assert_eq!(rearm("claimed", 2_070, 3_000).await, Rearmed::Look(Some(Box::new(claimed))));
}

#[tokio::test]
async fn re_scheduling_is_for_what_was_read_and_loses_to_whatever_made_it_due_meanwhile() {
    let world = world().await;
    let record = world.suspended("a").await;
    let put = async |token, seen: Option<i64>| {
        world.ledger.reschedule(&id("a"), token, seen.map(at), due(20_000), at(9_000)).await.unwrap()
    };
    assert!(!put(record.token - 1, None).await);
    let refused = world.ledger.heartbeat(&id("a"), None, None, at(8_999)).await.unwrap();
    assert!(matches!(refused, ledger::Heartbeat::NotRunning { .. }));
    assert!(!put(record.token, Some(9_000)).await, "a refused heartbeat made it due at 8,999");
    assert!(put(record.token, Some(8_999)).await);
    let after = world.record("a").await;
    assert_eq!(after, Record { wanted_at: Some(at(8_999)), due_at: Some(at(20_000)), ..record });
}

#[tokio::test]
async fn jitter_is_a_runtimes_own_and_only_ever_later() {
    let world = world_with(Options { coalesce: Duration::from_secs(30), ..Options::default() }).await;
    let mut jitters = BTreeSet::new();
    for n in 0..50 {
        let name = format!("r{n}");
        let record = world.runtime(&name).await;
        let jitter = record.due_at.unwrap().since(at(3_600));
        assert!(record.due_at.unwrap() >= at(3_600) && jitter < Duration::from_secs(30), "{jitter:?}");
        assert_eq!(record.due_at, Some(world.ledger.jittered(&id(&name), at(3_600))));
        let idle = Duration::from_millis(record.idle_ms.unwrap());
        assert_eq!(idle, Duration::from_mins(30) + jitter, "so that a re-arm, which adds it, is jittered too");
        jitters.insert(jitter);
    }
    assert!(jitters.len() > 40, "they spread: {}", jitters.len());
}

#[tokio::test]
async fn the_healer_puts_back_what_has_fallen_out_of_the_index_and_counts_it() {
    let world = world().await;
    for name in ["a", "b", "c", "d", "e"] {
        world.runtime(name).await;
    }
    let heal = async || world.ledger.heal(&backend(), None, at(50)).await.unwrap();
    let healed = heal().await;
    assert_eq!((healed.scanned, healed.healed, healed.next), (5, Vec::new(), None), "expected: none");

    world.tamper("a", "due_at", None).await;
    world.tamper("b", "due_shard", None).await;
    // So broken that nobody can read it: it is due all the same, so that somebody sees it.
    world.tamper("c", "due_at", None).await;
    world.tamper("c", "if", Some(text("yesterday"))).await;
    // Newer than we know: left alone.
    world.tamper("d", "due_at", None).await;
    world.tamper("d", "v", Some(number(9))).await;
    let mut healed = heal().await.healed;
    healed.sort();
    assert_eq!(healed, [id("a"), id("b"), id("c")]);
    assert_eq!(world.due_names(50).await, ["a", "b", "c"]);
    assert_eq!(heal().await.healed, Vec::new(), "once is enough");
}

#[tokio::test]
async fn a_listing_goes_page_by_page_and_one_bad_record_spoils_none_of_the_others() {
    let world = world().await;
    for n in 0..1_100 {
        world.ledger.observe_known(None, &seen(&format!("r{n:04}")), |_| due(9), at(0)).await.unwrap();
    }
    world.tamper("r0007", "tk", None).await;
    let (mut records, mut unreadable, mut page, mut pages) = (BTreeSet::new(), Vec::new(), None, 0);
    loop {
        let found = world.ledger.records(&backend(), page).await.unwrap();
        records.extend(found.records.into_iter().map(|(id, _)| id));
        unreadable.extend(found.unreadable.into_iter().map(|(id, error)| (id, error.to_string())));
        pages += 1;
        page = found.next;
        if page.is_none() {
            break;
        }
    }
    assert_eq!((records.len(), pages), (1_099, 2));
    let why = "`box/r0007` has a malformed `token` (it is missing); it is kept untouched until somebody mends or \
               removes it";
    assert_eq!(unreadable, [("box/r0007".to_owned(), why.to_owned())]);

    let asked: Vec<_> = (0..250).map(|n| id(&format!("r{n:04}"))).chain([id("none")]).collect();
    let many = world.ledger.get_many(&asked).await.unwrap();
    assert_eq!(many.records.len(), 249);
    assert_eq!(many.unreadable.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [id("r0007")]);
}
