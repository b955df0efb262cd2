//! What a sandbox asks for, under its token.
//!
//! **Invariants.** A lease that a body names is the one that the token is bound to: of this workspace, under this fence.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use sidecar::protocol::{Ask, Code, Held, Renew, Settle, Settled, Told};
use workspace::{
    blobs::{Signer, StoreError, Upload, bound::Bound},
    commit::{After, Lease},
    key::Name,
    time::Millis,
};

use crate::{
    answer::{Answer as _, refused, told},
    app::App,
};

/// The most parts that are signed at once.
const MAX_PARTS: usize = 1_000;

impl App {
    pub(crate) async fn renew(&self, name: &Name, fence: u64, asked: Renew) -> Response {
        if !is_bound(&asked.lease, name, fence) {
            return foreign();
        }
        // What a sandbox asks for is no reason to hold a lease for longer than a host would.
        let ttl = Duration::from_millis(asked.ttl_ms).min(self.lease);
        match self.commit.renew(&asked.lease, ttl).await {
            Ok(renewed) => told(&Held::from(renewed)),
            Err(error) => error.answer(),
        }
    }

    pub(crate) async fn settle(&self, name: &Name, fence: u64, asked: Settle) -> Response {
        let (Settle::Commit { lease, .. } | Settle::Release { lease }) = &asked;
        if !is_bound(lease, name, fence) {
            return foreign();
        }
        let settled = match &asked {
            Settle::Commit { lease, replaces, head, release } => {
                let after = if *release { After::Release } else { After::Keep };
                // Else the keeper's refusal would look like one that may pass.
                if let Err(error) = lease.check(*replaces, head) {
                    return refused(Code::Refused, error.why);
                }
                self.commit.commit(lease, *replaces, head, after).await.map(Settled::from)
            }
            Settle::Release { lease } => self.commit.release(lease).await.map(|()| Settled::Done),
        };
        match settled {
            Ok(settled) => told(&settled),
            Err(error) => error.answer(),
        }
    }

    pub(crate) async fn parts(&self, name: &Name, fence: u64, asked: Ask) -> Response {
        let lease = Lease { workspace: name.clone(), owner: String::new(), token: fence, until_ms: Millis::MAX };
        let bound = Bound::new(self.signer(), lease);
        match signed(&bound, asked).await {
            Ok(signed) => told(&signed),
            Err(error) => error.answer(),
        }
    }

    pub(crate) fn signer(&self) -> Arc<dyn Signer> {
        self.blobs.clone()
    }
}

fn is_bound(lease: &Lease, name: &Name, fence: u64) -> bool {
    lease.workspace == *name && lease.token == fence
}

fn foreign() -> Response {
    refused(Code::Refused, "the lease is not the one that the token was given for")
}

async fn signed(bound: &Bound, asked: Ask) -> Result<Told, StoreError> {
    let one = |signed| Told::Signed(vec![workspace::blobs::Signed::into(signed)]);
    Ok(match asked {
        Ask::Begin { key } => Told::Upload(bound.begin(&key).await?.id),
        Ask::Parts { key, parts, .. } if parts.len() > MAX_PARTS => {
            let why = format!("{} parts are asked for at once; at most {MAX_PARTS} are signed", parts.len());
            return Err(StoreError::Limit { key, why });
        }
        Ask::Parts { key, upload, parts } => {
            let signed = bound.sign_parts(&Upload { key, id: upload }, &parts).await?;
            Told::Signed(signed.into_iter().map(Into::into).collect())
        }
        Ask::Complete { key, upload, tags } => {
            bound.complete(&Upload { key, id: upload }, &tags).await?;
            Told::Done
        }
        Ask::Abort { key, upload } => {
            bound.abort(&Upload { key, id: upload }).await?;
            Told::Done
        }
        Ask::Put { key, bytes } => one(bound.sign_put(&key, bytes).await?),
        Ask::Get { key } => one(bound.sign_get(&key).await?),
    })
}
