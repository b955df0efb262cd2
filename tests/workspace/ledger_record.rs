//! A workspace's record in the ledger: its form, its cost, lost answers, and what can't be read.

use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{LedgerError, WorkspaceRecord, Workspaces};
use workspace::{
    Pushed,
    commit::{Acquired, After, Commit as _, Committed, Renewed},
    key::{Key, Name, Sort},
    limits::MAX_OWNER_BYTES,
    time::Clock,
};

use super::{
    contract::head,
    lab::{Lab, SKEW, TTL, name},
};
use crate::ledger::fixture::{Call, Fault, Item, World, number, text, world};

/// 13 digits: any time until the year 2286.
const LATE: i64 = 9_999_999_999_999;

/// Write units of each operation on the largest record, as the store counts them.
#[tokio::test]
async fn each_write_of_the_largest_record_costs_one_unit() {
    let world = world().await;
    let longest = Name::new(&"n".repeat(128)).unwrap();
    let manifest = Key { workspace: longest.clone(), sort: Sort::Manifest, generation: 1, token: 1, nonce: u64::MAX };
    let manifest = Key { generation: u64::MAX - 9, token: u64::MAX - 9, ..manifest };
    let largest = [
        ("pk", text(&format!("workspace/{longest}"))),
        ("sk", text("record")),
        ("v", number(1)),
        ("tk", number(u64::MAX - 9)),
        ("co", text(&"o".repeat(MAX_OWNER_BYTES))),
        ("cu", number(LATE)),
        ("mf", text(&manifest.to_string())),
        ("dg", text(&"f".repeat(64))),
        ("ge", number(u64::MAX - 9)),
        ("ao", number(LATE)),
        ("sz", number(u64::MAX)),
    ];
    world.put(largest.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()).await;
    let keeper = Workspaces::new(world.ledger.clone(), Clock::new(|| LATE + 1_000_000));
    let units = || world.wire.calls().iter().map(Call::units).collect::<Vec<_>>();
    units();
    let Acquired::Granted { lease, head: Some(known) } =
        keeper.acquire(&longest, &"p".repeat(MAX_OWNER_BYTES), TTL).await.unwrap()
    else {
        panic!()
    };
    assert_eq!((lease.token, units()), (u64::MAX - 8, vec![1.0]));
    assert_eq!((keeper.renew(&lease, TTL).await.unwrap(), units()), (Renewed::Until(lease.until_ms), vec![1.0]));
    let manifest = Key { generation: u64::MAX - 8, token: lease.token, ..known.manifest.clone() };
    let next = workspace::commit::Head { generation: u64::MAX - 8, manifest, ..known.clone() };
    let done = keeper.commit(&lease, known.generation, &next, After::Keep).await.unwrap();
    assert_eq!((done, units()), (Committed::Done, vec![1.0]));
    keeper.release(&lease).await.unwrap();
    assert_eq!(units(), vec![1.0]);
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_commit_was_done_is_found_by_asking_again() {
    let (lab, world) = Lab::on_ledger().await;
    let here = lab.host("here");
    std::fs::write(here.project.join("work"), "work").unwrap();
    let request = lab.push_request(&here).await;
    let lease = request.lease.clone();
    world.wire.breaks(|operation, count| (operation == "UpdateItem" && count < 2).then_some(Fault::After));
    let pushed = workspace::push(&lab.store, &*lab.commit, request).await.unwrap();
    assert!(matches!(pushed, Pushed::Committed { head, .. } if head.generation == 1));
    world.wire.mends();
    let calls = world.wire.calls();
    assert_eq!(calls.len(), 3, "the commit, and twice again: {calls:#?}");
    assert_eq!(lab.commit.lease(&name()).await.unwrap(), None, "it was released in the same write");
    assert_eq!(lab.commit.renew(&lease, TTL).await.unwrap(), Renewed::Lost);
}

#[tokio::test]
async fn an_answer_that_is_lost_before_anything_was_done_is_asked_for_again() {
    let (lab, world) = Lab::on_ledger().await;
    let here = lab.host("here");
    std::fs::write(here.project.join("work"), "work").unwrap();
    let request = lab.push_request(&here).await;
    let throttled = "ProvisionedThroughputExceededException";
    world.wire.breaks(move |_, count| (count < 1).then_some(Fault::Before(throttled)));
    let pushed = workspace::push(&lab.store, &*lab.commit, request).await.unwrap();
    assert!(matches!(pushed, Pushed::Committed { head, .. } if head.generation == 1));
}

/// A ledger that holds a lease of somebody's, of which one attribute is otherwise.
async fn tampered(attribute: &str, value: AttributeValue) -> (Lab, World) {
    let (lab, world) = Lab::on_ledger().await;
    let (lease, _) = lab.lease("one").await;
    lab.commit.commit(&lease, 0, &head(&lease, 1), After::Keep).await.unwrap();
    let mut item = world.raw("workspace/w").await.unwrap();
    item.insert(attribute.to_owned(), value);
    world.put(item).await;
    lab.pass(TTL + SKEW + TTL);
    (lab, world)
}

/// Not free, not another head, and not written over.
#[tokio::test]
async fn what_cannot_be_read_is_an_error_and_stays_as_it_is() {
    for (attribute, value) in [
        ("v", number(2)),
        ("tk", text("7")),
        ("cu", text("soon")),
        ("ge", text("1")),
        ("mf", text("workspaces/w/manifests/latest.json")),
        ("sz", number(-1)),
    ] {
        let (lab, world) = tampered(attribute, value).await;
        let before = world.raw("workspace/w").await.unwrap();
        let head = lab.commit.head(&name()).await;
        assert!(head.as_ref().is_err_and(|error| error.why.contains("workspace/w")), "{attribute}: {head:?}");
        let lease = lab.commit.acquire(&name(), "two", TTL).await;
        assert!(lease.is_err(), "{attribute}: {lease:?}");
        // The lease of what is otherwise right may be another one's by now; what could not be read is as it was.
        let after = world.raw("workspace/w").await.unwrap();
        assert_eq!(after.get(attribute), before.get(attribute), "{attribute}");
    }
}

#[tokio::test]
async fn all_workspaces_are_listed_and_one_that_cannot_be_read_hides_no_other() {
    let (lab, world) = Lab::on_ledger().await;
    world.runtime("beside").await;
    let (lease, _) = lab.lease("one").await;
    let key = |name: &str| Item::from([("pk".to_owned(), text(name)), ("sk".to_owned(), text("record"))]);
    world.put(key("workspace/broken")).await;
    world.put(key("workspace/no name")).await;
    let page = world.ledger.workspaces(None).await.unwrap();
    let expected = WorkspaceRecord { name: name(), token: lease.token, lease: Some(lease), head: None };
    assert_eq!((page.records, page.next), (vec![expected], None));
    let mut unreadable: Vec<_> = page.unreadable.into_iter().map(|(key, error)| (key, attribute(error))).collect();
    unreadable.sort();
    let expected = [("workspace/broken", "token"), ("workspace/no name", "pk")];
    assert_eq!(unreadable, expected.map(|(key, word)| (key.to_owned(), word.to_owned())));
}

fn attribute(error: LedgerError) -> String {
    match error {
        LedgerError::Malformed { attribute, .. } => attribute,
        other => panic!("{other}"),
    }
}
