//! A runtime to put into a fake, in words.

use std::{collections::BTreeMap, sync::Arc};

use lifecycle::{Activity, Busy, Loss, NativeObserved, Ownership, State, Tier, Time};

use super::world::{Files, Inside};
use crate::Probe;

/// A runtime to put into a [`super::Fake`]. Unless said otherwise: ours, active when it was added, not busy,
/// with nothing to lose, an agent server inside that agrees, and no timers of the provider's own.
#[derive(Debug, Clone)]
#[must_use]
pub struct RuntimeSpec {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) since: Option<Time>,
    pub(super) activity: Option<Activity>,
    pub(super) busy: Busy,
    pub(super) ownership: Ownership,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) ephemeral: bool,
    pub(super) unsavable: Option<Arc<str>>,
    pub(super) loss: Loss,
    pub(super) files: Files,
    pub(super) native: Option<NativeObserved>,
    pub(super) inside: Option<Inside>,
}

impl RuntimeSpec {
    /// A running one.
    pub fn running(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Running,
            since: None,
            activity: None,
            busy: Busy::No,
            ownership: Ownership::Ours,
            labels: BTreeMap::new(),
            ephemeral: false,
            unsavable: None,
            loss: Loss::Nothing,
            files: Files::new(),
            native: None,
            inside: None,
        }
    }

    /// A suspended one.
    pub fn suspended(name: &str) -> Self {
        Self { state: State::Suspended, ..Self::running(name) }
    }

    /// An archived one.
    pub fn archived(name: &str) -> Self {
        Self { state: State::Archived, ..Self::running(name) }
    }

    /// It entered its state then.
    pub fn since(self, at: Time) -> Self {
        Self { since: Some(at), ..self }
    }

    /// It was last active then.
    pub fn active(self, at: Time) -> Self {
        Self { activity: Some(Activity::At(at)), ..self }
    }

    /// The provider can't tell its activity.
    pub fn unknown(self) -> Self {
        Self { activity: Some(Activity::Unknown), ..self }
    }

    /// The provider says that work is under way until then.
    pub fn busy_until(self, at: Time) -> Self {
        Self { busy: Busy::Until(at), ..self }
    }

    /// Somebody else's.
    pub fn foreign(self) -> Self {
        Self { ownership: Ownership::Foreign, ..self }
    }

    /// Looks like an agent's, but the scope does not name it.
    pub fn unlabelled(self) -> Self {
        Self { ownership: Ownership::Unlabelled, ..self }
    }

    /// With a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Stopping it deletes it.
    pub fn ephemeral(self) -> Self {
        Self { ephemeral: true, ..self }
    }

    /// With a file of the user's.
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert((None, path.to_owned()), bytes.into());
        self
    }

    /// With a file that can be made again.
    pub fn shedable(mut self, tier: Tier, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert((Some(tier), path.to_owned()), bytes.into());
        self
    }

    /// A delete would lose this.
    pub fn unsaved(mut self, what: &str) -> Self {
        let mut work = match self.loss {
            Loss::Work(work) => work,
            Loss::Unknown | Loss::Nothing => Vec::new(),
        };
        work.push(what.into());
        self.loss = Loss::Work(work);
        self
    }

    /// Nobody can tell what a delete would lose.
    pub fn unknown_loss(self) -> Self {
        Self { loss: Loss::Unknown, ..self }
    }

    /// What a delete would lose can't be saved, for this reason.
    pub fn unsavable(self, why: &str) -> Self {
        Self { unsavable: Some(why.into()), ..self }
    }

    /// The provider's own timers.
    pub fn native(self, native: NativeObserved) -> Self {
        Self { native: Some(native), ..self }
    }

    /// The agent server inside answers this.
    pub fn probe(self, probe: Probe) -> Self {
        Self { inside: Some(Inside::Answers(probe)), ..self }
    }

    /// The agent server inside does not answer.
    pub fn silent(self) -> Self {
        Self { inside: Some(Inside::Silent), ..self }
    }

    /// There is no agent server inside.
    pub fn no_agent_server(self) -> Self {
        Self { inside: Some(Inside::Absent), ..self }
    }
}
