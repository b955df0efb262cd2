//! Git worktrees on real git, in folders of their own: found, judged, saved, shed, moved to the trash and back.

mod activity;
mod contract;
mod crash;
mod deleting;
#[cfg(feature = "engines")]
mod disks;
mod finding;
mod hygiene;
mod loss;
mod reftable;
mod saving;
mod trash;
mod world;
