//! The objects of workspaces in the data folder, for whoever was given a signed request, as S3 would answer.
//!
//! **Invariants.** Nothing is answered but what the store has signed, and never longer than it said. No URL is logged.

use std::ops::Range;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderMap, Method, StatusCode,
        header::{ALLOW, CONTENT_TYPE, ETAG, RANGE, RETRY_AFTER},
    },
    response::{IntoResponse as _, Response},
    routing::any,
};
use workspace::{
    blobs::{Signed, StoreError, Wire, directory::Directory},
    limits::MAX_MANIFEST_BYTES,
};

/// Where they are below the address of everything that is served.
pub(crate) const PATH: &str = "/objects/";
/// The largest part that is taken, in bytes: objects of half a terabyte have such.
const MAX_PART_BYTES: usize = 64 << 20;

/// A store whose requests are signed for `at`, which ends with [`PATH`].
pub(crate) fn routes(store: Directory, at: String) -> Router {
    Router::new()
        .route(&format!("{PATH}{{*key}}"), any(object))
        .layer(DefaultBodyLimit::max(MAX_PART_BYTES))
        .with_state(Served { store, at })
}

#[derive(Clone)]
struct Served {
    store: Directory,
    at: String,
}

async fn object(State(Served { store, at }): State<Served>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let key = parts.uri.path().strip_prefix(PATH).unwrap_or_default().to_owned();
    let url = format!("{at}{key}?{}", parts.uri.query().unwrap_or_default());
    let signed = Signed { key, url, headers: Vec::new(), until: 0 };
    let answered = match parts.method {
        Method::PUT => put(&store, &signed, body).await,
        Method::GET => get(&store, &signed, &parts.headers).await,
        _ => return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, PUT")]).into_response(),
    };
    answered.unwrap_or_else(|error| refused(&error))
}

async fn put(store: &Directory, signed: &Signed, body: axum::body::Body) -> Result<Response, StoreError> {
    let limit = |_| StoreError::Limit {
        key: signed.key.clone(),
        why: format!("more than {MAX_PART_BYTES} bytes in one request, or it broke off"),
    };
    let bytes: Bytes = axum::body::to_bytes(body, MAX_PART_BYTES).await.map_err(limit)?;
    let tag = store.put(signed, bytes).await?;
    Ok((StatusCode::OK, [(ETAG, tag)]).into_response())
}

async fn get(store: &Directory, signed: &Signed, headers: &HeaderMap) -> Result<Response, StoreError> {
    let asked = headers.get(RANGE).map(|range| range.to_str().ok().and_then(range_of));
    match asked {
        Some(Some(range)) => Ok((StatusCode::PARTIAL_CONTENT, store.get(signed, range).await?).into_response()),
        Some(None) => {
            let why = "a range is `bytes=FIRST-LAST`, of at most 64 MiB".to_owned();
            Err(StoreError::Refused { key: signed.key.clone(), why })
        }
        None => Ok(Wire::get_all(store, signed, MAX_MANIFEST_BYTES as u64).await?.into_response()),
    }
}

/// `bytes=FIRST-LAST`, the last byte included.
fn range_of(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (first < end && end - first <= MAX_PART_BYTES as u64).then_some(first..end)
}

/// In the words of S3, which a sandbox understands.
fn refused(error: &StoreError) -> Response {
    let (status, code, message) = match error {
        StoreError::Missing(_) => (StatusCode::NOT_FOUND, "NoSuchKey", "there is no such object"),
        StoreError::Expired(_) => (StatusCode::FORBIDDEN, "AccessDenied", "Request has expired"),
        StoreError::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "SlowDown", "ask again later"),
        StoreError::Limit { .. } => (StatusCode::BAD_REQUEST, "EntityTooLarge", "it is too large"),
        StoreError::Refused { why, .. } if why == "the key is taken" => {
            (StatusCode::PRECONDITION_FAILED, "PreconditionFailed", "the key is taken")
        }
        StoreError::Refused { .. } => (StatusCode::FORBIDDEN, "AccessDenied", "it was not signed for"),
    };
    let body = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let mut response = (status, [(CONTENT_TYPE, "application/xml")], body).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_first_and_a_last_byte() {
        assert_eq!(range_of("bytes=0-0"), Some(0..1));
        assert_eq!(range_of("bytes=5-9"), Some(5..10));
        for wrong in
            ["bytes=9-5", "bytes=-5", "bytes=5-", "bytes=0-18446744073709551615", "bytes=0-99999999999", "0-1", ""]
        {
            assert_eq!(range_of(wrong), None, "{wrong}");
        }
    }
}
