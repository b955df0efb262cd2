//! Workspaces, pushed and pulled through a store in a folder: what comes back is what was there.

mod by_hand;
mod crash;
mod faults;
mod garbage;
mod hostile;
mod keeping;
mod lab;
mod picture;
mod round_trip;
mod trees;
mod writers;
