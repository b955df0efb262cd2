//! A decorator around a whole backend that fails as a script or a seed says: before the effect, after it, or
//! in what a listing tells.
//!
//! ```
//! use backend::{Clock, ErrorKind, BackendError, fake::Fake, faulty::{self, Fault, Script, Verb}};
//! # use lifecycle::{BackendName, Time};
//! # let fake = Fake::new(BackendName::new("fake").unwrap(), Clock::fixed(Time::from_millis(0)));
//! let script = Script::new()
//!     .at(Verb::List, 0, Fault::Before(BackendError::new(ErrorKind::Unreachable, "no route")))
//!     .at(Verb::Delete, 1, Fault::Lost); // the second delete is done, but its answer is lost
//! let backend = faulty::around(fake.backend(), script);
//! assert!(backend.delete.is_some());
//! ```
//!
//! It has exactly the roles of the backend that it stands before. What it hands through is what that answers.

mod plan;
mod roles;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use lifecycle::RuntimeId;

pub use plan::{Script, Seeded};

use crate::{Backend, BackendError, Outcome};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Verb {
    List,
    Disk,
    Inspect,
    Probe,
    Suspend,
    Resume,
    Archive,
    Delete,
    Shed,
    Trashed,
    Undo,
    Empty,
    Native,
    SetNative,
    Execute,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 15] = [
        Self::List,
        Self::Disk,
        Self::Inspect,
        Self::Probe,
        Self::Suspend,
        Self::Resume,
        Self::Archive,
        Self::Delete,
        Self::Shed,
        Self::Trashed,
        Self::Undo,
        Self::Empty,
        Self::Native,
        Self::SetNative,
        Self::Execute,
    ];

    /// Whether it only looks: such a one has no outcome, so that a lost answer is an error.
    pub const fn looks(self) -> bool {
        matches!(self, Self::List | Self::Disk | Self::Inspect | Self::Trashed)
    }
}

/// One call, before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub verb: Verb,
    /// How many calls of this verb there were before.
    pub nth: u64,
    /// Which runtime it is about, if about one.
    pub runtime: Option<RuntimeId>,
}

/// How a call fails. What does not fit a verb, as a short listing does not fit a delete, does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It could not be asked: nothing is done.
    Before(BackendError),
    /// It is asked and never answers, and nothing is done: `Unknown`, or an error where the verb only looks.
    TimesOut,
    /// It is done, and the answer is lost: `Unknown`, or an error where the verb only looks.
    Lost,
    /// It is done, and this is the answer: what a client makes of a connection that broke half way.
    After(BackendError),
    /// A page ends after so many, and says that it was the last: the provider's list is short.
    Short(usize),
    /// A page tells everything twice.
    Doubled,
    /// A page tells, besides, that something could not be read.
    Partial(Arc<str>),
}

/// Says which calls fail and how. Called once a call, in the order of the calls.
pub trait Plan: Send {
    /// How this call fails; `None`: it doesn't.
    fn fault(&mut self, call: &Call) -> Option<Fault>;
}

impl<F: FnMut(&Call) -> Option<Fault> + Send> Plan for F {
    fn fault(&mut self, call: &Call) -> Option<Fault> {
        self(call)
    }
}

/// The backend, failing as the plan says.
pub fn around(inner: Backend, plan: impl Plan + 'static) -> Backend {
    let faults = Faults(Arc::new(Mutex::new(State { plan: Box::new(plan), counts: BTreeMap::new() })));
    Backend {
        name: inner.name,
        kind: inner.kind,
        rests: inner.rests,
        list: faults.before(inner.list),
        inspect: faults.before(inner.inspect),
        probe: inner.probe.map(|role| faults.before(role) as _),
        suspend: inner.suspend.map(|role| faults.before(role) as _),
        archive: inner.archive.map(|role| faults.before(role) as _),
        delete: inner.delete.map(|role| faults.before(role) as _),
        files: inner.files.map(|role| faults.before(role) as _),
        undo: inner.undo.map(|role| faults.before(role) as _),
        native: inner.native.map(|role| faults.before(role) as _),
        execute: inner.execute.map(|role| faults.before(role) as _),
    }
}

/// One role behind the plan.
struct Faulty<R: ?Sized> {
    inner: Arc<R>,
    faults: Faults,
}

/// The plan that all roles of a backend share.
#[derive(Clone)]
struct Faults(Arc<Mutex<State>>);

struct State {
    plan: Box<dyn Plan>,
    counts: BTreeMap<Verb, u64>,
}

impl Faults {
    fn before<R: ?Sized>(&self, inner: Arc<R>) -> Arc<Faulty<R>> {
        Arc::new(Faulty { inner, faults: self.clone() })
    }

    fn next(&self, verb: Verb, runtime: Option<&RuntimeId>) -> Option<Fault> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.counts.entry(verb).or_default();
        let nth = *count;
        *count += 1;
        state.plan.fault(&Call { verb, nth, runtime: runtime.cloned() })
    }

    /// A call that has an outcome.
    async fn act<T>(
        &self,
        verb: Verb,
        runtime: Option<&RuntimeId>,
        call: impl Future<Output = Result<Outcome<T>, BackendError>>,
    ) -> Result<Outcome<T>, BackendError> {
        let no_answer = || Ok(Outcome::Unknown(format!("{verb:?} was asked, and no answer came").into()));
        match self.next(verb, runtime) {
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::TimesOut) => no_answer(),
            Some(Fault::Lost) => {
                drop(call.await);
                no_answer()
            }
            Some(Fault::After(error)) => {
                drop(call.await);
                Err(error)
            }
            Some(Fault::Short(_) | Fault::Doubled | Fault::Partial(_)) | None => call.await,
        }
    }
}
