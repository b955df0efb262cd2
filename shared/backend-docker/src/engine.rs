//! The Engine API over its socket: one request, one bounded answer, and nothing of it in a log.

use std::{error::Error as _, io, path::Path, sync::Mutex, time::Duration};

use backend::{BackendError, ErrorKind};
use reqwest::{Client, Method, StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, de::DeserializeOwned};

use crate::version::{self, Version};

/// How long a question that changes nothing may take.
pub(crate) const ASK: Duration = Duration::from_secs(30);

/// The most that an answer may hold: a listing of 10⁵ containers has about 200 MB.
const MAX_ANSWER: usize = 512 << 20;
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

    /// Reads `path` as `T`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, Failure> {
        let (_, body) = self.call(Method::GET, path, None, within).await?;
        self.read(path, &body)
    }

    /// Reads `path` as one `T` a line.
    pub(crate) async fn lines<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<Vec<T>, Failure> {
        let (_, body) = self.call(Method::GET, path, None, within).await?;
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| self.read(path, line)).collect()
    }

    /// Posts to `path`. The status tells done (2xx) from done before (304).
    pub(crate) async fn post(&self, path: &str, body: Option<String>, within: Duration) -> Result<StatusCode, Failure> {
        Ok(self.call(Method::POST, path, body, within).await?.0)
    }

    /// Deletes `path`.
    pub(crate) async fn delete(&self, path: &str, within: Duration) -> Result<(), Failure> {
        self.call(Method::DELETE, path, None, within).await.map(|_| ())
    }

    /// Agrees with the engine on a version of the API, anew: it may have been updated meanwhile.
    pub(crate) async fn negotiate(&self) -> Result<Version, Failure> {
        let (_, body) = self.send(Method::GET, "/version", None, ASK).await?;
        let version = version::agree(&self.read("/version", &body)?)
            .map_err(|why| Failure::Unreadable(format!("engine at `{}`: {why}", self.socket)))?;
        if let Ok(mut known) = self.version.lock() {
            *known = Some(version);
        }
        Ok(version)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        within: Duration,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let known = self.version.lock().ok().and_then(|known| *known);
        let version = match known {
            Some(version) => version,
            None => self.negotiate().await?,
        };
        self.send(method, &format!("/v{version}{path}"), body, within).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        within: Duration,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let mut request = self.client.request(method, format!("http://localhost{path}")).timeout(within);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let mut answer = request.send().await.map_err(|error| self.unanswered(&error, within))?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.unanswered(&error, within))? {
            if bytes.len() + chunk.len() > MAX_ANSWER {
                return Err(Failure::Unreadable(format!("{} has more than {MAX_ANSWER} bytes", self.place(path))));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok((status, bytes));
        }
        Err(Failure::Said { status, message: message(&bytes) })
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
