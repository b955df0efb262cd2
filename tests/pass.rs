//! The pass, over a fake backend and the ledger that production runs, in memory.

mod crash;
mod life;
mod races;
mod refusals;
mod stage;
mod wire;
