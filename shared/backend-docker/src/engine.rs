//! The Engine API over its socket: one request, one bounded answer, and nothing of it in a log.

use std::{error::Error as _, io, path::Path, sync::Mutex, time::Duration};

use backend::{BackendError, ErrorKind};
use reqwest::{Client, Method, StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, de::DeserializeOwned};

use crate::version::{self, Version};

/// How long a question that changes nothing may take.
pub(crate) const ASK: Duration = Duration::from_secs(30);

/// The most bytes that an engine's word on itself, on an act or on a failure may have: each is a page at most.
const MAX_WORD: usize = 64 << 10;
/// The most that the answer about one thing may have: an inspect has some 10 kB, and as many events as an engine keeps 200 kB.
const MAX_ANSWER: usize = 8 << 20;
/// The most that a listing may have: one of 10⁵ containers has about 200 MB.
const MAX_LISTING: usize = 256 << 20;
/// The most of an engine's own words that is passed on to people, in characters.
const MAX_MESSAGE: usize = 300;

/// The engine behind one socket.
pub(crate) struct Engine {
    client: Client,
    socket: String,
    version: Mutex<Option<Version>>,
}

/// Why a call has no answer that can be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It never reached the engine, so it did nothing.
    NotAsked(BackendError),
    /// It was sent, and no answer came: it may have done all of it.
    NoAnswer(String),
    /// The engine answered that it could not, or would not.
    Said {
        /// The HTTP status.
        status: StatusCode,
        /// The engine's words, shortened.
        message: String,
    },
    /// The engine answered what can't be read.
    Unreadable(String),
}

impl Failure {
    /// The engine knows nothing of that container.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self, Self::Said { status, .. } if *status == StatusCode::NOT_FOUND)
    }

    /// What was answered, for people.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::NotAsked(error) => error.message.clone(),
            Self::NoAnswer(message) | Self::Unreadable(message) => message.clone(),
            Self::Said { status, message } => format!("the engine answered {}: {message}", status.as_u16()),
        }
    }
}

impl From<Failure> for BackendError {
    /// For a question that changes nothing: whatever failed, it can be asked again.
    fn from(failure: Failure) -> Self {
        let message = failure.words();
        match failure {
            Failure::NotAsked(error) => error,
            Failure::NoAnswer(_) => Self::new(ErrorKind::Unreachable, message),
            Failure::Said { status, .. } if matches!(status.as_u16(), 401 | 403) => {
                Self::new(ErrorKind::Denied, message)
            }
            Failure::Said { status, .. } if status.is_server_error() => Self::new(ErrorKind::Unreachable, message),
            Failure::Said { .. } | Failure::Unreadable(_) => Self::new(ErrorKind::Malformed, message),
        }
    }
}

/// One request, and what may come of it.
struct Call<'a> {
    method: Method,
    path: &'a str,
    body: Option<String>,
    /// The most bytes that the answer may have.
    limit: usize,
    within: Duration,
}

impl<'a> Call<'a> {
    fn get(path: &'a str, limit: usize, within: Duration) -> Self {
        Self { method: Method::GET, path, body: None, limit, within }
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

impl Engine {
    /// The engine at the socket `path`. Nothing is asked yet, and nothing need be there.
    pub(crate) fn new(path: &str) -> Result<Self, BackendError> {
        let client = Client::builder()
            .unix_socket(Path::new(path))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .tls_certs_only([])
            .build()
            .map_err(|error| BackendError::new(ErrorKind::Local, format!("no HTTP client: {error}")))?;
        Ok(Self { client, socket: path.to_owned(), version: Mutex::new(None) })
    }

    /// The socket's path.
    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    /// Reads `path`, which tells of one thing, as `T`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Failure> {
        let (_, body) = self.call(&Call::get(path, MAX_ANSWER, within)).await?;
        self.read(path, &body)
    }

    /// Reads `path`, which lists all that there is, as `T`.
    pub(crate) async fn list<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Failure> {
        let (_, body) = self.call(&Call::get(path, MAX_LISTING, within)).await?;
        self.read(path, &body)
    }

    /// Reads `path` as one `T` a line.
    pub(crate) async fn lines<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<Vec<T>, Failure> {
        let (_, body) = self.call(&Call::get(path, MAX_ANSWER, within)).await?;
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| self.read(path, line)).collect()
    }

    /// Posts to `path`. The status tells done (2xx) from done before (304).
    pub(crate) async fn post(&self, path: &str, body: Option<String>, within: Duration) -> Result<StatusCode, Failure> {
        Ok(self.call(&Call { method: Method::POST, path, body, limit: MAX_WORD, within }).await?.0)
    }

