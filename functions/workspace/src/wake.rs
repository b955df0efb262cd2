//! Brings a workspace to a sidecar, and takes it away.
//!
//! ```text
//! lease (the owner's own, if it holds one) ─► secret key ─► token ─► POST {sidecar}/init ─► ready, or on its way
//! ```

use std::{collections::BTreeMap, fmt};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sidecar::{front::INIT_KEY, protocol::Code};
use workspace::{
    commit::{Acquired, CommitError, Head, Lease},
    key::Name,
    manifest::Exclusion,
};

use crate::{
    answer::{Answer as _, refused},
    app::{App, TOKEN},
    secret::{SecretError, secret_key},
};

/// The most that is told of what a sidecar said, in bytes.
const MAX_SAID_BYTES: usize = 4096;
/// The agent server's own name for its secret key.
const SECRET: &str = "secret_key";

/// The bootstrap key of a sandbox. It can't be printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct BootstrapKey(String);

impl fmt::Debug for BootstrapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootstrapKey(…)")
    }
}

/// Where a sidecar is: an HTTP address without a user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Address(String);

impl TryFrom<String> for Address {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
        let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
        url.map(|url| Self(url.as_str().trim_end_matches('/').to_owned())).ok_or("no sidecar's address")
    }
}

/// The body of `/init`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Init {
    /// Where the sidecar is.
    sidecar: Address,
    #[serde(rename = "init_key")]
    key: BootstrapKey,
    /// Whose the lease is: the sandbox's name, the same at every try.
    owner: String,
    roots: BTreeMap<String, String>,
    #[serde(default)]
    exclude: Vec<Exclusion>,
    #[serde(default)]
    limit_bytes: Option<u64>,
    agent: Map<String, Value>,
}

/// The body of `/deinit`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deinit {
    sidecar: Address,
    #[serde(rename = "init_key")]
    key: BootstrapKey,
    #[serde(default)]
    discard: bool,
}

/// What a sidecar said.
enum Said {
    Done(Value),
    /// Nothing yet: it goes on.
    Nothing,
    Refused(u16, String),
    Unreached(String),
}

impl App {
    pub(crate) async fn init(&self, name: &Name, asked: Init) -> Response {
        if asked.agent.contains_key(SECRET) {
            return refused(
                Code::Malformed,
                "`agent.secret_key` is kept with the workspace, and is not taken from a host",
            );
        }
        let (lease, head, is_new) = match self.leased(name, &asked.owner).await {
            Ok(Ok(leased)) => leased,
            Ok(Err(held)) => return held,
            Err(error) => return error.answer(),
        };
        let secret = match secret_key(&*self.blobs, &self.keys, name).await {
            Ok(secret) => secret,
            Err(SecretError::Store(error)) => return error.answer(),
            Err(error) => return refused(Code::Refused, error.to_string()),
        };
        let delivery = self.delivery(name, &lease, head.as_ref(), &asked, secret);
        let said = self.tell(&asked.sidecar, "init", &asked.key, &delivery).await;
        if is_new && matches!(said, Said::Refused(..)) {
            // The sandbox has not got it: somebody else may.
            if let Err(error) = self.commit.release(&lease).await {
                tracing::warn!(workspace = %name, %error, "a lease that nobody uses could not be given back");
            }
        }
        answer(said, &asked.sidecar)
    }

    pub(crate) async fn deinit(&self, name: &Name, asked: Deinit) -> Response {
        tracing::info!(workspace = %name, discard = asked.discard, "a sandbox is sent to sleep");
        let body = json!({ "workspace": name, "discard": asked.discard });
        let said = self.tell(&asked.sidecar, "deinit", &asked.key, &body).await;
        answer(said, &asked.sidecar)
    }

    /// The owner's lease as it is, so that a second try is the same delivery; or a new one.
    async fn leased(
        &self,
        name: &Name,
        owner: &str,
    ) -> Result<Result<(Lease, Option<Head>, bool), Response>, CommitError> {
        if let Some(lease) = self.commit.lease(name).await?.filter(|lease| lease.owner == owner) {
            return Ok(Ok((lease, self.commit.head(name).await?, false)));
        }
        Ok(match self.commit.acquire(name, owner, self.lease).await? {
            Acquired::Granted { lease, head } => Ok((lease, head, true)),
            Acquired::Held { owner, until_ms } => {
                let detail = format!("workspace `{name}` is held by `{owner}` until {until_ms}");
                Err(refused(Code::Refused, detail))
            }
        })
    }

    fn delivery(&self, name: &Name, lease: &Lease, head: Option<&Head>, asked: &Init, secret: String) -> Value {
        let Init { roots, exclude, limit_bytes, agent, .. } = asked;
        let mut agent = agent.clone();
        agent.insert(SECRET.to_owned(), secret.into());
        json!({
            "workspace": { "name": name, "roots": roots, "exclude": exclude, "limit_bytes": limit_bytes },
            "token": self.keys.sign(TOKEN, name.as_str(), lease.token).reveal(TOKEN),
            "host": self.origin.0,
            "lease": lease,
            "head": head,
            "agent": agent,
        })
    }

    async fn tell(&self, sidecar: &Address, what: &str, key: &BootstrapKey, body: &Value) -> Said {
        let request = self.client.post(format!("{}/{what}", sidecar.0)).header(INIT_KEY, &key.0).json(body);
        let answer = match request.timeout(self.patience).send().await {
            Ok(answer) => answer,
            Err(error) if error.is_timeout() && !error.is_connect() => return Said::Nothing,
            Err(error) => return Said::Unreached(error.without_url().to_string()),
        };
        let status = answer.status();
        let body = answer.bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body[..body.len().min(MAX_SAID_BYTES)]).unwrap_or_default();
        if status.is_success() {
            return Said::Done(body);
        }
        Said::Refused(status.as_u16(), body["detail"].as_str().unwrap_or("nothing").to_owned())
    }
}

fn answer(said: Said, sidecar: &Address) -> Response {
    let status = format!("{}/init", sidecar.0);
    match said {
        Said::Done(state) => Json(json!({ "state": state["state"], "status": status })).into_response(),
        Said::Nothing => {
            (StatusCode::ACCEPTED, Json(json!({ "state": "under way", "status": status }))).into_response()
        }
        Said::Refused(503, detail) => refused(Code::Busy, format!("the sidecar said: {detail}")),
        Said::Refused(number, detail) => {
            let detail = format!("the sidecar refused with {number}: {detail}");
            (StatusCode::BAD_GATEWAY, Json(json!({ "code": "refused", "detail": detail }))).into_response()
        }
        Said::Unreached(why) => refused(Code::Busy, format!("the sidecar could not be asked: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_one_of_a_sidecar() {
        let read = |text: &str| Address::try_from(text.to_owned()).map(|address| address.0);
        assert_eq!(read("http://10.0.0.7:8000/").as_deref(), Ok("http://10.0.0.7:8000"));
        assert_eq!(read("https://sandbox.example/a").as_deref(), Ok("https://sandbox.example/a"));
        for none in ["", "10.0.0.7:8000", "file:///etc/passwd", "http://user@a", "http://a?b", "http://a#b", "http:"] {
            assert!(read(none).is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_none(text in "(https?://)?\\PC{0,40}") {
            if let Ok(Address(read)) = Address::try_from(text) {
                prop_assert_eq!(Address::try_from(read.clone()).map(|address| address.0), Ok(read));
            }
        }
    }
}
