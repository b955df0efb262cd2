//! The ledger, on the same SDK and the same conditions as on AWS, against the embedded store.

mod claims;
pub(crate) mod fixture;
mod format;
mod index;
mod life;
mod observed;
mod saved;
mod units;
mod whole;
