//! Hands requests through to the agent server: bodies as they come, both ways, and upgrades as bare bytes.
//!
//! **Invariants.** What concerns one connection is not handed on. A request goes to the server that served when it
//! came, or fails. Nothing of it is logged.

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version,
        header::{CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
    },
    response::Response,
};
use hyper::upgrade::OnUpgrade;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};

/// Headers of one connection (RFC 9110, 7.6.1), and what a proxy says for itself.
const ONE_CONNECTION: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Why nothing came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent server did not answer")]
pub struct NoAnswer;

/// Connections to the agent server.
#[derive(Debug, Clone)]
pub struct Proxy(Client<HttpConnector, Body>);

impl Default for Proxy {
    fn default() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }
}

impl Proxy {
    /// Hands a request to the server on this port.
    pub async fn forward(&self, port: u16, mut request: Request) -> Result<Response, NoAnswer> {
        let wanted = request.headers().get(UPGRADE).cloned();
        let ours = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        parts.uri = format!("http://127.0.0.1:{port}{target}").parse::<Uri>().map_err(|_| NoAnswer)?;
        parts.version = Version::HTTP_11;
        strip(&mut parts.headers);
        if let Some(protocol) = wanted {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            parts.headers.insert(UPGRADE, protocol);
        }
        let mut answer = self.0.request(Request::from_parts(parts, body)).await.map_err(|_| NoAnswer)?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let theirs = hyper::upgrade::on(&mut answer);
            tokio::spawn(tunnel(ours.ok_or(NoAnswer)?, theirs));
        } else {
            strip(answer.headers_mut());
        }
        Ok(answer.map(Body::new))
    }
}

/// Removes what concerns one connection, and what its own header names so.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&ONE_CONNECTION) {
        headers.remove(name);
    }
}

/// Until one side ends it: a server that was stopped has.
async fn tunnel(ours: OnUpgrade, theirs: OnUpgrade) {
    if let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) {
        // Whichever side broke it off, both are closed.
        _ = tokio::io::copy_bidirectional(&mut TokioIo::new(ours), &mut TokioIo::new(theirs)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_one_connection_stays_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "close, X-Mine"), ("x-mine", "1"), ("te", "trailers"), ("x-other", "2")] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip(&mut headers);
        assert_eq!(headers.into_iter().map(|(name, _)| name.unwrap().to_string()).collect::<Vec<_>>(), ["x-other"]);
    }
}
