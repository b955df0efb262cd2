//! What every store promises, and its wire: a folder, and a bucket of S3.

#[cfg(feature = "engines")]
mod bucket;
mod bucket_client;
mod bucket_stub;
mod wire;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use workspace::{
    blobs::{Blobs, Signer, StoreError, Tag, Upload, Wire, bound::Bound, directory::Directory},
    limits::{MAX_PART_BYTES, MAX_PARTS},
    time::Clock,
};

use super::lab::Lab;

/// A store, and what is around it.
pub(super) struct Shop {
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) wire: Arc<dyn Wire>,
    /// Signs as the store does, but what it signs has ended.
    pub(super) stale: Arc<dyn Signer>,
    pub(super) _folder: Option<tempfile::TempDir>,
}

impl Shop {
    fn folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |millis: i64, seed: u64| {
            let clock = Clock::new(move || millis);
            Directory::new(folder.path(), [7; 32], seed, Duration::from_mins(15), clock)
        };
        let (now, stale) = (at(10_000_000, 1), at(0, 1 << 32));
        Self { blobs: Arc::new(now.clone()), wire: Arc::new(now), stale: Arc::new(stale), _folder: Some(folder) }
    }

    async fn put(&self, key: &str, bytes: &[u8]) -> Result<Tag, StoreError> {
        let signed = self.blobs.sign_put(key, bytes.len() as u64).await?;
        self.wire.put(&signed, Bytes::copy_from_slice(bytes)).await
    }

    async fn read(&self, key: &str) -> Result<Vec<u8>, StoreError> {
        self.wire.get_all(&self.blobs.sign_get(key).await?, 64 << 20).await
    }

    /// Sends parts in an order of its own, and gives their tags in theirs.
    async fn parts(&self, upload: &Upload, parts: &[Vec<u8>]) -> Vec<Tag> {
        let lengths: Vec<_> = (1..).zip(parts).map(|(number, part)| (number, part.len() as u64)).collect();
        let signed = self.blobs.sign_parts(upload, &lengths).await.unwrap();
        let mut tags = Vec::new();
        for (signed, part) in signed.iter().zip(parts).rev() {
            tags.push(self.wire.put(signed, Bytes::copy_from_slice(part)).await.unwrap());
        }
        tags.reverse();
        tags
    }
}

/// Each promise on a folder here, and on a bucket where there is one.
macro_rules! promises {
    ($($promise:ident;)*) => {
        mod folder {
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(super::Shop::folder()).await;
                }
            )*
        }

        #[cfg(feature = "engines")]
        mod of_s3 {
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(super::bucket::shop().await).await;
                }
            )*
        }
    };
}

promises! {
    a_key_is_written_once;
    a_range_comes_whole_or_is_an_error;
    an_upload_is_the_parts_in_their_order;
    a_completion_that_was_done_is_done_again_and_a_taken_key_is_refused;
    an_upload_that_was_given_up_is_no_more;
    parts_that_were_not_sent_so_are_refused;
    an_upload_is_of_its_key_alone;
    what_passes_a_limit_is_told_as_that;
    a_signed_request_is_for_one_key_one_way_and_one_length;
    what_has_ended_is_told_as_that;
    what_is_not_there_is_missing;
    a_listing_has_all_of_a_prefix_in_order;
    uploads_that_nobody_ended_are_given_up_by_their_age;
}

/// The smallest part that is not the last one, as S3 has it.
const PART: usize = 5 << 20;

fn refused<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Refused { .. })), "{answer:?}");
}

async fn a_key_is_written_once(shop: Shop) {
    shop.put("w/once", b"first").await.unwrap();
    refused(&shop.put("w/once", b"other").await);
    assert_eq!(shop.read("w/once").await.unwrap(), b"first");
    assert_eq!(shop.blobs.get("w/once", 5).await.unwrap(), b"first");
    shop.put("w/empty", b"").await.unwrap();
    assert_eq!(shop.read("w/empty").await.unwrap(), b"");
    shop.blobs.put("w/once", b"over it").await.unwrap();
    assert_eq!(shop.read("w/once").await.unwrap(), b"over it", "the host can write over it");
}

