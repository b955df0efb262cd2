//! Workspaces, pushed and pulled through a store in a folder: what comes back is what was there.

mod by_hand;
mod contract;
mod crash;
mod faults;
mod garbage;
mod hostile;
mod keeping;
mod lab;
mod ledger_record;
mod picture;
mod round_trip;
mod stores;
mod trees;
mod writers;
