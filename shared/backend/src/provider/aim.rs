//! The last check before an act: it is what was aimed at, and ours.

use lifecycle::{Observation, Ownership, State};

use crate::{Miss, Target};

/// It is not what was aimed at.
pub fn moved(seen: &Observation) -> Miss {
    Miss::Moved { incarnation: seen.incarnation.clone(), state: seen.state }
}

/// Whether this is the run that the target was looked at in.
pub fn same_run(seen: &Observation, target: &Target) -> bool {
    seen.incarnation == target.incarnation
}

/// It is in the run and the state that were looked at, and in one of the states that the verb is for.
pub fn aimed(seen: &Observation, target: &Target, legal: &[State]) -> Result<(), Miss> {
    let hit = same_run(seen, target) && seen.state == target.state && legal.contains(&seen.state);
    if hit { Ok(()) } else { Err(moved(seen)) }
}

/// It is ours.
pub fn ours(seen: &Observation) -> Result<(), Miss> {
    if seen.ownership == Ownership::Ours {
        return Ok(());
    }
    Err(Miss::Refused(format!("`{}` is not in the scope of backend `{}`", seen.about, seen.id.backend()).into()))
}