async fn a_range_comes_whole_or_is_an_error(shop: Shop) {
    shop.put("w/digits", b"0123456789").await.unwrap();
    let signed = shop.blobs.sign_get("w/digits").await.unwrap();
    for (range, bytes) in [(0..10, "0123456789"), (0..1, "0"), (3..7, "3456"), (9..10, "9"), (4..4, "")] {
        assert_eq!(shop.wire.get(&signed, range.clone()).await.unwrap(), bytes.as_bytes(), "{range:?}");
    }
    for range in [0..11, 9..20, 10..11, 100..200] {
        refused(&shop.wire.get(&signed, range).await);
    }
}

fn three_parts() -> [Vec<u8>; 3] {
    [vec![1; PART], vec![2; PART], b"the end".to_vec()]
}

async fn an_upload_is_the_parts_in_their_order(shop: Shop) {
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let first = shop.parts(&upload, &three_parts()).await;
    assert!(matches!(shop.read("w/long").await, Err(StoreError::Missing(_))), "it is nothing before its end");
    // One is sent again, and is another one then.
    let again = shop.blobs.sign_parts(&upload, &[(2, PART as u64)]).await.unwrap();
    let second = shop.wire.put(&again[0], Bytes::from(vec![9; PART])).await.unwrap();
    shop.blobs.complete(&upload, &[first[0].clone(), second, first[2].clone()]).await.unwrap();
    let expected = [vec![1; PART], vec![9; PART], b"the end".to_vec()].concat();
    assert!(shop.read("w/long").await.unwrap() == expected);
    let listed: Vec<_> = shop.blobs.list("w/").await.unwrap().into_iter().map(|it| (it.key, it.bytes)).collect();
    assert_eq!(listed, [("w/long".to_owned(), expected.len() as u64)]);
}

async fn a_completion_that_was_done_is_done_again_and_a_taken_key_is_refused(shop: Shop) {
    let (one, two) = (shop.blobs.begin("w/long").await.unwrap(), shop.blobs.begin("w/long").await.unwrap());
    let tags = shop.parts(&one, &three_parts()).await;
    let others = shop.parts(&two, &[b"another".to_vec()]).await;
    for _ in 0..3 {
        shop.blobs.complete(&one, &tags).await.unwrap();
    }
    refused(&shop.blobs.complete(&two, &others).await);
    assert!(shop.read("w/long").await.unwrap() == three_parts().concat());
    shop.blobs.abort(&two).await.unwrap();
    assert!(shop.read("w/long").await.unwrap() == three_parts().concat());
}

async fn an_upload_that_was_given_up_is_no_more(shop: Shop) {
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let tags = shop.parts(&upload, &[b"all of it".to_vec()]).await;
    for _ in 0..2 {
        shop.blobs.abort(&upload).await.unwrap();
    }
    refused(&shop.blobs.complete(&upload, &tags).await);
    let signed = shop.blobs.sign_parts(&upload, &[(1, 1)]).await.unwrap();
    refused(&shop.wire.put(&signed[0], Bytes::from_static(b"x")).await);
    assert_eq!(shop.blobs.list("w/").await.unwrap(), []);
}

async fn parts_that_were_not_sent_so_are_refused(shop: Shop) {
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let tags = shop.parts(&upload, &three_parts()).await;
    let swapped = [tags[1].clone(), tags[0].clone(), tags[2].clone()];
    refused(&shop.blobs.complete(&upload, &swapped).await);
    refused(&shop.blobs.complete(&upload, &[&tags[..], &tags[..1]].concat()).await);
    refused(&shop.blobs.complete(&upload, &["../../other".to_owned()]).await);
    shop.blobs.complete(&upload, &tags).await.unwrap();
    assert!(shop.read("w/long").await.unwrap() == three_parts().concat(), "what was refused has left no trace");
}

