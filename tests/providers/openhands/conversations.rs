//! What the conversations tell of their sandboxes, through a listing and by id.

use std::time::Duration;

use backend_rest::openhands::Which;
use lifecycle::{Activity, Busy, Ownership};

use super::Lab;

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn several_conversations_share_a_sandbox_and_all_must_rest() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let now = lab.hands.now();
    let sandbox = super::super::lab::text(&id);
    let one = lab.server.state().talk(&sandbox, now.minus(5 * HOUR), |talk| {
        talk.tags.insert("only".to_owned(), "here".to_owned());
    });
    // One within another works in the same sandbox, and is left out unless it is asked for.
    lab.server.state().talk(&sandbox, now.minus(HOUR / 2), |talk| {
        (talk.parent, talk.status) = (Some(one), Some("running"));
    });
    let seen = lab.look(&id).await.unwrap();
    let stale = Duration::from_mins(1);
    assert_eq!(seen.activity, Activity::At(now.minus(HOUR / 2).plus(stale)));
    assert_eq!((seen.sharers, seen.busy), (2, Busy::Until(now.minus(HOUR / 2).plus(12 * HOUR))));
    assert_eq!(*seen.labels, [("team".to_owned(), "a".to_owned())].into(), "what all of them say");
    let listed = lab.backend.list.list(None).await.unwrap().seen;
    assert_eq!(listed, [seen], "a listing tells the same");
}

/// Its server was killed while it worked: it is shown as running for ever.
#[tokio::test]
async fn work_that_is_only_said_ends_after_half_a_day() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    lab.server.state().conversations.values_mut().for_each(|talk| talk.status = Some("running"));
    assert!(matches!(lab.look(&id).await.unwrap().busy, Busy::Until(_)));
    lab.hands.advance(11 * HOUR);
    assert_eq!(lab.look(&id).await.unwrap().busy, Busy::No);
    // An agent server that does not answer its app server.
    let id = lab.running();
    lab.server.state().conversations.values_mut().for_each(|talk| talk.status = None);
    assert!(matches!(lab.look(&id).await.unwrap().busy, Busy::Until(_)));
}

#[tokio::test]
async fn a_sandbox_without_a_conversation_is_nobody_s_and_never_idle() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    lab.server.state().conversations.clear();
    let seen = lab.look(&id).await.unwrap();
    assert_eq!((seen.activity, seen.ownership), (Activity::Unknown, Ownership::Unlabelled));
}

#[tokio::test]
async fn the_runtime_api_tells_no_activity() {
    let lab = Lab::new(Which::Runtime).await;
    let (running, paused) = (lab.running(), lab.paused());
    assert_eq!(lab.look(&running).await.unwrap().activity, Activity::Unknown);
    assert_eq!(lab.look(&paused).await.unwrap().activity, Activity::Frozen);
}

/// A sweep is the pages of sandboxes and those of conversations, each once; and no question more, however many there are.
#[tokio::test]
async fn a_sweep_is_its_pages_and_nothing_more() {
    let lab = Lab::new(Which::Cloud).await;
    let ids: std::collections::BTreeSet<_> = (0..250).map(|_| lab.running()).collect();
    // Newest first; a place in the list is a number, so what is made meanwhile moves the others, which come twice.
    let made = || {
        let mut state = lab.server.state();
        let now = lab.hands.now();
        if state.sandboxes.len() < 252 {
            state.add(now.plus(HOUR), |_| {});
        }
    };
    let (seen, pages) = lab.listed(made).await;
    assert_eq!(pages, 3);
    assert!(ids.is_subset(&seen.iter().cloned().collect()), "none is missed");
    let calls = lab.server.calls();
    let of = |what: &str| calls.iter().filter(|call| call.starts_with(&format!("GET /api/v1/{what}/search?"))).count();
    assert_eq!((calls.len(), of("sandboxes"), of("app-conversations")), (6, 3, 3));
}

#[tokio::test]
async fn all_runtimes_are_listed_however_many_run() {
    let lab = Lab::new(Which::Runtime).await;
    let mut ids: Vec<_> = (0..1_100).map(|_| lab.running()).collect();
    ids.sort();
    assert_eq!(lab.listed(|| {}).await, (ids, 2));
}

/// Many conversations are read in several steps, before the first sandbox.
#[tokio::test]
async fn conversations_are_read_before_sandboxes_however_many_there_are() {
    let lab = Lab::new(Which::Cloud).await;
    let id = lab.running();
    let now = lab.hands.now();
    {
        let mut state = lab.server.state();
        (0..4_150).for_each(|_| drop(state.talk("long gone", now.minus(900 * HOUR), |_| {})));
    }
    // The oldest of all: it comes last.
    lab.server.state().conversations.values_mut().next().unwrap().created = now.minus(9_000 * HOUR);
    assert_eq!(lab.listed(|| {}).await, (vec![id.clone()], 3));
    let listed = lab.backend.list.list(None).await.unwrap();
    assert!(listed.seen.is_empty() && listed.next.is_some());
    assert_eq!(lab.look(&id).await.unwrap().sharers, 1);
}
