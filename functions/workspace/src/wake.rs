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
use lifecycle::RuntimeId;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sidecar::{
    delivery,
    front::INIT_KEY,
    protocol::{Code, Request},
};
use tokens::Keys;
use workspace::{
    blobs::{Signer as _, StoreError, bound::Bound},
    commit::{Acquired, CommitError, Head, Lease},
    key::Name,
    manifest::{BadManifest, Exclusion},
};

use crate::{
    answer::{Answer as _, refused, unmoved},
    app::{App, TOKEN},
    secret::{SecretError, secret_key},
};

/// The most that is told of what a sidecar said, in bytes.
const MAX_SAID_BYTES: usize = 4096;
/// The largest manifest that is read here, in bytes: a function has little memory.
const MAX_READ_BYTES: u64 = 8 << 20;
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
    /// The runtime whose activity the sidecar tells, with its own token.
    #[serde(default)]
    activity: Option<Activity>,
    agent: Map<String, Value>,
}

/// Of `activity`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Activity {
    runtime: RuntimeId,
    token: delivery::Token,
    /// Where heartbeats go, if not to where the sidecar asks for its workspace too.
    #[serde(default)]
    host: Option<Address>,
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
    pub(crate) async fn init(&self, name: &Name, keys: &Keys, asked: Init) -> Response {
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
        let secret = match secret_key(&*self.blobs, keys, name).await {
            Ok(secret) => secret,
            Err(SecretError::Store(error)) => return error.answer(),
            Err(error) => return refused(Code::Refused, error.to_string()),
        };
        let signed = match self.signed(&lease, head.as_ref()).await {
            Ok(signed) => signed,
            Err(error) => return error.answer(),
        };
        let token = keys.sign(TOKEN, name.as_str(), lease.token).reveal(TOKEN);
        let delivery = self.delivery(&token, &lease, head.as_ref(), &asked, &signed, secret);
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

    /// What a pull reads: the manifest and its layers. Whoever needs them for longer asks for them again.
    async fn signed(&self, lease: &Lease, head: Option<&Head>) -> Result<Vec<Request>, StoreError> {
        let Some(head) = head else { return Ok(Vec::new()) };
        let at = head.manifest.to_string();
        let bound = Bound::new(self.signer(), lease.clone());
        let mut signed = vec![bound.sign_get(&at).await?.into()];
        let bytes = match self.blobs.get(&at, MAX_READ_BYTES).await {
            Ok(bytes) => bytes,
            // The sidecar reads it, and asks for its layers one by one.
            Err(StoreError::Limit { .. }) => return Ok(signed),
            Err(error) => return Err(error),
        };
        let wrong = |error: BadManifest| StoreError::Refused { key: at.clone(), why: error.to_string() };
        let manifest = workspace::manifest_in(&bytes, head).map_err(wrong)?;
        let bound = bound.reading(&manifest);
        for layer in &manifest.layers {
            signed.push(bound.sign_get(&layer.key.to_string()).await?.into());
        }
        Ok(signed)
    }

    fn delivery(
        &self,
        token: &str,
        lease: &Lease,
        head: Option<&Head>,
        asked: &Init,
        signed: &[Request],
        secret: String,
    ) -> Value {
        let Init { roots, exclude, limit_bytes, activity, agent, .. } = asked;
        let activity = activity.as_ref().map(|Activity { runtime, token, host }| {
            let host = host.as_ref().map_or(&self.origin.0, |host| &host.0);
            json!({ "runtime": runtime, "token": token.reveal(), "host": host })
        });
        let mut agent = agent.clone();
        agent.insert(SECRET.to_owned(), secret.into());
        json!({
            "workspace": { "name": lease.workspace, "roots": roots, "exclude": exclude, "limit_bytes": limit_bytes },
            "token": token,
            "host": self.origin.0,
            "lease": lease,
            "head": head,
            "signed": signed,
            "activity": activity,
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
        Said::Refused(503, detail) => unmoved(Code::Busy, format!("the sidecar said: {detail}")),
        Said::Refused(number, detail) => unmoved(Code::Refused, format!("the sidecar refused with {number}: {detail}")),
        Said::Unreached(why) => unmoved(Code::Busy, format!("the sidecar could not be asked: {why}")),
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
