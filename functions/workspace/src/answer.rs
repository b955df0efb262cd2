//! Answers: a status, and what is told or why not.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use sidecar::protocol::{Code, Refusal};
use workspace::{blobs::StoreError, commit::CommitError};

/// When to come back to what does not answer, in seconds.
const BACK_OFF: HeaderValue = HeaderValue::from_static("5");

pub(crate) fn told(body: &impl Serialize) -> Response {
    Json(body).into_response()
}

pub(crate) fn refused(code: Code, detail: impl Into<String>) -> Response {
    Refusal { code, detail: detail.into() }.answer()
}

/// A refusal's status.
pub(crate) trait Answer {
    fn answer(self) -> Response;
}

impl Answer for Refusal {
    fn answer(self) -> Response {
        let status = match self.code {
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::Malformed => StatusCode::UNPROCESSABLE_ENTITY,
            Code::Missing => StatusCode::NOT_FOUND,
            Code::Expired => StatusCode::GONE,
            Code::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Code::Limit => StatusCode::PAYLOAD_TOO_LARGE,
            Code::Refused => StatusCode::CONFLICT,
        };
        let mut response = (status, Json(&self)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, BACK_OFF);
        }
        response
    }
}

impl Answer for StoreError {
    fn answer(self) -> Response {
        Refusal::from(self).answer()
    }
}

impl Answer for CommitError {
    fn answer(self) -> Response {
        refused(Code::Busy, self.to_string())
    }
}
