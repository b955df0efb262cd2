//! Every black-box test of Furlough, in one binary: the AWS SDK makes each further one large.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "fixtures are tests too: a failing one should panic")]

mod agent_server;
#[cfg(feature = "engines")]
mod agent_server_real;
mod architecture;
mod cli;
mod contracts;
mod docker;
mod embedded_store;
#[cfg(feature = "engines")]
mod engines;
mod fakes;
mod faults;
mod field_reports;
mod http;
mod infra;
mod lambda;
mod ledger;
mod model;
mod mutations;
mod pass;
mod peer;
mod peer_costs;
mod providers;
mod races;
mod readme;
mod serve;
mod settings;
mod simulation;
mod simulators;
mod workspace;
mod worktree;
