//! A backend as the pass holds it: the roles that it has, and no way to call one that it hasn't.

use std::sync::Arc;

use lifecycle::{BackendName, Capabilities};

use crate::role::{
    Archivable, Deletable, Executable, FileReclaimable, Inspectable, Listable, NativeLifecycle, Probed, Recoverable,
    Suspendable,
};

/// A configured backend with the roles that its type has.
#[derive(Clone)]
pub struct Backend {
    /// Its configured name.
    pub name: BackendName,
    /// Its kind: "docker", "worktree".
    pub kind: &'static str,
    /// Its runtimes have no suspended state: an idle one is at rest ([`Capabilities::rests`]).
    pub rests: bool,
    /// Every backend lists.
    pub list: Arc<dyn Listable>,
    /// Every backend can be asked for one runtime.
    pub inspect: Arc<dyn Inspectable>,
    /// Asks the agent server inside.
    pub probe: Option<Arc<dyn Probed>>,
    /// Suspends and resumes.
    pub suspend: Option<Arc<dyn Suspendable>>,
    /// Archives.
    pub archive: Option<Arc<dyn Archivable>>,
    /// Deletes.
    pub delete: Option<Arc<dyn Deletable>>,
    /// Sheds files.
    pub files: Option<Arc<dyn FileReclaimable>>,
    /// Takes back.
    pub undo: Option<Arc<dyn Recoverable>>,
    /// Reads and writes the provider's own timers.
    pub native: Option<Arc<dyn NativeLifecycle>>,
    /// Runs commands inside.
    pub execute: Option<Arc<dyn Executable>>,
}

/// Gives a backend its roles, each only if its type implements it.
///
/// A role that the type implements is given by naming it; one that it doesn't is a compile error:
///
/// ```compile_fail,E0277
/// # use std::sync::Arc;
/// # use async_trait::async_trait;
/// # use backend::{Backend, BackendError, Inspectable, Listable, Page, PageToken, Sighting};
/// # use lifecycle::{BackendName, RuntimeId};
/// struct ListsOnly;
/// # #[async_trait]
/// # impl Listable for ListsOnly {
/// #     async fn list(&self, _: Option<&PageToken>) -> Result<Page, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Inspectable for ListsOnly {
/// #     async fn inspect(&self, _: &RuntimeId) -> Result<Sighting, BackendError> { unimplemented!() }
/// # }
/// let name = BackendName::new("b").unwrap();
/// // ListsOnly is not Deletable:
/// let backend = Backend::builder(name, "lists-only", Arc::new(ListsOnly)).deletes().build();
/// ```
///
/// Each role asks for its own: a type that deletes can still not be given another one.
///
/// ```compile_fail,E0277
/// # use std::sync::Arc;
/// # use async_trait::async_trait;
/// # use backend::{Backend, BackendError, Bounds, Deletable, Deleted, Inspectable, Listable, Outcome, Page, PageToken, Sighting, Target};
/// # use lifecycle::{BackendName, RuntimeId, policy::WorkspaceRule};
/// struct Deletes;
/// # #[async_trait]
/// # impl Listable for Deletes {
/// #     async fn list(&self, _: Option<&PageToken>) -> Result<Page, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Inspectable for Deletes {
/// #     async fn inspect(&self, _: &RuntimeId) -> Result<Sighting, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Deletable for Deletes {
/// #     async fn delete(&self, _: &Target, _: WorkspaceRule, _: Bounds) -> Result<Outcome<Deleted>, BackendError> { unimplemented!() }
/// # }
/// let name = BackendName::new("b").unwrap();
/// // Deletes is not Suspendable:
/// let backend = Backend::builder(name, "deletes", Arc::new(Deletes)).deletes().suspends().build();
/// ```
///
/// The same with the role that it has, and without the one that it lacks, compiles:
///
/// ```
/// # use std::sync::Arc;
/// # use async_trait::async_trait;
/// # use backend::{Backend, BackendError, Bounds, Deletable, Deleted, Inspectable, Listable, Outcome, Page, PageToken, Sighting, Target};
/// # use lifecycle::{BackendName, RuntimeId, policy::WorkspaceRule};
/// struct Deletes;
/// # #[async_trait]
/// # impl Listable for Deletes {
/// #     async fn list(&self, _: Option<&PageToken>) -> Result<Page, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Inspectable for Deletes {
/// #     async fn inspect(&self, _: &RuntimeId) -> Result<Sighting, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Deletable for Deletes {
/// #     async fn delete(&self, _: &Target, _: WorkspaceRule, _: Bounds) -> Result<Outcome<Deleted>, BackendError> { unimplemented!() }
/// # }
/// let name = BackendName::new("b").unwrap();
/// let backend = Backend::builder(name, "deletes", Arc::new(Deletes)).deletes().build();
/// assert!(backend.capabilities().delete && backend.capabilities().suspend.is_none());
/// ```
///
/// The first one without a role compiles too:
///
/// ```
/// # use std::sync::Arc;
/// # use async_trait::async_trait;
/// # use backend::{Backend, BackendError, Inspectable, Listable, Page, PageToken, Sighting};
/// # use lifecycle::{BackendName, RuntimeId};
/// struct ListsOnly;
/// # #[async_trait]
/// # impl Listable for ListsOnly {
/// #     async fn list(&self, _: Option<&PageToken>) -> Result<Page, BackendError> { unimplemented!() }
/// # }
/// # #[async_trait]
/// # impl Inspectable for ListsOnly {
/// #     async fn inspect(&self, _: &RuntimeId) -> Result<Sighting, BackendError> { unimplemented!() }
/// # }
/// let name = BackendName::new("b").unwrap();
/// let backend = Backend::builder(name, "lists-only", Arc::new(ListsOnly)).build();
/// assert!(!backend.capabilities().delete);
/// ```
#[must_use]
pub struct Builder<B> {
    typed: Arc<B>,
    backend: Backend,
}

