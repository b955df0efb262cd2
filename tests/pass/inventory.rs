//! Listings that fail, end early, repeat themselves or never end; absence; breakers; the index.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use backend::{
    Backend, BackendError, ErrorKind, Listable, Page, PageToken,
    fake::{Fake, RuntimeSpec, Shape},
    faulty::{self, Fault, Script, Verb},
};
use lifecycle::{BackendName, State, policy::Percent};

use super::stage::{DAY, HOUR, MINUTE, Stage, box_name, errors, kept, planned};

/// Six runtimes, two a page, known to the ledger and idle.
async fn six() -> Stage {
    let stage = Stage::shaped(Shape { page_size: 2, ..Shape::default() }).await;
    for number in 0..6 {
        stage.add(RuntimeSpec::running(&format!("r{number}")));
    }
    stage.tick().await;
    stage
}

/// A tick over a backend that fails so; what the report says of it.
async fn tick_over(stage: &Stage, backend: Backend) -> Vec<String> {
    errors(&stage.pass_of("pass-1", vec![backend]).run().await)
}

#[tokio::test]
async fn a_failed_listing_is_said_and_takes_nothing_for_gone() {
    let stage = six().await;
    stage.advance(20 * MINUTE);
    let down = || Fault::Before(BackendError::new(ErrorKind::Unreachable, "no route"));
    for _ in 0..3 {
        stage.advance(HOUR);
        for number in 0..6 {
            stage.fake.touch(&stage.id(&format!("r{number}")));
        }
        let backend = faulty::around(stage.fake.backend(), Script::new().always(Verb::List, down()));
        let told = tick_over(&stage, backend).await;
        assert_eq!(told, ["the listing failed after 0 runtimes: no route"]);
    }
    assert_eq!(stage.effects(), [""; 0]);
    for number in 0..6 {
        let record = stage.record(&format!("r{number}")).await;
        assert_eq!((record.state, record.absent_since), (State::Running, None));
    }
    let sweep = stage.ledger.unit(&box_name()).await.unwrap().last_sweep.unwrap();
    assert_eq!((sweep.at, sweep.count), (super::stage::start(), 6), "only a complete sweep counts as one");
}

/// A row that can't be read makes the listing partial, and not every tick a sweep.
#[tokio::test]
async fn a_row_that_cant_be_read_is_said_and_costs_no_sweep_at_every_tick() {
    let stage = six().await;
    stage.fake.vanish(&stage.id("r0"));
    stage.advance(HOUR);
    let partial = Fault::Partial("`x` can't be read".into());
    let pass =
        stage.pass_of("p", vec![faulty::around(stage.fake.backend(), Script::new().always(Verb::List, partial))]);
    let first = pass.run().await;
    assert_eq!(errors(&first), ["some of it can't be read: `x` can't be read; `x` can't be read; `x` can't be read"]);
    assert_eq!(first.upkeep.swept, [box_name()]);
    assert_eq!(stage.effects().len(), 5, "what was read is acted on");
    let unit = stage.ledger.unit(&box_name()).await.unwrap();
    assert_eq!(unit.last_sweep.unwrap().count, 6, "a partial listing makes no smaller fleet for the breaker");
    stage.advance(MINUTE);
    assert_eq!(pass.run().await.upkeep.swept, []);
    stage.advance(DAY);
    let _ = pass.run().await;
    assert_eq!(stage.record("r0").await.absent_since, None, "what a partial listing lacks may be what it can't read");
}

#[tokio::test]
async fn what_a_failed_listing_hides_is_still_reclaimed_when_it_is_due() {
    let stage = six().await;
    stage.advance(2 * HOUR);
    let down = Fault::Before(BackendError::new(ErrorKind::Unreachable, "no route"));
    let backend = faulty::around(stage.fake.backend(), Script::new().always(Verb::List, down));
    tick_over(&stage, backend).await;
    assert_eq!(stage.effects().len(), 6, "each was looked at by id");
}

