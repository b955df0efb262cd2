//! Whole passes over each provider: a life from idle to deleted, what it costs in requests, and passes that die
//! between any two calls.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use backend::Backend;
use backend_rest::{
    Key, Scope,
    cloudflare::{self, DestroyRunning},
    daytona, e2b, openhands,
};
use ledger::{HoldRequest, Ledger};
use lifecycle::{
    BackendName, Record, RuntimeId, State, Time,
    policy::{Mode, NativeMode, Pattern, WorkspaceRule},
    record::Hold,
};

use super::{RATE, lab::text};
use crate::{
    pass::stage::{DAY, HOUR, MINUTE, Stage, errors, fates, options},
    simulators::{
        Provider, Server,
        cloudflare::{self as cloudflare_server, ACCOUNT, APPLICATION, Cloudflare, places},
        daytona::{self as daytona_server, Daytona},
        e2b::{self as e2b_server, E2b},
        openhands::{self as openhands_server, OpenHands},
    },
};

/// A provider with a fleet, and passes over it.
struct Scene<P> {
    stage: Stage,
    server: Server<P>,
    backend: Backend,
}

fn scope() -> Scope {
    Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() }
}

async fn daytona() -> Scene<Daytona> {
    let stage = Stage::new().await;
    let hands = stage.hands.clone();
    let server = Server::start(Daytona::default(), move || hands.now()).await;
    let options = daytona::Options {
        name: BackendName::new("daytona").unwrap(),
        clock: stage.hands.clock(),
        url: format!("{}/api", server.address()),
        key: Key::new(daytona_server::KEY),
        scope: scope(),
        rate: RATE,
    };
    Scene { stage, server, backend: daytona::backend(daytona::connect(options).unwrap()) }
}

/// E2B tells of no activity, so that what its sandboxes are suspended by is the length of their runs.
async fn e2b() -> Scene<E2b> {
    let stage = Stage::new().await.rules(|rules| rules.lifetime_max = Some(2 * HOUR));
    let hands = stage.hands.clone();
    let server = Server::start(E2b::default(), move || hands.now()).await;
    let options = e2b::Options {
        name: BackendName::new("e2b").unwrap(),
        clock: stage.hands.clock(),
        url: server.address().to_owned(),
        key: Key::new(e2b_server::KEY),
        scope: scope(),
        rate: RATE,
    };
    Scene { stage, server, backend: e2b::backend(e2b::connect(options).unwrap()) }
}

async fn openhands() -> Scene<OpenHands> {
    let stage = Stage::new().await;
    let hands = stage.hands.clone();
    let server = Server::start(OpenHands::default(), move || hands.now()).await;
    let options = openhands::Options {
        name: BackendName::new("openhands").unwrap(),
        clock: stage.hands.clock(),
        which: openhands::Which::Cloud,
        url: server.address().to_owned(),
        key: Key::new(openhands_server::KEY),
        scope: scope(),
        rate: RATE,
    };
    Scene { stage, server, backend: openhands::backend(openhands::connect(options).unwrap()) }
}

/// Cloudflare, whose owner lets what is idle be destroyed, and lets it be lost.
async fn cloudflare() -> Scene<Cloudflare> {
    let stage = Stage::new().await.rules(|rules| rules.workspace = WorkspaceRule::Discard);
    let hands = stage.hands.clone();
    let server = Server::start(Cloudflare::default(), move || hands.now()).await;
    let (url, worker) = places(server.address());
    let options = cloudflare::Options {
        name: BackendName::new("cloudflare").unwrap(),
        clock: stage.hands.clock(),
        url,
        key: Key::new(cloudflare_server::KEY),
        account: ACCOUNT.to_owned(),
        application: APPLICATION.to_owned(),
        worker,
        worker_key: Key::new(cloudflare_server::WORKER_KEY),
        scope: Scope { name_prefixes: vec!["agent-".to_owned()], ..Scope::default() },
        destroy_running: DestroyRunning::WhenIdle,
        rate: RATE,
    };
    Scene { stage, server, backend: cloudflare::backend(cloudflare::connect(options).unwrap()) }
}

/// A sandbox of ours that was used just now, which Furlough was told of.
async fn worked(scene: &Scene<Cloudflare>) -> RuntimeId {
    let id = scene.server.state().add(scene.stage.now(), |sandbox| sandbox.sleep_after = 7 * DAY);
    let id = RuntimeId::new(&scene.backend.name, id.as_bytes()).unwrap();
    scene.after(MINUTE).await;
    scene.stage.advance(Duration::from_secs(1));
    beat(scene, &id).await;
    id
}

