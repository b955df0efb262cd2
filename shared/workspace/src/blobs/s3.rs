//! A store in a bucket of S3.
//!
//! **Invariants.** A key is written once: whole objects and uploads alike carry `If-None-Match: *`. What is signed is signed
//! for one key, one method and, where it writes, one length. Every listing has an end.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    error::{DisplayErrorContext, ProvideErrorMetadata, SdkError},
    presigning::{PresignedRequest, PresigningConfig},
    primitives::DateTime,
    types::{CompletedMultipartUpload, CompletedPart},
};

use super::{Blobs, Object, Signed, Signer, StoreError, Tag, Upload, meaning::meaning};
use crate::{
    limits::{MAX_LISTED, MAX_PART_BYTES, MAX_PARTS},
    time::{Clock, Millis},
};

/// The one condition: nothing is there.
const NOTHING: &str = "*";

/// A store in a bucket.
#[derive(Clone)]
pub struct S3 {
    client: Client,
    bucket: String,
    prefix: String,
    valid: Duration,
    clock: Clock,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3(s3://{}/{})", self.bucket, self.prefix)
    }
}

impl S3 {
    /// In this bucket, `prefix` before every key: empty, or ended by a slash. What is signed ends after `valid`, a week at
    /// most, and before the client's credentials do.
    pub fn new(
        client: Client,
        bucket: impl Into<String>,
        prefix: impl Into<String>,
        valid: Duration,
        clock: Clock,
    ) -> Self {
        Self { client, bucket: bucket.into(), prefix: prefix.into(), valid, clock }
    }

    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn key(&self, name: &str) -> Option<String> {
        name.strip_prefix(&self.prefix).map(str::to_owned)
    }

    fn signing(&self, key: &str) -> Result<(PresigningConfig, Millis), StoreError> {
        let now = self.clock.now();
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now).unwrap_or_default());
        let config = PresigningConfig::builder().start_time(start).expires_in(self.valid).build();
        let config = config.map_err(|error| refused(key, error.to_string()))?;
        let valid = Millis::try_from(self.valid.as_millis()).unwrap_or(Millis::MAX);
        Ok((config, now.saturating_add(valid)))
    }

    async fn is_there(&self, key: &str) -> Result<bool, StoreError> {
        match self.client.head_object().bucket(&self.bucket).key(self.name(key)).send().await {
            Ok(_) => Ok(true),
            // A HEAD has no body, so no word either.
            Err(error) if status(&error) == Some(404) => Ok(false),
            Err(error) => Err(failed(key, &error)),
        }
    }

    /// Whether an upload was neither completed nor given up.
    async fn is_open(&self, upload: &Upload) -> Result<bool, StoreError> {
        let key = self.name(&upload.key);
        let parts = self.client.list_parts().bucket(&self.bucket).key(key).upload_id(&upload.id).max_parts(1);
        match parts.send().await {
            Ok(_) => Ok(true),
            Err(error) if code(&error) == "NoSuchUpload" => Ok(false),
            Err(error) => Err(failed(&upload.key, &error)),
        }
    }

    /// What a refused completion means: the same one may have been done before.
    async fn incomplete(&self, upload: &Upload, refused: StoreError, code: &str) -> Result<(), StoreError> {
        let was_done = match code {
            "NoSuchUpload" => self.is_there(&upload.key).await?,
            "PreconditionFailed" => !self.is_open(upload).await?,
            _ => false,
        };
        if was_done { Ok(()) } else { Err(refused) }
    }

    async fn page(&self, prefix: &str, next: Option<String>) -> Result<(Vec<Object>, Option<String>), StoreError> {
        let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(self.name(prefix));
        let page = request.set_continuation_token(next).send().await.map_err(|error| failed(prefix, &error))?;
        let object = |object: &aws_sdk_s3::types::Object| {
            Some(Object {
                key: self.key(object.key()?)?,
                bytes: u64::try_from(object.size()?).ok()?,
                written: millis(object.last_modified()?)?,
            })
        };
        let found = page.contents().iter().map(object).collect::<Option<Vec<_>>>();
        let found = found.ok_or_else(|| refused(prefix, "an object in the listing has no key, size or time"))?;
        let next = page.next_continuation_token.filter(|_| page.is_truncated == Some(true));
        Ok((found, next))
    }
}

