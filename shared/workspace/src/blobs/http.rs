//! Sends signed requests over HTTP: what a sandbox needs of S3, without credentials.
//!
//! **Invariants.** A URL is a credential: it is in no error and no log, and no redirect is followed with it. A part is sent
//! with its MD5, which S3 holds it to. A range comes whole, or is an error.

use std::{ops::Range, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use md5::{Digest as _, Md5};
use reqwest::{Client, RequestBuilder, Response, StatusCode, header};

use super::{
    Signed, StoreError, Tag, Wire,
    meaning::{MAX_REFUSAL_BYTES, meaning, refusal},
};

/// How long a connection may take, and how long nothing may come.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);

/// A wire over HTTP.
#[derive(Debug, Clone)]
pub struct Http(Client);

impl Http {
    /// With connections of its own.
    pub fn new() -> Result<Self, StoreError> {
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        client.map(Self).map_err(|error| StoreError::Refused { key: String::new(), why: said(error) })
    }

    /// The answer, if it is one of success.
    async fn send(&self, signed: &Signed, request: RequestBuilder) -> Result<Response, StoreError> {
        let fixed = [header::HOST.as_str(), header::CONTENT_LENGTH.as_str()];
        let given = signed.headers.iter().filter(|(name, _)| !fixed.contains(&name.to_ascii_lowercase().as_str()));
        let request = given.fold(request, |request, (name, value)| request.header(name, value));
        let mut answer = request.send().await.map_err(|error| unsent(signed, error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = answer.chunk().await
            && body.len() < MAX_REFUSAL_BYTES
        {
            body.extend_from_slice(&chunk);
        }
        let (code, message) = refusal(&body);
        Err(meaning(&signed.key, status.as_u16(), &code, &message))
    }
}

/// Without its URL.
fn said(error: reqwest::Error) -> String {
    use std::error::Error as _;
    let error = error.without_url();
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn unsent(signed: &Signed, error: reqwest::Error) -> StoreError {
    let key = signed.key.clone();
    if error.is_builder() {
        StoreError::Refused { key, why: said(error) }
    } else {
        StoreError::Busy { key, why: said(error) }
    }
}

fn refused(signed: &Signed, why: impl Into<String>) -> StoreError {
    StoreError::Refused { key: signed.key.clone(), why: why.into() }
}

/// The length that a request was signed for, if it was for one.
fn signed_length(signed: &Signed) -> Option<&str> {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str());
    signed.headers.iter().find(named).map(|(_, length)| length.as_str())
}

/// The body, of at most `limit` bytes.
async fn body(signed: &Signed, mut answer: Response, limit: u64) -> Result<Vec<u8>, StoreError> {
    let over =
        |bytes: u64| StoreError::Limit { key: signed.key.clone(), why: format!("{bytes} bytes, and {limit} are read") };
    let length = answer.content_length().unwrap_or_default();
    if length > limit {
        return Err(over(length));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    while let Some(chunk) = answer.chunk().await.map_err(|error| unsent(signed, error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > limit {
            return Err(over(bytes.len() as u64));
        }
    }
    Ok(bytes)
}

#[async_trait]
impl Wire for Http {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        if signed_length(signed).is_some_and(|length| length != bytes.len().to_string()) {
            return Err(refused(signed, "the request was signed for another length"));
        }
        let digest = BASE64_STANDARD.encode(Md5::digest(&bytes));
        let request = self.0.put(&signed.url).header("content-md5", digest);
        // An empty body is sent without its length otherwise, for which it was signed.
        let request = request.header(header::CONTENT_LENGTH, bytes.len()).body(bytes);
        let answer = self.send(signed, request).await?;
        let tag = answer.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
        tag.map(str::to_owned).ok_or_else(|| refused(signed, "the store took it and gave no tag"))
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let length = range.end - range.start;
        let bytes = format!("bytes={}-{}", range.start, range.end - 1);
        let answer = self.send(signed, self.0.get(&signed.url).header(header::RANGE, bytes)).await?;
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            return Err(refused(signed, "the store does not answer for ranges"));
        }
        if answer.content_length().is_some_and(|told| told < length) {
            return Err(refused(signed, "the range ends after the object"));
        }
        let bytes = body(signed, answer, length).await?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(refused(signed, "the range ends after the object")) }
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        body(signed, self.send(signed, self.0.get(&signed.url)).await?, limit).await
    }
}
