//! A bucket whose server answers as it likes: what the SDK's client makes of it.

use std::time::Duration;

use workspace::{
    blobs::{Blobs as _, Signer as _, StoreError, Upload, s3::S3},
    time::Clock,
};

use super::{
    bucket_client::client,
    wire::{Server, answer, error},
};

const NOW: i64 = 1_796_040_000_000;

async fn bucket(answers: Vec<String>) -> (S3, Server) {
    let server = Server::answering(answers).await;
    let clock = Clock::new(|| NOW);
    (S3::new(client(&server.url), "bucket", "team/", Duration::from_mins(15), clock), server)
}

fn upload() -> Upload {
    Upload { key: "w/long".to_owned(), id: "u1".to_owned() }
}

fn completed() -> String {
    answer("200 OK", &[], "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
}

async fn completing(answers: Vec<String>) -> Result<(), StoreError> {
    bucket(answers).await.0.complete(&upload(), &["tag".to_owned()]).await
}

#[tokio::test]
async fn a_completion_that_is_refused_may_have_been_done_before() {
    let taken = || error("412 Precondition Failed", "PreconditionFailed", "");
    let no_upload = || error("404 Not Found", "NoSuchUpload", "");
    let open = answer("200 OK", &[], "<ListPartsResult><UploadId>u1</UploadId></ListPartsResult>");
    let head = |status: &str| answer(status, &["content-length: 0"], "");
    assert_eq!(completing(vec![completed()]).await, Ok(()));
    assert_eq!(completing(vec![taken(), no_upload()]).await, Ok(()), "the upload is no more: it was this one");
    assert_eq!(completing(vec![no_upload(), head("200 OK")]).await, Ok(()));
    for (answers, why) in [
        (vec![taken(), open], "the key is taken"),
        (vec![no_upload(), head("404 Not Found")], "there is no such upload"),
    ] {
        let refused = StoreError::Refused { key: "w/long".to_owned(), why: why.to_owned() };
        assert_eq!(completing(answers).await, Err(refused));
    }
}

/// As S3 says when two complete at once, and when it thinks of an error only after it has begun to answer.
#[tokio::test]
async fn a_completion_beside_another_one_is_asked_for_again() {
    for busy in [error("409 Conflict", "ConditionalRequestConflict", ""), error("503 Slow Down", "SlowDown", "")] {
        let done = completing(vec![busy]).await;
        assert!(done.as_ref().is_err_and(StoreError::is_transient), "{done:?}");
    }
    let late = "<Error><Code>InternalError</Code><Message>try again</Message></Error>";
    let done = completing(vec![answer("200 OK", &[], late)]).await;
    assert!(done.is_err(), "an error in a success is none: {done:?}");
}

#[tokio::test]
async fn what_writes_is_signed_for_its_length_and_for_nothing_being_there() {
    let (bucket, _server) = bucket(Vec::new()).await;
    let put = bucket.sign_put("w/key", 7).await.unwrap();
    assert_eq!(put.until, NOW + 900_000);
    assert!(put.url.contains("/bucket/team/w/key?") && put.url.contains("X-Amz-Expires=900"), "{}", put.url);
    assert!(put.url.contains("X-Amz-Date=20261130T120000Z"), "{}", put.url);
    assert!(put.url.contains("X-Amz-SignedHeaders=content-length%3Bhost%3Bif-none-match"), "{}", put.url);
    let mut headers = put.headers.clone();
    headers.sort();
    let expected = [("content-length", "7"), ("if-none-match", "*")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers, expected);
    let parts = bucket.sign_parts(&upload(), &[(3, 5), (4, 6)]).await.unwrap();
    for (part, (number, length)) in parts.iter().zip([(3, "5"), (4, "6")]) {
        let right = part.url.contains(&format!("partNumber={number}")) && part.url.contains("uploadId=u1");
        assert!(right && part.url.contains("X-Amz-SignedHeaders=content-length%3Bhost&"), "{}", part.url);
        assert_eq!(part.headers, [("content-length".to_owned(), length.to_owned())]);
    }
    let get = bucket.sign_get("w/key").await.unwrap();
    assert!(get.url.contains("X-Amz-SignedHeaders=host&") && get.headers.is_empty(), "{get:?}");
}

#[tokio::test]
async fn a_listing_is_asked_for_page_by_page_and_without_the_prefix() {
    let page = |key: &str, more: &str| {
        let object = format!(
            "<Contents><Key>{key}</Key><Size>3</Size><LastModified>2026-11-30T12:00:00.000Z</LastModified></Contents>"
        );
        answer("200 OK", &[], &format!("<ListBucketResult>{more}{object}</ListBucketResult>"))
    };
    let more = "<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>";
    let (bucket, mut server) =
        bucket(vec![page("team/w/b", more), page("team/w/a", "<IsTruncated>false</IsTruncated>")]).await;
    let listed: Vec<_> =
        bucket.list("w/").await.unwrap().into_iter().map(|it| (it.key, it.bytes, it.written)).collect();
    assert_eq!(listed, [("w/a".to_owned(), 3, NOW), ("w/b".to_owned(), 3, NOW)]);
    assert!(server.asked().await.contains("prefix=team%2fw%2f"));
    assert!(server.asked().await.contains("continuation-token=next"));
}

#[tokio::test]
async fn a_listing_that_leaves_out_what_is_needed_is_an_error_and_not_an_empty_one() {
    let nameless = "<ListBucketResult><Contents><Size>3</Size></Contents></ListBucketResult>";
    let (bucket, _server) = bucket(vec![answer("200 OK", &[], nameless)]).await;
    let listed = bucket.list("w/").await;
    assert!(matches!(listed, Err(StoreError::Refused { .. })), "{listed:?}");
}

#[tokio::test]
async fn a_page_of_a_proxy_is_neither_an_object_nor_a_missing_one() {
    for (page, transient) in [("502 Bad Gateway", true), ("404 Not Found", false), ("403 Forbidden", false)] {
        let html = answer(page, &["content-type: text/html"], "<html>a proxy's</html>");
        let got = bucket(vec![html]).await.0.get("w/key", 100).await.unwrap_err();
        assert_eq!(got.is_transient(), transient, "{page}: {got:?}");
        assert!(!matches!(got, StoreError::Missing(_)), "{page}: {got:?}");
    }
}
