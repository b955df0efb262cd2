//! The webhook: HTTPS, or plain HTTP to this machine alone; no redirects; nothing secret is logged.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use backend::Clock;
use hmac::{Hmac, KeyInit, Mac};
use lifecycle::Time;
use reqwest::{Client, StatusCode, Url, redirect};
use sha2::Sha256;

use super::{Event, Notifier, NotifyError};

/// `sha256=` and the hex digits of HMAC-SHA256 over the timestamp, a dot, and the body.
pub const SIGNATURE_HEADER: &str = "X-Furlough-Signature";

/// Seconds since the Unix epoch, signed too: a receiver refuses what is old.
pub const TIMESTAMP_HEADER: &str = "X-Furlough-Timestamp";

/// How often one event is tried in a pass; the next pass tries a notice again.
const TRIES: u32 = 3;
/// The first wait between tries; each next is four times as long (0.5 s, 2 s).
const BACKOFF: Duration = Duration::from_millis(500);
/// After a receiver took nothing in all tries, it is left alone for so long: a pass with a hundred events must not
/// wait a hundred times for one that is down.
const REST: Duration = Duration::from_mins(1);
/// The longest that one try may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Posts events to one URL.
pub struct Webhook {
    client: Client,
    url: Url,
    secret: Option<Vec<u8>>,
    clock: Clock,
    wait: Duration,
    /// Milliseconds since the epoch before which nothing is tried: it was down a moment ago.
    rests_until: AtomicI64,
}

impl Webhook {
    /// A webhook at `url`, signing with `secret`. An empty secret is an error, not an unsigned post.
    pub fn new(url: &str, secret: Option<&[u8]>, clock: Clock) -> Result<Self, NotifyError> {
        let wrong = |why: &str| NotifyError::Configuration(why.to_owned());
        let url = Url::parse(url).map_err(|error| wrong(&format!("not a URL ({error}); expected https://…")))?;
        let local = is_loopback(&url);
        if url.scheme() != "https" && !(url.scheme() == "http" && local) {
            return Err(wrong("expected https://…; http:// is allowed to this machine only (127.0.0.1, localhost)"));
        }
        if secret.is_some_and(<[u8]>::is_empty) {
            return Err(wrong("its secret is empty; leave it out to post unsigned, or give it at least 1 byte"));
        }
        let mut client = Client::builder().redirect(redirect::Policy::none()).timeout(TIMEOUT);
        if local {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| wrong(&format!("no HTTP client: {}", error.without_url())))?;
        Ok(Self {
            client,
            url,
            secret: secret.map(<[u8]>::to_vec),
            clock,
            wait: BACKOFF,
            rests_until: AtomicI64::new(0),
        })
    }

    /// With another first wait between tries.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_owned()
    }

    async fn post(&self, body: &str) -> Result<StatusCode, String> {
        let timestamp = (self.clock.now().millis() / 1000).to_string();
        let mut request =
            self.client.post(self.url.clone()).header("Content-Type", "application/json").body(body.to_owned());
        if let Some(secret) = &self.secret {
            request = request.header(SIGNATURE_HEADER, format!("sha256={}", sign(secret, &timestamp, body)));
        }
        let answer = request.header(TIMESTAMP_HEADER, timestamp).send().await;
        answer.map(|answer| answer.status()).map_err(|error| describe(&error.without_url()))
    }
}

#[async_trait]
impl Notifier for Webhook {
    async fn deliver(&self, event: &Event) -> Result<(), NotifyError> {
        let body = serde_json::to_string(event).map_err(|error| NotifyError::Configuration(error.to_string()))?;
        let rests_until = Time::from_millis(self.rests_until.load(Ordering::Relaxed));
        if self.clock.now() < rests_until {
            let why = format!("it was down; it is tried again after {rests_until}");
            return Err(NotifyError::Undelivered { host: self.host(), tries: 0, why });
        }
        let mut wait = self.wait;
        let mut why = String::new();
        for again in (0..TRIES).rev() {
            match self.post(&body).await {
                Ok(status) if status.is_success() => return Ok(()),
                Ok(status) if !may_pass(status) => {
                    return Err(NotifyError::Refused { host: self.host(), status: status.as_u16() });
                }
                Ok(status) => why = format!("it answered {}", status.as_u16()),
                Err(error) => why = error,
            }
            if again > 0 {
                tokio::time::sleep(wait).await;
                wait *= 4;
            }
        }
        self.rests_until.store(self.clock.now().plus(REST).millis(), Ordering::Relaxed);
        Err(NotifyError::Undelivered { host: self.host(), tries: TRIES, why })
    }
}

/// The hex digits of HMAC-SHA256 over `timestamp`, a dot and `body`: what a receiver computes too.
pub fn sign(secret: &[u8], timestamp: &str, body: &str) -> String {
    use std::fmt::Write as _;
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    for part in [timestamp.as_bytes(), b".", body.as_bytes()] {
        mac.update(part);
    }
    mac.finalize().into_bytes().iter().fold(String::with_capacity(64), |mut hex, byte| {
        // writing to a String can't fail
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Whether another try can be answered otherwise.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS)
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer in {} s", TIMEOUT.as_secs());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        text = next.to_string();
        source = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str, secret: Option<&[u8]>) -> String {
        Webhook::new(url, secret, Clock::fixed(Time::default())).err().unwrap().to_string()
    }

    #[test]
    fn only_https_or_this_machine() {
        for url in ["http://example.com/hook", "http://127.0.0.1.example.com/", "ftp://localhost/", "http://[::2]/"] {
            assert!(refused(url, None).contains("expected https://"), "{url}");
        }
        for url in ["https://example.com/hook", "http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/"] {
            assert!(Webhook::new(url, None, Clock::fixed(Time::default())).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_empty_secret_is_refused() {
        assert!(refused("https://example.com/", Some(b"")).contains("its secret is empty"));
    }

    #[test]
    fn the_signature_is_what_openssl_computes() {
        // printf '1764500000.{"a":1}' | openssl dgst -sha256 -hmac key
        let expected = "7e1154b92da850b36f31881f60684bbfecb2076b85cd74c8aae43e3e8715e45b";
        assert_eq!(sign(b"key", "1764500000", r#"{"a":1}"#), expected);
    }
}
