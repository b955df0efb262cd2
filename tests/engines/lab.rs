//! A test's place on the engine: its own label, its own containers, removed when it ends.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use backend::{Backend, Bounds, Clock, Sighting, Target};
use backend_docker::{Options, Scope, backend, connect};
use lifecycle::{BackendName, Observation, RuntimeId, Time, policy::Pattern};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{OnceCell, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::api::Api;

/// The label that puts a container into the scope of the backend under test.
const RUN: &str = "furlough.test.run";
/// The label by which a test finds all that it made.
const LAB: &str = "furlough.test.lab";

/// How often what is waited for is looked at before the test gives up: a minute at least.
const LOOKS: usize = 6_000;

/// Which engine the environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Docker,
    Podman,
}

/// Says that it handles signals now: before that, PID 1 ignores them.
const READY: &str = "ready";
/// Ends with 143 at SIGTERM.
pub(crate) const POLITE: &[&str] = &["sh", "-c", "trap 'exit 143' TERM; echo ready; sleep 3600 & wait"];
/// Ignores SIGTERM, as a PID 1 that handles nothing does.
pub(crate) const STUBBORN: &[&str] = &["sleep", "3600"];

/// What a container is made of.
pub(crate) struct Spec {
    pub(crate) command: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) labels: BTreeMap<&'static str, String>,
    pub(crate) binds: Vec<String>,
    pub(crate) volumes: Vec<&'static str>,
    pub(crate) environment: Vec<&'static str>,
    pub(crate) network: &'static str,
    pub(crate) restart: &'static str,
    pub(crate) auto_remove: bool,
    /// Without the label that makes it ours.
    pub(crate) foreign: bool,
}

impl Spec {
    pub(crate) fn of(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            name: None,
            labels: BTreeMap::new(),
            binds: Vec::new(),
            volumes: Vec::new(),
            environment: Vec::new(),
            network: "none",
            restart: "no",
            auto_remove: false,
            foreign: false,
        }
    }
}

/// The tests of an engine that goes down have it to themselves.
static USERS: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);

enum Guard {
    Shared { _held: OwnedRwLockReadGuard<()> },
    Alone { _held: OwnedRwLockWriteGuard<()> },
}

/// A test's place on the engine.
pub(crate) struct Lab {
    pub(crate) api: Api,
    pub(crate) kind: Kind,
    pub(crate) folder: TempDir,
    host: String,
    run: String,
    image: String,
    made: AtomicUsize,
    ahead: Arc<AtomicI64>,
    backend: OnceCell<Backend>,
    _guard: Guard,
}

#[expect(clippy::disallowed_methods, reason = "`.ci/engine` names the engine to test on in the environment")]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "a real engine stamps by the machine's clock")]
fn machine_time() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap())
}

impl Lab {
    /// A place on the engine beside those of the other tests.
    pub(crate) async fn new(test: &str) -> Self {
        Self::with(test, Guard::Shared { _held: USERS.clone().read_owned().await })
    }

    /// The engine for this test alone.
    pub(crate) async fn alone(test: &str) -> Self {
        Self::with(test, Guard::Alone { _held: USERS.clone().write_owned().await })
    }

    #[expect(clippy::disallowed_methods, reason = "a name of this run's own for what it makes on a shared engine")]
    fn with(test: &str, guard: Guard) -> Self {
        let named = [(Kind::Docker, "FURLOUGH_TEST_DOCKER"), (Kind::Podman, "FURLOUGH_TEST_PODMAN")];
        let found = named.into_iter().find_map(|(kind, variable)| Some((kind, environment(variable)?)));
        let Some((kind, host)) = found else {
            panic!("no engine to test on: run this through `.ci/engine docker -- …` or `.ci/engine podman -- …`");
        };
        Self {
            api: Api::new(&host),
            kind,
            folder: tempfile::tempdir().unwrap(),
            host,
            run: format!("{}-{test}", std::process::id()),
            image: environment("FURLOUGH_TEST_IMAGE").unwrap_or_else(|| "furlough-test:latest".to_owned()),
            made: AtomicUsize::new(0),
            ahead: Arc::default(),
            backend: OnceCell::new(),
            _guard: guard,
        }
    }

    /// What the backend is set up with: the containers of this run.
    pub(crate) fn options(&self) -> Options {
        let ahead = self.ahead.clone();
        let clock = Clock::new(move || Time::from_millis(machine_time().millis() + ahead.load(Ordering::SeqCst)));
        Options {
            host: Some(self.host.clone()),
            scope: Scope { labels: [(RUN.to_owned(), Pattern::new(self.run.as_str()))].into(), ..Scope::default() },
            openhands: false,
            stop_grace: Duration::from_secs(3),
            ..Options::new(BackendName::new("engine").unwrap(), clock)
        }
    }

    /// The backend under test, always the same one.
    pub(crate) async fn backend(&self) -> Backend {
        self.backend.get_or_init(async || backend(connect(self.options()).await.unwrap())).await.clone()
    }

