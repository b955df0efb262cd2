//! What the demo's worktrees are: one of each kind that a real disk has.

use std::time::Duration;

/// What an agent left in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Everything committed and pushed.
    Pushed,
    /// A changed file and a new one, neither committed.
    Dirty,
    /// A commit that nobody pushed.
    Unpushed,
}

/// One worktree of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The conversation that it was made for. Fixed, so that what the README shows is what a reader sees.
    pub(crate) conversation: &'static str,
    /// A second conversation in the same worktree, and how long ago that was active.
    pub(crate) shared_with: Option<(&'static str, Duration)>,
    /// What the agent was asked.
    pub(crate) task: &'static str,
    /// How long ago it was last active.
    pub(crate) idle: Duration,
    /// What it left.
    pub(crate) left: Left,
    /// Bytes of installed packages in it, which git ignores.
    pub(crate) packages: usize,
    /// Somebody holds it.
    pub(crate) held: bool,
}

const fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// The demo's worktrees, the longest idle first.
pub(crate) const TREES: [Tree; 7] = [
    Tree {
        conversation: "a51f0c3e-8d2b-4c67-9e10-5b7d3f2a6c01",
        shared_with: None,
        task: "Pin the base image",
        idle: days(41),
        left: Left::Pushed,
        packages: 3_000_000,
        held: true,
    },
    Tree {
        conversation: "3c9e12d4-6f08-4a1b-8b52-0d4e9a7c2f02",
        shared_with: None,
        task: "Fix the rounding of prices",
        idle: days(33),
        left: Left::Pushed,
        packages: 4_000_000,
        held: false,
    },
    Tree {
        conversation: "e8341bc7-2a5d-4e86-b1f9-7c06d5e28a05",
        shared_with: Some(("9b6fd20e-74c1-4358-a0e7-3f8d1c95b615", minutes(25))),
        task: "Review the payment module",
        idle: days(29),
        left: Left::Pushed,
        packages: 0,
        held: false,
    },
    Tree {
        conversation: "c07b5ad9-1e43-4f9c-a6d8-92f1b3e05d03",
        shared_with: None,
        task: "Try a cache for the catalogue",
        idle: days(26),
        left: Left::Unpushed,
        packages: 2_000_000,
        held: false,
    },
    Tree {
        conversation: "52d8f6a1-b947-4d30-8c7e-e16a0f94b704",
        shared_with: None,
        task: "Draft the new checkout",
        idle: days(19),
        left: Left::Dirty,
        packages: 2_000_000,
        held: false,
    },
    Tree {
        conversation: "7f20e95b-c8d6-41a3-95b4-d83c6e1f0a06",
        shared_with: None,
        task: "Upgrade the test runner",
        idle: days(5),
        left: Left::Pushed,
        packages: 6_000_000,
        held: false,
    },
    Tree {
        conversation: "14ab87f3-05e9-4b2c-8f6d-a9c7e3b15d07",
        shared_with: None,
        task: "Translate the receipts",
        idle: minutes(12),
        left: Left::Dirty,
        packages: 1_000_000,
        held: false,
    },
];
