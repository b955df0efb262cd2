//! The functions as they are deployed, as processes of their own, between a stand-in of Lambda's Runtime API and one of
//! the services that they use.

mod cloud;
mod heartbeat;
mod reconcile;
mod workspace;
