use std::num::NonZeroU32;

use backend::{
    Clock,
    provider::{Key, Scope},
};
use lifecycle::{BackendName, Ownership, policy::Pattern};
use proptest::prelude::*;

use super::*;
use crate::proto::{GenericResult, SandboxTag, TaskInfo};

const NOW: f64 = 1_796_036_400.0;
const FIRST: &str = "sb-nGEijt9WbBMlGrsPH9FOaC";
const SECOND: &str = "sb-01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn options(terminate: Terminate) -> Options {
    Options {
        name: BackendName::new("m").unwrap(),
        clock: Clock::fixed(now()),
        url: "https://api.modal.com".to_owned(),
        token: (Key::new("ak-1"), Key::new("as-1")),
        environment: "main".to_owned(),
        scope: Scope { labels: [("team".to_owned(), Pattern::new("a"))].into(), name_prefixes: Vec::new() },
        terminate,
        rate: (NonZeroU32::MIN, Duration::from_secs(1)),
    }
}

fn now() -> Time {
    time(NOW, "now").unwrap()
}

fn info() -> SandboxInfo {
    SandboxInfo {
        id: SECOND.to_owned(),
        created_at: NOW - 600.0,
        task_info: Some(TaskInfo { started_at: NOW - 590.0, finished_at: 0.0, result: None }),
        app_id: "ap-1".to_owned(),
        tags: vec![SandboxTag { tag_name: "team".to_owned(), tag_value: "a".to_owned() }],
        name: String::new(),
        timeout_secs: 3_600,
        idle_timeout_secs: None,
    }
}

fn read(info: &SandboxInfo) -> Result<Option<Observation>, String> {
    observation(info, &options(Terminate::AfterSnapshot), now())
}

#[test]
fn a_running_one_is_of_unknown_activity_and_tells_when_modal_ends_it() {
    let seen = read(&info()).unwrap().unwrap();
    assert_eq!((seen.state, seen.activity, seen.ownership), (State::Running, Activity::Unknown, Ownership::Ours));
    let since = now().minus(Duration::from_secs(590));
    assert_eq!((seen.running_since, seen.incarnation.as_str()), (Some(since), SECOND));
    let native = seen.native.unwrap();
    let deadline = NativeDeadline { at: since.plus(Duration::from_hours(1)), effect: NativeEffect::Destroy };
    assert_eq!((native.deadline, native.mutable), (Some(deadline), false));
    let waiting = read(&SandboxInfo { task_info: None, ..info() }).unwrap().unwrap();
    assert_eq!(waiting.running_since, Some(now().minus(Duration::from_mins(10))), "since it was made");
    let ahead = read(&SandboxInfo { created_at: NOW + 7_200.0, task_info: None, ..info() }).unwrap().unwrap();
    assert_eq!(ahead.running_since, Some(now()), "a clock two hours ahead makes nothing younger than now");
    let idles =
        read(&SandboxInfo { idle_timeout_secs: Some(60), name: "agent".to_owned(), ..info() }).unwrap().unwrap();
    assert_eq!(&*idles.about, "agent (Modal ends it after 60 s without use)");
}

#[test]
fn only_the_first_generation_can_be_saved_first() {
    let cannot = |id: &str, terminate| {
        let info = SandboxInfo { id: id.to_owned(), ..info() };
        !observation(&info, &options(terminate), now()).unwrap().unwrap().cannot.is_empty()
    };
    assert!(cannot(SECOND, Terminate::AfterSnapshot));
    assert!(!cannot(FIRST, Terminate::AfterSnapshot) && !cannot(SECOND, Terminate::AtOnce));
}

#[test]
fn what_ended_is_no_runtime_and_what_can_t_be_read_is_named() {
    let ended = |status, finished_at| {
        let result = Some(GenericResult { status, exitcode: 0 });
        read(&SandboxInfo { task_info: Some(TaskInfo { started_at: NOW, finished_at, result }), ..info() })
    };
    for status in 1..=10 {
        assert_eq!(ended(status, NOW), Ok(None), "{status}");
    }
    assert_eq!(ended(0, NOW), Ok(None));
    let odd = format!("sandbox `{SECOND}`: it ended in a way that this version does not know");
    assert_eq!(ended(11, NOW), Err(odd.clone()));
    assert_eq!(ended(-1, NOW), Err(odd));
    for at in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        let told = read(&SandboxInfo { created_at: at, ..info() });
        assert_eq!(told, Err(format!("sandbox `{SECOND}`: `created_at` is no time")), "{at}");
    }
    assert_eq!(read(&SandboxInfo { id: String::new(), ..info() }), Err("`id` is missing".to_owned()));
}

proptest! {
    /// Whatever its fields hold, it is a runtime of this backend with a past, none, or told in one line.
    #[test]
    fn anything_is_read_or_told(
        id in "\\PC{0,40}", created_at: f64, started_at: f64, finished_at: f64, status: i32, name in "\\PC{0,9}",
        timeout_secs: u32, idle_timeout_secs: Option<u32>,
    ) {
        let result = Some(GenericResult { status, exitcode: 0 });
        let task_info = Some(TaskInfo { started_at, finished_at, result });
        let info = SandboxInfo { id, created_at, task_info, name, timeout_secs, idle_timeout_secs, ..info() };
        match read(&info) {
            Ok(Some(seen)) => prop_assert!(seen.running_since.is_some_and(|at| at <= now())),
            Ok(None) => {}
            Err(why) => prop_assert!(!why.is_empty() && !why.contains('\n')),
        }
    }
}