#[tokio::test]
async fn a_tick_tells_how_many_were_not_due_and_a_sweep_leaves_none_out() {
    let stage = six().await.limits(|limits| limits.sweep_every = 20 * MINUTE);
    stage.advance(20 * MINUTE);
    for number in 6..9 {
        stage.add(RuntimeSpec::running(&format!("r{number}")));
    }
    let swept = stage.ticked().await;
    assert_eq!((swept.upkeep.swept.len(), swept.report.not_due), (1, 0));
    stage.advance(12 * MINUTE);
    let ticked = stage.ticked().await;
    assert_eq!((ticked.report.entries.len(), ticked.report.not_due), (6, 3));
}

/// A short listing that says it is complete: each that it lacks is looked at by id, and is there.
#[tokio::test]
async fn a_short_listing_loses_nobody() {
    let stage = six().await;
    for _ in 0..3 {
        stage.advance(HOUR);
        let backend = faulty::around(stage.fake.backend(), Script::new().always(Verb::List, Fault::Short(1)));
        assert_eq!(tick_over(&stage, backend).await, [""; 0]);
    }
    for number in 0..6 {
        let record = stage.record(&format!("r{number}")).await;
        assert_eq!(record.absent_since, None);
        assert_ne!(record.state, State::Gone);
    }
}

#[tokio::test]
async fn a_listing_that_tells_everything_twice_acts_once() {
    let stage = six().await;
    stage.advance(2 * HOUR);
    let backend = faulty::around(stage.fake.backend(), Script::new().always(Verb::List, Fault::Doubled));
    assert_eq!(tick_over(&stage, backend).await, [""; 0]);
    assert_eq!(stage.effects().len(), 6);
    assert_eq!(stage.ledger.unit(&box_name()).await.unwrap().last_sweep.unwrap().count, 6);
}

/// Names the same page again and again, or always another.
struct Endless {
    inner: Arc<dyn Listable>,
    token: fn(&str) -> String,
}

#[async_trait]
impl Listable for Endless {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let mut first = self.inner.list(None).await?;
        let token = page.map_or("", |page| &page.0);
        first.next = Some(PageToken((self.token)(token).into()));
        Ok(first)
    }
}

#[tokio::test]
async fn a_listing_that_never_ends_is_partial() {
    let stage = six().await.limits(|limits| limits.max_pages = 5);
    stage.advance(2 * HOUR);
    let endless = |token| {
        let mut backend = stage.fake.backend();
        backend.list = Arc::new(Endless { inner: backend.list, token });
        backend
    };
    let told = tick_over(&stage, endless(|_| "here".to_owned())).await;
    assert_eq!(told, ["the listing names page `here` twice, so it would never end"]);
    stage.advance(2 * HOUR);
    let told = tick_over(&stage, endless(|token| format!("{token}x"))).await;
    assert_eq!(told, ["the listing did not end within 5 pages"]);
}

#[tokio::test]
async fn gone_needs_two_sightings_apart_in_time() {
    let stage = six().await.limits(|limits| limits.sweep_every = MINUTE);
    stage.fake.vanish(&stage.id("r0"));
    stage.advance(HOUR);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.gone, []);
    let record = stage.record("r0").await;
    assert_eq!((record.state, record.absent_since), (State::Running, Some(stage.now())));
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.state("r0").await, State::Running, "a minute is not apart");
    stage.advance(5 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.gone, [stage.id("r0")]);
    assert_eq!(stage.state("r0").await, State::Gone);
}

/// Two passes whose clocks differ by so much could have looked at the same moment.
#[tokio::test]
async fn two_sightings_are_further_apart_than_clocks_differ() {
    let stage = six().await.limits(|limits| limits.sweep_every = MINUTE).policy(|policy| policy.skew = HOUR);
    stage.fake.vanish(&stage.id("r0"));
    stage.advance(HOUR);
    stage.tick().await;
    stage.advance(HOUR);
    stage.tick().await;
    assert_eq!(stage.state("r0").await, State::Running);
    stage.advance(5 * MINUTE);
    assert_eq!(stage.ticked().await.upkeep.gone, [stage.id("r0")]);
}

