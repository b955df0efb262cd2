//! Values of `lifecycle` as people read them.

pub(crate) mod explain;
pub(crate) mod grid;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod words;
