#![doc = include_str!("../FORMAT.md")]

/// How to restore without Furlough: put beside a workspace's objects.
pub const RESTORE: &str = include_str!("../RESTORE.txt");
