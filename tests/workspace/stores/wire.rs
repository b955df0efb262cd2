//! The wire against a server that answers as it likes: what each answer means, and that no URL is told.

use std::time::Duration;

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};
use workspace::blobs::{Signed, StoreError, Wire as _, http::Http};

/// A server that gives these answers, one after the other, and tells what it was asked.
pub(super) struct Server {
    pub(super) url: String,
    asked: mpsc::UnboundedReceiver<String>,
}

impl Server {
    pub(super) async fn answering(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                // All that is asked here has no body, or a short one that comes with its head or right after.
                while !is_whole(&request) {
                    let mut some = [0; 4096];
                    match stream.read(&mut some).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&some[..read]),
                        _ => break,
                    }
                }
                _ = tell.send(String::from_utf8_lossy(&request).into_owned());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }

    /// The next request that came.
    pub(super) async fn asked(&mut self) -> String {
        self.asked.recv().await.unwrap().to_ascii_lowercase()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// An answer, after which the connection ends.
pub(super) fn answer(status: &str, headers: &[&str], body: &str) -> String {
    let mut lines = vec![format!("HTTP/1.1 {status}"), "connection: close".to_owned()];
    if !headers.iter().any(|header| header.starts_with("content-length") || header.starts_with("transfer-encoding")) {
        lines.push(format!("content-length: {}", body.len()));
    }
    lines.extend(headers.iter().map(|header| (*header).to_owned()));
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}

pub(super) fn error(status: &str, code: &str, message: &str) -> String {
    let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    answer(status, &["content-type: application/xml"], &body)
}

const SECRET: &str = "X-Amz-Signature=5ec4e7";

fn signed(server: &str) -> Signed {
    let headers = [("content-length", "5"), ("host", "bucket"), ("if-none-match", "*")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Signed { key: "w/key".to_owned(), url: format!("{server}/w/key?{SECRET}"), headers, until: i64::MAX }
}

/// What `get` of five bytes makes of an answer. Nothing of the URL is told.
async fn got(answer: String) -> Result<Vec<u8>, StoreError> {
    let server = Server::answering(vec![answer]).await;
    let got = Http::new().unwrap().get(&signed(&server.url), 2..7).await;
    let told = format!("{got:?} {}", got.as_ref().err().map(ToString::to_string).unwrap_or_default());
    assert!(!told.contains("5ec4e7"), "{told}");
    got
}

fn is_busy(got: &Result<Vec<u8>, StoreError>) -> bool {
    got.as_ref().is_err_and(StoreError::is_transient)
}

fn is_refused(got: &Result<Vec<u8>, StoreError>, why: &str) -> bool {
    matches!(got, Err(StoreError::Refused { why: told, .. }) if told.contains(why))
}

#[tokio::test]
async fn a_range_is_asked_for_and_comes() {
    let mut server = Server::answering(vec![answer("206 Partial Content", &[], "bytes")]).await;
    assert_eq!(Http::new().unwrap().get(&signed(&server.url), 2..7).await.unwrap(), b"bytes");
    let asked = server.asked().await;
    assert!(
        asked.starts_with("get /w/key?x-amz-signature=5ec4e7 ") && asked.contains("\r\nrange: bytes=2-6\r\n"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_part_is_sent_with_its_digest_and_what_was_signed() {
    let mut server = Server::answering(vec![answer("200 OK", &["etag: \"tag\""], "")]).await;
    let tag = Http::new().unwrap().put(&signed(&server.url), Bytes::from_static(b"bytes")).await.unwrap();
    assert_eq!(tag, "\"tag\"");
    let asked = server.asked().await;
    for line in [
        "put /w/key?",
        "\r\nif-none-match: *\r\n",
        "\r\ncontent-length: 5\r\n",
        "\r\ncontent-md5: szpigls+onmd6kfxpg/pkg==\r\n",
    ] {
        assert!(asked.contains(line), "{line:?} in {asked}");
    }
    assert_eq!(asked.matches("content-length").count(), 1, "{asked}");
}

/// What has no length on the wire does not bear the signature of one.
#[tokio::test]
async fn nothing_at_all_is_sent_with_its_length() {
    let mut server = Server::answering(vec![answer("200 OK", &["etag: \"tag\""], "")]).await;
    let mut signed = signed(&server.url);
    signed.headers = vec![("content-length".to_owned(), "0".to_owned())];
    assert_eq!(Http::new().unwrap().put(&signed, Bytes::new()).await.unwrap(), "\"tag\"");
    let asked = server.asked().await;
    assert_eq!(asked.matches("\r\ncontent-length: 0\r\n").count(), 1, "{asked}");
}

#[tokio::test]
async fn a_busy_store_is_asked_again_and_one_that_refuses_is_not() {
    for busy in [
        error("503 Slow Down", "SlowDown", "Please reduce your request rate."),
        error("500 Internal Server Error", "InternalError", ""),
        error("400 Bad Request", "RequestTimeout", ""),
        answer("502 Bad Gateway", &["content-type: text/html"], "<html>Bad gateway</html>"),
        answer("429 Too Many Requests", &[], ""),
        // Less than was told: the connection broke.
        answer("206 Partial Content", &["content-length: 5"], "byt"),
        // Nothing at all.
        String::new(),
        "no HTTP\r\n\r\n".to_owned(),
    ] {
        let got = got(busy.clone()).await;
        assert!(is_busy(&got), "{busy}: {got:?}");
    }
    for (answer, why) in [
        (error("403 Forbidden", "SignatureDoesNotMatch", ""), "`SignatureDoesNotMatch`"),
        (error("403 Forbidden", "AccessDenied", "Access Denied"), "`AccessDenied`"),
        (answer("403 Forbidden", &[], "<html>You need to log in</html>"), "no word of S3's"),
        (answer("404 Not Found", &[], "<html>Not found</html>"), "no word of S3's"),
        (answer("200 OK", &[], "all of the object"), "does not answer for ranges"),
        (answer("206 Partial Content", &[], "byte"), "ends after the object"),
        (answer("416 Range Not Satisfiable", &[], ""), "ends after the object"),
        (answer("301 Moved Permanently", &["location: http://127.0.0.1:1/elsewhere"], ""), "status 301"),
    ] {
        let got = got(answer).await;
        assert!(is_refused(&got, why), "{why}: {got:?}");
    }
}

#[tokio::test]
async fn what_has_expired_and_what_is_missing_are_told_apart_from_all_else() {
    let expired = Err(StoreError::Expired("w/key".to_owned()));
    assert_eq!(got(error("403 Forbidden", "AccessDenied", "Request has expired")).await, expired);
    assert_eq!(got(error("400 Bad Request", "ExpiredToken", "The provided token has expired.")).await, expired);
    let missing = Err(StoreError::Missing("w/key".to_owned()));
    assert_eq!(got(error("404 Not Found", "NoSuchKey", "")).await, missing);
}

#[tokio::test]
async fn a_body_without_an_end_is_read_up_to_the_limit() {
    let chunked = answer("200 OK", &["transfer-encoding: chunked"], "6\r\nendles\r\n6\r\nsendle\r\n0\r\n\r\n");
    let server = Server::answering(vec![chunked]).await;
    let got = Http::new().unwrap().get_all(&signed(&server.url), 7).await;
    assert!(matches!(got, Err(StoreError::Limit { .. })), "{got:?}");
}

#[tokio::test]
async fn nobody_there_is_busy_and_told_without_the_url() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let request = signed(&format!("http://{gone}"));
    let wire = Http::new().unwrap();
    let got = tokio::time::timeout(Duration::from_mins(1), wire.get(&request, 0..1)).await.unwrap();
    assert!(is_busy(&got) && !format!("{got:?}").contains("5ec4e7"), "{got:?}");
    let put = wire.put(&request, Bytes::from_static(b"another length")).await.map(|_| Vec::new());
    assert!(is_refused(&put, "another length"), "{put:?}");
}
