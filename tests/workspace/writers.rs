//! Several writers, stale ones, lost answers: one history, no part of it overwritten, wherever the records are.

use std::{
    fs,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};
use workspace::{
    Basis, Push, Pushed, Store, Way,
    blobs::{Signed, StoreError, Tag, Wire},
    commit::{Acquired, After, Commit, CommitError, Committed, Head, Lease, Renewed},
    key::Name,
    push,
};

use super::{
    lab::{Lab, SKEW, TTL, name, with_both_keepers},
    picture::assert_equal,
};

with_both_keepers! {
    a_lease_is_one_writers_until_it_ends_and_the_skew_has_passed;
    a_writer_that_wakes_after_an_hour_is_fenced_and_harms_nothing;
    a_push_names_the_generation_that_it_replaces;
    a_push_holds_its_lease_for_as_long_as_it_takes;
    a_push_that_finds_its_lease_taken_ends_at_once_and_leaves_nothing_begun;
    a_lost_answer_to_a_commit_is_asked_for_again;
    a_commit_whose_answer_never_came_is_found_by_the_next_push;
    sixteen_writers_at_once_make_one_history;
}

async fn a_lease_is_one_writers_until_it_ends_and_the_skew_has_passed(lab: Lab) {
    let (lease, _) = lab.lease("one").await;
    let held = Acquired::Held { owner: "one".to_owned(), until_ms: lease.until_ms };
    lab.pass(TTL + SKEW);
    assert_eq!(lab.commit.acquire(&name(), "two", TTL).await.unwrap(), held);
    lab.pass(Duration::from_millis(1));
    let (taken, _) = lab.lease("two").await;
    assert!(taken.token > lease.token);
    assert_eq!(lab.commit.renew(&lease, TTL).await.unwrap(), Renewed::Lost);
    lab.commit.release(&lease).await.unwrap();
    assert_eq!(lab.commit.lease(&name()).await.unwrap(), Some(taken), "a lease that is lost is not given back");
}

async fn a_writer_that_wakes_after_an_hour_is_fenced_and_harms_nothing(lab: Lab) {
    let (slow, quick) = (lab.host("slow"), lab.host("quick"));
    fs::write(slow.project.join("work"), "of the slow one").unwrap();
    fs::write(quick.project.join("work"), "of the quick one").unwrap();
    let late = lab.push_request(&slow).await;
    lab.pass(Duration::from_hours(1));
    let first = lab.push(&quick).await;
    assert_eq!(push(&lab.store, &*lab.commit, late).await.unwrap(), Pushed::Fenced);
    let reader = lab.bare_host("reader");
    lab.pull(&reader).await;
    assert_equal(&quick.project, &reader.project);
    assert_eq!(lab.commit.head(&name()).await.unwrap().unwrap().generation, first.generation);
}

async fn a_push_names_the_generation_that_it_replaces(lab: Lab) {
    let (here, other) = (lab.host("here"), lab.host("other"));
    lab.push(&here).await;
    let stale = lab.push_request(&here).await;
    fs::write(here.project.join("more"), "more").unwrap();
    // Another push of the same owner comes first: the token is a new one.
    let head = match lab.try_push(&here).await.unwrap() {
        Pushed::Committed { head, .. } => head,
        other => panic!("{other:?}"),
    };
    fs::write(here.project.join("even-more"), "more").unwrap();
    let mut current = lab.push_request(&here).await;
    current.head = stale.head;
    current.basis = Basis::Replace;
    assert_eq!(push(&lab.store, &*lab.commit, current).await.unwrap(), Pushed::Moved(Some(head.clone())));
    // A push that was not done keeps its lease.
    lab.pass(TTL + SKEW + Duration::from_millis(1));
    match lab.try_push(&other).await.unwrap() {
        Pushed::Unrelated { trees: None, head: refused } => assert_eq!(refused, head.manifest),
        other => panic!("{other:?}"),
    }
    let mut told = lab.push_request(&other).await;
    told.basis = Basis::Replace;
    match push(&lab.store, &*lab.commit, told).await.unwrap() {
        Pushed::Committed { manifest, .. } => {
            assert_eq!((manifest.generation, manifest.layers.len()), (head.generation + 1, 1));
            assert_eq!(manifest.parent, Some(head.manifest), "what was replaced is in the history");
        }
        other => panic!("{other:?}"),
    }
}

/// A keeper of records whose answers to some commits are lost, after they were done.
struct Deaf<'a> {
    inner: &'a dyn Commit,
    lost: AtomicU32,
    /// One for each time that a lease was renewed.
    renewed: Arc<Semaphore>,
}

impl<'a> Deaf<'a> {
    fn of(lab: &'a Lab, lost: u32) -> Self {
        Self { inner: &*lab.commit, lost: AtomicU32::new(lost), renewed: Arc::new(Semaphore::new(0)) }
    }
}

#[async_trait]
impl Commit for Deaf<'_> {
    async fn acquire(&self, workspace: &Name, owner: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        self.inner.acquire(workspace, owner, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Renewed, CommitError> {
        let renewed = self.inner.renew(lease, ttl).await;
        if matches!(renewed, Ok(Renewed::Until(_))) {
            self.renewed.add_permits(1);
        }
        renewed
    }

    async fn release(&self, lease: &Lease) -> Result<(), CommitError> {
        self.inner.release(lease).await
    }

    async fn commit(&self, lease: &Lease, replaces: u64, head: &Head, after: After) -> Result<Committed, CommitError> {
        let done = self.inner.commit(lease, replaces, head, after).await;
        if self.lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |lost| lost.checked_sub(1)).is_ok() {
            return Err(CommitError { workspace: lease.workspace.clone(), why: "no answer".to_owned() });
        }
        done
    }

    async fn head(&self, workspace: &Name) -> Result<Option<Head>, CommitError> {
        self.inner.head(workspace).await
    }

    async fn lease(&self, workspace: &Name) -> Result<Option<Lease>, CommitError> {
        self.inner.lease(workspace).await
    }
}

