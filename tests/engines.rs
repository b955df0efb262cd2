//! The Docker backend on a real engine: Docker or podman, whichever the environment names.
//!
//! ```text
//! .ci/engine docker -- cargo test -p furlough-tests --features engines -- engines::
//! .ci/engine podman -- cargo test -p furlough-tests --features engines -- engines::
//! ```
//!
//! The tests make containers through a client of their own, each with the label of its run, and remove them.
//! A real engine works in real time: what is waited for is looked at again and again, up to a limit.

mod agent;
mod api;
mod contract;
mod deleting;
mod lab;
mod looking;
mod outage;
mod suspending;
