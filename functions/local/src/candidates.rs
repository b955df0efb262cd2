//! Which runtimes there are to be named: what the backends list, and what the ledger knows.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use lifecycle::{Observation, RuntimeId, Time};
use pass::Pass;

use crate::{
    answer::Fault,
    names::{Candidate, UNKNOWN, decoded, named, resolve},
    parts::ledger_fault,
    terminal::Terminal,
};

/// The most pages of one listing, and of one backend's records.
const MAX_PAGES: usize = 10_000;

/// Of at most so many runtimes that no backend lists their history is asked for their name, the latest first.
const MAX_REMEMBERED: usize = 1_000;

/// What there is to be named.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    seen: BTreeMap<RuntimeId, Option<Box<Observation>>>,
    /// Since when those are as they are that the ledger knows.
    since: BTreeMap<RuntimeId, Time>,
    /// What the history knows those by that no backend lists.
    remembered: BTreeMap<RuntimeId, Arc<str>>,
    /// Backends that could not be listed to the end.
    unread: Vec<lifecycle::BackendName>,
}

/// A runtime that was named.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// Which.
    pub(crate) id: RuntimeId,
    /// Its path or image, as it was listed or as the history has it; empty: nobody tells.
    pub(crate) about: Arc<str>,
    /// As it was listed, where it was.
    pub(crate) seen: Option<Box<Observation>>,
}

impl Named {
    /// Its name in full, and the one that people gave it.
    pub(crate) fn name(&self) -> String {
        named(&decoded(&self.id), &self.about)
    }
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
            for (id, record) in page.records {
                self.since.insert(id.clone(), record.state_since);
                self.seen.insert(id, None);
            }
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
        self.seen.iter().map(|(id, seen)| {
            let about = seen.as_ref().map(|seen| &seen.about).or_else(|| self.remembered.get(id));
            (id.clone(), about.map(ToString::to_string).unwrap_or_default())
        })
    }

    /// The runtime that `name` means: of those that are there or recorded by their id, else of those that the history
    /// knows by that name. A full name of a backend that could not be listed is taken as it is.
    pub(crate) async fn named(mut self, pass: &Pass, name: &str) -> Result<Named, Fault> {
        let fault = match self.resolved(name) {
            Err(fault) if fault.code == UNKNOWN => fault,
            resolved => return resolved,
        };
        self.remember(pass).await?;
        match (self.resolved(name), name.parse::<RuntimeId>()) {
            (Err(_), Ok(id)) if self.unread.contains(id.backend()) => Ok(Named { id, about: "".into(), seen: None }),
            (Err(other), _) if other.code == UNKNOWN => Err(fault),
            (resolved, _) => resolved,
        }
    }

    fn resolved(&self, name: &str) -> Result<Named, Fault> {
        let all: Vec<_> = self.known().map(|(id, about)| Candidate { id, about }).collect();
        let id = resolve(name, &all)?;
        let seen = self.seen.get(&id).cloned().flatten();
        let about = seen.as_ref().map(|seen| &seen.about).or_else(|| self.remembered.get(&id));
        Ok(Named { about: about.cloned().unwrap_or_else(|| "".into()), id, seen })
    }

    /// Asks the history what those were known by that no backend lists: a container that was removed, all of an engine
    /// that is down.
    pub(crate) async fn remember(&mut self, pass: &Pass) -> Result<(), Fault> {
        let mut unseen: Vec<_> = self.seen.iter().filter(|(_, seen)| seen.is_none()).map(|(id, _)| id).collect();
        unseen.sort_by_key(|id| Reverse(self.since.get(*id).copied()));
        for id in unseen.into_iter().take(MAX_REMEMBERED) {
            let newest = pass.ledger.history(id, 1).await.map_err(ledger_fault)?.pop();
            self.remembered.extend(newest.map(|line| (id.clone(), line.about())));
        }
        Ok(())
    }
}
