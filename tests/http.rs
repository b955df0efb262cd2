//! Activity in, over real HTTP on loopback, onto a store that counts and can break.

mod access;
mod activity;
mod bench;
mod broken;
mod hooks;
