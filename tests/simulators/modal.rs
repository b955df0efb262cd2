//! Modal's API as its client 1.6.4 has it, over gRPC. What it does not say of itself (whether a listing's "before" takes
//! in the same moment, how long a page is) can be set.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use backend_modal::proto::{
    AppListRequest, AppListResponse, AuthTokenGetRequest, AuthTokenGetResponse, Detail, GenericResult, RpcRetryPolicy,
    RpcStatus, SandboxInfo, SandboxListRequest, SandboxListResponse, SandboxSnapshotFsRequest,
    SandboxSnapshotFsResponse, SandboxTag, SandboxTerminateRequest, SandboxTerminateResponse, SandboxWaitRequest,
    SandboxWaitResponse, TaskInfo,
    app_list_response::AppListItem,
    modal_client_server::{ModalClient, ModalClientServer},
};
use lifecycle::Time;
use prost::Message as _;
use tokio::net::TcpListener;
use tonic::{
    Code, Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

/// The one token that it takes.
pub(crate) const TOKEN: (&str, &str) = ("ak-5eed5eed5eed5eed", "as-5eed5eed5eed5eed");
/// The environment.
pub(crate) const ENVIRONMENT: &str = "main";
/// A JWT: its end is in the year 2100.
const SESSION: &str = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2lnbmVk";

/// A sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) app: String,
    pub(crate) name: String,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: f64,
    pub(crate) timeout: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// How it ended.
    pub(crate) status: i32,
    /// It ends so long after it was told to.
    pub(crate) slow: Duration,
    ending: Option<(Time, i32)>,
}

/// Called before it answers, with the call's name and how often it was asked; `Some`: that is the answer.
type Hook = Box<dyn FnMut(&str, &mut Modal) -> Option<Status> + Send>;

/// A workspace at Modal.
pub(crate) struct Modal {
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) apps: Vec<String>,
    /// How many rows a page has.
    pub(crate) page: usize,
    /// A listing's "before" takes in the same moment.
    pub(crate) inclusive: bool,
    /// A listing ignores "before".
    pub(crate) stuck: bool,
    /// No listing is answered, ever.
    pub(crate) silent: bool,
    /// Images that were made of sandboxes, by their ids.
    pub(crate) images: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// What a snapshot comes to; 1: it succeeds.
    pub(crate) snapshot_status: i32,
    pub(crate) calls: Vec<String>,
    /// The idempotency keys of each call.
    pub(crate) keys: Vec<(String, String)>,
    hooks: Vec<Hook>,
    made: u32,
}

impl Default for Modal {
    fn default() -> Self {
        Self {
            sandboxes: BTreeMap::new(),
            apps: vec!["ap-0000000000000000000001".to_owned(), "ap-0000000000000000000002".to_owned()],
            page: 100,
            inclusive: false,
            stuck: false,
            silent: false,
            images: BTreeMap::new(),
            snapshot_status: 1,
            calls: Vec::new(),
            keys: Vec::new(),
            hooks: Vec::new(),
            made: 0,
        }
    }
}

fn seconds(time: Time) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century")]
    let millis = time.millis() as f64;
    millis / 1_000.0
}

impl Modal {
    /// A running one of the first generation, made an hour ago, with a day to live.
    pub(crate) fn add(&mut self, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("sb-{:022}", self.made);
        self.put(id, now, change)
    }

    /// One of the second.
    pub(crate) fn add_second(&mut self, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        self.made += 1;
        let id = format!("sb-{:026}", self.made);
        self.put(id, now, change)
    }

    fn put(&mut self, id: String, now: Time, change: impl FnOnce(&mut Sandbox)) -> String {
        let mut sandbox = Sandbox {
            app: self.apps[usize::try_from(self.made).unwrap() % self.apps.len()].clone(),
            name: String::new(),
            tags: [("team".to_owned(), "a".to_owned())].into(),
            created: seconds(now.minus(Duration::from_hours(1))) + f64::from(self.made) / 1_000.0,
            timeout: Duration::from_hours(24),
            idle_timeout: None,
            files: [("work/notes.md".to_owned(), b"what the agent found out".to_vec())].into(),
            status: 0,
            slow: Duration::ZERO,
            ending: None,
        };
        change(&mut sandbox);
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }

    /// All that happens by itself until `now`.
    pub(crate) fn tick(&mut self, now: Time) {
        for sandbox in self.sandboxes.values_mut().filter(|sandbox| sandbox.status == 0) {
            let timed_out = sandbox.created + sandbox.timeout.as_secs_f64() <= seconds(now);
            if let Some((_, status)) = sandbox.ending.filter(|(at, _)| *at <= now) {
                sandbox.end(status);
            } else if timed_out {
                sandbox.end(4);
            }
        }
    }

