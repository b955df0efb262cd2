//! What each operation on a record costs: write units of the main table and its index, as the store counts them, with
//! the largest record there can be. Three are one for the item and one for each of its places in the index; a write that
//! its condition refuses costs one on AWS, of which no answer tells, and stands here as 0.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{
    Arming, ClaimRequest, ClaimRule, Completion, Ended, Failure, HoldRequest, Ledger, MAX_OWNER_BYTES, ProbeSeen,
    Rearmed, Save,
};
use lifecycle::{Activity, Busy, Observation, State, Time, record::Hold};

use super::{
    fixture::{Item, World, committed, idle_claim, number, seen, text, world},
    format::{largest, longest, longest_run},
    life::registered,
};

const EPOCH: u64 = u64::MAX - 9;
const TOKEN: u64 = u64::MAX - 9;

/// Seconds after the clock of [`item`]; no sum of them ends in zeros, which a number would be stored without.
fn late(seconds: i64) -> Time {
    Time::from_millis(9_999_999_000_001 + seconds * 1_000)
}

fn arming(seconds: i64) -> Arming {
    Arming { idle_ms: Some(1), cap_at: Some(late(3)), due_at: Some(late(seconds)) }
}

/// What an [`item`] has already.
fn as_is() -> Arming {
    Arming { idle_ms: Some(1_799_999), cap_at: Some(Time::from_millis(9_999_999_999_999)), due_at: Some(late(0)) }
}

/// The largest record in a state, with a live claim where the state is a middle one.
fn item(state: State) -> Item {
    let mut item = largest();
    item.insert("st".to_owned(), text(state.as_str()));
    item.insert("ep".to_owned(), number(EPOCH));
    item.insert("im".to_owned(), number(1_799_999_u64));
    item.insert("at".to_owned(), number(u32::MAX - 9));
    for name in ["wa", "fz", "bu", "hu"] {
        item.remove(name);
    }
    if state.is_middle() {
        item.insert("cu".to_owned(), number(late(100).millis()));
    } else {
        item.remove("co");
        item.remove("cu");
    }
    for name in ["ss", "fs", "if", "la", "rs", "ar", "cd", "no", "sv", "ab", "due_at"] {
        item.insert(name.to_owned(), number(late(0).millis()));
    }
    item
}

/// What each operation costs.
struct Costs {
    world: World,
    /// The partition of the index that the ledger gives the runtime.
    shard: AttributeValue,
    told: Vec<(&'static str, Vec<f64>)>,
}

impl Costs {
    async fn new() -> Self {
        let world = world().await;
        world.ledger.observe(&look(), arming(0), late(0)).await.unwrap();
        let shard = world.raw(&format!("runtime/{}", longest())).await.unwrap()["due_shard"].clone();
        Self { world, shard, told: Vec::new() }
    }

