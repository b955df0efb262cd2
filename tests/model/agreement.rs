//! The table and the ledger's expressions say the same: the same operation on the same record, in the model and on
//! the production ledger, ends in the same answer and the same record, whole.

use std::{cell::RefCell, time::Duration};

use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};
use ledger::Options;
use lifecycle::{RuntimeId, State, Tier};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};

use super::{
    SCOPES,
    observed::{Active, Seen},
    real,
    record::{Arm, COALESCE, Held, Rec, SKEW, Tick},
    search::search,
    shift::{aimed_at, shifted},
    table::{Ask, End, Op, Rule, apply},
    world::{Case, Model, Taken},
};
use crate::ledger::fixture::{Item, World, id, text, world_with};

/// How many cases are tried before the records are read.
const BATCH: usize = 25;

/// In a debug build one case in so many is tried, since a call takes milliseconds there; in a release build each.
const ONE_OF: usize = if cfg!(debug_assertions) { 5 } else { 1 };

/// A ledger and runtimes whose jitter is zero, so that what is due is due to the second.
struct Bench {
    world: World,
    ids: Vec<RuntimeId>,
}

impl Bench {
    async fn new(runtimes: usize) -> Self {
        let seconds = |ticks: Tick| Duration::from_secs(u64::try_from(ticks).unwrap());
        let options = Options { shards: 1, coalesce: seconds(COALESCE), skew: seconds(SKEW), ..Options::default() };
        let world = world_with(options).await;
        let ids = (0..).map(|n| id(&format!("a{n}")));
        let on_time = |id: &RuntimeId| world.ledger.jittered(id, real::time(0)) == real::time(0);
        let ids = ids.filter(on_time).take(runtimes).collect();
        Self { world, ids }
    }

    /// Puts each record there, or takes it away.
    async fn put(&self, recs: &[Option<Rec>]) {
        let writes = self.ids.iter().zip(recs).map(|(id, rec)| {
            let key = [("pk", text(&format!("runtime/{id}"))), ("sk", text("record"))];
            let key: Item = key.map(|(name, value)| (name.to_owned(), value)).into();
            if let Some(rec) = rec {
                let shard = format!("{}/0", id.backend());
                let item = real::item(rec, &shard).into_iter().chain(key).collect();
                let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
                WriteRequest::builder().put_request(put).build()
            } else {
                let delete = DeleteRequest::builder().set_key(Some(key)).build().unwrap();
                WriteRequest::builder().delete_request(delete).build()
            }
        });
        let written = self.world.client.batch_write_item().request_items("furlough", writes.collect()).send().await;
        assert_eq!(written.unwrap().unprocessed_items.unwrap_or_default().len(), 0);
    }

    /// Does each case on both, and compares. The model's records after them.
    async fn agree(&self, cases: &[Case]) -> Vec<Option<Rec>> {
        let mut after = Vec::new();
        for ((rec, op, now), id) in cases.iter().zip(&self.ids) {
            let (new, answer) = apply(None, rec.as_ref(), op, *now);
            let said = real::apply(&self.world.ledger, id, op, *now).await;
            let said = said.unwrap_or_else(|error| panic!("{op:?} at {now} on {rec:?}: {error}"));
            assert_eq!(said, real::expected(answer), "{op:?} at {now} on {rec:?}");
            after.push(new);
        }
        let left = self.world.ledger.get_many(&self.ids[..cases.len()]).await.unwrap();
        assert!(left.unreadable.is_empty(), "{:?}", left.unreadable);
        for (((rec, op, now), id), new) in cases.iter().zip(&self.ids).zip(&after) {
            assert_eq!(left.records.get(id), new.as_ref().map(real::record).as_ref(), "{op:?} at {now} on {rec:?}");
        }
        after
    }
}

