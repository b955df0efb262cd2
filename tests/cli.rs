//! The command as its user meets it: the real binary, a real repository, real worktrees.

pub(crate) mod bench;
mod configuration;
mod usage;
