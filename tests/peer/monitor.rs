//! The peer's design: an index (status, last activity), written by each sign of life without a condition; a round each
//! five minutes that queries the idle ones and stops them in a loop, counts the running ones, and reads all of them once
//! more to find tasks that no row knows.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
        ProjectionType, ScalarAttributeType, Select,
    },
};

use super::{
    Hour, add,
    fleet::{Fleet, HOUR, IDLE, Way},
    meter::Meter,
    now,
};

const TABLE: &str = "registry";
const INDEX: &str = "status-index";

/// The seconds between two rounds.
const EVERY: i64 = 300;

type Item = HashMap<String, AttributeValue>;

/// The hour on this design.
pub(crate) async fn hour(fleet: Fleet) -> Hour {
    let meter = Meter::new(&embedded::memory().unwrap());
    let monitor = Monitor { client: meter.client() };
    monitor.create(fleet).await;
    let _ = meter.take();
    let mut hour = Hour::default();
    for second in 0..=HOUR {
        let begun = now();
        for number in fleet.signs(second) {
            monitor.active(number, second).await;
        }
        add(&mut hour.heartbeats, &meter, begun.elapsed());
        if second > 0 && second % EVERY == 0 {
            let begun = now();
            hour.stopped += monitor.round(second).await;
            add(&mut hour.ticks, &meter, begun.elapsed());
        }
    }
    hour
}

struct Monitor {
    client: Client,
}

impl Monitor {
    async fn create(&self, fleet: Fleet) {
        let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
        let typed = |name: &str, kind| {
            AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
        };
        let index = GlobalSecondaryIndex::builder()
            .index_name(INDEX)
            .key_schema(key("status", KeyType::Hash))
            .key_schema(key("last_activity_at", KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::All).build());
        let table = self
            .client
            .create_table()
            .table_name(TABLE)
            .key_schema(key("conversation_id", KeyType::Hash))
            .attribute_definitions(typed("conversation_id", ScalarAttributeType::S))
            .attribute_definitions(typed("status", ScalarAttributeType::S))
            .attribute_definitions(typed("last_activity_at", ScalarAttributeType::N))
            .global_secondary_indexes(index.build().unwrap())
            .billing_mode(BillingMode::PayPerRequest);
        table.send().await.unwrap();
        for (number, way) in fleet.runtimes() {
            let status = if way == Way::AtRest { "PAUSED" } else { "RUNNING" };
            let put = self.client.put_item().table_name(TABLE).set_item(Some(row(number, status)));
            put.send().await.unwrap();
        }
    }

    /// A sign of life.
    async fn active(&self, number: u32, second: i64) {
        self.update(text(&conversation(number)), "SET last_activity_at = :now", [(":now", whole(second))]).await;
    }

    async fn update<const N: usize>(&self, key: AttributeValue, update: &str, values: [(&str, AttributeValue); N]) {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let update = self
            .client
            .update_item()
            .table_name(TABLE)
            .key("conversation_id", key)
            .update_expression(update)
            .set_expression_attribute_names(update.contains('#').then(|| named("status")))
            .set_expression_attribute_values(Some(values));
        update.send().await.unwrap();
    }

    /// A round; how many it stopped.
    async fn round(&self, second: i64) -> u64 {
        let idle = self.of("RUNNING", Some(second - IDLE), Select::AllAttributes).await;
        let stopped = idle.len() as u64;
        for item in idle {
            let values = [(":status", text("PAUSED")), (":now", whole(second))];
            let update = "SET #status = :status, last_activity_at = :now";
            self.update(item["conversation_id"].clone(), update, values).await;
        }
        self.of("RUNNING", None, Select::Count).await;
        for status in ["RUNNING", "STARTING"] {
            self.of(status, None, Select::SpecificAttributes).await;
        }
        stopped
    }

    /// The rows of a status, to the last page; those not active since `before`, where that is said.
    async fn of(&self, status: &str, before: Option<i64>, select: Select) -> Vec<Item> {
        let condition = if before.is_some() { "#status = :s AND last_activity_at < :t" } else { "#status = :s" };
        let projection = (select == Select::SpecificAttributes).then(|| "task_arn".to_owned());
        let query = self
            .client
            .query()
            .table_name(TABLE)
            .index_name(INDEX)
            .key_condition_expression(condition)
            .set_expression_attribute_names(Some(named("status")))
            .expression_attribute_values(":s", text(status))
            .set_projection_expression(projection)
            .select(select);
        let mut query = match before {
            Some(before) => query.expression_attribute_values(":t", whole(before)),
            None => query,
        };
        let mut all = Vec::new();
        loop {
            let page = query.clone().send().await.unwrap();
            all.extend(page.items.unwrap_or_default());
            match page.last_evaluated_key {
                Some(key) => query = query.set_exclusive_start_key(Some(key)),
                None => return all,
            }
        }
    }
}

fn conversation(number: u32) -> String {
    format!("conversation-{number:08}")
}

/// A row as large as such a row is: some 400 bytes.
fn row(number: u32, status: &str) -> Item {
    let arn = format!("arn:aws:ecs:us-east-1:123456789012:task/sandboxes/{number:032x}");
    let texts = [
        ("conversation_id", conversation(number)),
        ("user_id", format!("user-{:08}", number % 500)),
        ("status", status.to_owned()),
        ("task_arn", arn),
        ("task_ip", "10.0.101.102".to_owned()),
        ("session_api_key", format!("{number:064x}")),
        ("access_point_id", format!("fsap-{number:017x}")),
    ];
    let times = [("last_activity_at", -1), ("created_at", -HOUR)];
    let texts = texts.into_iter().map(|(name, value)| (name.to_owned(), text(&value)));
    texts.chain(times.into_iter().map(|(name, at)| (name.to_owned(), whole(at)))).collect()
}

fn named(name: &str) -> HashMap<String, String> {
    HashMap::from([(format!("#{name}"), name.to_owned())])
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn whole(second: i64) -> AttributeValue {
    AttributeValue::N((1_796_040_000 + second).to_string())
}