#[tokio::test]
async fn what_comes_back_between_two_looks_is_not_gone() {
    let stage = six().await;
    stage.fake.vanish(&stage.id("r0"));
    stage.advance(HOUR);
    stage.tick().await;
    stage.add(RuntimeSpec::running("r0"));
    stage.advance(6 * MINUTE);
    stage.tick().await;
    let record = stage.record("r0").await;
    assert_eq!((record.state, record.absent_since), (State::Running, None));
}

#[tokio::test]
async fn an_inventory_that_shrank_too_much_is_only_reported() {
    let stage = six().await.policy(|policy| policy.breakers.inventory_drop = Percent::new(30));
    for number in 0..3 {
        stage.fake.vanish(&stage.id(&format!("r{number}")));
    }
    stage.advance(HOUR);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.report.backends[0].note.breaker, Some(lifecycle::verdict::Breaker::InventoryDrop));
    assert_eq!(stage.effects(), [""; 0]);
    stage.advance(HOUR);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 3, "the next sweep finds as many as the last, and goes on");
}

/// Swept, heard of, and swept again: from then on their due times are those of their heartbeats.
async fn alive(stage: &Stage, many: usize) {
    stage.tick().await;
    stage.advance(HOUR);
    for number in 0..many {
        assert_eq!(stage.heartbeat(&format!("r{number}")).await, ledger::Heartbeat::Recorded);
    }
    stage.tick().await;
}

/// The heartbeats of all stop at once: their ingestion is down, more likely than that all went idle.
#[tokio::test]
async fn a_fleet_that_falls_silent_at_once_is_only_reported() {
    let stage = Stage::new().await.policy(|policy| policy.breakers.silent = Percent::new(20));
    for number in 0..6 {
        stage.add(RuntimeSpec::running(&format!("r{number}")).unknown().no_agent_server());
    }
    alive(&stage, 6).await;
    stage.advance(31 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.report.backends[0].note.breaker, Some(lifecycle::verdict::Breaker::Silent));
    assert_eq!(outcome.upkeep.swept, [box_name()], "so many are due that the whole fleet was looked at first");
    assert_eq!(stage.effects(), [""; 0]);
    assert_eq!(stage.heartbeat("r0").await, ledger::Heartbeat::Recorded);
    stage.advance(MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn one_that_falls_silent_among_many_is_suspended() {
    let stage = Stage::new().await.policy(|policy| policy.breakers.silent = Percent::new(20));
    for number in 0..10 {
        stage.add(RuntimeSpec::running(&format!("r{number}")).unknown().no_agent_server());
    }
    alive(&stage, 10).await;
    stage.advance(20 * MINUTE);
    for number in 1..10 {
        assert_eq!(stage.heartbeat(&format!("r{number}")).await, ledger::Heartbeat::Recorded);
    }
    stage.advance(11 * MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.swept, [], "one of ten is no reason to look at all");
    assert_eq!(stage.effects(), ["r0 suspended"]);
}

#[tokio::test]
async fn a_live_runtime_with_heartbeats_costs_a_tick_no_look() {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a").unknown().no_agent_server());
    stage.tick().await;
    stage.advance(HOUR);
    assert_eq!(stage.heartbeat("a").await, ledger::Heartbeat::Recorded);
    stage.tick().await;
    let asked = stage.fake.asked();
    for _ in 0..5 {
        stage.advance(10 * MINUTE);
        assert_eq!(stage.heartbeat("a").await, ledger::Heartbeat::Recorded);
        stage.tick().await;
    }
    assert_eq!(stage.fake.asked().looks, asked.looks);
    assert_eq!(stage.effects(), [""; 0]);
}

#[tokio::test]
async fn another_policy_arms_every_record_anew() {
    let mut stage = six().await;
    stage.policy.rules[0].idle_after = Some(5 * MINUTE);
    stage.advance(MINUTE);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.upkeep.swept, [box_name()], "at once, not when the next sweep is due");
    assert_eq!(stage.effects(), [""; 0]);
    stage.advance(5 * MINUTE);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 6);
}

