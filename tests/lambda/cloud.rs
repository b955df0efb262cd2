//! Lambda's Runtime API for one process, and DynamoDB, S3 and Secrets Manager for all, on loopback.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, StatusCode, Uri},
};
use embedded::Embedded;
use ledger::{Ledger, Options};
use serde_json::{Value, json};
use settings::system;
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

/// The longest that a function may take to answer: far longer than any does, so that a failure is told.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const BUCKET: &str = "furlough-test";

/// A binary of this build. Cargo builds another package's for no test, so all are built here, once.
fn binary(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        // <target>/<profile>/deps/all-…
        let profile = test.parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--target-dir"]);
        cargo.arg(profile.parent().unwrap());
        for package in ["heartbeat", "reconcile", "workspace-function"] {
            cargo.args(["--package", package]);
        }
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).status().unwrap();
        assert!(built.success(), "the functions do not build");
        profile.to_owned()
    });
    FOLDER.join(name)
}

/// The services of AWS.
pub(crate) struct Cloud {
    url: String,
    inner: Arc<Services>,
    pub(crate) ledger: Ledger,
}

struct Services {
    store: Embedded,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    secrets: Mutex<BTreeMap<String, String>>,
    calls: Mutex<Vec<String>>,
}

impl Cloud {
    pub(crate) async fn new() -> Self {
        let store = embedded::memory().unwrap();
        let ledger = Ledger::new(store.client(), Options::default());
        ledger.create_tables().await.unwrap();
        let (objects, secrets, calls) = (Mutex::default(), Mutex::default(), Mutex::default());
        let inner = Arc::new(Services { store, objects, secrets, calls });
        let url = listen(Router::new().fallback(serve).with_state(Arc::clone(&inner))).await;
        Self { url, inner, ledger }
    }

    pub(crate) fn put(&self, key: &str, body: &str) {
        self.inner.objects.lock().unwrap().insert(format!("/{BUCKET}/{key}"), body.as_bytes().to_vec());
    }

    pub(crate) fn secret(&self, arn: &str, text: &str) {
        self.inner.secrets.lock().unwrap().insert(arn.to_owned(), text.to_owned());
    }

    /// Every object below `prefix`.
    pub(crate) fn objects(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let objects = self.inner.objects.lock().unwrap();
        let below = format!("/{BUCKET}/{prefix}");
        objects
            .iter()
            .filter(|(key, _)| key.starts_with(&below))
            .map(|(key, body)| (key.clone(), body.clone()))
            .collect()
    }

    /// What was asked since the last time: the rights that are needed for it.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.calls.lock().unwrap())
    }

    /// Starts a function.
    pub(crate) async fn start(&self, name: &str, environment: &[(&str, &str)]) -> Function {
        Function::start(name, &self.url, environment).await
    }
}

/// A receiver of notices: where it is, and the headers and the body of each that came.
pub(crate) async fn receiver() -> (String, mpsc::UnboundedReceiver<(HeaderMap, String)>) {
    let (told, notices) = mpsc::unbounded_channel();
    let take = async move |headers: HeaderMap, body: String| {
        // The test may have ended.
        let _ = told.send((headers, body));
    };
    let url = listen(Router::new().route("/hook", axum::routing::post(take))).await;
    (format!("{url}/hook"), notices)
}

