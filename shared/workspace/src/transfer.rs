//! Requests to the store, sent again where that may help.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::mpsc::Receiver;

use crate::{
    blobs::{Signed, Signer, StoreError, Tag, Upload, Wire},
    error::Error,
    limits::{TRIES, URL_MARGIN},
    time::{Clock, Millis},
    watched::Watched,
};

/// How many parts are on their way at once.
const PARTS_IN_FLIGHT: usize = 4;
/// How many full parts are signed at once.
const SIGNED_AHEAD: u32 = 8;
/// How long it is tried to give an upload up.
const ABORT: Duration = Duration::from_secs(10);

/// A store as a sandbox sees it.
#[derive(Clone)]
pub struct Store {
    /// Asks for signed requests.
    pub signer: std::sync::Arc<dyn Signer>,
    /// Sends them.
    pub wire: std::sync::Arc<dyn Wire>,
    /// Tells when one has ended.
    pub clock: Clock,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// Work for the store, unless the push is given up.
async fn unless_stopped<T>(watched: &Watched, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = watched.stopped() => Err(Error::Cancelled),
        done = work => Ok(done?),
    }
}

/// The next part, unless the push is given up.
async fn next(parts: &mut Receiver<Bytes>, watched: &Watched) -> Result<Option<Bytes>, Error> {
    unless_stopped(watched, async { Ok(parts.recv().await) }).await
}

/// Waits before a request is sent again: longer each time, up to some seconds.
async fn pause(tried: u32) {
    tokio::time::sleep(Duration::from_millis(50 << (2 * tried).min(7))).await;
}

impl Store {
    fn is_fresh(&self, signed: &Signed) -> bool {
        let margin = Millis::try_from(URL_MARGIN.as_millis()).unwrap_or(Millis::MAX);
        self.clock.now().saturating_add(margin) < signed.until
    }

