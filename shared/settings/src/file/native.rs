//! `[policy.KIND]`: keys of one backend kind, where that kind is in this version.

use serde_json::{Value, json};

use crate::{
    log::{Log, Problem},
    read::{Node, Read},
};

/// Keys of a backend kind that this version does not have. Always a fault that says so.
#[derive(Debug)]
pub(crate) enum NativeTable {}

impl Read for NativeTable {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        let kind = node.path.rsplit('.').next().unwrap_or_default();
        log.error(&node.path, &node.span, Problem::new(super::backend::not_here(kind)));
        None
    }

    fn schema() -> Value {
        json!({ "not": {} })
    }

    fn keys(_: &str, _: &mut Vec<String>) {}
}