    /// Lets `hook` have the first word on each call.
    pub(crate) fn on(&mut self, hook: impl FnMut(&str, &mut Self) -> Option<Status> + Send + 'static) {
        self.hooks.push(Box::new(hook));
    }

    /// Refuses every such call.
    pub(crate) fn always(&mut self, call: &'static str, status: Status) {
        self.on(move |asked, _| (asked == call).then(|| status.clone()));
    }

    fn list(&self, asked: &SandboxListRequest) -> SandboxListResponse {
        let before = if asked.before_timestamp == 0.0 || self.stuck { f64::INFINITY } else { asked.before_timestamp };
        let is_before = |at: f64| if self.inclusive { at <= before } else { at < before };
        let wanted = |sandbox: &Sandbox| {
            let tagged = |tag: &SandboxTag| sandbox.tags.get(&tag.tag_name) == Some(&tag.tag_value);
            (asked.app_id.is_empty() || sandbox.app == asked.app_id)
                && (sandbox.status == 0 || asked.include_finished)
                && is_before(sandbox.created)
                && asked.tags.iter().all(tagged)
        };
        let mut rows: Vec<_> = self.sandboxes.iter().filter(|(_, sandbox)| wanted(sandbox)).collect();
        rows.sort_by(|(_, a), (_, b)| b.created.total_cmp(&a.created));
        SandboxListResponse {
            sandboxes: rows.into_iter().take(self.page).map(|(id, sandbox)| sandbox.info(id)).collect(),
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut Sandbox, Status> {
        self.sandboxes.get_mut(id).ok_or_else(|| Status::not_found(format!("Sandbox with ID {id} not found")))
    }

    fn terminate(&mut self, id: &str, now: Time) -> Result<SandboxTerminateResponse, Status> {
        let sandbox = self.find(id)?;
        if sandbox.status != 0 {
            return Ok(SandboxTerminateResponse { existing_result: Some(result(sandbox.status)) });
        }
        sandbox.ending = Some((now.plus(sandbox.slow), 3));
        self.tick(now);
        Ok(SandboxTerminateResponse { existing_result: None })
    }

    fn wait(&mut self, id: &str) -> Result<SandboxWaitResponse, Status> {
        let sandbox = self.find(id)?;
        Ok(SandboxWaitResponse { result: Some(result(sandbox.status)) })
    }

    fn snapshot(&mut self, id: &str) -> Result<SandboxSnapshotFsResponse, Status> {
        let status = self.snapshot_status;
        let sandbox = self.find(id)?;
        if sandbox.status != 0 {
            return Err(Status::failed_precondition("Sandbox has already finished"));
        }
        let files = sandbox.files.clone();
        if status != 1 {
            return Ok(SandboxSnapshotFsResponse { image_id: String::new(), result: Some(result(status)) });
        }
        let image_id = format!("im-{:022}", self.images.len() + 1);
        self.images.insert(image_id.clone(), files);
        Ok(SandboxSnapshotFsResponse { image_id, result: Some(result(1)) })
    }
}

fn result(status: i32) -> GenericResult {
    GenericResult { status, exitcode: 0 }
}

impl Sandbox {
    fn end(&mut self, status: i32) {
        self.status = status;
        self.files.clear();
    }

    fn info(&self, id: &str) -> SandboxInfo {
        let tag = |(name, value): (&String, &String)| SandboxTag { tag_name: name.clone(), tag_value: value.clone() };
        SandboxInfo {
            id: id.to_owned(),
            created_at: self.created,
            task_info: Some(TaskInfo { started_at: self.created, finished_at: 0.0, result: None }),
            app_id: self.app.clone(),
            tags: self.tags.iter().map(tag).collect(),
            name: self.name.clone(),
            timeout_secs: u32::try_from(self.timeout.as_secs()).unwrap(),
            idle_timeout_secs: self.idle_timeout.map(|idle| u32::try_from(idle.as_secs()).unwrap()),
        }
    }
}

/// A refusal that asks to be tried again after so long.
pub(crate) fn throttled(seconds: f32) -> Status {
    let value = RpcRetryPolicy { retry_after_secs: seconds }.encode_to_vec();
    let type_url = "type.modal.com/modal.client.RPCRetryPolicy".to_owned();
    let details = RpcStatus { code: 8, message: "slow down".to_owned(), details: vec![Detail { type_url, value }] };
    Status::with_details(Code::ResourceExhausted, "slow down", details.encode_to_vec().into())
}

struct Inner {
    state: Mutex<Modal>,
    now: Box<dyn Fn() -> Time + Send + Sync>,
}

/// It listens.
#[derive(Clone)]
pub(crate) struct ModalServer {
    inner: Arc<Inner>,
    address: String,
}

impl ModalServer {
    /// Listens at a free port of this machine.
    pub(crate) async fn start(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner { state: Mutex::default(), now: Box::new(now) });
        let service = ModalClientServer::new(Service(inner.clone()));
        tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
        );
        Self { inner, address }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its state, to look at or to change behind everybody's back.
    pub(crate) fn state(&self) -> MutexGuard<'_, Modal> {
        self.inner.state.lock().unwrap()
    }

