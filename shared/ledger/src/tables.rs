//! The two tables, where nobody else makes them (on AWS the template in `infra/` does).

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::{BuildError, SdkError},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};

use crate::{Ledger, LedgerError, error::asked};

/// The index of what is due.
pub(crate) const DUE_INDEX: &str = "due";

/// The attribute, in seconds, after which the store removes an item by itself.
const TTL: &str = "expires_at";

/// How often and how far apart a new table is looked at until it can be used: two minutes.
const READY_LOOKS: u32 = 60;
const READY_WAIT: Duration = Duration::from_secs(2);

impl Ledger {
    /// Makes the tables, the index and the expiry where they are missing, and waits until they can be used.
    /// Only reads where nothing is missing.
    pub async fn create_tables(&self) -> Result<(), LedgerError> {
        let tables = &self.options.tables;
        if self.status(&tables.main).await?.is_none() {
            self.create_main().await?;
        }
        if self.status(&tables.actions).await?.is_none() {
            self.create_actions().await?;
        }
        for table in [&tables.main, &tables.actions] {
            self.ready(table).await?;
            self.expire(table).await?;
        }
        Ok(())
    }

    async fn status(&self, table: &str) -> Result<Option<TableStatus>, LedgerError> {
        match self.client.describe_table().table_name(table).send().await {
            Ok(found) => Ok(found.table.and_then(|table| table.table_status)),
            Err(SdkError::ServiceError(error)) if error.err().is_resource_not_found_exception() => Ok(None),
            Err(error) => Err(asked("create tables", table, &error)),
        }
    }

    async fn create_main(&self) -> Result<(), LedgerError> {
        let table = &self.options.tables.main;
        let projection = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
        let index = GlobalSecondaryIndex::builder()
            .index_name(DUE_INDEX)
            .key_schema(key("due_shard", KeyType::Hash).map_err(unbuilt)?)
            .key_schema(key("due_at", KeyType::Range).map_err(unbuilt)?)
            .projection(projection)
            .build()
            .map_err(unbuilt)?;
        let request = self
            .client
            .create_table()
            .table_name(table)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(attribute("pk", ScalarAttributeType::S).map_err(unbuilt)?)
            .attribute_definitions(attribute("sk", ScalarAttributeType::S).map_err(unbuilt)?)
            .attribute_definitions(attribute("due_shard", ScalarAttributeType::S).map_err(unbuilt)?)
            .attribute_definitions(attribute("due_at", ScalarAttributeType::N).map_err(unbuilt)?)
            .key_schema(key("pk", KeyType::Hash).map_err(unbuilt)?)
            .key_schema(key("sk", KeyType::Range).map_err(unbuilt)?)
            .global_secondary_indexes(index);
        made(request.send().await, table)
    }

    async fn create_actions(&self) -> Result<(), LedgerError> {
        let table = &self.options.tables.actions;
        let request = self
            .client
            .create_table()
            .table_name(table)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(attribute("runtime", ScalarAttributeType::S).map_err(unbuilt)?)
            .attribute_definitions(attribute("act", ScalarAttributeType::S).map_err(unbuilt)?)
            .key_schema(key("runtime", KeyType::Hash).map_err(unbuilt)?)
            .key_schema(key("act", KeyType::Range).map_err(unbuilt)?);
        made(request.send().await, table)
    }

    async fn ready(&self, table: &str) -> Result<(), LedgerError> {
        for _ in 0..READY_LOOKS {
            match self.status(table).await? {
                Some(TableStatus::Active) => return Ok(()),
                _ => tokio::time::sleep(READY_WAIT).await,
            }
        }
        let why = format!("table `{table}` was not ready within {} s", READY_LOOKS * 2);
        Err(LedgerError::Unavailable { operation: "create tables", why })
    }

    async fn expire(&self, table: &str) -> Result<(), LedgerError> {
        if self.expires(table).await? {
            return Ok(());
        }
        let wish = TimeToLiveSpecification::builder().enabled(true).attribute_name(TTL).build().map_err(unbuilt)?;
        let request = self.client.update_time_to_live().table_name(table).time_to_live_specification(wish);
        match request.send().await {
            Ok(_) => Ok(()),
            // Somebody else was first: that is what was wanted.
            Err(_) if self.expires(table).await? => Ok(()),
            Err(error) => Err(asked("create tables", table, &error)),
        }
    }

    async fn expires(&self, table: &str) -> Result<bool, LedgerError> {
        let found = self.client.describe_time_to_live().table_name(table).send().await;
        let found = found.map_err(|error| asked("create tables", table, &error))?;
        let status = found.time_to_live_description.and_then(|found| found.time_to_live_status);
        Ok(matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)))
    }
}

/// Somebody else who made it at the same time did what was wanted.
fn made<T>(
    answer: Result<T, SdkError<aws_sdk_dynamodb::operation::create_table::CreateTableError>>,
    table: &str,
) -> Result<(), LedgerError> {
    match answer {
        Ok(_) => Ok(()),
        Err(SdkError::ServiceError(error)) if error.err().is_resource_in_use_exception() => Ok(()),
        Err(error) => Err(asked("create tables", table, &error)),
    }
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, BuildError> {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
}

fn attribute(name: &str, kind: ScalarAttributeType) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn unbuilt(error: BuildError) -> LedgerError {
    LedgerError::Request { operation: "create tables", why: error.to_string() }
}
