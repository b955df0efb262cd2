//! What the conversations in a sandbox tell of it together. Pure.

use std::collections::{BTreeMap, BTreeSet};

use lifecycle::{Busy, Time, activity::MAX_BUSY};
use serde_json::Value;

use super::wire::Conversation;
use crate::row::Unread;

/// What the conversations of one sandbox tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// How many a user sees.
    pub(super) conversations: u32,
    /// The last change of any.
    pub(super) last: Time,
    /// Whether one may be at work. It is believed of one for as long after its last change as work may last at all: of a
    /// server that was killed it is said for ever.
    pub(super) busy: Busy,
    /// The tags that all have, with the same values.
    pub(super) tags: BTreeMap<String, String>,
}

/// The same of each sandbox that has a conversation. An error: one of its conversations can't be read.
#[derive(Debug, Default)]
pub(super) struct Uses {
    by_sandbox: BTreeMap<String, Result<Use, Unread>>,
    /// The conversations that were counted: pages that move show some twice.
    counted: BTreeSet<String>,
}

impl Uses {
    /// Takes in a conversation as it is shown. An error: nobody knows of which sandbox it tells.
    pub(super) fn add(&mut self, value: &Value) -> Result<(), Unread> {
        let (sandbox, read) = Conversation::read(value)?;
        let read = match read {
            Ok(conversation) if !self.counted.insert(conversation.id.clone()) => return Ok(()),
            Ok(conversation) => Ok(Use::of(conversation)),
            Err(Unread(why)) => Err(Unread(format!("a conversation in it can't be read: {why}"))),
        };
        let all = match (self.by_sandbox.remove(&sandbox), read) {
            (Some(Err(unread)), _) | (_, Err(unread)) => Err(unread),
            (Some(Ok(before)), Ok(one)) => Ok(before.and(&one)),
            (None, Ok(one)) => Ok(one),
        };
        self.by_sandbox.insert(sandbox, all);
        Ok(())
    }

    /// All were taken in.
    pub(super) fn whole(self) -> Self {
        Self { counted: BTreeSet::new(), ..self }
    }

    /// What is told of this sandbox. `None`: it has no conversation.
    pub(super) fn of(&self, sandbox: &str) -> Result<Option<&Use>, Unread> {
        self.by_sandbox.get(sandbox).map(Result::as_ref).transpose().map_err(Clone::clone)
    }
}

impl Use {
    fn of(conversation: Conversation) -> Self {
        let busy = if conversation.works { Busy::Until(conversation.updated_at.plus(MAX_BUSY)) } else { Busy::No };
        let conversations = u32::from(!conversation.sub);
        Self { conversations, last: conversation.updated_at, busy, tags: conversation.tags }
    }

    /// Whether one may be at work at `now`.
    pub(super) fn works(&self, now: Time) -> bool {
        matches!(self.busy, Busy::Until(until) if until > now)
    }

    fn and(mut self, other: &Self) -> Self {
        self.tags.retain(|key, value| other.tags.get(key) == Some(value));
        Self {
            conversations: self.conversations.saturating_add(other.conversations),
            last: self.last.max(other.last),
            busy: self.busy.join(other.busy),
            tags: self.tags,
        }
    }
}

#[cfg(test)]
#[path = "uses_tests.rs"]
mod tests;