    /// Every call since the last time that this was asked.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    /// Those of them that change something.
    pub(crate) fn acts(&self) -> Vec<String> {
        let acts = |call: &String| call.contains("Terminate") || call.contains("Snapshot");
        self.calls().into_iter().filter(acts).collect()
    }
}

struct Service(Arc<Inner>);

impl Service {
    fn answer<Q, A>(
        &self,
        call: &str,
        request: Request<Q>,
        answer: impl FnOnce(&mut Modal, Q, Time) -> Result<A, Status>,
    ) -> Result<Response<A>, Status> {
        let now = (self.0.now)();
        let header = |name: &str| request.metadata().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut state = self.0.state.lock().unwrap();
        state.calls.push(call.to_owned());
        state.keys.push((call.to_owned(), header("x-idempotency-key").unwrap_or_default()));
        let token = (header("x-modal-token-id"), header("x-modal-token-secret"));
        if token != (Some(TOKEN.0.to_owned()), Some(TOKEN.1.to_owned())) {
            return Err(Status::unauthenticated("Token ID is malformed or does not exist"));
        }
        if call.ends_with("V2") && header("x-modal-auth-token").as_deref() != Some(SESSION) {
            return Err(Status::unauthenticated("missing auth token"));
        }
        state.tick(now);
        let mut hooks = std::mem::take(&mut state.hooks);
        let hooked = hooks.iter_mut().find_map(|hook| hook(call, &mut state));
        state.hooks = hooks;
        match hooked {
            Some(status) => Err(status),
            None => answer(&mut state, request.into_inner(), now).map(Response::new),
        }
    }
}

#[tonic::async_trait]
impl ModalClient for Service {
    async fn auth_token_get(
        &self,
        asked: Request<AuthTokenGetRequest>,
    ) -> Result<Response<AuthTokenGetResponse>, Status> {
        self.answer("AuthTokenGet", asked, |_, _, _| Ok(AuthTokenGetResponse { token: SESSION.to_owned() }))
    }

    async fn app_list(&self, asked: Request<AppListRequest>) -> Result<Response<AppListResponse>, Status> {
        self.answer("AppList", asked, |state, asked, _| {
            if asked.environment_name != ENVIRONMENT {
                return Err(Status::not_found(format!("Environment '{}' not found", asked.environment_name)));
            }
            let item = |id: &String| AppListItem { app_id: id.clone() };
            Ok(AppListResponse { apps: state.apps.iter().map(item).collect() })
        })
    }

    async fn sandbox_list_v2(
        &self,
        asked: Request<SandboxListRequest>,
    ) -> Result<Response<SandboxListResponse>, Status> {
        let silent = self.0.state.lock().unwrap().silent;
        if silent {
            std::future::pending::<()>().await;
        }
        self.answer("SandboxListV2", asked, |state, asked, _| Ok(state.list(&asked)))
    }

    async fn sandbox_wait(&self, asked: Request<SandboxWaitRequest>) -> Result<Response<SandboxWaitResponse>, Status> {
        self.answer("SandboxWait", asked, |state, asked, _| state.wait(&asked.sandbox_id))
    }

    async fn sandbox_wait_v2(
        &self,
        asked: Request<SandboxWaitRequest>,
    ) -> Result<Response<SandboxWaitResponse>, Status> {
        self.answer("SandboxWaitV2", asked, |state, asked, _| state.wait(&asked.sandbox_id))
    }

    async fn sandbox_terminate(
        &self,
        asked: Request<SandboxTerminateRequest>,
    ) -> Result<Response<SandboxTerminateResponse>, Status> {
        self.answer("SandboxTerminate", asked, |state, asked, now| state.terminate(&asked.sandbox_id, now))
    }

    async fn sandbox_terminate_v2(
        &self,
        asked: Request<SandboxTerminateRequest>,
    ) -> Result<Response<SandboxTerminateResponse>, Status> {
        self.answer("SandboxTerminateV2", asked, |state, asked, now| state.terminate(&asked.sandbox_id, now))
    }

    async fn sandbox_snapshot_fs(
        &self,
        asked: Request<SandboxSnapshotFsRequest>,
    ) -> Result<Response<SandboxSnapshotFsResponse>, Status> {
        self.answer("SandboxSnapshotFs", asked, |state, asked, _| state.snapshot(&asked.sandbox_id))
    }
}
