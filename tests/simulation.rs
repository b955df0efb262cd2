//! The protocol, searched: production's `pass` and `ledger`, in a world that one seed makes as bad as it can.
//!
//! ```text
//! seed ─► scenario: fleet, policy, limits, how rough
//!           │
//!   agents, passes, a person, an outsider, the provider's timer        each a task; time is simulated
//!           │ each request and each call is a moment at which another may run
//!           ├──► wire ──────► the embedded ledger ─┐
//!           └──► provider ──► world ───────────────┴─► auditor: books of its own ─► violation, trace
//! ```
//!
//! **Actors** (`actors`). *Agents* work, fall silent for about as long as the policy gives them, and come back, often
//! just when a pass is at their runtime: between plan and claim, claim and look, look and act, act and completion. Two or
//! three *passes* at once, and a *person* who wakes, holds, releases, pauses, labels, and applies plans that have grown
//! old. An *outsider* stops, starts and removes runtimes, and puts another run under an id. The *provider* suspends by its
//! own timer and goes on by itself with what was begun.
//!
//! **Faults** (`process`, `wire`, `provider`). A process dies between any two calls, and another takes its name. Clocks
//! differ by up to the skew. A request to the ledger or a call of the provider fails before its effect, is throttled,
//! loses its answer, or times out: then it may arrive late, when its sender has given up or is dead. Listings lag, lack
//! rows, tell rows twice, end early or say that they are partial; once in a runtime's life the provider denies that it is
//! there; the agent server inside falls silent. After an hour faults cease.
//!
//! **Invariants** (`auditor`), by their numbers in the design, at every step:
//!
//! 1. *No live kill.* Nothing is suspended whose activity was acknowledged within `idle.after`, by the true time; nobody
//!    is told "recorded" of what we stopped; who was refused gets his runtime back. What the last look saw at work is
//!    left alone, and there is a look between the claim and the act.
//! 2. *One hand.* No two verbs at once on a runtime; each under its caller's own claim that it can't outlive; only its
//!    holder ends a claim; the token only grows.
//! 3. *Recoverable first.* No delete from running, of unsaved work, before its retention, or without its notice.
//! 4. *Absence is not evidence.* A tombstone is of what is no more. Unknown activity and a silent agent server keep.
//! 5. *Every middle state ends.* What is not gone is in the index at every step, and nothing has ever to be healed. A
//!    claim that was taken over gives no right to act. In the end nothing is claimed, in between, or unlike what is
//!    there, and what was idle is reclaimed.
//! 6. *Only ours.* What is not in the scope, or held in the record or by a label, is not claimed and not touched.
//! 7. *Own traces don't count.* The clock moves only forward, never ahead of the time, and a look moves it only to what
//!    the runtime did itself.
//! 8. *Bounded blast.* Each claim took its budget first, and no window pays for more than it allows; a pause holds; over
//!    a breaker's limit nothing is claimed.
//! 9. *Single writer.* Not here: no workspace has a head yet, so there is nothing that could be written twice.
//! 11. *Limits everywhere.* A pass ends in bounded time, after a bounded number of calls.
//!
//! A violation prints its seed and the trace of its runtime. `FURLOUGH_SEED=N cargo test -p furlough-tests
//! simulation::tests::one_seed -- --nocapture` runs one seed and prints all of its trace; `tests/simulate.rs` runs many.

mod actors;
mod auditor;
mod chance;
mod process;
mod provider;
mod reached;
mod scenario;
mod sim;
#[cfg(test)]
mod tests;
mod trace;
mod wire;
mod world;

pub(crate) use reached::REACHED;
pub(crate) use sim::run;

/// What happened to a seed that breaks an invariant: its trace as far as it concerns the runtime, and what broke.
pub(crate) fn account(seed: u64) -> String {
    let ran = run(seed, true);
    match ran.violation {
        Some(violation) => format!("{}\nseed {seed}: {violation}", ran.trace.text(violation.runtime.as_ref())),
        None => format!("seed {seed}: no violation"),
    }
}
