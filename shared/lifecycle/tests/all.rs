//! The planner from outside: scenarios from the field, and laws that hold for any inventory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "fixtures are tests too: a failing one should panic")]

mod all {
    pub(crate) mod worlds;

    mod arming;
    mod decisions;
    mod disk;
    mod every_word;
    mod explain;
    mod fleet;
    mod laws;
    mod native;
    mod plan_file;
    mod report;
    mod snapshot;
    mod trash;
    mod windows;
}