async fn beat<P: Provider>(scene: &Scene<P>, id: &RuntimeId) {
    let _ = scene.stage.ledger.heartbeat(id, None, None, scene.stage.now()).await.unwrap();
}

/// A sandbox of ours whose conversation was updated just now.
fn talked(scene: &Scene<OpenHands>) -> String {
    let now = scene.stage.now();
    let mut state = scene.server.state();
    let id = state.add(now, |_| {});
    state.talk(&id, now, |_| {});
    id
}

impl<P: Provider> Scene<P> {
    /// A pass after so long: what became of each act, and nothing went wrong.
    async fn after(&self, wait: Duration) -> Vec<String> {
        self.stage.advance(wait);
        let mut pass = self.stage.pass_of("pass-1", vec![self.backend.clone()]);
        pass.limits.act_timeout = Duration::from_mins(4);
        let outcome = pass.run().await;
        assert_eq!(errors(&outcome), Vec::<String>::new());
        fates(&outcome.report.entries)
    }

    /// A pass that dies after the call that has `nth` before it. Whether it came to its end before.
    async fn survived(&self, nth: usize) -> bool {
        let line = self.stage.line.clone();
        line.dies(nth);
        let mut pass = self.stage.pass_of("doomed", vec![line.backend(self.backend.clone())]);
        pass.ledger = Ledger::new(line.client(self.stage.store()), options());
        pass.limits.act_timeout = Duration::from_mins(4);
        line.run(pass.run()).await.is_some()
    }

    /// The requests since the last time, without what makes the listing long.
    fn asked(&self) -> Vec<String> {
        let calls = self.server.calls();
        calls.iter().map(|call| call.split('?').next().unwrap().to_owned()).collect()
    }

    /// Those of them that change something.
    fn acts(&self) -> Vec<String> {
        self.asked().into_iter().filter(|call| !call.starts_with("GET ")).collect()
    }

    async fn records(&self) -> Vec<(RuntimeId, Record)> {
        self.stage.ledger.records(&self.backend.name, None).await.unwrap().records
    }

    async fn states(&self) -> Vec<State> {
        self.records().await.into_iter().map(|(_, record)| record.state).collect()
    }
}

fn active(scene: &Scene<Daytona>, name: &str, at: Time) -> String {
    scene.server.state().add(name, scene.stage.now(), |sandbox| sandbox.last_activity = at)
}

#[tokio::test]
async fn a_daytona_sandbox_goes_from_idle_to_deleted_by_passes_alone() {
    let scene = daytona().await;
    let id = active(&scene, "idle", scene.stage.now());
    let at = |verb: &str| format!("{id} {verb}");
    assert_eq!(scene.after(MINUTE).await, [""; 0]);
    assert_eq!(scene.after(33 * MINUTE).await, [at("suspend: under way")]);
    assert_eq!(scene.acts(), [format!("POST /api/sandbox/{id}/stop")]);
    scene.after(5 * MINUTE).await;
    assert_eq!(scene.states().await, [State::Suspended]);
    assert_eq!(scene.after(DAY + MINUTE).await, [at("archive: under way")]);
    scene.after(5 * MINUTE).await;
    assert_eq!(scene.states().await, [State::Archived]);
    assert_eq!(scene.acts(), [format!("POST /api/sandbox/{id}/archive")]);
    assert_eq!(scene.after(DAY + MINUTE).await, [at("delete: under way")]);
    for _ in 0..3 {
        scene.after(6 * MINUTE).await;
    }
    assert_eq!(scene.states().await, [State::Gone]);
    assert_eq!(scene.acts(), [format!("DELETE /api/sandbox/{id}")]);
    assert_eq!(scene.server.state().sandboxes.values().filter(|sandbox| !sandbox.files.is_empty()).count(), 0);
}

#[tokio::test]
async fn an_e2b_sandbox_goes_from_too_long_a_run_to_deleted_by_passes_alone() {
    let scene = e2b().await;
    let now = scene.stage.now();
    let id = scene.server.state().add(now, |sandbox| sandbox.end = now.plus(DAY));
    assert_eq!(scene.after(MINUTE).await, [""; 0]);
    assert_eq!(scene.after(HOUR).await, [format!("{id} suspend: done")]);
    assert_eq!(scene.states().await, [State::Suspended]);
    assert_eq!(scene.after(DAY + MINUTE).await, [format!("{id} delete: done")]);
    assert_eq!(scene.acts(), [format!("POST /sandboxes/{id}/pause"), format!("DELETE /sandboxes/{id}")]);
    assert!(scene.server.state().sandboxes.is_empty());
}

