//! The parts, built from the settings: backends, ledger, pass.

pub(crate) mod backends;