pub(crate) async fn listen(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

fn answer(status: u16, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

async fn serve(
    State(services): State<Arc<Services>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let target = headers.get("x-amz-target").map(|target| target.to_str().unwrap().to_owned());
    let operation = |target: &str| target.rsplit('.').next().unwrap().to_owned();
    let call = match (&target, &method) {
        (Some(target), _) if target.starts_with("secretsmanager") => format!("secretsmanager:{}", operation(target)),
        (Some(target), _) => format!("dynamodb:{}", operation(target)),
        (None, &Method::PUT) => "s3:PutObject".to_owned(),
        (None, _) => "s3:GetObject".to_owned(),
    };
    services.calls.lock().unwrap().push(call);
    match target.as_deref() {
        Some(target) if target.starts_with("secretsmanager") => {
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let arn = asked["SecretId"].as_str().unwrap();
            let secrets = services.secrets.lock().unwrap();
            let Some(text) = secrets.get(arn) else {
                return answer(
                    400,
                    json!({ "__type": "ResourceNotFoundException", "message": "no such secret" }).to_string(),
                );
            };
            answer(200, json!({ "ARN": arn, "SecretString": text, "VersionId": text.len().to_string() }).to_string())
        }
        Some(target) => {
            let (status, told) = services.store.answer(target, &body);
            answer(status, told)
        }
        None => object(&services, &method, uri.path(), &headers, &body),
    }
}

fn object(services: &Services, method: &Method, path: &str, headers: &HeaderMap, body: &Bytes) -> Response<Body> {
    let mut objects = services.objects.lock().unwrap();
    if method == Method::PUT {
        objects.insert(path.to_owned(), body.to_vec());
        return answer(200, "");
    }
    let Some(found) = objects.get(path) else {
        return answer(404, "<Error><Code>NoSuchKey</Code><Message>there is none</Message></Error>");
    };
    let tag = format!("\"{}\"", blake(found));
    if headers.get("if-none-match").is_some_and(|known| known.to_str().unwrap() == tag) {
        return answer(304, "");
    }
    let mut response = answer(200, found.clone());
    response.headers_mut().insert("etag", tag.parse().unwrap());
    response
}

/// What tells one body from another.
fn blake(body: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

/// A function's process, and the Runtime API that it asks for events.
pub(crate) struct Function {
    process: Child,
    log: PathBuf,
    _folder: TempDir,
    runtime: Arc<Runtime>,
    answers: mpsc::UnboundedReceiver<Answered>,
}

struct Runtime {
    events: Mutex<VecDeque<(String, Value)>>,
    more: tokio::sync::Notify,
    answered: mpsc::UnboundedSender<Answered>,
    time: Mutex<Duration>,
}

/// What a function said to an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answered {
    Response(Value),
    Error(Value),
}

impl Function {
    async fn start(name: &str, cloud: &str, environment: &[(&str, &str)]) -> Self {
        let (answered, answers) = mpsc::unbounded_channel();
        let runtime = Arc::new(Runtime {
            events: Mutex::default(),
            more: tokio::sync::Notify::new(),
            answered,
            time: Mutex::new(Duration::from_mins(5)),
        });
        let url = listen(Router::new().fallback(poll).with_state(Arc::clone(&runtime))).await;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let file = std::fs::File::create(&log).unwrap();
        let mut command = Command::new(binary(name));
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", url.strip_prefix("http://").unwrap())
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_ENDPOINT_URL", cloud)
            .envs(environment.iter().copied())
            .stdout(Stdio::from(file.try_clone().unwrap()))
            .stderr(Stdio::from(file));
        Self { process: command.spawn().unwrap(), log, _folder: folder, runtime, answers }
    }

    /// Sends an event and waits for what is said to it.
    pub(crate) async fn invoke(&mut self, event: Value) -> Answered {
        let id = system::unique();
        self.runtime.events.lock().unwrap().push_back((id, event));
        self.runtime.more.notify_one();
        match timeout(PATIENCE, self.answers.recv()).await {
            Ok(Some(answered)) => answered,
            other => panic!("no answer ({other:?}); the log:\n{}", self.log()),
        }
    }

    /// How long the next invocations have.
    pub(crate) fn time(&self, time: Duration) {
        *self.runtime.time.lock().unwrap() = time;
    }

    /// Everything that it has written.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The metrics that it has written, one line each.
    pub(crate) fn metrics(&self) -> Vec<Value> {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line.get("_aws").is_some()).collect()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn poll(State(runtime): State<Arc<Runtime>>, method: Method, uri: Uri, body: Bytes) -> Response<Body> {
    let path = uri.path();
    if method == Method::GET && path.ends_with("/invocation/next") {
        return next(&runtime).await;
    }
    let told = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let answered = if path.ends_with("/response") { Answered::Response(told) } else { Answered::Error(told) };
    // The test may have ended.
    let _ = runtime.answered.send(answered);
    answer(202, "{}")
}

async fn next(runtime: &Runtime) -> Response<Body> {
    let (id, event) = loop {
        let event = runtime.events.lock().unwrap().pop_front();
        match event {
            Some(event) => break event,
            None => runtime.more.notified().await,
        }
    };
    let deadline = system::now().plus(*runtime.time.lock().unwrap());
    let mut response = answer(200, event.to_string());
    let headers = [
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.millis().to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-central-1:123456789012:function:test".to_owned()),
        ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700".to_owned()),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
