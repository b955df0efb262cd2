//! Every state that the bounds allow, the nearest first, so that a counterexample is a shortest one.

use std::{
    collections::{HashSet, VecDeque},
    fmt::Write,
};

use super::{
    step::Step,
    world::{Breach, Model, World},
};

/// What a search found.
#[derive(Debug)]
pub(crate) struct Found {
    /// How many states there are.
    pub(crate) states: usize,
    /// The first breach, and the shortest way to it.
    pub(crate) breach: Option<(Breach, Vec<Step>)>,
}

/// Searches until a breach, or to the end.
pub(crate) fn search(model: &Model) -> Found {
    let mut known = HashSet::from([World::begin()]);
    let mut came: Vec<Option<(usize, Step)>> = vec![None];
    let mut open = VecDeque::from([(World::begin(), 0)]);
    while let Some((world, at)) = open.pop_front() {
        for (step, next) in model.steps(&world) {
            let new = match next {
                Ok(next) if known.contains(&next) => continue,
                Ok(next) => model.holds(&next).map(|()| next),
                Err(breach) => Err(breach),
            };
            match new {
                Ok(next) => {
                    known.insert(next.clone());
                    open.push_back((next, came.len()));
                    came.push(Some((at, step)));
                }
                Err(breach) => {
                    let mut way = way(&came, at);
                    way.push(step);
                    return Found { states: came.len(), breach: Some((breach, way)) };
                }
            }
        }
    }
    Found { states: came.len(), breach: None }
}

fn way(came: &[Option<(usize, Step)>], mut at: usize) -> Vec<Step> {
    let mut way = Vec::new();
    while let Some((before, step)) = came[at] {
        way.push(step);
        at = before;
    }
    way.reverse();
    way
}

/// The way to a breach, a step a line, with what it left in the record.
pub(crate) fn told(model: &Model, breach: &Breach, way: &[Step]) -> String {
    let mut world = World::begin();
    let mut text = format!("invariant {}: {}\n", breach.0, breach.1);
    for step in way {
        let _ = write!(text, "{:>3} s  {:<36}", world.time(), step.to_string());
        match model.steps(&world).into_iter().find(|(taken, _)| taken == step) {
            Some((_, Ok(next))) => world = next,
            Some((_, Err(breach))) => return format!("{text} breaks {}: {}\n", breach.0, breach.1),
            None => return format!("{text} can't be taken\n"),
        }
        let _ = writeln!(text, " {}", world.record());
    }
    text
}