impl Backend {
    /// Begins with the two roles that every backend has.
    pub fn builder<B: Listable + Inspectable + 'static>(
        name: BackendName,
        kind: &'static str,
        typed: Arc<B>,
    ) -> Builder<B> {
        let backend = Self {
            name,
            kind,
            rests: false,
            list: typed.clone(),
            inspect: typed.clone(),
            probe: None,
            suspend: None,
            archive: None,
            delete: None,
            files: None,
            undo: None,
            native: None,
            execute: None,
        };
        Builder { typed, backend }
    }

    /// Its roles, as data for the planner.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            rests: self.rests,
            suspend: self.suspend.as_ref().map(|role| role.survives()),
            archive: self.archive.is_some(),
            delete: self.delete.is_some(),
            saves_first: self.delete.as_ref().is_some_and(|role| role.saves_first()),
            files: self.files.is_some(),
            undo: self.undo.is_some(),
        }
    }
}

impl<B> Builder<B> {
    /// Its runtimes have no suspended state, and are deleted from running: [`Capabilities::rests`] says when that may be.
    pub fn rests(mut self) -> Self {
        self.backend.rests = true;
        self
    }

    /// It asks the agent server inside.
    pub fn probes(mut self) -> Self
    where
        B: Probed + 'static,
    {
        self.backend.probe = Some(self.typed.clone());
        self
    }

    /// It suspends and resumes.
    pub fn suspends(mut self) -> Self
    where
        B: Suspendable + 'static,
    {
        self.backend.suspend = Some(self.typed.clone());
        self
    }

    /// It archives.
    pub fn archives(mut self) -> Self
    where
        B: Archivable + 'static,
    {
        self.backend.archive = Some(self.typed.clone());
        self
    }

    /// It deletes.
    pub fn deletes(mut self) -> Self
    where
        B: Deletable + 'static,
    {
        self.backend.delete = Some(self.typed.clone());
        self
    }

    /// It sheds files.
    pub fn sheds(mut self) -> Self
    where
        B: FileReclaimable + 'static,
    {
        self.backend.files = Some(self.typed.clone());
        self
    }

    /// It takes back what it shed and deleted.
    pub fn recovers(mut self) -> Self
    where
        B: Recoverable + 'static,
    {
        self.backend.undo = Some(self.typed.clone());
        self
    }

    /// It reads and writes the provider's own timers.
    pub fn sets_native(mut self) -> Self
    where
        B: NativeLifecycle + 'static,
    {
        self.backend.native = Some(self.typed.clone());
        self
    }

    /// It runs commands inside.
    pub fn executes(mut self) -> Self
    where
        B: Executable + 'static,
    {
        self.backend.execute = Some(self.typed.clone());
        self
    }

    /// The backend with the roles named so far.
    pub fn build(self) -> Backend {
        self.backend
    }
}