#[tokio::test]
async fn an_openhands_sandbox_goes_from_idle_to_deleted_by_passes_alone() {
    let scene = openhands().await;
    let id = talked(&scene);
    assert_eq!(scene.after(MINUTE).await, [""; 0]);
    assert_eq!(scene.after(33 * MINUTE).await, [format!("{id} suspend: done")]);
    assert_eq!(scene.states().await, [State::Suspended]);
    assert_eq!(scene.after(DAY + MINUTE).await, [format!("{id} delete: done")]);
    let one = format!("/api/v1/sandboxes/{id}");
    assert_eq!(scene.acts(), [format!("POST {one}/pause"), format!("DELETE {one}")]);
    assert!(scene.server.state().sandboxes.is_empty());
}

/// An outage is shown as if every sandbox were missing. Passes in it take none for gone, and go on after it.
#[tokio::test]
async fn an_outage_of_openhands_ends_no_record() {
    let mut scene = openhands().await;
    scene.stage.limits.sweep_every = MINUTE;
    talked(&scene);
    scene.after(MINUTE).await;
    scene.server.state().trouble = Some(openhands_server::Trouble::Down);
    for _ in 0..4 {
        scene.stage.advance(7 * MINUTE);
        let outcome = scene.stage.pass_of("pass-1", vec![scene.backend.clone()]).run().await;
        assert_eq!(fates(&outcome.report.entries), [""; 0]);
    }
    assert_eq!((scene.states().await, scene.acts()), (vec![State::Running], Vec::new()));
    scene.server.state().trouble = None;
    assert_eq!(scene.after(40 * MINUTE).await.len(), 1);
}

/// What a pass asks of a provider: the pages of a sweep, and for one that is due the looks of the protocol and one act.
#[tokio::test]
async fn a_sweep_is_its_pages_and_an_act_is_one_request_among_its_looks() {
    let scene = daytona().await;
    for n in 0..450 {
        active(&scene, &format!("busy-{n}"), scene.stage.now().plus(HOUR).minus(MINUTE));
    }
    scene.stage.advance(HOUR);
    scene.after(Duration::ZERO).await;
    assert_eq!(scene.asked(), ["GET /api/sandbox"; 3]);
    scene.after(MINUTE).await;
    assert_eq!(scene.asked(), [""; 0], "between sweeps what is not due costs nothing");
    let id = active(&scene, "idle", scene.stage.now().minus(HOUR));
    scene.stage.advance(HOUR);
    for (id, sandbox) in &mut scene.server.state().sandboxes {
        if sandbox.name != "idle" {
            sandbox.used(id, scene.stage.now());
        }
    }
    assert_eq!(scene.after(Duration::ZERO).await, [format!("{id} suspend: under way")]);
    let one = format!("/api/sandbox/{id}");
    let (look, stop) = (format!("GET {one}"), format!("POST {one}/stop"));
    let page = || "GET /api/sandbox".to_owned();
    assert_eq!(
        scene.asked(),
        [page(), page(), page(), look.clone(), look.clone(), look, stop],
        "to examine it, under the claim, and just before the act"
    );
}

const SUSPENDS: [State; 2] = [State::Running, State::Suspended];

/// What a call that changes something does: its last part, or that it deletes.
fn verb(call: &str) -> String {
    let last = if call.starts_with("DELETE ") { "delete" } else { call.rsplit('/').next().unwrap() };
    last.to_owned()
}