/// Every transition that the searches take, each once, wherever in time.
fn taken() -> Vec<Case> {
    let mut all = Taken::default();
    for (name, scope) in SCOPES {
        let model = Model { taken: Some(RefCell::default()), ..scope.model(None) };
        assert_eq!(search(&model).breach, None, "{name}");
        for case in model.taken.unwrap_or_default().into_inner().cases {
            all.note(shifted(case));
        }
    }
    all.cases
}

/// On how many ledgers side by side the cases are tried.
const BENCHES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_transition_of_the_model_is_the_ledgers() {
    let cases: Vec<Case> = taken().into_iter().step_by(ONE_OF).collect();
    assert!(cases.len() > 10_000 / ONE_OF, "{}", cases.len());
    let parts = cases.chunks(cases.len().div_ceil(BENCHES)).map(|part| tokio::spawn(agree(part.to_vec())));
    for part in futures::future::join_all(parts).await {
        part.unwrap();
    }
}

async fn agree(cases: Vec<Case>) {
    let bench = Bench::new(BATCH).await;
    for cases in cases.chunks(BATCH) {
        let before: Vec<_> = cases.iter().map(|(rec, ..)| *rec).collect();
        bench.put(&before).await;
        bench.agree(cases).await;
    }
}

fn states() -> impl Strategy<Value = State> {
    select(vec![State::Running, State::Suspending, State::Suspended, State::Archived, State::Deleting])
}

/// A time that is near the walk's.
fn near() -> impl Strategy<Value = Tick> {
    -3..4_i16
}

fn arms() -> impl Strategy<Value = Arm> {
    let maybe = || prop::option::of(1..4_i16);
    (maybe(), maybe(), near()).prop_map(|(idle, cap, due)| Arm { idle, cap, due })
}

fn seen() -> impl Strategy<Value = Seen> {
    let active = prop_oneof![Just(Active::Unknown), Just(Active::Frozen), near().prop_map(Active::At)];
    let maybe = || prop::option::of(near());
    let shown = select(vec![State::Running, State::Running, State::Suspended, State::Archived, State::Suspending]);
    (1..3_u8, shown, maybe(), maybe(), active, maybe()).prop_map(
        |(run, state, state_since, running_since, active, busy_until)| Seen {
            run,
            state,
            state_since,
            running_since,
            active,
            busy_until,
        },
    )
}

