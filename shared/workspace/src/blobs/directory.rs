//! A store in a folder: objects are files, and a signed request carries a keyed hash of what it allows.

use std::{
    fmt, fs, io,
    ops::Range,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Blobs, Object, Signed, Signer, StoreError, Tag, Upload, Wire};
use crate::{
    limits::{MAX_PART_BYTES, MAX_PARTS},
    time::{Clock, Millis},
};

const UPLOADS: &str = ".uploads";
const SCHEME: &str = "directory:";
/// An upload's name: its number, and a mark of its key.
const NUMBER_DIGITS: usize = 16;

fn mark(key: &str) -> String {
    format!("-{}", &blake3::hash(key.as_bytes()).to_hex()[..16])
}

/// A store in a folder.
#[derive(Clone)]
pub struct Directory(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    /// What the URL of a signed request begins with.
    at: String,
    secret: [u8; 32],
    valid: Duration,
    clock: Clock,
    next: std::sync::atomic::AtomicU64,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.0.folder).finish()
    }
}

/// What a signed request allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grant<'a> {
    Part { upload: &'a str, number: u32, bytes: u64 },
    Put { bytes: u64 },
    Get,
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part { upload, number, bytes } => write!(f, "part&upload={upload}&number={number}&bytes={bytes}"),
            Self::Put { bytes } => write!(f, "put&bytes={bytes}"),
            Self::Get => f.write_str("get"),
        }
    }
}

impl<'a> Grant<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('&');
        let operation = parts.next()?;
        let mut value = |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix('=');
        match operation {
            "part" => Some(Self::Part {
                upload: value("upload")?,
                number: value("number")?.parse().ok()?,
                bytes: value("bytes")?.parse().ok()?,
            }),
            "put" => Some(Self::Put { bytes: value("bytes")?.parse().ok()? }),
            "get" => Some(Self::Get),
            _ => None,
        }
    }
}

impl Directory {
    /// In this folder. Requests are signed with `secret` and end after `valid`. `seed` tells the uploads of this
    /// process from another's.
    pub fn new(folder: impl Into<PathBuf>, secret: [u8; 32], seed: u64, valid: Duration, clock: Clock) -> Self {
        Self(Arc::new(Inner { folder: folder.into(), at: SCHEME.to_owned(), secret, valid, clock, next: seed.into() }))
    }

    /// The same store, whose requests are signed for an HTTP address, which ends with a slash. Whoever serves it there
    /// hands each to [`Wire`] with the URL that it was asked with.
    #[must_use]
    pub fn served_at(&self, at: &str) -> Self {
        let Inner { folder, secret, valid, clock, next, .. } = &*self.0;
        let next = next.load(std::sync::atomic::Ordering::Relaxed).into();
        let (folder, at, clock) = (folder.clone(), at.to_owned(), clock.clone());
        Self(Arc::new(Inner { folder, at, secret: *secret, valid: *valid, clock, next }))
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
        };
        if key.split('/').all(plain) { Ok(self.0.folder.join(key)) } else { Err(refused(key, "this is no key")) }
    }

    /// The folder of an upload. Its name comes from whoever asks, so it is one that this store gives, and of this key.
    fn parts(&self, key: &str, upload: &str) -> Result<PathBuf, StoreError> {
        let (number, of) = upload.split_at_checked(NUMBER_DIGITS).unwrap_or_default();
        let is_number = number.len() == NUMBER_DIGITS && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_number && of == mark(key) {
            Ok(self.0.folder.join(UPLOADS).join(upload))
        } else {
            Err(refused(key, "there is no such upload"))
        }
    }

    fn sign(&self, key: &str, grant: Grant<'_>) -> Signed {
        let valid = Millis::try_from(self.0.valid.as_millis()).unwrap_or(Millis::MAX);
        let until = self.0.clock.now().saturating_add(valid);
        let mac = self.mac(key, grant, until);
        Signed {
            key: key.to_owned(),
            url: format!("{}{key}?{grant}&until={until}&mac={mac}", self.0.at),
            headers: Vec::new(),
            until,
        }
    }

    fn mac(&self, key: &str, grant: Grant<'_>, until: Millis) -> blake3::Hash {
        blake3::keyed_hash(&self.0.secret, format!("{key}?{grant}&until={until}").as_bytes())
    }

    /// What a request allows, if this store signed it and it has not ended.
    fn granted<'a>(&self, signed: &'a Signed) -> Result<(&'a str, Grant<'a>), StoreError> {
        let parsed = || {
            let (key, query) = signed.url.strip_prefix(&self.0.at)?.split_once('?')?;
            let (query, mac) = query.rsplit_once("&mac=")?;
            let (grant, until) = query.rsplit_once("&until=")?;
            Some((key, Grant::parse(grant)?, until.parse().ok()?, blake3::Hash::from_hex(mac).ok()?))
        };
        let (key, grant, until, mac) = parsed().ok_or_else(|| refused(&signed.key, "this is no signed request"))?;
        if self.mac(key, grant, until) != mac {
            return Err(refused(key, "the signature does not match"));
        }
        if self.0.clock.now() > until { Err(StoreError::Expired(key.to_owned())) } else { Ok((key, grant)) }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.map_err(|error| StoreError::Busy { key: key.to_owned(), why: error.to_string() })?
    }

    /// Publishes a finished file under its key, once.
    fn publish(&self, from: &Path, key: &str) -> Result<(), StoreError> {
        let to = self.path(key)?;
        let linked = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::hard_link(from, &to));
        match linked {
            Ok(()) => fs::remove_file(from).map_err(|error| local(key, &error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(refused(key, "the key is taken")),
            Err(error) => Err(local(key, &error)),
        }
    }

    fn scratch(&self, key: &str) -> Result<PathBuf, StoreError> {
        let number = self.0.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = self.0.folder.join(UPLOADS);
        fs::create_dir_all(&folder).map_err(|error| local(key, &error))?;
        Ok(folder.join(format!("{number:016x}{}", mark(key))))
    }

    fn join(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        let key = &upload.key;
        let folder = self.parts(key, &upload.id)?;
        if !folder.exists() {
            // Done again, it is done.
            return if self.path(key)?.exists() { Ok(()) } else { Err(refused(key, "there is no such upload")) };
        }
        if tags.is_empty() || tags.len() > MAX_PARTS as usize {
            return Err(StoreError::Limit { key: key.clone(), why: format!("{} parts", tags.len()) });
        }
        // Whole anew each time: one that was broken off is written over.
        let whole = folder.join("whole");
        let mut file = fs::File::create(&whole).map_err(|error| local(key, &error))?;
        for (number, tag) in (1..).zip(tags) {
            let other = || refused(key, &format!("part {number} is not the one that was sent"));
            // A tag comes from whoever asks.
            let tag = blake3::Hash::from_hex(tag).map_err(|_| other())?.to_hex();
            let mut part = fs::File::open(folder.join(format!("{number}-{tag}"))).map_err(|_| other())?;
            io::copy(&mut part, &mut file).map_err(|error| local(key, &error))?;
        }
        self.publish(&whole, key)?;
        fs::remove_dir_all(&folder).map_err(|error| local(key, &error))
    }
}

