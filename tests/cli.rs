//! The command as its user meets it: the real binary, a real repository, real worktrees.

pub(crate) mod bench;

mod apply;
mod configuration;
mod containers;
mod demo;
mod interrupt;
mod names;
mod plan;
mod switches;
mod terminal;
mod undo;
mod usage;
mod workspace;
