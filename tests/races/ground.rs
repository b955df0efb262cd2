//! Where races are run: a ledger over a client, on the engine in this process or on a server.

use std::{ops::Range, sync::Arc};

use futures::future::join_all;
use ledger::{Ended, Ledger};
use lifecycle::{Record, State};

use crate::ledger::fixture::{at, due, id, idle_claim, options, seen, won};

pub(super) struct Ground {
    pub(super) ledger: Ledger,
    rounds: u32,
}

impl Ground {
    pub(super) async fn in_process(rounds: u32) -> Self {
        Self::on(Ledger::new(embedded::memory().unwrap().client(), options()), rounds).await
    }

    async fn on(ledger: Ledger, rounds: u32) -> Self {
        ledger.create_tables().await.unwrap();
        Self { ledger, rounds: rounds * factor() }
    }

    /// The rounds of the race, each with a runtime of its own name.
    pub(super) fn rounds(&self) -> impl Iterator<Item = (u32, String)> + use<> {
        Range { start: 0, end: self.rounds }.map(|round| (round, format!("r{round}")))
    }

    /// The same, and then as many again so often; [`Ground::enough`] says from which on it may end.
    pub(super) fn more_rounds(&self, times: u32) -> impl Iterator<Item = (u32, String)> + use<> {
        Range { start: 0, end: self.rounds.saturating_mul(times) }.map(|round| (round, format!("r{round}")))
    }

    /// Whether all rounds that were asked for are over after this one.
    pub(super) fn enough(&self, round: u32) -> bool {
        round + 1 >= self.rounds
    }

    /// A runtime that is seen for the first time, at 0 s, as run `run-1`.
    pub(super) async fn runtime(&self, name: &str) -> Record {
        self.ledger.observe_known(None, &seen(name), |_| due(3_600), at(0)).await.unwrap()
    }

    /// The same, claimed at 2,000 s until 2,060 s to be suspended.
    pub(super) async fn suspending(&self, name: &str) -> Record {
        let record = self.runtime(name).await;
        won(self.ledger.claim(&idle_claim(name, &record, 0, 2_060), at(2_000)).await.unwrap())
    }

    /// The same, suspended at 2,010 s.
    pub(super) async fn suspended(&self, name: &str) -> Record {
        let token = self.suspending(name).await.token;
        let done = ended(Ended::Suspended);
        let completed = self.ledger.complete(&id(name), token, &done, at(2_010)).await.unwrap();
        assert_eq!(completed, ledger::Completed::Done { wanted: false });
        self.record(name).await
    }

    pub(super) async fn record(&self, name: &str) -> Record {
        self.ledger.get(&id(name)).await.unwrap().expect("a record")
    }
}

pub(super) fn ended(ended: Ended) -> ledger::Completion {
    ledger::Completion { ended, saved_as_of: None, arming: due(9_000) }
}

/// A claim to delete what has been in its state since `seconds` or longer.
pub(super) fn delete_claim(name: &str, record: &Record, seconds: i64, until: i64) -> ledger::ClaimRequest {
    ledger::ClaimRequest {
        from: record.state,
        to: State::Deleting,
        rule: ledger::ClaimRule::Delete { cutoff: at(seconds), noticed: None, saved: None, resting: None },
        ..idle_claim(name, record, seconds, until)
    }
}

/// Lets all go at once, each on a task of its own, the first of them another one in each round.
pub(super) async fn race<T, F>(round: u32, mut contenders: Vec<F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let turn = round as usize % contenders.len();
    contenders.rotate_left(turn);
    let start = Arc::new(tokio::sync::Barrier::new(contenders.len()));
    let tasks = contenders.into_iter().map(|contender| {
        let start = start.clone();
        tokio::spawn(async move {
            start.wait().await;
            contender.await
        })
    });
    let tasks: Vec<_> = tasks.collect();
    join_all(tasks).await.into_iter().map(Result::unwrap).collect()
}

/// How many times as many rounds as usual.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests chooses how long they race")]
fn factor() -> u32 {
    std::env::var("FURLOUGH_TEST_ROUNDS").map_or(1, |factor| factor.parse().expect("FURLOUGH_TEST_ROUNDS is a number"))
}

#[cfg(feature = "engines")]
mod engines {
    use std::fmt;

    use aws_sdk_dynamodb::Client;
    use aws_smithy_runtime_api::{
        client::{
            http::{
                HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
                SharedHttpConnector,
            },
            orchestrator::{HttpRequest, HttpResponse},
            result::ConnectorError,
            runtime_components::RuntimeComponents,
        },
        http::StatusCode,
    };
    use aws_smithy_types::body::SdkBody;

    use ledger::Options;

    use super::{Ground, Ledger, options};

    impl Ground {
        /// On the server that `FURLOUGH_TEST_DYNAMODB` names, with tables of the race's own.
        pub(in crate::races) async fn server(race: &str, rounds: u32) -> Self {
            let client = client();
            let tables = ledger::Tables { main: race.to_owned(), actions: format!("{race}-actions") };
            for table in [&tables.main, &tables.actions] {
                // Of an earlier run on the same server; else there is none.
                if let Err(error) = client.delete_table().table_name(table).send().await {
                    assert!(error.into_service_error().is_resource_not_found_exception());
                }
            }
            Self::on(Ledger::new(client, Options { tables, ..options() }), rounds).await
        }
    }

    /// A client of that server.
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests starts the server")]
    pub(in crate::races) fn client() -> Client {
        let endpoint = std::env::var("FURLOUGH_TEST_DYNAMODB").expect("FURLOUGH_TEST_DYNAMODB names a server");
        embedded::client_over(SharedHttpClient::new(Posts { client: reqwest::Client::new(), endpoint }))
    }

    /// Sends the SDK's requests to an endpoint. The SDK's own HTTP client would double the build's dependencies.
    #[derive(Clone)]
    struct Posts {
        client: reqwest::Client,
        endpoint: String,
    }

    impl fmt::Debug for Posts {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Posts({})", self.endpoint)
        }
    }

    impl HttpClient for Posts {
        fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
            SharedHttpConnector::new(self.clone())
        }
    }

    impl HttpConnector for Posts {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let mut post = self.client.post(&self.endpoint);
            for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
                post = post.header(name, value);
            }
            let post = post.body(request.body().bytes().unwrap().to_vec());
            HttpConnectorFuture::new(async move {
                let failed = |error: reqwest::Error| ConnectorError::io(error.into());
                let answer = post.send().await.map_err(failed)?;
                let status = StatusCode::try_from(answer.status().as_u16()).unwrap();
                Ok(HttpResponse::new(status, SdkBody::from(answer.bytes().await.map_err(failed)?)))
            })
        }
    }
}