    /// Deletes `path`.
    pub(crate) async fn delete(&self, path: &str, within: Duration) -> Result<(), Failure> {
        let call = Call { method: Method::DELETE, path, body: None, limit: MAX_WORD, within };
        self.call(&call).await.map(|_| ())
    }

    /// Agrees with the engine on a version of the API, anew: it may have been updated meanwhile.
    pub(crate) async fn negotiate(&self) -> Result<Version, Failure> {
        let (_, body) = self.send("/version", &Call::get("/version", MAX_WORD, ASK)).await?;
        let version = version::agree(&self.read("/version", &body)?)
            .map_err(|why| Failure::Unreadable(format!("engine at `{}`: {why}", self.socket)))?;
        if let Ok(mut known) = self.version.lock() {
            *known = Some(version);
        }
        Ok(version)
    }

    async fn call(&self, call: &Call<'_>) -> Result<(StatusCode, Vec<u8>), Failure> {
        let known = self.version.lock().ok().and_then(|known| *known);
        let version = match known {
            Some(version) => version,
            None => self.negotiate().await?,
        };
        self.send(&format!("/v{version}{}", call.path), call).await
    }

    async fn send(&self, path: &str, call: &Call<'_>) -> Result<(StatusCode, Vec<u8>), Failure> {
        let within = call.within;
        let mut request = self.client.request(call.method.clone(), format!("http://localhost{path}")).timeout(within);
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let mut answer = request.send().await.map_err(|error| self.unanswered(&error, within))?;
        let status = answer.status();
        let good = status.is_success() || status == StatusCode::NOT_MODIFIED;
        let limit = if good { call.limit } else { MAX_WORD };
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.unanswered(&error, within))? {
            if bytes.len() + chunk.len() > limit {
                return Err(self.too_long(path, status, limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        if good { Ok((status, bytes)) } else { Err(Failure::Said { status, message: message(&bytes) }) }
    }

    /// An answer of which no more is read. That of a failure still tells that it failed.
    fn too_long(&self, path: &str, status: StatusCode, limit: usize) -> Failure {
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            let place = self.place(path);
            return Failure::Unreadable(format!(
                "{place} has more than {limit} bytes, which is more than the Docker Engine API answers; is something else \
                 behind that socket?"
            ));
        }
        Failure::Said { status, message: format!("more than {limit} bytes that are not the Docker Engine API's") }
    }

    fn read<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Failure> {
        // serde's own words quote what it read, which may be a container's environment: only the place is told.
        serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Failure::Unreadable(format!(
                "{} is not what the Docker Engine API answers (line {line}, column {column}, {} bytes); is something \
                 else behind that socket?",
                self.place(path),
                body.len(),
            ))
        })
    }

    fn place(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or(path);
        format!("the answer of `{path}` at `{}`", self.socket)
    }

    fn unanswered(&self, error: &reqwest::Error, within: Duration) -> Failure {
        let socket = &self.socket;
        if error.is_connect() {
            return Failure::NotAsked(self.unreachable(error));
        }
        if error.is_timeout() {
            return Failure::NoAnswer(format!("the engine at `{socket}` did not answer within {} s", within.as_secs()));
        }
        Failure::NoAnswer(format!("the engine at `{socket}` broke off before its answer was complete"))
    }

    fn unreachable(&self, error: &reqwest::Error) -> BackendError {
        let socket = &self.socket;
        match io_kind(error) {
            Some(io::ErrorKind::PermissionDenied) => BackendError::new(
                ErrorKind::Denied,
                format!("this user may not use the engine's socket `{socket}`: add the user to the socket's group"),
            ),
            Some(io::ErrorKind::NotFound) => BackendError::new(
                ErrorKind::Unreachable,
                format!("there is no socket `{socket}`: is the engine installed and running?"),
            ),
            _ => BackendError::new(
                ErrorKind::Unreachable,
                format!("nothing answers at `{socket}`: is the engine running?"),
            ),
        }
    }
}

/// The operating system's reason, however deep the client wrapped it.
fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>()
            && io.raw_os_error().is_some()
        {
            return Some(io.kind());
        }
        source = error.source();
    }
    None
}

/// The engine's words, as one short line. An answer that isn't the API's says only its size.
fn message(body: &[u8]) -> String {
    let Ok(ErrorBody { message }) = serde_json::from_slice(body) else {
        return format!("{} bytes that are not the Docker Engine API's", body.len());
    };
    let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