/// Both come from a sandbox, and so does what it says of them.
async fn an_upload_is_of_its_key_alone(shop: Shop) {
    let upload = shop.blobs.begin("w/one").await.unwrap();
    let tags = shop.parts(&upload, &[b"of one".to_vec()]).await;
    let forged = Upload { key: "w/two".to_owned(), ..upload.clone() };
    refused(&shop.blobs.complete(&forged, &tags).await);
    _ = shop.blobs.abort(&forged).await;
    for id in ["..", "../w", "", "0000000000000001", "0000000000000001/../../w"] {
        let forged = Upload { key: "w/two".to_owned(), id: id.to_owned() };
        let answers = (shop.blobs.complete(&forged, &tags).await, shop.blobs.abort(&forged).await);
        assert!(answers.0.is_err(), "{id}: {answers:?}");
    }
    shop.blobs.complete(&upload, &tags).await.unwrap();
    assert_eq!(shop.read("w/one").await.unwrap(), b"of one");
}

async fn what_passes_a_limit_is_told_as_that(shop: Shop) {
    let upload = shop.blobs.begin("w/long").await.unwrap();
    for part in [(0, 1), (MAX_PARTS + 1, 1), (1, MAX_PART_BYTES + 1)] {
        let signed = shop.blobs.sign_parts(&upload, &[part]).await;
        assert!(matches!(signed, Err(StoreError::Limit { .. })), "{part:?}: {signed:?}");
    }
    let tags = vec!["f".repeat(64); MAX_PARTS as usize + 1];
    let completed = shop.blobs.complete(&upload, &tags).await;
    assert!(matches!(completed, Err(StoreError::Limit { .. })), "{completed:?}");
    let whole = shop.blobs.sign_put("w/long", MAX_PART_BYTES + 1).await;
    assert!(matches!(whole, Err(StoreError::Limit { .. })), "{whole:?}");
    shop.put("w/ten", b"0123456789").await.unwrap();
    let read = shop.wire.get_all(&shop.blobs.sign_get("w/ten").await.unwrap(), 9).await;
    assert!(matches!(read, Err(StoreError::Limit { .. })), "{read:?}");
    let read = shop.blobs.get("w/ten", 9).await;
    assert!(matches!(read, Err(StoreError::Limit { .. })), "{read:?}");
}

async fn a_signed_request_is_for_one_key_one_way_and_one_length(shop: Shop) {
    shop.put("w/mine", b"mine").await.unwrap();
    shop.put("w/yours", b"yours").await.unwrap();
    let reads = shop.blobs.sign_get("w/mine").await.unwrap();
    assert!(!format!("{reads:?}").contains(&reads.url), "a URL is a credential");
    refused(&shop.wire.put(&reads, Bytes::from_static(b"written")).await);
    let mut yours = reads.clone();
    yours.url = yours.url.replace("w/mine", "w/yours");
    refused(&shop.wire.get_all(&yours, 100).await);
    let writes = shop.blobs.sign_put("w/new", 3).await.unwrap();
    refused(&shop.wire.put(&writes, Bytes::from_static(b"four")).await);
    refused(&shop.wire.get_all(&writes, 100).await);
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let mut part = shop.blobs.sign_parts(&upload, &[(1, 3)]).await.unwrap().remove(0);
    refused(&shop.wire.put(&part, Bytes::from_static(b"four")).await);
    part.url = part.url.replace("w/long", "w/new");
    refused(&shop.wire.put(&part, Bytes::from_static(b"one")).await);
    let keys: Vec<_> = shop.blobs.list("").await.unwrap().into_iter().map(|object| object.key).collect();
    assert_eq!(keys, ["w/mine", "w/yours"]);
}

async fn what_has_ended_is_told_as_that(shop: Shop) {
    shop.put("w/key", b"bytes").await.unwrap();
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let ended = |answer: Result<Vec<u8>, StoreError>, key: &str| {
        assert_eq!(answer, Err(StoreError::Expired(key.to_owned())));
    };
    let reads = shop.stale.sign_get("w/key").await.unwrap();
    ended(shop.wire.get(&reads, 0..1).await, "w/key");
    ended(shop.wire.get_all(&reads, 100).await, "w/key");
    let writes = shop.stale.sign_put("w/new", 1).await.unwrap();
    ended(shop.wire.put(&writes, Bytes::from_static(b"x")).await.map(|_| Vec::new()), "w/new");
    let part = shop.stale.sign_parts(&upload, &[(1, 1)]).await.unwrap();
    ended(shop.wire.put(&part[0], Bytes::from_static(b"x")).await.map(|_| Vec::new()), "w/long");
}

