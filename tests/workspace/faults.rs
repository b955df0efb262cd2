//! A store that is busy, slow to answer, forgetful of its signatures, or that gives other bytes than it took.

use std::{
    fs,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use workspace::{
    BadFrame, Error, Pulled, Pushed, Store, Way,
    blobs::{Signed, StoreError, Tag, Wire},
    pull, push,
};

use super::{lab::Lab, picture::assert_equal, trees::content};

/// What a wire does to some requests.
#[derive(Clone, Copy)]
enum Fault {
    /// Every other request of each kind fails; odd ones only after they were done.
    Busy,
    /// Every third read finds its URL expired.
    Expired,
    /// One bit of every read of this many bytes or more is another one.
    Flipped(usize),
    /// Reads of this many bytes or more come short by one.
    Short(usize),
    /// All reads of layers fail.
    Down,
}

struct Faulty {
    inner: Arc<dyn Wire>,
    fault: Fault,
    count: AtomicU64,
}

impl Faulty {
    fn number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

fn busy(signed: &Signed) -> StoreError {
    StoreError::Busy { key: signed.key.clone(), why: "slow down".to_owned() }
}

#[async_trait]
impl Wire for Faulty {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        let Fault::Busy = self.fault else { return self.inner.put(signed, bytes).await };
        match self.number() % 4 {
            0 => Err(busy(signed)),
            2 => self.inner.put(signed, bytes).await.and(Err(busy(signed))),
            _ => self.inner.put(signed, bytes).await,
        }
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let number = self.number();
        match self.fault {
            Fault::Busy if number.is_multiple_of(2) => return Err(busy(signed)),
            Fault::Expired if number.is_multiple_of(3) => return Err(StoreError::Expired(signed.key.clone())),
            Fault::Down => return Err(busy(signed)),
            _ => {}
        }
        let mut bytes = self.inner.get(signed, range).await?;
        match self.fault {
            Fault::Flipped(least) if bytes.len() >= least => bytes[least / 2] ^= 4,
            Fault::Short(least) if bytes.len() >= least => _ = bytes.pop(),
            _ => {}
        }
        Ok(bytes)
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        if matches!(self.fault, Fault::Busy) && self.number().is_multiple_of(2) {
            return Err(busy(signed));
        }
        self.inner.get_all(signed, limit).await
    }
}

fn faulty(lab: &Lab, fault: Fault) -> Store {
    Store {
        wire: Arc::new(Faulty { inner: lab.store.wire.clone(), fault, count: AtomicU64::new(0) }),
        ..lab.store.clone()
    }
}

async fn pull_through(lab: &Lab, store: &Store, host: &super::lab::Host) -> Result<Pulled, Error> {
    pull(store, lab.pull_request(host).await, &tokio::sync::watch::Sender::default()).await
}

#[tokio::test]
async fn a_busy_store_is_asked_again_and_what_was_done_is_not_done_twice() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), content(20 << 20, 5)).unwrap();
    let store = faulty(&lab, Fault::Busy);
    let pushed = push(&store, &*lab.commit, lab.push_request(&here).await).await.unwrap();
    assert!(matches!(pushed, Pushed::Committed { .. }), "{pushed:?}");
    pull_through(&lab, &store, &there).await.unwrap();
    assert_equal(&here.project, &there.project);
}

#[tokio::test]
async fn urls_that_expire_in_the_middle_are_renewed() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), content(20 << 20, 5)).unwrap();
    lab.push(&here).await;
    pull_through(&lab, &faulty(&lab, Fault::Expired), &there).await.unwrap();
    assert_equal(&here.project, &there.project);
}

#[tokio::test]
async fn a_flipped_bit_is_found_before_use_and_named_with_its_range() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), content(3 << 20, 5)).unwrap();
    lab.push(&here).await;
    let error = pull_through(&lab, &faulty(&lab, Fault::Flipped(1 << 20)), &there).await.unwrap_err();
    let Error::Frame { key, from, to, source: BadFrame::Digest, .. } = error else { panic!("{error}") };
    assert!(key.starts_with("workspaces/w/layers/") && from < to);
    assert!(!there.project.exists(), "nothing was published");
    let left = fs::read_dir(there.project.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "only the state folder is there");
    assert_eq!(lab.pull(&there).await, Way::Fresh);
}

#[tokio::test]
async fn a_short_answer_is_an_error() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), "work").unwrap();
    lab.push(&here).await;
    let error = pull_through(&lab, &faulty(&lab, Fault::Short(1)), &there).await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Refused { .. })), "{error:?}");
    assert!(!there.project.exists());
}

/// Not an older state, and not an empty one.
#[tokio::test]
async fn a_generation_that_cannot_be_read_is_an_error_and_what_is_here_stays() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), "1").unwrap();
    lab.push(&here).await;
    lab.pull(&there).await;
    fs::write(here.project.join("work"), "2").unwrap();
    fs::remove_file(here.state.join("cache")).unwrap();
    lab.push(&here).await;
    pull_through(&lab, &faulty(&lab, Fault::Down), &there).await.unwrap_err();
    assert_eq!(fs::read_to_string(there.project.join("work")).unwrap(), "1");
    lab.pull(&there).await;
    assert_equal(&here.project, &there.project);
}

#[tokio::test]
async fn a_difference_that_died_is_said_so_and_the_next_pull_starts_clean() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), "1").unwrap();
    lab.push(&here).await;
    lab.pull(&there).await;
    fs::write(here.project.join("work"), "2").unwrap();
    lab.push(&here).await;
    pull_through(&lab, &faulty(&lab, Fault::Down), &there).await.unwrap_err();
    assert_eq!(lab.try_push(&there).await.unwrap(), Pushed::HalfPulled);
    assert_eq!(lab.pull(&there).await, Way::Fresh);
    assert_equal(&here.project, &there.project);
}