    /// Writes a small object. Done again after a lost answer, it is done.
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let mut unsure = false;
        let mut tried = 0;
        loop {
            let sent = async {
                let signed = self.signer.sign_put(key, bytes.len() as u64).await?;
                self.wire.put(&signed, bytes.clone()).await
            };
            match sent.await {
                Ok(_) => return Ok(()),
                // The key has a random part: whatever is there, this call has written.
                Err(StoreError::Refused { .. }) if unsure => return Ok(()),
                Err(error @ (StoreError::Busy { .. } | StoreError::Expired(_))) if tried + 1 < TRIES => {
                    unsure |= error.is_transient();
                    pause(tried).await;
                    tried += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a whole object of at most `limit` bytes.
    pub(crate) async fn get_all(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        let mut tried = 0;
        loop {
            let read = async {
                let signed = self.signer.sign_get(key).await?;
                self.wire.get_all(&signed, limit).await
            };
            match read.await {
                Err(StoreError::Busy { .. } | StoreError::Expired(_)) if tried + 1 < TRIES => {
                    pause(tried).await;
                    tried += 1;
                }
                read => return read,
            }
        }
    }

    /// Reads a range by a signed request that is renewed when it ends.
    pub(crate) async fn get(&self, reading: &Reading, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let mut tried = 0;
        loop {
            let read = async {
                let signed = reading.fresh(self).await?;
                self.wire.get(&signed, range.clone()).await
            };
            match read.await {
                Err(StoreError::Expired(_)) if tried + 1 < TRIES => {
                    reading.forget().await;
                    tried += 1;
                }
                Err(StoreError::Busy { .. }) if tried + 1 < TRIES => {
                    pause(tried).await;
                    tried += 1;
                }
                Ok(bytes) if bytes.len() as u64 != range.end - range.start => {
                    let why = format!("{} bytes came of {range:?}", bytes.len());
                    return Err(StoreError::Refused { key: reading.key.clone(), why });
                }
                read => return read,
            }
        }
    }

    /// Makes an object of the parts that come, each but the last as long as the first. False when none came.
    pub(crate) async fn upload(&self, key: &str, mut parts: Receiver<Bytes>, watched: &Watched) -> Result<bool, Error> {
        let Some(first) = next(&mut parts, watched).await? else { return Ok(false) };
        let Some(second) = next(&mut parts, watched).await? else {
            let bytes = first.len() as u64;
            unless_stopped(watched, self.put(key, first)).await?;
            watched.moved(bytes);
            return Ok(true);
        };
        let upload = unless_stopped(watched, self.begin(key)).await?;
        let sent = async {
            let tags = self.send_parts(&upload, [first, second], parts, watched).await?;
            self.complete(&upload, &tags).await
        };
        let done = unless_stopped(watched, sent).await;
        if done.is_err() {
            // Its parts cost until they are given up; collection does it if this fails.
            _ = tokio::time::timeout(ABORT, self.signer.abort(&upload)).await;
        }
        done.map(|()| true)
    }

    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        let mut tried = 0;
        loop {
            match self.signer.begin(key).await {
                Err(error) if error.is_transient() && tried + 1 < TRIES => {
                    pause(tried).await;
                    tried += 1;
                }
                begun => return begun,
            }
        }
    }

    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        let mut tried = 0;
        loop {
            match self.signer.complete(upload, tags).await {
                Err(error) if error.is_transient() && tried + 1 < TRIES => {
                    pause(tried).await;
                    tried += 1;
                }
                done => return done,
            }
        }
    }

    async fn send_parts(
        &self,
        upload: &Upload,
        first: [Bytes; 2],
        mut parts: Receiver<Bytes>,
        watched: &Watched,
    ) -> Result<Vec<Tag>, StoreError> {
        let part_bytes = first[0].len() as u64;
        let mut tags = Vec::new();
        let mut flying = FuturesUnordered::new();
        let mut signed = Vec::new();
        let mut waiting = first.into_iter();
        let mut number = 0;
        loop {
            let part = match waiting.next() {
                Some(part) => Some(part),
                None => parts.recv().await,
            };
            let Some(part) = part else { break };
            number += 1;
            if signed.is_empty() && part.len() as u64 == part_bytes {
                let ahead: Vec<_> = (number..number + SIGNED_AHEAD).map(|number| (number, part_bytes)).collect();
                signed = self.signer.sign_parts(upload, &ahead).await?;
                signed.reverse();
            }
            let request = if part.len() as u64 == part_bytes { signed.pop() } else { None };
            flying.push(self.send_part(upload, number, part, request, watched));
            if flying.len() >= PARTS_IN_FLIGHT
                && let Some(sent) = flying.next().await
            {
                tags.push(sent?);
            }
        }
        while let Some(sent) = flying.next().await {
            tags.push(sent?);
        }
        tags.sort_by_key(|(number, _)| *number);
        Ok(tags.into_iter().map(|(_, tag)| tag).collect())
    }

    async fn send_part(
        &self,
        upload: &Upload,
        number: u32,
        part: Bytes,
        mut request: Option<Signed>,
        watched: &Watched,
    ) -> Result<(u32, Tag), StoreError> {
        let mut tried = 0;
        loop {
            let sent = async {
                let signed = if let Some(signed) = request.take().filter(|signed| self.is_fresh(signed)) {
                    signed
                } else {
                    let signed = self.signer.sign_parts(upload, &[(number, part.len() as u64)]).await?;
                    signed.into_iter().next().ok_or_else(|| StoreError::Expired(upload.key.clone()))?
                };
                self.wire.put(&signed, part.clone()).await
            };
            match sent.await {
                Ok(tag) => {
                    watched.moved(part.len() as u64);
                    return Ok((number, tag));
                }
                Err(StoreError::Busy { .. } | StoreError::Expired(_)) if tried + 1 < TRIES => {
                    pause(tried).await;
                    tried += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// An object that is being read, and the signed request for it.
#[derive(Debug)]
pub(crate) struct Reading {
    key: String,
    signed: tokio::sync::Mutex<Option<Signed>>,
}

impl Reading {
    pub(crate) fn new(key: String) -> Self {
        Self { key, signed: tokio::sync::Mutex::new(None) }
    }

    async fn fresh(&self, store: &Store) -> Result<Signed, StoreError> {
        let mut signed = self.signed.lock().await;
        if let Some(signed) = signed.as_ref().filter(|signed| store.is_fresh(signed)) {
            return Ok(signed.clone());
        }
        let fresh = store.signer.sign_get(&self.key).await?;
        *signed = Some(fresh.clone());
        Ok(fresh)
    }

    async fn forget(&self) {
        *self.signed.lock().await = None;
    }
}