#[tokio::test]
async fn a_record_that_fell_out_of_the_index_is_put_back_and_counted() {
    let stage = six().await;
    let key = |name: &str| AttributeValue::S(name.to_owned());
    let client = stage.store().client();
    let update = client.update_item().table_name("furlough").update_expression("REMOVE due_at, due_shard");
    let pk = format!("runtime/{}", stage.id("r0"));
    update.key("pk", key(&pk)).key("sk", key("record")).send().await.unwrap();
    assert_eq!(stage.indexed().await.len(), 5);
    stage.advance(HOUR);
    let outcome = stage.ticked().await;
    assert_eq!(outcome.report.healed, 1);
    assert_eq!(stage.effects().len(), 6);
}

/// A record that can't be read is there, so its runtime is kept, in a plan and in a tick, and it is said.
#[tokio::test]
async fn a_record_that_cant_be_read_keeps_its_runtime() {
    let stage = six().await;
    let key = |name: &str| AttributeValue::S(name.to_owned());
    let client = stage.store().client();
    let update = client.update_item().table_name("furlough").update_expression("SET #idle_from = :broken");
    let pk = format!("runtime/{}", stage.id("r0"));
    // As the ledger stores it, under a short name.
    let update = update.expression_attribute_names("#idle_from", "if");
    let update = update.expression_attribute_values(":broken", key("yesterday"));
    update.key("pk", key(&pk)).key("sk", key("record")).send().await.unwrap();
    stage.advance(2 * HOUR);
    let plan = stage.preview().await;
    assert_eq!(planned(&plan).len(), 5);
    assert_eq!(kept(&plan, "r0"), "it was asked for its activity and did not answer");
    let outcome = stage.pass().run().await;
    assert_eq!(stage.effects().len(), 5);
    assert!(errors(&outcome).iter().any(|error| error.contains("box/r0")), "{:?}", errors(&outcome));
}

#[tokio::test]
async fn one_backends_trouble_stops_no_other() {
    let stage = six().await.limits(|limits| limits.look_timeout = std::time::Duration::from_millis(20));
    let name = BackendName::new("down").unwrap();
    let down = Fake::new(name, stage.hands.clock());
    down.breaks(BackendError::new(ErrorKind::Unreachable, "no route"));
    let hanging = Fake::new(BackendName::new("hanging").unwrap(), stage.hands.clock()).backend();
    let hanging = Backend { list: Arc::new(Hangs), ..hanging };
    stage.advance(2 * HOUR);
    let outcome = stage.pass_of("pass-1", vec![down.backend(), hanging, stage.fake.backend()]).run().await;
    assert_eq!(stage.effects().len(), 6);
    let said: Vec<_> = outcome
        .report
        .backends
        .iter()
        .map(|backend| (backend.note.backend.to_string(), backend.note.listing.complete, backend.errors.len()))
        .collect();
    assert_eq!(
        said,
        [("box".to_owned(), true, 0), ("down".to_owned(), false, 3), ("hanging".to_owned(), false, 1)],
        "{:?}",
        errors(&outcome)
    );
}

struct Hangs;

#[async_trait]
impl Listable for Hangs {
    async fn list(&self, _: Option<&PageToken>) -> Result<Page, BackendError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_pass_out_of_time_leaves_the_rest_and_says_so() {
    let stage = six().await;
    stage.advance(31 * MINUTE);
    let plan = stage.preview().await;
    let stage = stage.limits(|limits| limits.duration = std::time::Duration::ZERO);
    let report = stage.pass().apply(&plan).await.unwrap();
    let told = super::stage::details(&report.entries);
    assert_eq!(told[0], "r0: left to the next pass (the pass was out of time)");
    assert_eq!(stage.effects(), [""; 0]);
    let _ = stage.pass().run().await;
    assert_eq!(stage.effects(), [""; 0]);
    let stage = stage.limits(|limits| limits.duration = DAY);
    stage.tick().await;
    assert_eq!(stage.effects().len(), 6, "they were still due");
}

#[tokio::test]
async fn more_due_than_one_pass_takes_is_said_and_the_next_goes_on() {
    let stage = six().await.limits(|limits| limits.max_items = 2);
    stage.advance(31 * MINUTE);
    for done in [2, 4, 6] {
        let outcome = stage.ticked().await;
        assert_eq!(stage.effects().len(), done);
        assert_eq!(outcome.upkeep.more_due.is_empty(), done == 6);
        stage.advance(MINUTE);
    }
}
