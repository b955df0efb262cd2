//! Hands requests through to the agent server: bodies as they come, both ways, and upgrades as bare bytes.
//!
//! **Invariants.** What concerns one connection is not handed on. A request goes to the server that served when it
//! came, or fails. Nothing of it is logged.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version,
        header::{CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
    },
    response::Response,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    upgrade::OnUpgrade,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{activity::Signs, frames::Frames};

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
    /// Hands a request to the server on this port. `signs`: where what it says of work is noticed.
    pub async fn forward(&self, port: u16, mut request: Request, signs: Option<&Signs>) -> Result<Response, NoAnswer> {
        let work = signs.filter(|_| means_work(request.method())).map(Signs::begin);
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
            let heard = signs.map(|signs| (Frames::default(), signs.clone()));
            tokio::spawn(tunnel(ours.ok_or(NoAnswer)?, theirs, heard));
            return Ok(answer.map(Body::new));
        }
        strip(answer.headers_mut());
        // Who is refused has done nothing.
        let (Some(work), Some(signs)) = (work.filter(|_| !answer.status().is_client_error()), signs) else {
            return Ok(answer.map(Body::new));
        };
        work.sign();
        let signs = signs.clone();
        Ok(answer.map(|body| Body::new(Working { body, signs })))
    }
}

/// Whether a request with this method does something: what only asks comes from whoever watches, too.
fn means_work(method: &Method) -> bool {
    !method.is_safe()
}

/// The answer to a request that means work: as long as something comes, it goes on.
struct Working {
    body: Incoming,
    signs: Signs,
}

impl hyper::body::Body for Working {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(_))) = polled {
            self.signs.sign();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client's side of an upgraded connection: whether it says something is noticed.
struct Heard<T> {
    io: T,
    heard: Option<(Frames, Signs)>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Heard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        if let Some((frames, signs)) = &mut self.heard
            && frames.speak(&buffer.filled()[before..])
        {
            signs.sign();
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heard<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
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
async fn tunnel(ours: OnUpgrade, theirs: OnUpgrade, heard: Option<(Frames, Signs)>) {
    if let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) {
        let mut ours = Heard { io: TokioIo::new(ours), heard };
        // Whichever side broke it off, both are closed.
        _ = tokio::io::copy_bidirectional(&mut ours, &mut TokioIo::new(theirs)).await;
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
