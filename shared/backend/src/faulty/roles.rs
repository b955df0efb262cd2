//! Every role, behind the plan.

use std::sync::Arc;

use async_trait::async_trait;
use lifecycle::{Incarnation, NativeObserved, RuntimeId, Survives, Tier, Time, policy::WorkspaceRule, snapshot::Disk};

use super::{Fault, Faulty, Verb};
use crate::{
    Archivable, BackendError, Bounds, Command, Deletable, Deleted, ErrorKind, Executable, FileReclaimable, Inspectable,
    Listable, NativeLifecycle, NativeWanted, Outcome, Output, Page, PageToken, Probe, Probed, Recoverable, Shed,
    Sighting, Suspendable, Target, Trashed,
};

impl<R: ?Sized> Faulty<R> {
    /// A call that only looks; hands back the fault that shapes what it tells, if it is one.
    async fn look<T>(
        &self,
        verb: Verb,
        runtime: Option<&RuntimeId>,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<(T, Option<Fault>), BackendError> {
        let no_answer = || Err(BackendError::new(ErrorKind::Unreachable, format!("{verb:?} did not answer in time")));
        match self.faults.next(verb, runtime) {
            Some(Fault::Before(error) | Fault::After(error)) => Err(error),
            Some(Fault::TimesOut | Fault::Lost) => no_answer(),
            shaping => Ok((call.await?, shaping)),
        }
    }
}

#[async_trait]
impl Listable for Faulty<dyn Listable> {
    async fn list(&self, page: Option<&PageToken>) -> Result<Page, BackendError> {
        let (mut page, shaping) = self.look(Verb::List, None, self.inner.list(page)).await?;
        match shaping {
            Some(Fault::Short(at)) => {
                page.seen.truncate(at);
                page.next = None;
            }
            Some(Fault::Doubled) => page.seen.extend(page.seen.clone()),
            Some(Fault::Partial(what)) => page.unreadable.push(what),
            _ => {}
        }
        Ok(page)
    }

    async fn disk(&self) -> Result<Option<Disk>, BackendError> {
        Ok(self.look(Verb::Disk, None, self.inner.disk()).await?.0)
    }
}

#[async_trait]
impl Inspectable for Faulty<dyn Inspectable> {
    async fn inspect(&self, id: &RuntimeId) -> Result<Sighting, BackendError> {
        Ok(self.look(Verb::Inspect, Some(id), self.inner.inspect(id)).await?.0)
    }
}

#[async_trait]
impl Probed for Faulty<dyn Probed> {
    async fn probe(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Probe>, BackendError> {
        self.faults.act(Verb::Probe, Some(&target.id), self.inner.probe(target, bounds)).await
    }
}

#[async_trait]
impl Suspendable for Faulty<dyn Suspendable> {
    fn survives(&self) -> Survives {
        self.inner.survives()
    }

    async fn suspend(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.faults.act(Verb::Suspend, Some(&target.id), self.inner.suspend(target, bounds)).await
    }

    async fn resume(&self, target: &Target, bounds: Bounds) -> Result<Outcome<Incarnation>, BackendError> {
        self.faults.act(Verb::Resume, Some(&target.id), self.inner.resume(target, bounds)).await
    }
}

#[async_trait]
impl Archivable for Faulty<dyn Archivable> {
    fn archive_survives(&self) -> Survives {
        self.inner.archive_survives()
    }

    async fn archive(&self, target: &Target, bounds: Bounds) -> Result<Outcome, BackendError> {
        self.faults.act(Verb::Archive, Some(&target.id), self.inner.archive(target, bounds)).await
    }
}

#[async_trait]
impl Deletable for Faulty<dyn Deletable> {
    fn saves_first(&self) -> bool {
        self.inner.saves_first()
    }

    async fn delete(
        &self,
        target: &Target,
        save: WorkspaceRule,
        bounds: Bounds,
    ) -> Result<Outcome<Deleted>, BackendError> {
        self.faults.act(Verb::Delete, Some(&target.id), self.inner.delete(target, save, bounds)).await
    }
}

#[async_trait]
impl FileReclaimable for Faulty<dyn FileReclaimable> {
    async fn shed(&self, target: &Target, tier: Tier, bounds: Bounds) -> Result<Outcome<Shed>, BackendError> {
        self.faults.act(Verb::Shed, Some(&target.id), self.inner.shed(target, tier, bounds)).await
    }
}

#[async_trait]
impl Recoverable for Faulty<dyn Recoverable> {
    async fn trashed(&self) -> Result<Vec<Trashed>, BackendError> {
        Ok(self.look(Verb::Trashed, None, self.inner.trashed()).await?.0)
    }

    async fn undo(&self, entry: &str) -> Result<Outcome<Trashed>, BackendError> {
        self.faults.act(Verb::Undo, None, self.inner.undo(entry)).await
    }

    async fn empty(&self, entry: &str) -> Result<Outcome, BackendError> {
        self.faults.act(Verb::Empty, None, self.inner.empty(entry)).await
    }

    async fn forget_saves(&self, before: Time) -> Result<Vec<Arc<str>>, BackendError> {
        Ok(self.look(Verb::Trashed, None, self.inner.forget_saves(before)).await?.0)
    }
}

#[async_trait]
impl NativeLifecycle for Faulty<dyn NativeLifecycle> {
    fn attainable(&self, wanted: NativeWanted) -> NativeWanted {
        self.inner.attainable(wanted)
    }

    async fn native(&self, target: &Target, bounds: Bounds) -> Result<Outcome<NativeObserved>, BackendError> {
        self.faults.act(Verb::Native, Some(&target.id), self.inner.native(target, bounds)).await
    }

    async fn set_native(
        &self,
        target: &Target,
        wanted: NativeWanted,
        bounds: Bounds,
    ) -> Result<Outcome<NativeObserved>, BackendError> {
        self.faults.act(Verb::SetNative, Some(&target.id), self.inner.set_native(target, wanted, bounds)).await
    }
}

#[async_trait]
impl Executable for Faulty<dyn Executable> {
    async fn execute(
        &self,
        target: &Target,
        command: &Command,
        bounds: Bounds,
    ) -> Result<Outcome<Output>, BackendError> {
        self.faults.act(Verb::Execute, Some(&target.id), self.inner.execute(target, command, bounds)).await
    }
}