/// Dies before, in and after every call to the provider of the pass that acts: passes after it put all in order,
/// and it was done once or not. What the ledger's calls can leave behind is tried at each of them over the fake.
///
/// `states`: before it and after it. `ends`: how often it was done within a quarter of an hour, in each way to die. What was given back is idle for a
/// whole period first; a run that is too long is too long still.
async fn dies_around_every_call<P, F>(prepare: impl Fn() -> F, act: &str, states: [State; 2], ends: &[usize])
where
    P: Provider,
    F: Future<Output = Scene<P>>,
{
    let whole = prepare().await;
    assert!(whole.survived(usize::MAX).await);
    assert_eq!(whole.acts().iter().filter(|call| verb(call) == act).count(), 1);
    let calls = whole.stage.line.calls();
    // The ledger's are named by its operations, with a capital.
    let of_the_provider = |call: Option<&String>| call.is_some_and(|call| call.starts_with(char::is_lowercase));
    let around = |nth: &usize| (nth.saturating_sub(1)..nth + 2).any(|near| of_the_provider(calls.get(near)));
    let mut outcomes = BTreeSet::new();
    for nth in (0..calls.len()).filter(around) {
        let scene = prepare().await;
        scene.asked();
        assert!(!scene.survived(nth).await);
        for _ in 0..4 {
            scene.after(3 * MINUTE).await;
        }
        let case = format!("died at the last of {:?}", scene.stage.line.calls());
        let acts: Vec<_> = scene.acts().iter().map(|call| verb(call)).collect();
        assert!(acts.is_empty() || acts == [act], "{case}: {acts:?}");
        for (id, record) in scene.records().await {
            assert_eq!((record.state, record.claim), (states[acts.len()], None), "{case}: {id}");
        }
        outcomes.insert(acts.len());
    }
    assert_eq!(outcomes, ends.iter().copied().collect());
}

#[tokio::test]
async fn a_pass_that_dies_anywhere_leaves_a_daytona_sandbox_stopped_once_or_not_at_all() {
    let prepare = || async {
        let scene = daytona().await;
        active(&scene, "idle", scene.stage.now());
        scene.after(MINUTE).await;
        scene.stage.advance(33 * MINUTE);
        scene
    };
    dies_around_every_call(prepare, "stop", SUSPENDS, &[0, 1]).await;
}

#[tokio::test]
async fn a_pass_that_dies_anywhere_leaves_an_e2b_sandbox_paused_once_or_not_at_all() {
    let prepare = || async {
        let scene = e2b().await;
        let now = scene.stage.now();
        scene.server.state().add(now, |sandbox| sandbox.end = now.plus(DAY));
        scene.after(MINUTE).await;
        scene.stage.advance(HOUR);
        scene
    };
    dies_around_every_call(prepare, "pause", SUSPENDS, &[1]).await;
}

/// What dies in a pause or a deletion is found done, or done later: once.
#[tokio::test]
async fn a_pass_that_dies_anywhere_leaves_an_openhands_sandbox_paused_once_or_not_at_all() {
    let prepare = || async {
        let scene = openhands().await;
        talked(&scene);
        scene.after(MINUTE).await;
        scene.stage.advance(33 * MINUTE);
        scene
    };
    dies_around_every_call(prepare, "pause", SUSPENDS, &[0, 1]).await;
}

#[tokio::test]
async fn a_pass_that_dies_anywhere_leaves_an_openhands_sandbox_deleted_once_or_not_at_all() {
    let prepare = || async {
        let scene = openhands().await;
        talked(&scene);
        scene.after(MINUTE).await;
        scene.after(33 * MINUTE).await;
        scene.stage.advance(DAY + MINUTE);
        scene.acts();
        scene
    };
    dies_around_every_call(prepare, "delete", [State::Suspended, State::Gone], &[1]).await;
}

/// Cloudflare's sandboxes have no state but running, from which they go when their owner chose that: by heartbeats alone,
/// after `idle.after` and `retention.suspended` together. What was never heard of never goes.
#[tokio::test]
async fn a_cloudflare_sandbox_goes_from_idle_to_destroyed_by_passes_alone() {
    let scene = cloudflare().await;
    let silent = scene.server.state().add(scene.stage.now(), |sandbox| sandbox.sleep_after = 30 * DAY);
    let id = worked(&scene).await;
    assert_eq!(scene.after(DAY).await, [""; 0]);
    beat(&scene, &id).await;
    assert_eq!(scene.after(DAY + 30 * MINUTE).await, [""; 0]);
    assert_eq!((scene.states().await, scene.acts()), (vec![State::Running; 2], Vec::new()));
    assert_eq!(scene.after(2 * MINUTE).await, [format!("{} delete: done", id.encoded())]);
    assert_eq!(scene.acts(), [format!("POST /worker/v1/instances/{}/destroy", id.encoded())]);
    let records: BTreeSet<_> =
        scene.records().await.into_iter().map(|(id, record)| (text(&id), record.state)).collect();
    assert_eq!(records, [(text(&id), State::Gone), (silent.clone(), State::Running)].into());
    assert_eq!(scene.after(20 * DAY).await, [""; 0]);
    assert!(scene.server.state().sandboxes[&silent].files.is_some());
}