/// A wire that takes nothing before a lease was renewed so often.
struct Waiting {
    inner: Arc<dyn Wire>,
    renewed: Arc<Semaphore>,
    wanted: u32,
    asked: Notify,
}

#[async_trait]
impl Wire for Waiting {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        self.asked.notify_one();
        drop(self.renewed.acquire_many(self.wanted).await.unwrap());
        self.inner.put(signed, bytes).await
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.inner.get(signed, range).await
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        self.inner.get_all(signed, limit).await
    }
}

fn waiting(lab: &Lab, deaf: &Deaf<'_>, wanted: u32) -> (Arc<Waiting>, Store) {
    let (inner, renewed, asked) = (lab.store.wire.clone(), deaf.renewed.clone(), Notify::new());
    let wire = Arc::new(Waiting { inner, renewed, wanted, asked });
    (wire.clone(), Store { wire, ..lab.store.clone() })
}

async fn a_push_holds_its_lease_for_as_long_as_it_takes(lab: Lab) {
    let here = lab.host("here");
    fs::write(here.project.join("work"), "work").unwrap();
    let deaf = Deaf::of(&lab, 0);
    let request = Push { ttl: Duration::from_millis(30), ..lab.push_request(&here).await };
    let (_, store) = waiting(&lab, &deaf, 3);
    let pushed = push(&store, &deaf, request).await.unwrap();
    assert!(matches!(pushed, Pushed::Committed { head, .. } if head.generation == 1));
}

async fn a_push_that_finds_its_lease_taken_ends_at_once_and_leaves_nothing_begun(lab: Lab) {
    let here = lab.host("here");
    fs::write(here.project.join("work"), super::trees::content(20 << 20, 1)).unwrap();
    let deaf = Deaf::of(&lab, 0);
    let request = Push { ttl: Duration::from_millis(30), ..lab.push_request(&here).await };
    let (wire, store) = waiting(&lab, &deaf, 1 << 20);
    let taken = async {
        wire.asked.notified().await;
        lab.pass(TTL + SKEW + SKEW);
        lab.lease("two").await
    };
    let (pushed, (lease, _)) = tokio::join!(push(&store, &deaf, request), taken);
    assert_eq!(pushed.unwrap(), Pushed::Fenced);
    assert_eq!(lab.commit.lease(&name()).await.unwrap(), Some(lease));
    let begun = fs::read_dir(lab.folder.path().join("bucket/.uploads")).unwrap().count();
    assert_eq!(begun, 0, "the upload was given up");
}

async fn a_lost_answer_to_a_commit_is_asked_for_again(lab: Lab) {
    let here = lab.host("here");
    fs::write(here.project.join("work"), "work").unwrap();
    let deaf = Deaf::of(&lab, 1);
    let pushed = push(&lab.store, &deaf, lab.push_request(&here).await).await.unwrap();
    assert!(matches!(pushed, Pushed::Committed { head, .. } if head.generation == 1));
}

async fn a_commit_whose_answer_never_came_is_found_by_the_next_push(lab: Lab) {
    let here = lab.host("here");
    fs::write(here.project.join("work"), "work").unwrap();
    let deaf = Deaf::of(&lab, u32::MAX);
    push(&lab.store, &deaf, lab.push_request(&here).await).await.unwrap_err();
    assert!(matches!(lab.try_push(&here).await.unwrap(), Pushed::Unchanged(head) if head.generation == 1));
    fs::write(here.project.join("more"), "more").unwrap();
    let manifest = lab.push(&here).await;
    assert_eq!((manifest.generation, manifest.layers.len()), (2, 2), "and what comes after it is a delta to it");
}

async fn sixteen_writers_at_once_make_one_history(lab: Lab) {
    let lab = Arc::new(lab);
    let writer = |number: usize| {
        let lab = lab.clone();
        async move {
            let host = lab.host(&format!("writer-{number}"));
            fs::write(host.project.join("who"), number.to_string()).unwrap();
            match lab.commit.acquire(&name(), &host.name, TTL).await.unwrap() {
                Acquired::Held { .. } => None,
                Acquired::Granted { .. } => match lab.try_push(&host).await.unwrap() {
                    Pushed::Committed { head, .. } => Some((number, head)),
                    _ => None,
                },
            }
        }
    };
    let winners: Vec<_> = futures::future::join_all((0..16).map(writer)).await.into_iter().flatten().collect();
    let head = lab.commit.head(&name()).await.unwrap().unwrap();
    assert_eq!(winners.iter().filter(|(_, won)| *won == head).count(), 1);
    assert_eq!(winners.len() as u64, head.generation);
    let reader = lab.bare_host("reader");
    assert_eq!(lab.pull(&reader).await, Way::Fresh);
    let (number, _) = winners.iter().find(|(_, won)| *won == head).unwrap();
    assert_eq!(fs::read_to_string(reader.project.join("who")).unwrap(), number.to_string());
}