async fn what_is_not_there_is_missing(shop: Shop) {
    let missing = |answer: Result<Vec<u8>, StoreError>| {
        assert_eq!(answer, Err(StoreError::Missing("w/none".to_owned())));
    };
    let signed = shop.blobs.sign_get("w/none").await.unwrap();
    missing(shop.wire.get_all(&signed, 1).await);
    missing(shop.wire.get(&signed, 0..1).await);
    missing(shop.blobs.get("w/none", 1).await);
    shop.blobs.delete("w/none").await.unwrap();
}

async fn a_listing_has_all_of_a_prefix_in_order(shop: Shop) {
    assert_eq!(shop.blobs.list("w/").await.unwrap(), []);
    for key in ["w/b", "w/a/2", "w/a/1", "w2/x", "w/a.b"] {
        shop.blobs.put(key, key.as_bytes()).await.unwrap();
    }
    let listed = async |prefix: &str| {
        let objects = shop.blobs.list(prefix).await.unwrap();
        assert!(objects.iter().all(|object| object.bytes == object.key.len() as u64 && object.written > 0));
        objects.into_iter().map(|object| object.key).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["w/a.b", "w/a/1", "w/a/2", "w/b", "w2/x"]);
    assert_eq!(listed("w/").await, ["w/a.b", "w/a/1", "w/a/2", "w/b"]);
    assert_eq!(listed("w/a/").await, ["w/a/1", "w/a/2"]);
    shop.blobs.delete("w/a/1").await.unwrap();
    assert_eq!(listed("w/a/").await, ["w/a/2"]);
}

async fn uploads_that_nobody_ended_are_given_up_by_their_age(shop: Shop) {
    let upload = shop.blobs.begin("w/long").await.unwrap();
    let tags = shop.parts(&upload, &[b"all".to_vec()]).await;
    assert_eq!(shop.blobs.abort_stale("w/", 1_000_000_000_000).await.unwrap(), 0, "it is younger than that");
    assert_eq!(shop.blobs.abort_stale("w/", 9_000_000_000_000).await.unwrap(), 1);
    refused(&shop.blobs.complete(&upload, &tags).await);
}

/// The host's check, whichever the store: a sandbox is signed nothing but its own.
#[tokio::test]
async fn a_sandbox_is_signed_for_its_workspace_and_lease_alone() {
    let lab = Lab::new();
    let (lease, _) = lab.lease("one").await;
    let bound = Bound::new(Arc::new(lab.blobs.clone()), lease.clone());
    let key = |workspace: &str, token: u64, folder: &str| {
        let ending = if folder == "layers" { ".tar.zst" } else { ".json" };
        format!("workspaces/{workspace}/{folder}/00000001-{token:014}-0000000000000001{ending}")
    };
    for own in [key("w", lease.token, "layers"), key("w", lease.token, "manifests")] {
        bound.sign_put(&own, 1).await.unwrap();
        bound.sign_get(&own).await.unwrap();
        let upload = bound.begin(&own).await.unwrap();
        bound.sign_parts(&upload, &[(1, 1)]).await.unwrap();
        bound.abort(&upload).await.unwrap();
    }
    bound.sign_put("workspaces/w/RESTORE.txt", 1).await.unwrap();
    let earlier = key("w", lease.token - 1, "layers");
    bound.sign_get(&earlier).await.unwrap();
    let foreign = [
        earlier,
        key("w2", lease.token, "layers"),
        "workspaces/w/condemned.json".to_owned(),
        "workspaces/w/pins/x".to_owned(),
        "workspaces/w2/RESTORE.txt".to_owned(),
        "workspaces/w/layers/../../w2/RESTORE.txt".to_owned(),
        String::new(),
    ];
    for (at, key) in foreign.iter().enumerate() {
        refused(&bound.sign_put(key, 1).await);
        refused(&bound.begin(key).await);
        let upload = Upload { key: key.clone(), id: "1".to_owned() };
        refused(&bound.sign_parts(&upload, &[(1, 1)]).await);
        refused(&bound.complete(&upload, &["tag".to_owned()]).await);
        refused(&bound.abort(&upload).await);
        if at > 0 {
            refused(&bound.sign_get(key).await);
        }
    }
}