fn rules() -> impl Strategy<Value = Rule> {
    let maybe = || prop::option::of(near());
    let delete = (near(), maybe(), maybe(), maybe());
    prop_oneof![
        near().prop_map(|cutoff| Rule::Idle { cutoff }),
        near().prop_map(|cutoff| Rule::NeverActive { cutoff }),
        near().prop_map(|cutoff| Rule::Lifetime { cutoff }),
        near().prop_map(|cutoff| Rule::Retention { cutoff }),
        near().prop_map(|cutoff| Rule::Shed { cutoff }),
        near().prop_map(|cutoff| Rule::Notify { cutoff }),
        delete.prop_map(|(cutoff, noticed, saved, resting)| Rule::Delete { cutoff, noticed, saved, resting }),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    let all = [End::Stayed, End::Shed(Tier::Caches), End::Noticed, End::Suspended, End::Archived, End::Resumed(2)];
    prop_oneof![10 => select(all.to_vec()), 1 => Just(End::Deleted)]
}

/// An operation with times relative to the walk's, and a fence relative to the record's: 0 is its own.
fn ops() -> impl Strategy<Value = Op> {
    let token = || prop_oneof![4 => Just(0), 1 => Just(-1)];
    let asks = (states(), states(), any::<bool>(), 1..4_i16, any::<bool>());
    prop_oneof![
        1 => arms().prop_map(|arm| Op::Register { arm }),
        3 => (prop::option::of(0..2_u8), 0..3_i16).prop_map(|(epoch, busy)| Op::Beat { epoch, busy }),
        3 => (seen(), arms()).prop_map(|(seen, arm)| Op::Observe { seen, arm }),
        1 => (1..3_u8, prop::option::of(near()), prop::option::of(near()))
            .prop_map(|(run, active, busy)| Op::Probed { run, active, busy }),
        6 => (asks, rules()).prop_map(|((from, to, fenced, until, other), rule)| {
            let token = fenced.then_some(-i32::from(other));
            Op::Claim { ask: Ask { from, to, epoch: 0, run: None, token, owner: 1, until }, rule }
        }),
        2 => (token(), 1..4_i16).prop_map(|(token, until)| Op::TakeOver { token, owner: 0, until }),
        1 => (1..4_i16).prop_map(|until| Op::Wake { owner: 0, until }),
        4 => (token(), ends(), prop::option::of(near()), arms())
            .prop_map(|(token, end, saved, arm)| Op::Complete { token, end, saved, arm }),
        1 => (token(), near()).prop_map(|(token, look_again)| Op::HandOver { token, look_again }),
        2 => (token(), states(), any::<bool>(), near())
            .prop_map(|(token, back_to, failed, due)| Op::Abandon { token, back_to, failed, due }),
        1 => (token(), states()).prop_map(|(token, state)| Op::Absent { token, state, idle_from: 0 }),
        1 => token().prop_map(|token| Op::Gone { token, since: 0 }),
        1 => token().prop_map(|token| Op::Noticed { token }),
        2 => near().prop_map(|horizon| Op::Rearm { seen_due: 0, horizon }),
        1 => (token(), prop::option::of(Just(0)), arms())
            .prop_map(|(token, seen_due, arm)| Op::Reschedule { token, seen_due, arm }),
        1 => prop_oneof![near().prop_map(Held::Until), Just(Held::Forever)].prop_map(|hold| Op::Hold { hold }),
        1 => Just(Op::Release),
    ]
}

/// The operation at the walk's time, on the record as it is: mostly what its reader would ask.
fn aimed(op: Op, rec: Option<&Rec>, now: Tick) -> Op {
    let op = aimed_at(op, rec.map_or(0, |rec| rec.token), now);
    let Some(rec) = rec else { return op };
    match op {
        Op::Beat { epoch, busy } => Op::Beat { epoch: epoch.map(|other| rec.epoch.saturating_sub(other)), busy },
        Op::Claim { ask, rule } => {
            let from = if now % 4 == 0 { ask.from } else { rec.state };
            Op::Claim { ask: Ask { from, epoch: rec.epoch, run: rec.run, ..ask }, rule }
        }
        Op::Absent { token, state, .. } => {
            let state = if now % 4 == 0 { state } else { rec.state };
            Op::Absent { token, state, idle_from: rec.idle_from }
        }
        Op::Gone { token, since } => Op::Gone { token, since: rec.absent_since.unwrap_or(since) },
        Op::Rearm { seen_due, horizon } => Op::Rearm { seen_due: rec.due_at.unwrap_or(seen_due), horizon },
        Op::Reschedule { token, seen_due, arm } => {
            Op::Reschedule { token, seen_due: seen_due.map(|seen| rec.due_at.unwrap_or(seen)), arm }
        }
        other => other,
    }
}

/// Long lives, with every operation and every attribute, also such as no search bothers with.
#[test]
fn on_any_walk_the_model_and_the_ledger_go_side_by_side() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let bench = runtime.block_on(Bench::new(1));
    // A request is of when it was sent, which may be before the last one was.
    let walks = prop::collection::vec((0..3_i16, prop_oneof![3 => Just(0), 1 => 1..4_i16], ops()), 1..40);
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let walked = runner.run(&walks, |walk| {
        runtime.block_on(async {
            bench.put(&[None]).await;
            let (mut rec, mut now) = (None, 10);
            for (later, ago, op) in walk {
                now += later;
                let op = aimed(op, rec.as_ref(), now - ago);
                rec = bench.agree(&[(rec, op, now - ago)]).await[0];
            }
        });
        Ok(())
    });
    walked.unwrap_or_else(|error| panic!("{error}"));
}