fn millis(time: &DateTime) -> Option<Millis> {
    time.to_millis().ok()
}

fn refused(key: &str, why: impl Into<String>) -> StoreError {
    StoreError::Refused { key: key.to_owned(), why: why.into() }
}

fn limit(key: &str, why: String) -> StoreError {
    StoreError::Limit { key: key.to_owned(), why }
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|answer| answer.status().as_u16())
}

fn code<E: ProvideErrorMetadata>(error: &SdkError<E>) -> &str {
    error.as_service_error().and_then(ProvideErrorMetadata::code).unwrap_or_default()
}

/// What an answer of the SDK means.
fn failed<E: ProvideErrorMetadata + std::error::Error + 'static>(key: &str, error: &SdkError<E>) -> StoreError {
    match (error.as_service_error(), status(error)) {
        (Some(service), Some(status)) => {
            meaning(key, status, service.code().unwrap_or_default(), service.message().unwrap_or_default())
        }
        _ if matches!(error, SdkError::ConstructionFailure(_)) => refused(key, DisplayErrorContext(error).to_string()),
        _ => StoreError::Busy { key: key.to_owned(), why: DisplayErrorContext(error).to_string() },
    }
}

fn signed(key: &str, request: &PresignedRequest, until: Millis) -> Signed {
    let headers = request.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Signed { key: key.to_owned(), url: request.uri().to_owned(), headers, until }
}

/// A length as a header has it, if a part or an object may have it.
fn length(key: &str, bytes: u64) -> Result<i64, StoreError> {
    let length = i64::try_from(bytes).ok().filter(|_| bytes <= MAX_PART_BYTES);
    length.ok_or_else(|| limit(key, format!("{bytes} bytes in one request, and {MAX_PART_BYTES} are taken")))
}

#[async_trait]
impl Signer for S3 {
    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        let begun = self.client.create_multipart_upload().bucket(&self.bucket).key(self.name(key)).send().await;
        let id = begun.map_err(|error| failed(key, &error))?.upload_id;
        let id = id.ok_or_else(|| refused(key, "the upload was given no name"))?;
        Ok(Upload { key: key.to_owned(), id })
    }

    async fn sign_parts(&self, upload: &Upload, parts: &[(u32, u64)]) -> Result<Vec<Signed>, StoreError> {
        let (config, until) = self.signing(&upload.key)?;
        let mut all = Vec::with_capacity(parts.len());
        for &(number, bytes) in parts {
            let number = i32::try_from(number).ok().filter(|_| (1..=MAX_PARTS).contains(&number));
            let number = number.ok_or_else(|| limit(&upload.key, format!("parts from 1 to {MAX_PARTS} are taken")))?;
            let part = self.client.upload_part().bucket(&self.bucket).key(self.name(&upload.key));
            let part = part.upload_id(&upload.id).part_number(number).content_length(length(&upload.key, bytes)?);
            let request = part.presigned(config.clone()).await.map_err(|error| failed(&upload.key, &error))?;
            all.push(signed(&upload.key, &request, until));
        }
        Ok(all)
    }

    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        if tags.is_empty() || tags.len() > MAX_PARTS as usize {
            return Err(limit(&upload.key, format!("{} parts", tags.len())));
        }
        let part = |(number, tag): (i32, &Tag)| CompletedPart::builder().part_number(number).e_tag(tag).build();
        let parts = CompletedMultipartUpload::builder().set_parts(Some((1..).zip(tags).map(part).collect())).build();
        let request = self.client.complete_multipart_upload().bucket(&self.bucket).key(self.name(&upload.key));
        let request = request.upload_id(&upload.id).multipart_upload(parts).if_none_match(NOTHING);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => self.incomplete(upload, failed(&upload.key, &error), code(&error)).await,
        }
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        let request = self.client.abort_multipart_upload().bucket(&self.bucket).key(self.name(&upload.key));
        match request.upload_id(&upload.id).send().await {
            Err(error) if code(&error) != "NoSuchUpload" => Err(failed(&upload.key, &error)),
            _ => Ok(()),
        }
    }

    async fn sign_put(&self, key: &str, bytes: u64) -> Result<Signed, StoreError> {
        let (config, until) = self.signing(key)?;
        let put = self.client.put_object().bucket(&self.bucket).key(self.name(key));
        let put = put.content_length(length(key, bytes)?).if_none_match(NOTHING);
        let request = put.presigned(config).await.map_err(|error| failed(key, &error))?;
        Ok(signed(key, &request, until))
    }

    async fn sign_get(&self, key: &str) -> Result<Signed, StoreError> {
        let (config, until) = self.signing(key)?;
        let get = self.client.get_object().bucket(&self.bucket).key(self.name(key));
        let request = get.presigned(config).await.map_err(|error| failed(key, &error))?;
        Ok(signed(key, &request, until))
    }
}

