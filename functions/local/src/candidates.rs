//! Which runtimes there are to be named: what the backends list, and what the ledger knows.

use std::collections::BTreeMap;

use lifecycle::{Observation, RuntimeId};
use pass::Pass;

use crate::{
    answer::Fault,
    names::{Candidate, resolve},
    parts::ledger_fault,
    terminal::Terminal,
};

/// The most pages of one listing, and of one backend's records.
const MAX_PAGES: usize = 10_000;

/// What there is to be named.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    seen: BTreeMap<RuntimeId, Option<Box<Observation>>>,
    /// Backends that could not be listed to the end.
    unread: Vec<lifecycle::BackendName>,
}

/// A runtime that was named.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// Which.
    pub(crate) id: RuntimeId,
    /// As it was listed, where it was.
    pub(crate) seen: Option<Box<Observation>>,
}

impl Candidates {
    /// Lists every backend, and reads every record. A backend that can't be listed is said on stderr.
    pub(crate) async fn read(pass: &Pass, terminal: Terminal) -> Result<Self, Fault> {
        let mut all = Self::default();
        for unit in &pass.units {
            all.records(pass, &unit.backend.name).await?;
            if let Err(error) = all.list(&unit.backend).await {
                terminal.note(&format!("`{}` could not be listed: {error}", unit.backend.name));
                all.unread.push(unit.backend.name.clone());
            }
        }
        Ok(all)
    }

    async fn records(&mut self, pass: &Pass, backend: &lifecycle::BackendName) -> Result<(), Fault> {
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = pass.ledger.records(backend, cursor.take()).await.map_err(ledger_fault)?;
            self.seen.extend(page.records.into_iter().map(|(id, _)| (id, None)));
            let Some(next) = page.next else { return Ok(()) };
            cursor = Some(next);
        }
        Ok(())
    }

    async fn list(&mut self, backend: &backend::Backend) -> Result<(), backend::BackendError> {
        let mut token = None;
        for _ in 0..MAX_PAGES {
            let page = backend.list.list(token.as_ref()).await?;
            self.seen.extend(page.seen.into_iter().map(|seen| (seen.id.clone(), Some(Box::new(seen)))));
            let Some(next) = page.next else { return Ok(()) };
            token = Some(next);
        }
        Ok(())
    }

    /// All of them, with their paths or images.
    pub(crate) fn known(&self) -> impl Iterator<Item = (RuntimeId, String)> {
        let about = |seen: &Observation| seen.about.to_string();
        self.seen.iter().map(move |(id, seen)| (id.clone(), seen.as_deref().map(about).unwrap_or_default()))
    }

    /// The runtime that `name` means. A full name of a backend that could not be listed is taken as it is.
    pub(crate) fn named(&self, name: &str) -> Result<Named, Fault> {
        let all: Vec<_> = self.known().map(|(id, about)| Candidate { id, about }).collect();
        match resolve(name, &all) {
            Ok(id) => {
                let seen = self.seen.get(&id).cloned().flatten();
                Ok(Named { id, seen })
            }
            Err(fault) => match name.parse::<RuntimeId>() {
                Ok(id) if self.unread.contains(id.backend()) => Ok(Named { id, seen: None }),
                _ => Err(fault),
            },
        }
    }
}
