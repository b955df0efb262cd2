//! Answers: a status, and what is told or why not.

use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{ALLOW, RETRY_AFTER},
    },
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

/// To another method than the one that every path takes.
pub(crate) fn only_post() -> Response {
    let refusal = Refusal { code: Code::Refused, detail: "this path takes POST".to_owned() };
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")], Json(refusal)).into_response()
}

/// What came of asking a sidecar, where that is not our side's fault.
pub(crate) fn unmoved(code: Code, detail: String) -> Response {
    let mut response = (StatusCode::BAD_GATEWAY, Json(Refusal { code, detail })).into_response();
    if code == Code::Busy {
        response.headers_mut().insert(RETRY_AFTER, BACK_OFF);
    }
    response
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