/// What would be lost must be said to be worth nothing, and is not taken while somebody uses it.
#[tokio::test]
async fn what_is_not_saved_or_is_at_work_is_not_destroyed() {
    for (rule, busy, acts) in
        [(WorkspaceRule::Save, None, 0), (WorkspaceRule::Discard, Some(HOUR), 0), (WorkspaceRule::Discard, None, 1)]
    {
        let mut scene = cloudflare().await;
        let rules = &mut scene.stage.policy.rules[0];
        (rules.workspace, rules.retention.suspended) = (rule, Some(10 * MINUTE));
        scene.stage.limits.sweep_every = MINUTE;
        let id = worked(&scene).await;
        scene.stage.advance(MINUTE);
        let _ = scene.stage.ledger.heartbeat(&id, None, busy, scene.stage.now()).await.unwrap();
        scene.after(35 * MINUTE).await;
        scene.after(7 * MINUTE).await;
        assert_eq!(scene.acts().len(), acts, "{rule:?}, {busy:?}");
    }
}

#[tokio::test]
async fn a_pass_that_dies_anywhere_leaves_a_cloudflare_sandbox_destroyed_once_or_not_at_all() {
    let prepare = || async {
        let scene = cloudflare().await;
        worked(&scene).await;
        scene.after(DAY + 29 * MINUTE).await;
        scene.stage.advance(4 * MINUTE);
        scene.acts();
        scene
    };
    dies_around_every_call(prepare, "destroy", [State::Running, State::Gone], &[0, 1]).await;
}

/// How long a sandbox may idle can't be read: it is written once for each run, and again for another policy.
#[tokio::test]
async fn cloudflare_s_sleep_is_written_once_for_each_run_and_each_policy() {
    let mut scene = cloudflare().await;
    scene.stage.policy.rules[0].native = NativeMode::Prefer;
    scene.stage.limits.sweep_every = MINUTE;
    let id = scene.server.state().add(scene.stage.now(), |_| {});
    let write = format!("PUT /worker/v1/instances/{id}/sleep-after");
    for expected in [std::slice::from_ref(&write), &[], &[]] {
        scene.after(MINUTE).await;
        assert_eq!(scene.acts(), expected);
    }
    let kept = |scene: &Scene<Cloudflare>| scene.server.state().sandboxes[&id].sleep_after;
    assert_eq!(kept(&scene), DAY + DAY + 30 * MINUTE, "until it is suspended, and from then until it is deleted");
    let now = scene.stage.now().plus(MINUTE);
    scene.server.state().sandboxes.get_mut(&id).unwrap().start_anew(now);
    for expected in [std::slice::from_ref(&write), &[]] {
        scene.after(2 * MINUTE).await;
        assert_eq!(scene.acts(), expected, "another run of it");
    }
    scene.stage.policy.rules[0].idle_after = Some(HOUR);
    for expected in [std::slice::from_ref(&write), &[]] {
        scene.after(MINUTE).await;
        assert_eq!(scene.acts(), expected);
    }
    assert_eq!(kept(&scene), DAY + DAY + HOUR);
}

/// The provider's timers follow the policy: written once, written again where somebody changed them, and lifted from
/// what is held. Then the provider does by itself what the policy says, and the passes let it.
#[tokio::test]
async fn daytona_s_own_timers_follow_the_policy() {
    let mut scene = daytona().await;
    scene.stage.policy.rules[0].native = NativeMode::Prefer;
    scene.stage.limits.sweep_every = MINUTE;
    let id = active(&scene, "one", scene.stage.now());
    let held = active(&scene, "held", scene.stage.now());
    let timer = |id: &str, timer: &str| format!("POST /api/sandbox/{id}/{timer}");
    scene.after(MINUTE).await;
    let runtime = RuntimeId::new(&scene.backend.name, held.as_bytes()).unwrap();
    let mut written = scene.acts();
    written.sort();
    let both = |name: &str| [timer(&id, name), timer(&held, name)];
    let mut expected = [both("autostop/30"), both("autoarchive/1440"), both("autodelete/2880")].concat();
    expected.sort();
    assert_eq!(written, expected);
    scene.after(MINUTE).await;
    assert_eq!(scene.acts(), [""; 0], "they stand");

    let request = HoldRequest { hold: Hold::Forever, by: "ada", why: "the release needs it" };
    let _ = scene.stage.ledger.hold(&runtime, &request, None, scene.stage.now()).await.unwrap();
    scene.server.state().sandboxes.get_mut(&id).unwrap().auto_stop = 0;
    for (id, sandbox) in &mut scene.server.state().sandboxes {
        sandbox.used(id, scene.stage.now());
    }
    scene.after(MINUTE).await;
    let mut written = scene.acts();
    written.sort();
    let mut expected = [
        timer(&id, "autostop/30"),
        timer(&held, "autostop/0"),
        timer(&held, "autoarchive/43200"),
        timer(&held, "autodelete/-1"),
    ];
    expected.sort();
    assert_eq!(written, expected);

    // It stops by itself at half an hour, and no pass is in its way.
    assert_eq!(scene.after(30 * MINUTE).await, [""; 0]);
    scene.after(MINUTE).await;
    assert_eq!(scene.acts(), [""; 0]);
    let state = |id: &str| scene.server.state().sandboxes[id].state;
    assert_eq!((state(&id), state(&held)), ("stopped", "started"));
}

