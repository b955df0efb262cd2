//! What S3's answers mean, whoever asked.

use super::StoreError;

/// How much of a refusal is read, in bytes. What comes from a proxy can be a whole page.
pub(crate) const MAX_REFUSAL_BYTES: usize = 8 << 10;
/// How much of a word of it is shown.
const MAX_SHOWN: usize = 80;

/// What a status and the code and message beside it mean for an object.
pub(crate) fn meaning(key: &str, status: u16, code: &str, message: &str) -> StoreError {
    let key = key.to_owned();
    let why = match code {
        "" => format!("status {status}, and no word of S3's beside it"),
        code => format!("status {status}, `{}`", shown(code)),
    };
    match (status, code) {
        (404, "NoSuchKey") => StoreError::Missing(key),
        (404, "NoSuchUpload") => StoreError::Refused { key, why: "there is no such upload".to_owned() },
        (400, "ExpiredToken") | (403, "ExpiredToken" | "TokenRefreshRequired") => StoreError::Expired(key),
        (403, "AccessDenied") if message.contains("expired") => StoreError::Expired(key),
        (409, "ConditionalRequestConflict" | "OperationAborted")
        | (400, "RequestTimeout" | "BadDigest" | "IncompleteBody" | "XAmzContentChecksumMismatch")
        | (408 | 429 | 500 | 502..=504, _) => StoreError::Busy { key, why },
        (400, "EntityTooLarge" | "EntityTooSmall") => StoreError::Limit { key, why },
        (412, _) => StoreError::Refused { key, why: "the key is taken".to_owned() },
        (416, _) => StoreError::Refused { key, why: "the range ends after the object".to_owned() },
        _ => StoreError::Refused { key, why },
    }
}

/// The code and the message of a refusal's body; empty where it is none of S3's.
pub(crate) fn refusal(body: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL_BYTES)]);
    let element = |name: &str| {
        let from = text.split_once(&format!("<{name}>"))?.1;
        Some(from.split_once(&format!("</{name}>"))?.0.to_owned())
    };
    if !text.contains("<Error>") {
        return (String::new(), String::new());
    }
    (element("Code").unwrap_or_default(), element("Message").unwrap_or_default())
}

/// The beginning of a word that comes from outside, as far as it is plain.
fn shown(word: &str) -> String {
    word.chars().take_while(char::is_ascii_graphic).take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(status: u16, body: &str) -> StoreError {
        let (code, message) = refusal(body.as_bytes());
        meaning("k", status, &code, &message)
    }

    fn error(code: &str, message: &str) -> String {
        format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>")
    }

    fn refused(why: &str) -> StoreError {
        StoreError::Refused { key: "k".to_owned(), why: why.to_owned() }
    }

    fn busy(why: &str) -> StoreError {
        StoreError::Busy { key: "k".to_owned(), why: why.to_owned() }
    }

    #[test]
    fn each_answer_has_its_meaning() {
        assert_eq!(of(404, &error("NoSuchKey", "")), StoreError::Missing("k".to_owned()));
        assert_eq!(of(403, &error("AccessDenied", "Request has expired")), StoreError::Expired("k".to_owned()));
        assert_eq!(of(400, &error("ExpiredToken", "")), StoreError::Expired("k".to_owned()));
        assert_eq!(of(403, &error("AccessDenied", "Access Denied")), refused("status 403, `AccessDenied`"));
        assert_eq!(of(503, &error("SlowDown", "")), busy("status 503, `SlowDown`"));
        assert_eq!(of(409, &error("ConditionalRequestConflict", "")), busy("status 409, `ConditionalRequestConflict`"));
        assert_eq!(of(400, &error("BadDigest", "")), busy("status 400, `BadDigest`"));
        assert_eq!(of(412, &error("PreconditionFailed", "")), refused("the key is taken"));
        assert_eq!(of(416, ""), refused("the range ends after the object"));
    }

    /// A proxy's page is no word of the store: an object that it does not find is not missing.
    #[test]
    fn a_page_of_a_proxy_is_told_as_one() {
        let page = "<html><body><h1>Not found</h1><Code>NoSuchKey</Code></body></html>";
        assert_eq!(of(404, page), refused("status 404, and no word of S3's beside it"));
        assert_eq!(of(403, page), refused("status 403, and no word of S3's beside it"));
        assert_eq!(of(502, page), busy("status 502, and no word of S3's beside it"));
    }

    proptest! {
        #[test]
        fn any_body_is_told_in_plain_words(status in 300_u16..600, body in proptest::collection::vec(any::<u8>(), 0..300), code in ".*") {
            for body in [body, error(&code, &code).into_bytes()] {
                let (code, message) = refusal(&body);
                let told = meaning("k", status, &code, &message).to_string();
                prop_assert!(told.len() < 200 && !told.chars().any(char::is_control), "{told}");
            }
        }
    }
}