    /// The time now, of the clock that the backend was given.
    pub(crate) fn now(&self) -> Time {
        self.options().clock.now()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.ahead.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn minute(&self) -> Bounds {
        Bounds { deadline: self.now().plus(Duration::from_mins(1)) }
    }

    /// A name that no other container has.
    pub(crate) fn name(&self, prefix: &str) -> String {
        format!("{prefix}{}-{}", self.run, self.made.fetch_add(1, Ordering::SeqCst))
    }

    /// A folder on the host for one container.
    pub(crate) fn host_folder(&self) -> PathBuf {
        let folder = self.folder.path().join(self.made.fetch_add(1, Ordering::SeqCst).to_string());
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    pub(crate) async fn create(&self, spec: Spec) -> String {
        let name = spec.name.unwrap_or_else(|| self.name("furlough-test-"));
        let mut labels = spec.labels;
        labels.insert(LAB, self.run.clone());
        if !spec.foreign {
            labels.insert(RUN, self.run.clone());
        }
        let volumes: BTreeMap<_, _> = spec.volumes.into_iter().map(|path| (path, json!({}))).collect();
        let body = json!({
            "Image": self.image,
            "Cmd": spec.command,
            "Env": spec.environment,
            "Labels": labels,
            "Volumes": volumes,
            "HostConfig": {
                "AutoRemove": spec.auto_remove,
                "Binds": spec.binds,
                "NetworkMode": spec.network,
                "RestartPolicy": {"Name": spec.restart},
            },
        });
        let made = self.api.send(&format!("/containers/create?name={name}"), body).await;
        made["Id"].as_str().unwrap().to_owned()
    }

    /// Makes one and starts it; a polite one is waited for until it is.
    pub(crate) async fn start(&self, spec: Spec) -> String {
        let polite = spec.command == POLITE;
        let container = self.create(spec).await;
        self.restart(&container).await;
        if polite {
            self.ready(&container).await;
        }
        container
    }

    /// Waits until it handles signals.
    async fn ready(&self, container: &str) {
        let log = format!("/containers/{container}/logs?stdout=true");
        for _ in 0..LOOKS {
            let (_, said) = self.api.call(reqwest::Method::GET, &log, None).await;
            if String::from_utf8_lossy(&said).contains(READY) {
                return;
            }
            tick().await;
        }
        panic!("`{container}` did not say that it handles signals");
    }

    /// Starts a stopped one behind the backend's back.
    pub(crate) async fn restart(&self, container: &str) {
        self.api.post(&format!("/containers/{container}/start")).await;
    }

    pub(crate) async fn pause(&self, container: &str) {
        self.api.post(&format!("/containers/{container}/pause")).await;
    }

    /// Stops one behind the backend's back.
    pub(crate) async fn stop(&self, container: &str) {
        self.api.post(&format!("/containers/{container}/stop?t=3")).await;
        self.exited(container).await;
    }

    /// Waits until it has ended.
    pub(crate) async fn exited(&self, container: &str) {
        self.reaches(container, "exited").await;
    }

    /// Removes one behind the backend's back.
    pub(crate) async fn remove(&self, container: &str) {
        self.api.delete(&format!("/containers/{container}?force=true&v=true")).await;
        self.reaches(container, "gone").await;
    }

    async fn reaches(&self, container: &str, status: &str) {
        for _ in 0..LOOKS {
            if self.status(container).await == status {
                return;
            }
            tick().await;
        }
        panic!("`{container}` never was `{status}`");
    }

    /// Its status, "gone" when there is none.
    pub(crate) async fn status(&self, container: &str) -> String {
        self.told(container, "Status").await.as_str().unwrap_or("gone").to_owned()
    }

    /// One key of its state as the engine tells it.
    pub(crate) async fn told(&self, container: &str, key: &str) -> Value {
        self.api.look(container).await.map(|mut found| found["State"][key].take()).unwrap_or_default()
    }

    pub(crate) fn id(&self, container: &str) -> RuntimeId {
        RuntimeId::new(&self.options().name, container.as_bytes()).unwrap()
    }

    /// What the backend sees of it.
    pub(crate) async fn see(&self, container: &str) -> Observation {
        match self.backend().await.inspect.inspect(&self.id(container)).await.unwrap() {
            Sighting::Seen(seen) => *seen,
            Sighting::NotThere => panic!("`{container}` is not there"),
        }
    }

    pub(crate) async fn target(&self, container: &str) -> Target {
        Target::of(&self.see(container).await)
    }

    /// Looks again and again until it is so.
    pub(crate) async fn until(&self, what: &str, so: impl AsyncFn() -> bool) {
        for _ in 0..LOOKS {
            if so().await {
                return;
            }
            tick().await;
        }
        panic!("it never came to this: {what}");
    }
}

/// A real engine works in real time.
async fn tick() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

impl Drop for Lab {
    /// Removes what the test made, also when it failed. Drop can't wait, a thread of its own can.
    fn drop(&mut self) {
        let (host, run) = (self.host.clone(), self.run.clone());
        let clear = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(remove_all(&Api::new(&host), &run));
        };
        std::thread::spawn(clear).join().ok();
    }
}

async fn remove_all(api: &Api, run: &str) {
    let containers = api.get(&format!("/containers/json?all=true&filters={{\"label\":[\"{LAB}={run}\"]}}")).await;
    for container in containers.as_array().into_iter().flatten() {
        let id = container["Id"].as_str().unwrap_or_default();
        api.delete(&format!("/containers/{id}?force=true&v=true")).await;
    }
}