#[async_trait]
impl Signer for Directory {
    async fn begin(&self, key: &str) -> Result<Upload, StoreError> {
        self.path(key)?;
        let owned = key.to_owned();
        self.blocking(key, move |store| {
            let folder = store.scratch(&owned)?;
            fs::create_dir(&folder).map_err(|error| local(&owned, &error))?;
            let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Upload { key: owned, id })
        })
        .await
    }

    async fn sign_parts(&self, upload: &Upload, parts: &[(u32, u64)]) -> Result<Vec<Signed>, StoreError> {
        let sign = |&(number, bytes): &(u32, u64)| {
            if number == 0 || number > MAX_PARTS || bytes > MAX_PART_BYTES {
                let why = format!("part {number} of {bytes} bytes");
                return Err(StoreError::Limit { key: upload.key.clone(), why });
            }
            Ok(self.sign(&upload.key, Grant::Part { upload: &upload.id, number, bytes }))
        };
        parts.iter().map(sign).collect()
    }

    async fn complete(&self, upload: &Upload, tags: &[Tag]) -> Result<(), StoreError> {
        let (owned, tags) = (upload.clone(), tags.to_vec());
        self.blocking(&upload.key, move |store| store.join(&owned, &tags)).await
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        let owned = upload.clone();
        self.blocking(&upload.key, move |store| match fs::remove_dir_all(store.parts(&owned.key, &owned.id)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(local(&owned.key, &error)),
            _ => Ok(()),
        })
        .await
    }

    async fn sign_put(&self, key: &str, bytes: u64) -> Result<Signed, StoreError> {
        self.path(key)?;
        if bytes > MAX_PART_BYTES {
            let why = format!("{bytes} bytes in one request, and {MAX_PART_BYTES} are taken");
            return Err(StoreError::Limit { key: key.to_owned(), why });
        }
        Ok(self.sign(key, Grant::Put { bytes }))
    }

    async fn sign_get(&self, key: &str) -> Result<Signed, StoreError> {
        self.path(key)?;
        Ok(self.sign(key, Grant::Get))
    }
}

