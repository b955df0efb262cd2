//! Whole passes over Modal: what is idle is terminated where its owner chose that, and kept everywhere else.

use std::time::Duration;

use backend_modal::Terminate;
use lifecycle::{RuntimeId, State, policy::WorkspaceRule};

use super::backend_by;
use crate::{
    pass::stage::{MINUTE, Stage, errors, fates},
    simulators::modal::ModalServer,
};

/// What became of a sandbox that was heard of once, and then for three quarters of an hour no more: what the passes say
/// that they did to it, the acts that Modal was asked for, and the state in its record.
struct Ending {
    fates: Vec<String>,
    acts: Vec<String>,
    state: State,
}

async fn ending(terminate: Terminate, workspace: WorkspaceRule, second: bool) -> Ending {
    let stage = Stage::new().await.limits(|limits| limits.sweep_every = MINUTE).rules(|rules| {
        (rules.workspace, rules.retention.suspended) = (workspace, Some(10 * MINUTE));
    });
    let hands = stage.hands.clone();
    let server = ModalServer::start(move || hands.now()).await;
    let backend = backend_by(stage.hands.clock(), server.address(), terminate);
    let text = {
        let (mut there, now) = (server.state(), stage.now());
        if second { there.add_second(now, |_| {}) } else { there.add(now, |_| {}) }
    };
    let id = RuntimeId::new(&backend.name, text.as_bytes()).unwrap();
    let mut ended = Vec::new();
    for (wait, heard) in [(MINUTE, true), (39 * MINUTE, false), (2 * MINUTE, false), (3 * MINUTE, false)] {
        stage.advance(wait);
        let mut pass = stage.pass_of("pass-1", vec![backend.clone()]);
        pass.limits.act_timeout = 4 * MINUTE;
        let outcome = pass.run().await;
        assert_eq!(errors(&outcome), Vec::<String>::new());
        ended.extend(fates(&outcome.report.entries).into_iter().map(|fate| fate.replace(&text, "it")));
        if heard {
            stage.advance(Duration::from_secs(1));
            let _ = stage.ledger.heartbeat(&id, None, None, stage.now()).await.unwrap();
        }
    }
    let record = stage.ledger.get(&id).await.unwrap().unwrap();
    Ending { fates: ended, acts: server.acts(), state: record.state }
}

#[tokio::test]
async fn an_idle_sandbox_is_terminated_where_its_owner_chose_that_and_the_policy_loses_nothing() {
    use Terminate::{AfterSnapshot, AtOnce, Never};
    use WorkspaceRule::{Discard, Save};
    let (snapshot, terminate, second) = ("SandboxSnapshotFs", "SandboxTerminate", "SandboxTerminateV2");
    for (chosen, workspace, of_second, acts) in [
        (AfterSnapshot, Save, false, &[snapshot, terminate][..]),
        (AfterSnapshot, Discard, false, &[terminate]),
        (AfterSnapshot, Save, true, &[]),
        (AtOnce, Discard, false, &[terminate]),
        (AtOnce, Discard, true, &[second]),
        (AtOnce, Save, false, &[]),
        (Never, Discard, false, &[]),
        (Never, Save, true, &[]),
    ] {
        let Ending { fates, acts: asked, state } = ending(chosen, workspace, of_second).await;
        let case = format!("{chosen:?}, {workspace:?}, second generation: {of_second}");
        assert_eq!(asked, acts, "{case}: {fates:?}");
        let (told, left) =
            if acts.is_empty() { (Vec::new(), State::Running) } else { (vec!["it delete: done"], State::Gone) };
        assert_eq!((fates, state), (told.into_iter().map(str::to_owned).collect(), left), "{case}");
    }
}
