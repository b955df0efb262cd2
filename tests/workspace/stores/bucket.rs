//! A bucket of the server that `FURLOUGH_TEST_S3` names; and a workspace in it, pushed and pulled.

use std::{fs, sync::Arc, time::Duration};

use futures::future::join_all;
use workspace::{
    Store,
    blobs::{Blobs as _, Signer, StoreError, http::Http, s3::S3},
    pull, push,
    time::Clock,
};

use super::{
    super::{lab::Lab, picture::assert_equal, trees::content},
    Shop,
    bucket_client::client,
};

const BUCKET: &str = "furlough-tests";

/// The real clock: a server judges what was signed by its own.
#[expect(clippy::disallowed_methods, reason = "the server has the real clock")]
fn clock(behind: Duration) -> Clock {
    let since = std::time::UNIX_EPOCH + behind;
    Clock::new(move || i64::try_from(std::time::SystemTime::now().duration_since(since).unwrap().as_millis()).unwrap())
}

/// A part of the bucket that nobody else uses.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests starts the server")]
async fn stores() -> (S3, S3) {
    let endpoint = std::env::var("FURLOUGH_TEST_S3").expect("FURLOUGH_TEST_S3 names a server");
    let client = client(&endpoint);
    // Another test may have made it.
    _ = client.create_bucket().bucket(BUCKET).send().await;
    let unique = tempfile::tempdir().unwrap();
    let prefix = format!("{}/", unique.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.'));
    let store = |behind| S3::new(client.clone(), BUCKET, &prefix, Duration::from_mins(15), clock(behind));
    (store(Duration::ZERO), store(Duration::from_hours(1)))
}

pub(super) async fn shop() -> Shop {
    let (blobs, stale) = stores().await;
    Shop { blobs: Arc::new(blobs), wire: Arc::new(Http::new().unwrap()), stale: Arc::new(stale), _folder: None }
}

#[tokio::test]
async fn a_workspace_comes_back_through_it_and_by_difference() {
    let lab = Lab::new();
    let (blobs, _) = stores().await;
    let wire = Arc::new(Http::new().unwrap());
    let store = Store { signer: Arc::new(blobs.clone()), wire, clock: clock(Duration::ZERO) };
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("long"), content(30 << 20, 3)).unwrap();
    fs::create_dir_all(here.project.join("node_modules/a")).unwrap();
    fs::write(here.project.join("node_modules/a/index.js"), "module").unwrap();
    for text in ["first", "second"] {
        fs::write(here.project.join("work"), text).unwrap();
        push(&store, &*lab.commit, lab.push_request(&here).await).await.unwrap();
        pull(&store, lab.pull_request(&there).await, &tokio::sync::watch::Sender::default()).await.unwrap();
        assert_equal(&here.project, &there.project);
    }
    let keys: Vec<_> = blobs.list("workspaces/w/").await.unwrap().into_iter().map(|object| object.key).collect();
    assert_eq!(keys.len(), 5, "the text, two manifests and two layers: {keys:?}");
}

/// Nothing rests on it, since every commit point is in the ledger; but a key is written once here too.
#[tokio::test]
async fn of_twenty_writers_of_one_key_one_is_taken() {
    for _ in 0..10 {
        let shop = shop().await;
        let writes = (0..20_u8).map(|n| shop.put_one(n));
        let taken: Vec<_> = join_all(writes).await.into_iter().flatten().collect();
        let [winner] = taken[..] else { panic!("{taken:?}") };
        assert_eq!(shop.blobs.get("w/key", 1).await.unwrap(), [winner]);
    }
}

impl Shop {
    async fn put_one(&self, n: u8) -> Option<u8> {
        match self.put("w/key", &[n]).await {
            Ok(_) => Some(n),
            Err(StoreError::Refused { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    }
}

/// A URL is a credential for one object, whoever else's it is.
#[tokio::test]
async fn a_url_of_one_workspace_is_worth_nothing_in_another() {
    let (blobs, _) = stores().await;
    blobs.put("workspaces/a/x", b"a").await.unwrap();
    blobs.put("workspaces/b/x", b"b").await.unwrap();
    let mut signed = blobs.sign_get("workspaces/a/x").await.unwrap();
    signed.url = signed.url.replace("workspaces/a/", "workspaces/b/");
    let wire = Http::new().unwrap();
    let read = workspace::blobs::Wire::get_all(&wire, &signed, 10).await;
    assert!(matches!(read, Err(StoreError::Refused { .. })), "{read:?}");
}