    /// The units of each write to the record that `operation` makes, where it is `item`.
    async fn of(&mut self, what: &'static str, mut item: Item, operation: impl AsyncFnOnce(&Ledger)) {
        item.insert("due_shard".to_owned(), self.shard.clone());
        self.world.put(item).await;
        self.world.wire.calls();
        operation(&self.world.ledger).await;
        let calls = self.world.wire.calls().into_iter();
        let writes = calls.filter(|call| call.request["Key"]["sk"]["S"] == "record" && call.operation != "GetItem");
        self.told.push((what, writes.map(|call| call.units()).collect()));
    }
}

/// What an operation answers is told by other tests.
fn skip<T>(_: T) {}

fn without(mut item: Item, name: &str) -> Item {
    item.remove(name);
    item
}

fn look() -> Observation {
    Observation { id: longest(), incarnation: longest_run(), ..seen("x") }
}

fn idle() -> ClaimRequest {
    ClaimRequest {
        id: longest(),
        epoch: EPOCH,
        incarnation: Some(longest_run()),
        owner: "o".repeat(MAX_OWNER_BYTES),
        until: late(10_001),
        rule: ClaimRule::Idle { cutoff: late(20) },
        ..idle_claim("x", &registered(), 0, 0)
    }
}

#[tokio::test]
async fn what_activity_costs() {
    let mut costs = Costs::new().await;
    let id = &longest();
    let running = || item(State::Running);
    let hour = Some(Duration::from_hours(1));
    let beat = async |to: &Ledger, epoch, busy, at| skip(to.heartbeat(id, Some(epoch), busy, late(at)).await.unwrap());
    costs.of("a heartbeat", running(), async |to| beat(to, EPOCH, None, 10).await).await;
    costs.of("a busy one", running(), async |to| beat(to, EPOCH, hour, 10).await).await;
    let webhook = async |to: &Ledger| skip(to.heartbeat_once(id, None, hour, "fedcba98", late(10)).await.unwrap());
    costs.of("a webhook", running(), webhook).await;
    costs.of("a heartbeat that is coalesced", running(), async |to| beat(to, EPOCH, None, 0).await).await;
    costs.of("one that is superseded", running(), async |to| beat(to, 7, None, 10).await).await;
    costs
        .of("one that is refused, and wants it", item(State::Suspended), async |to| beat(to, EPOCH, None, 10).await)
        .await;
    let rearmed = async |to: &Ledger| {
        beat(to, EPOCH, None, 10).await;
        assert!(matches!(to.rearm(id, late(0), late(1)).await.unwrap(), Rearmed::Until(_)));
    };
    costs.of("a heartbeat and a re-arm", running(), rearmed).await;
    let registered = async |to: &Ledger| skip(to.register(id, &<_>::default(), arming(50), late(10)).await.unwrap());
    costs.of("a registration", running(), registered).await;
    let active = Observation { activity: Activity::At(late(10)), ..look() };
    let found = async |to: &Ledger, due| skip(to.observe(&active, due, late(20)).await.unwrap());
    costs.of("a look that finds activity", running(), async |to| found(to, as_is()).await).await;
    costs.of("one that sets its time anew", running(), async |to| found(to, arming(50)).await).await;
    costs
        .of("a look at what is known", without(running(), "ab"), async |to| {
            skip(to.observe(&look(), as_is(), late(20)).await.unwrap());
        })
        .await;
    let told = ProbeSeen { last_active: Some(late(10)), busy: Busy::No };
    let probed = async |to: &Ledger| skip(to.probed(id, &longest_run(), told, late(20)).await.unwrap());
    costs.of("a probe that finds activity", running(), probed).await;
    committed(&costs.world.ledger, "ada", 1).await;
    let save = Save { workspace: "ada".parse().unwrap(), generation: 1, age: Duration::ZERO };
    let saved = async |to: &Ledger| skip(to.saved(id, None, &save, late(90)).await.unwrap());
    costs.of("a save", running(), saved).await;

    let expected = [
        ("a heartbeat", vec![1.0]),
        ("a busy one", vec![1.0]),
        ("a webhook", vec![1.0]),
        ("a heartbeat that is coalesced", vec![0.0]),
        ("one that is superseded", vec![0.0]),
        ("one that is refused, and wants it", vec![0.0, 3.0]),
        ("a heartbeat and a re-arm", vec![1.0, 3.0]),
        ("a registration", vec![0.0, 3.0]),
        ("a look that finds activity", vec![1.0]),
        ("one that sets its time anew", vec![3.0]),
        ("a look at what is known", vec![]),
        ("a probe that finds activity", vec![1.0]),
        ("a save", vec![1.0]),
    ];
    assert_eq!(costs.told, expected);
}

#[tokio::test]
async fn what_a_reclaim_costs() {
    let mut costs = Costs::new().await;
    let id = &longest();
    let (running, claimed, resting) = (|| item(State::Running), || item(State::Suspending), || item(State::Suspended));
    let claim = async |to: &Ledger| skip(to.claim(&idle(), late(10_000)).await.unwrap());
    costs.of("a claim", running(), claim).await;
    costs.of("a claim that is lost", resting(), claim).await;
    let done = Completion { ended: Ended::Suspended, saved_as_of: Some(late(9)), arming: arming(20_000) };
    costs
        .of("its completion", claimed(), async |to| skip(to.complete(id, TOKEN, &done, late(50)).await.unwrap()))
        .await;
    costs
        .of("its hand-over", claimed(), async |to| skip(to.hand_over(id, TOKEN, late(60), late(50)).await.unwrap()))
        .await;
    let failed = Failure::Yes { due_at: late(500) };
    let abandon = async |to: &Ledger| skip(to.abandon(id, TOKEN, State::Running, failed, late(50)).await.unwrap());
    costs.of("its end without an act", claimed(), abandon).await;
    let take_over = async |to: &Ledger| skip(to.take_over(id, TOKEN, "pass-2", late(900), late(500)).await.unwrap());
    costs.of("its takeover", claimed(), take_over).await;
    costs.of("a wake", resting(), async |to| skip(to.wake(id, "wake", late(900), late(500)).await.unwrap())).await;
    let later = async |to: &Ledger| {
        assert!(to.reschedule(id, TOKEN, Some(late(0)), arming(70), late(50)).await.unwrap());
    };
    costs.of("another time to look", running(), later).await;
    let hold = HoldRequest { hold: Hold::Until(late(900)), why: "demo", by: "kim" };
    costs.of("a hold", running(), async |to| skip(to.hold(id, &hold, None, late(50)).await.unwrap())).await;
    let kept: Item = running().into_iter().chain([("hu".to_owned(), number(late(900).millis()))]).collect();
    costs.of("its release", kept, async |to| assert!(to.release(id, late(60)).await.unwrap())).await;
    let notice = async |to: &Ledger| assert!(to.noticed(id, TOKEN, late(50)).await.unwrap());
    costs.of("a notice", without(resting(), "no"), notice).await;
    let absent = async |to: &Ledger| {
        let record = to.get(id).await.unwrap().unwrap();
        assert!(to.absent(id, &record, late(50)).await.unwrap());
    };
    costs.of("a first absence", without(running(), "ab"), absent).await;
    costs.of("a second", running(), async |to| skip(to.gone(id, TOKEN, late(0), late(500)).await.unwrap())).await;

    let expected = [
        ("a claim", vec![3.0]),
        ("a claim that is lost", vec![0.0]),
        ("its completion", vec![3.0]),
        ("its hand-over", vec![3.0]),
        ("its end without an act", vec![3.0]),
        ("its takeover", vec![3.0]),
        ("a wake", vec![3.0]),
        ("another time to look", vec![3.0]),
        ("a hold", vec![1.0]),
        ("its release", vec![1.0]),
        ("a notice", vec![1.0]),
        ("a first absence", vec![1.0]),
        ("a second", vec![2.0]),
    ];
    assert_eq!(costs.told, expected);
}
