//! One runtime's life.
//!
//! ```text
//! observe, register, heartbeat, probed, saved ──► forward only
//! claim, wake, take_over ──► complete | hand_over | abandon   (under the token)
//! absent ──► gone                                             (two sightings)
//! due ──► rearm | reschedule,  heal                           (the index)
//! ```

mod claim;
mod finish;
mod forward;
mod heartbeat;
mod hold;
mod index;
mod lost;
mod observe;
mod presence;
mod register;
mod saved;

pub use saved::Save;