#[async_trait]
impl Wire for Directory {
    async fn put(&self, signed: &Signed, bytes: Bytes) -> Result<Tag, StoreError> {
        let request = signed.clone();
        self.blocking(&signed.key, move |store| {
            let (key, grant) = store.granted(&request)?;
            let (Grant::Part { bytes: length, .. } | Grant::Put { bytes: length }) = grant else {
                return Err(refused(key, "the request was signed for reading"));
            };
            if length != bytes.len() as u64 {
                return Err(refused(key, "the request was signed for another length"));
            }
            let scratch = store.scratch(key)?;
            fs::write(&scratch, &bytes).map_err(|error| local(key, &error))?;
            let tag = blake3::hash(&bytes).to_hex().to_string();
            if let Grant::Part { upload, number, .. } = grant {
                let part = store.parts(key, upload)?.join(format!("{number}-{tag}"));
                fs::rename(&scratch, part).map_err(|_| refused(key, "there is no such upload"))?;
            } else {
                store.publish(&scratch, key)?;
            }
            Ok(tag)
        })
        .await
    }

    async fn get(&self, signed: &Signed, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let request = signed.clone();
        self.blocking(&signed.key, move |store| {
            let (key, grant) = store.granted(&request)?;
            if grant != Grant::Get {
                return Err(refused(key, "the request was signed for writing"));
            }
            let file = fs::File::open(store.path(key)?).map_err(|error| local(key, &error))?;
            let length = usize::try_from(range.end - range.start).map_err(|_| refused(key, "the range is too long"))?;
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, range.start).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => refused(key, "the range ends after the object"),
                _ => local(key, &error),
            })?;
            Ok(bytes)
        })
        .await
    }

    async fn get_all(&self, signed: &Signed, limit: u64) -> Result<Vec<u8>, StoreError> {
        let request = signed.clone();
        self.blocking(&signed.key, move |store| {
            let (key, grant) = store.granted(&request)?;
            if grant == Grant::Get {
                store.read(key, limit)
            } else {
                Err(refused(key, "the request was signed for writing"))
            }
        })
        .await
    }
}

impl Directory {
    fn read(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.path(key)?;
        let size = fs::metadata(&path).map_err(|error| local(key, &error))?.len();
        if size > limit {
            return Err(StoreError::Limit { key: key.to_owned(), why: format!("{size} bytes, and {limit} are read") });
        }
        fs::read(path).map_err(|error| local(key, &error))
    }

    fn walk(&self, folder: &Path, prefix: &str, found: &mut Vec<Object>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let Some(key) = path.strip_prefix(&self.0.folder).ok().and_then(Path::to_str).map(str::to_owned) else {
                continue;
            };
            let on_the_way = if key.len() < prefix.len() { prefix.starts_with(&key) } else { key.starts_with(prefix) };
            if !on_the_way || key.starts_with('.') {
                continue;
            }
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                self.walk(&path, prefix, found)?;
            } else if key.starts_with(prefix) {
                let written = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
                found.push(Object { key, bytes: metadata.len(), written });
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Blobs for Directory {
    async fn put(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let (owned, bytes) = (key.to_owned(), bytes.to_vec());
        self.blocking(key, move |store| {
            let (path, scratch) = (store.path(&owned)?, store.scratch(&owned)?);
            let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&scratch, bytes));
            written.and_then(|()| fs::rename(&scratch, &path)).map_err(|error| local(&owned, &error))
        })
        .await
    }

    async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        let owned = key.to_owned();
        self.blocking(key, move |store| store.read(&owned, limit)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Object>, StoreError> {
        let owned = prefix.to_owned();
        self.blocking(prefix, move |store| {
            let mut found = Vec::new();
            if store.0.folder.exists() {
                let walked = store.walk(&store.0.folder, &owned, &mut found);
                walked.map_err(|error| local(&owned, &error))?;
            }
            found.sort_by(|a, b| a.key.cmp(&b.key));
            Ok(found)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let owned = key.to_owned();
        self.blocking(key, move |store| match fs::remove_file(store.path(&owned)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(local(&owned, &error)),
            _ => Ok(()),
        })
        .await
    }

    /// Uploads here don't say whose they are: all are below every prefix.
    async fn abort_stale(&self, prefix: &str, before: Millis) -> Result<usize, StoreError> {
        let owned = prefix.to_owned();
        self.blocking(prefix, move |store| {
            let folder = store.0.folder.join(UPLOADS);
            let Ok(entries) = fs::read_dir(&folder) else { return Ok(0) };
            let mut aborted = 0;
            for entry in entries.flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.mtime() * 1000 >= before {
                    continue;
                }
                let path = entry.path();
                let gone = if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                gone.map_err(|error| local(&owned, &error))?;
                aborted += 1;
            }
            Ok(aborted)
        })
        .await
    }
}

fn refused(key: &str, why: &str) -> StoreError {
    StoreError::Refused { key: key.to_owned(), why: why.to_owned() }
}

fn local(key: &str, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(key.to_owned()),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::Limit { key: key.to_owned(), why: error.to_string() }
        }
        _ => StoreError::Busy { key: key.to_owned(), why: error.to_string() },
    }
}
