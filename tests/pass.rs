//! The pass, over a fake backend and the ledger that production runs, in memory.

mod crash;
mod inventory;
mod keeping;
mod late;
mod life;
mod races;
mod refusals;
pub(crate) mod stage;
mod undo;
mod wire;
