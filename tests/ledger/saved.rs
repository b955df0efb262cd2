//! What a runtime tells to be kept of its work.

use std::time::Duration;

use ledger::{ClaimRequest, ClaimRule, Claimed, Lost, Options, Save, Saved};
use lifecycle::{Action, State, Time};
use workspace::key::Name;

use super::fixture::{World, at, committed, id, idle_claim, text, world_with};

/// The skew and the coalescing of the ledger's own options.
const SLACK: i64 = 10 + 30;

async fn world() -> World {
    world_with(Options::default()).await
}

fn save(generation: u64, age: u64) -> Save {
    Save { workspace: Name::new("ada").unwrap(), generation, age: Duration::from_secs(age) }
}

async fn told(world: &World, epoch: Option<u64>, save: &Save, now: i64) -> Saved {
    world.ledger.saved(&id("a"), epoch, save, at(now)).await.unwrap()
}

#[tokio::test]
async fn what_is_kept_is_noted_until_its_scan_began_and_nothing_else_changes() {
    let world = world().await;
    let before = world.runtime("a").await;
    committed(&world.ledger, "ada", 2).await;
    world.wire.calls();
    let kept = at(500 - 12 - SLACK);
    assert_eq!(told(&world, Some(1), &save(2, 12), 500).await, Saved::Noted { as_of: kept });
    let calls = world.wire.calls();
    let asked: Vec<_> = calls.iter().map(|call| call.operation.as_str()).collect();
    assert_eq!(asked, ["GetItem", "UpdateItem", "UpdateItem"]);
    let record = world.record("a").await;
    assert_eq!(record, lifecycle::Record { saved_as_of: Some(kept), ..before }, "no activity, no other time to look");
    let detail = world.ledger.detail(&id("a")).await.unwrap().unwrap();
    assert_eq!(detail.saved_in.as_deref(), Some("workspace ada, generation 2"));
    assert_eq!(detail.labels.get("team").map(String::as_str), Some("blue"));
}

/// They come late, twice and out of order.
#[tokio::test]
async fn it_moves_forward_only() {
    let world = world().await;
    world.runtime("a").await;
    committed(&world.ledger, "ada", 3).await;
    let newest = Saved::Noted { as_of: at(900 - SLACK) };
    assert_eq!(told(&world, Some(1), &save(3, 0), 900).await, newest);
    assert_eq!(told(&world, Some(1), &save(3, 0), 900).await, newest);
    assert_eq!(told(&world, Some(1), &save(2, 300), 901).await, newest);
    assert_eq!(world.record("a").await.saved_as_of, Some(at(900 - SLACK)));
    let detail = world.ledger.detail(&id("a")).await.unwrap().unwrap();
    assert_eq!(detail.saved_in.as_deref(), Some("workspace ada, generation 3"));
}

#[tokio::test]
async fn what_no_workspace_has_is_not_kept() {
    let world = world().await;
    world.runtime("a").await;
    assert_eq!(told(&world, None, &save(1, 0), 500).await, Saved::NotThere { generation: None });
    committed(&world.ledger, "ada", 1).await;
    assert_eq!(told(&world, None, &save(2, 0), 500).await, Saved::NotThere { generation: Some(1) });
    assert_eq!(world.record("a").await.saved_as_of, None);
}

#[tokio::test]
async fn the_unknown_the_gone_and_an_earlier_life_are_told_so() {
    let world = world().await;
    committed(&world.ledger, "ada", 1).await;
    assert_eq!(told(&world, None, &save(1, 0), 500).await, Saved::Unknown);
    assert_eq!(world.item("a").await, None, "a save makes no record");
    world.runtime("a").await;
    world.runtime("a").await;
    assert_eq!(told(&world, Some(1), &save(1, 0), 500).await, Saved::Superseded { epoch: 2 });
    world.tamper("a", "st", Some(text("gone"))).await;
    assert_eq!(told(&world, Some(2), &save(1, 0), 500).await, Saved::Gone);
    assert_eq!(world.record("a").await.saved_as_of, None);
}

/// What comes to its holder's aid in the middle of a suspend is true all the same.
#[tokio::test]
async fn a_save_is_noted_under_a_claim() {
    let world = world().await;
    world.runtime("a").await;
    committed(&world.ledger, "ada", 1).await;
    let record = world.record("a").await;
    let claimed = world.ledger.claim(&idle_claim("a", &record, 0, 2_060), at(2_000)).await.unwrap();
    assert!(matches!(claimed, Claimed::Won(_)));
    assert_eq!(told(&world, Some(1), &save(1, 0), 2_010).await, Saved::Noted { as_of: at(2_010 - SLACK) });
    assert_eq!(world.record("a").await.state, State::Suspending);
}

/// Invariant 3: a deletion is claimed of what was kept since its last activity, as it may have been told late.
#[tokio::test]
async fn only_what_is_kept_since_it_was_last_active_is_deleted() {
    for (scanned, kept) in [(SLACK - 1, false), (SLACK, true)] {
        let world = world().await;
        world.suspended("a").await;
        committed(&world.ledger, "ada", 1).await;
        let record = world.record("a").await;
        let active = record.idle_from.since(at(0)).as_secs();
        let now = 5_000;
        let age = now - active - u64::try_from(scanned).unwrap();
        let _ = told(&world, None, &save(1, age), i64::try_from(now).unwrap()).await;
        let claimed = world.ledger.claim(&deletion(&record), at(i64::try_from(now).unwrap())).await.unwrap();
        match claimed {
            Claimed::Won(_) => assert!(kept, "{scanned} s"),
            Claimed::Lost(why) => assert_eq!((why, kept), (Lost::NotSaved, false), "{scanned} s"),
        }
    }
}

fn deletion(record: &lifecycle::Record) -> ClaimRequest {
    let cutoff = record.state_since;
    ClaimRequest {
        from: State::Suspended,
        to: State::Deleting,
        rule: ClaimRule::Delete { cutoff, noticed: None, saved: Some(Time::from_millis(1)), resting: None },
        action: Action::Delete,
        ..idle_claim("a", record, 0, 5_060)
    }
}