/// Where passes only report, or are paused, or no policy says `native`, no timer is touched.
#[tokio::test]
async fn timers_are_left_alone_where_passes_do_not_act() {
    for case in ["report", "off", "paused"] {
        let mut scene = daytona().await;
        scene.stage.policy.rules[0].native = NativeMode::Prefer;
        match case {
            "report" => scene.stage.policy.mode = Mode::Report,
            "off" => scene.stage.policy.rules[0].native = NativeMode::Off,
            _ => {
                let (name, now) = (&scene.backend.name, scene.stage.now());
                scene.stage.ledger.pause(Some(name), "a release", "ada", now).await.unwrap();
            }
        }
        active(&scene, "one", scene.stage.now());
        scene.after(MINUTE).await;
        assert_eq!(scene.acts(), [""; 0], "{case}");
    }
}

/// E2B kills at the end of a run, whoever works in it: the end is put off for as long as the policy keeps it.
#[tokio::test]
async fn e2b_s_end_of_a_run_is_put_off_while_it_is_used() {
    let mut scene = e2b().await;
    scene.stage.policy.rules[0].native = NativeMode::Prefer;
    scene.stage.policy.rules[0].lifetime_max = None;
    scene.stage.limits.sweep_every = MINUTE;
    let begun = scene.stage.now();
    let id = scene.server.state().add(begun, |sandbox| {
        (sandbox.started, sandbox.end) = (begun, begun.plus(10 * MINUTE));
    });
    let runtime = RuntimeId::new(&scene.backend.name, id.as_bytes()).unwrap();
    let end = || scene.server.state().sandboxes[&id].end;
    scene.after(MINUTE).await;
    let first = end();
    assert!(first >= begun.plus(90 * MINUTE), "half an hour from when it was first seen, and room: {first}");
    for _ in 0..20 {
        let _ = scene.stage.ledger.heartbeat(&runtime, None, None, scene.stage.now()).await.unwrap();
        scene.after(8 * MINUTE).await;
    }
    assert!(scene.server.state().sandboxes[&id].running, "161 minutes, of which its owner gave it ten");
    let last = end();
    scene.after(9 * MINUTE).await;
    assert_eq!(end(), last, "nobody used it since");
    scene.after(30 * MINUTE).await;
    assert!(!scene.server.state().sandboxes[&id].running, "idle for 39 minutes: it was paused in time");
    assert!(scene.acts().last().unwrap().ends_with("/pause"));
}

/// A slow provider is asked no faster than was configured, whatever is done at once.
#[tokio::test]
async fn requests_keep_their_pace() {
    let scene = daytona().await;
    let slow = daytona::Options {
        name: BackendName::new("slow").unwrap(),
        clock: scene.stage.hands.clock(),
        url: format!("{}/api", scene.server.address()),
        key: Key::new(daytona_server::KEY),
        scope: scope(),
        rate: (NonZeroU32::new(1).unwrap(), HOUR),
    };
    let slow = daytona::backend(daytona::connect(slow).unwrap());
    assert!(slow.list.list(None).await.is_ok(), "the first goes at once");
    let second = tokio::time::timeout(Duration::from_millis(50), slow.list.list(None)).await;
    assert!(second.is_err(), "the second waits for its turn: {second:?}");
    assert_eq!(scene.asked(), ["GET /api/sandbox"]);
}
