//! Who asks, and what he may.

use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use lifecycle::{RuntimeId, record::Epoch};

use crate::{answer::Answer, keys::Keys, token::Token};

/// The principal that the gateway has authenticated by IAM, in a request's extensions. What it may ask is in its IAM
/// policy, by path. Only whoever runs the router can put it there: no header does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iam(pub String);

/// What a request brings to prove who asks. Nothing is proved yet, but for IAM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A runtime's token.
    Runtime(Token),
    /// Perhaps a host's token.
    Host(HostToken),
    /// An IAM principal.
    Iam,
    /// Nothing.
    None,
}

/// A host's token as it was presented. It can't be printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HostToken(String);

impl std::fmt::Debug for HostToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostToken(…)")
    }
}

/// Who may speak for a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The runtime itself, of this registration.
    Runtime(Epoch),
    /// Its host, which knows no registration.
    Host,
}

impl Speaker {
    pub(crate) fn epoch(self) -> Option<Epoch> {
        match self {
            Self::Runtime(epoch) => Some(epoch),
            Self::Host => None,
        }
    }
}

impl Credential {
    pub(crate) fn of(headers: &HeaderMap, iam: Option<&Iam>) -> Self {
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        match bearer {
            Some(text) => match text.parse() {
                Ok(token) => Self::Runtime(token),
                Err(_) => Self::Host(HostToken(text.to_owned())),
            },
            None if iam.is_some() => Self::Iam,
            None => Self::None,
        }
    }

    /// Whether it may send heartbeats of `id`. `None`: it proves nothing under these keys.
    pub(crate) fn speaks(&self, keys: &Keys, id: &RuntimeId) -> Option<Result<Speaker, Answer>> {
        match self {
            Self::Runtime(token) => keys.proves(token, id).then_some(Ok(Speaker::Runtime(token.epoch()))),
            Self::Host(token) => {
                let bound_to = keys.host(&token.0)?.may(id.backend());
                Some(if bound_to { Ok(Speaker::Host) } else { Err(bound()) })
            }
            Self::Iam => Some(Ok(Speaker::Host)),
            Self::None => None,
        }
    }

    /// Whether it may register `id`: never by a runtime's own token. `None`: it proves nothing under these keys.
    pub(crate) fn registers(&self, keys: &Keys, id: &RuntimeId) -> Option<Result<(), Answer>> {
        match self {
            Self::Runtime(token) => keys.proves(token, id).then(|| {
                let message = "a runtime's token is for its heartbeats; a host registers it";
                Err(Answer::refused(StatusCode::FORBIDDEN, "forbidden", message))
            }),
            other => other.speaks(keys, id).map(|spoken| spoken.map(drop)),
        }
    }
}

/// `Bearer TOKEN`; the scheme in any case, as HTTP has it.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The same whatever is wrong, so that nothing can be learned from it.
pub(crate) fn unauthorized() -> Answer {
    let message = "send `Authorization: Bearer TOKEN` with the token of this runtime, or with a host's";
    Answer::refused(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

fn bound() -> Answer {
    Answer::refused(StatusCode::FORBIDDEN, "forbidden", "this token is not for that backend")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn credential(value: &str) -> Credential {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        Credential::of(&headers, None)
    }

    #[test]
    fn a_credential_is_told_by_how_it_looks() {
        let token = format!("fr1.7.{}", "a".repeat(64));
        assert_eq!(credential(&format!("Bearer {token}")), Credential::Runtime(token.parse().unwrap()));
        assert_eq!(credential("bearer  hush "), Credential::Host(HostToken("hush".to_owned())));
        for nothing in ["hush", "Basic hush", "Bearer", "Bearer ", ""] {
            assert_eq!(credential(nothing), Credential::None, "{nothing}");
        }
        assert_eq!(Credential::of(&HeaderMap::new(), Some(&Iam("arn".to_owned()))), Credential::Iam);
        assert_eq!(format!("{:?}", credential("Bearer hush")), "Host(HostToken(…))");
    }

    proptest! {
        #[test]
        fn any_header_is_read(value in "[ -~]{0,120}") {
            let _ = credential(&value);
        }
    }
}
