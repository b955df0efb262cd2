//! What killed processes left: acts in a trash that were not ended, saves that were only begun. The first act of a process
//! ends them, in every trash and for every runtime, whichever it is aimed at. What another process is at stays.

use std::{path::PathBuf, sync::PoisonError};

use crate::{
    blocking, fault,
    roles::Worktrees,
    save,
    trash::{Halt, Yard},
};

impl Worktrees {
    /// Looks through all of ours, once in the life of a process. What can't be tidied is told, and in no act's way.
    pub(crate) async fn tidy_all(&self) {
        let this = self.clone();
        self.tidied_all.get_or_init(|| blocking(move || this.tidy_each())).await;
    }

    fn tidy_each(&self) {
        for yard in self.yards() {
            let tidied = yard.and_then(|yard| {
                let _lock = yard.lock()?;
                self.tidy_once(&yard)
            });
            match tidied {
                Ok(()) | Err(Halt::Occupied) => {}
                Err(halt) => tracing::warn!("a trash could not be tidied: {halt:?}"),
            }
        }
        let saves = &self.options.saves;
        if let Err(error) = save::sweep(saves, self.options.clock.now()) {
            tracing::warn!(saves = %saves.display(), "saves that were only begun could not be removed: {error}");
        }
    }

    /// Ends what a killed process left in a trash, the first time that this process acts in it. Under its lock.
    pub(crate) fn tidy_once(&self, yard: &Yard) -> Result<(), Halt> {
        let first = self.tidied.lock().unwrap_or_else(PoisonError::into_inner).insert(PathBuf::clone(&yard.path));
        if !first {
            return Ok(());
        }
        yard.tidy().map_err(|e| Halt::Fault(fault::at("tidy the trash in", &yard.path, &e)))
    }
}