#[async_trait]
impl Blobs for S3 {
    async fn put(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let put = self.client.put_object().bucket(&self.bucket).key(self.name(key)).body(bytes.to_vec().into());
        put.send().await.map(drop).map_err(|error| failed(key, &error))
    }

    async fn get(&self, key: &str, most: u64) -> Result<Vec<u8>, StoreError> {
        let over = |bytes: u64| limit(key, format!("{bytes} bytes, and {most} are read"));
        let get = self.client.get_object().bucket(&self.bucket).key(self.name(key)).send().await;
        let mut object = get.map_err(|error| failed(key, &error))?;
        if let Some(bytes) = object.content_length.and_then(|bytes| u64::try_from(bytes).ok()).filter(|it| *it > most) {
            return Err(over(bytes));
        }
        let mut all = Vec::new();
        loop {
            match object.body.try_next().await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) => return Ok(all),
                Err(error) => return Err(StoreError::Busy { key: key.to_owned(), why: error.to_string() }),
            }
            if all.len() as u64 > most {
                return Err(over(all.len() as u64));
            }
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Object>, StoreError> {
        let mut all = Vec::new();
        let mut next = None;
        loop {
            let (mut found, after) = self.page(prefix, next.take()).await?;
            all.append(&mut found);
            if after.is_none() {
                all.sort_by(|a: &Object, b| a.key.cmp(&b.key));
                return Ok(all);
            }
            if all.len() > MAX_LISTED {
                return Err(limit(prefix, format!("more than {MAX_LISTED} objects are there")));
            }
            next = after;
        }
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let delete = self.client.delete_object().bucket(&self.bucket).key(self.name(key));
        match delete.send().await {
            Err(error) if code(&error) != "NoSuchKey" => Err(failed(key, &error)),
            _ => Ok(()),
        }
    }

    async fn abort_stale(&self, prefix: &str, before: Millis) -> Result<usize, StoreError> {
        let mut aborted = 0;
        let (mut key_marker, mut upload_marker) = (None, None);
        loop {
            let request = self.client.list_multipart_uploads().bucket(&self.bucket).prefix(self.name(prefix));
            let request = request.set_key_marker(key_marker).set_upload_id_marker(upload_marker);
            let page = request.send().await.map_err(|error| failed(prefix, &error))?;
            for found in page.uploads() {
                let (Some(key), Some(id)) = (found.key().and_then(|key| self.key(key)), found.upload_id()) else {
                    continue;
                };
                if found.initiated().and_then(millis).is_some_and(|begun| begun < before) {
                    self.abort(&Upload { key, id: id.to_owned() }).await?;
                    aborted += 1;
                }
            }
            if page.is_truncated != Some(true) || aborted > MAX_LISTED {
                return Ok(aborted);
            }
            (key_marker, upload_marker) = (page.next_key_marker, page.next_upload_id_marker);
        }
    }
}
