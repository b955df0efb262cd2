//! What a simulation must reach: one that never comes to these moments proves nothing.

/// Each must come within a thousand seeds (`simulate` fails else), and all but [`SELDOM`] in the few of plain
/// `cargo test`.
pub(crate) const REACHED: &[&str] = &[
    // 1: a heartbeat against a claim, an agent against everybody.
    "an agent returns while somebody is at its runtime",
    "a heartbeat is refused",
    "a heartbeat is coalesced",
    "a heartbeat of an earlier life",
    "a heartbeat to what is no more",
    "a runtime is wanted",
    "what is wanted is woken",
    "a registration is refused",
    "a registration is overtaken",
    "a claim is lost",
    "a claim is given back",
    "a person applies a plan",
    // 2: two hands.
    "a pass finds its backend leased",
    "a take-over or a wake is lost",
    // 3: the whole way down, and back.
    "a runtime is suspended by us",
    "a runtime is archived by us",
    "a runtime is deleted by us",
    "a runtime is resumed by us",
    "files are shed",
    "notice of a deletion is delivered",
    "a delete is completed",
    // 4: absences, true and false.
    "absent once",
    "absent twice",
    "there again after an absence",
    "an id comes back from a tombstone",
    "the provider denies what is there",
    "an agent server does not answer",
    "a listing ends early and says it is whole",
    "a listing says that it is partial",
    "a row comes twice in a listing",
    "a row is missing from a listing",
    "another run of an id is observed",
    "the provider suspends by itself",
    // 5: deaths, in each state, and long acts.
    "a process dies between two calls",
    "a suspend of another process is taken over",
    "an archive of another process is taken over",
    "a delete of another process is taken over",
    "a resume of another process is taken over",
    "a shed or a notice of another process is taken over",
    "a long act is handed over",
    "an attempt fails",
    "a runtime is reported as stuck",
    "a request to the ledger fails",
    "a verb of the provider fails",
    "a look at the provider fails",
    "the provider says too many requests",
    // 6 and 8: holds, pauses, budgets, breakers.
    "a person holds a runtime",
    "a person releases a runtime",
    "a person wakes a runtime",
    "a pass finds itself paused",
    "a budget is spent",
    "a runtime is kept for the budget's sake",
    "the breaker of a shrunken inventory is open",
    "the breaker of silent heartbeats is open",
    // 11.
    "more is due than a pass takes",
];

/// What takes more seeds than a debug build runs in seconds.
#[cfg(test)]
pub(crate) const SELDOM: &[&str] = &[
    "a registration is overtaken",
    "notice of a deletion is delivered",
    "an agent server does not answer",
    "a listing ends early and says it is whole",
    "a suspend of another process is taken over",
    "an archive of another process is taken over",
    "a delete of another process is taken over",
    "a resume of another process is taken over",
    "a shed or a notice of another process is taken over",
    "a runtime is reported as stuck",
];
