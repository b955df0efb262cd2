//! Terminating, after a snapshot where that was chosen; believed when it was seen.

use std::time::Duration;

use async_trait::async_trait;
use backend::{BackendError, Bounds, Deletable, Deleted, Outcome, Target, provider::aimed};
use lifecycle::{State, policy::WorkspaceRule};
use tonic::Code;

use crate::{
    Modal, Terminate,
    call::{Again, Client, Failure},
    observe::{NO_SNAPSHOT, is_first},
    proto::{SandboxSnapshotFsRequest, SandboxTerminateRequest, SandboxTerminateResponse},
};

/// What a snapshot of the files may take: Modal's own client waits 55 s.
const SNAPSHOT: Duration = Duration::from_mins(1);
/// A termination is begun, and not waited for.
const TERMINATE: Duration = Duration::from_secs(20);
/// What a look before the acts and one after them take.
const LOOK: Duration = Duration::from_secs(15);

/// Who ended it.
enum Terminated {
    /// This call.
    Now,
    /// It had ended before.
    Before,
}

#[async_trait]
impl Deletable for Modal {
    fn saves_first(&self) -> bool {
        self.options.terminate == Terminate::AfterSnapshot
    }

    /// From running, since there is no other state; that its owner allows it is why this role is there.
    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let saves = self.saves_first() && save == WorkspaceRule::Save;
        let needed = TERMINATE + 2 * LOOK + if saves { SNAPSHOT } else { Duration::ZERO };
        self.api.time_for("a termination", needed, bounds)?;
        let seen = match self.find(target, LOOK).await? {
            Ok(seen) => seen,
            Err(miss) => return Ok(miss.outcome()),
        };
        if let Err(miss) = aimed(&seen, target, &[State::Running]) {
            return Ok(miss.outcome());
        }
        let sandbox = seen.incarnation.as_str();
        let mut deleted = Deleted::default();
        if saves {
            if !is_first(sandbox) {
                return Ok(Outcome::Refused(NO_SNAPSHOT.into()));
            }
            match self.snapshot(sandbox).await {
                Ok(image) => deleted.saved = Some(format!("Modal's image `{image}`").into()),
                Err(failure) => return self.not_saved(target, failed(failure), bounds).await,
            }
        }
        match self.terminate(sandbox).await {
            Ok(Terminated::Now) => Ok(self.terminated(target, Outcome::Done(deleted), bounds).await),
            Ok(Terminated::Before) => Ok(self.terminated(target, Outcome::AlreadyDone, bounds).await),
            Err(failure) if failure.is(Code::NotFound) => Ok(Outcome::Gone),
            Err(failure) => failed(failure),
        }
    }
}

impl Modal {
    /// Its files as an image. Asked once: another one would be another image.
    async fn snapshot(&self, sandbox: &str) -> Result<String, Failure> {
        #[expect(clippy::cast_precision_loss, reason = "a minute")]
        let timeout = SNAPSHOT.as_secs() as f32;
        let question = SandboxSnapshotFsRequest { sandbox_id: sandbox.to_owned(), timeout };
        let call = ("SandboxSnapshotFs", Again::No);
        let send = async |mut client: Client, question| client.sandbox_snapshot_fs(question).await;
        let answer = self.api.ask(call, question, SNAPSHOT, send).await?;
        let status = answer.result.map_or(0, |result| result.status);
        // A result of its own says how it went; none, or a success, with an image: it is kept.
        if status > 1 || answer.image_id.is_empty() {
            let why = format!("Modal's snapshot of `{sandbox}` did not succeed (status {status}): it is kept");
            return Err(Failure::Said { code: Code::FailedPrecondition, message: why, wait: None });
        }
        Ok(answer.image_id)
    }

    /// Nothing was terminated here. Who else did so meanwhile left nothing to save: then it is gone, and nothing failed.
    async fn not_saved(
        &self,
        target: &Target,
        failed: Result<Outcome<Deleted>, BackendError>,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        let Ok(Outcome::Refused(_) | Outcome::Unknown(_)) = failed else { return failed };
        let left = bounds.deadline.since(self.api.now()).min(LOOK);
        if let Ok(None) = self.look_within(&target.id, left).await { Ok(Outcome::Gone) } else { failed }
    }

    /// The same twice: one that ended already is none the worse.
    async fn terminate(&self, sandbox: &str) -> Result<Terminated, Failure> {
        let question = SandboxTerminateRequest { sandbox_id: sandbox.to_owned() };
        let answer = if is_first(sandbox) {
            let send = async |mut client: Client, question| client.sandbox_terminate(question).await;
            self.api.ask(("SandboxTerminate", Again::Yes), question, TERMINATE, send).await
        } else {
            let send = async |mut client: Client, question| client.sandbox_terminate_v2(question).await;
            self.api.ask_v2(("SandboxTerminateV2", Again::Yes), question, TERMINATE, send).await
        };
        let ended = |answer: SandboxTerminateResponse| answer.existing_result.is_some_and(|result| result.status != 0);
        answer.map(|answer| if ended(answer) { Terminated::Before } else { Terminated::Now })
    }

    /// It is answered before it is done: one look more tells whether it is.
    async fn terminated(&self, target: &Target, ended: Outcome<Deleted>, bounds: Bounds) -> Outcome<Deleted> {
        match self.look_within(&target.id, bounds.deadline.since(self.api.now()).min(LOOK)).await {
            Ok(None) => ended,
            Ok(Some(_)) => Outcome::Pending,
            Err(error) => Outcome::Unknown(error.message.into()),
        }
    }
}

/// What a failed act comes to: what may have been done is unknown, what can be asked again later is an error, and what
/// will not be done is refused.
fn failed<T>(failure: Failure) -> Result<Outcome<T>, BackendError> {
    match failure {
        Failure::NotAsked(error) => Err(error),
        Failure::NoAnswer(words) | Failure::Unreadable(words) => Ok(Outcome::Unknown(words.into())),
        Failure::Said { wait: Some(_), .. }
        | Failure::Said { code: Code::Unauthenticated | Code::PermissionDenied, .. } => Err(failure.into()),
        Failure::Said {
            code:
                Code::InvalidArgument
                | Code::OutOfRange
                | Code::FailedPrecondition
                | Code::Aborted
                | Code::Unimplemented
                | Code::ResourceExhausted
                | Code::NotFound
                | Code::AlreadyExists,
            message,
            ..
        } => Ok(Outcome::Refused(message.into())),
        Failure::Said { message, .. } => Ok(Outcome::Unknown(message.into())),
    }
}
