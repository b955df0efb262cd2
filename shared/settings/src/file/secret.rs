//! Where a secret is: one of a few places.

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::{
    Address, SecretSource,
    log::{Log, Problem},
    read::{Node, Read, Scalar, as_table, table},
    scalar::{Text, text},
};

/// The ARN of a secret.
#[derive(Debug, Clone)]
pub(crate) struct Arn(Address);

impl Scalar for Arn {
    const EXPECTED: &'static str = "the ARN of a secret of Secrets Manager";

    fn parse(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = text(value, Self::EXPECTED)?;
        match text.parse() {
            Ok(address @ Address::Secret(_)) => Ok(Self(address)),
            // What it is instead may be the secret itself, and is not repeated.
            _ => Err(Problem::new("it is no such ARN").wanting(Self::EXPECTED)),
        }
    }

    fn schema() -> Value {
        let place = "arn:aws(-[a-z]{1,6}){0,3}:secretsmanager:[a-z0-9-]{1,32}:[0-9]{12}:secret";
        json!({ "type": "string", "pattern": format!("^{place}:[A-Za-z0-9/_+=.@-]{{1,512}}$") })
    }
}

table! {
    /// Where a secret is.
    Places {
        /// The environment variable that has it.
        env: Text,
        /// The secret of Secrets Manager that has it, for the functions on AWS.
        arn: Arn,
    }
}

impl Read for SecretSource {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        let places = Places::read(node, log)?;
        match (places.env, places.arn) {
            (Some(env), None) => Some(Self::Env(env.value.0)),
            (None, Some(arn)) => Some(Self::Stored(arn.value.0)),
            // What is there and could not be read was told where it stands.
            (None, None) if as_table(node, log).is_some_and(|table| !table.is_empty()) => None,
            _ => {
                let problem = Problem::new("a secret is in one place").wanting("either `env` or `arn`");
                log.error(&node.path, &node.span, problem);
                None
            }
        }
    }

    fn schema() -> Value {
        let mut schema = <Places as Read>::schema();
        schema["oneOf"] = json!([{ "required": ["env"] }, { "required": ["arn"] }]);
        schema
    }

    fn keys(prefix: &str, out: &mut Vec<String>) {
        Places::keys(prefix, out);
    }
}
