//! What may happen next: the sidecar's phases, as a pure function of what was asked and of how a work ended.
//!
//! ```text
//!            init                ok
//!  Dormant ───────► Waking ───────────► Ready ◄──────► Reviving      (its server died)
//!     ▲              │ failed             │ deinit        │ five times failed
//!     │              ▼                    ▼               ▼
//!     │          Stopping (undo)      Stopping ──────►  Held         (stopped, not saved)
//!     │ ok           │                    │ ok            │ deinit: stop and push again; the same init: revive
//!     ├───── Wiping ◄┴──── Pushing ◄──────┘ ─── failed ──►┘
//!     │        └─ failed ─► Soiled                                    (not wiped; deinit tries again)
//! ```
//!
//! **Invariants.** One work at a time. Nobody's files are wiped before they were pushed, or were to be discarded, or
//! never became anybody's. After a work of one user there is no other way to dormant than a wipe that was done. Of two
//! deliveries one wins. Every phase that works ends in one that rests.
//!
//! **Must never know**: what a work does, what a server is, what time it is.

use crate::delivery::Whose;

/// How often a dead server is replaced before the sandbox is held.
pub const MAX_REVIVALS: u32 = 5;

/// How a workspace leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is pushed first.
    Save,
    /// It is lost: somebody said so.
    Discard,
    /// It never was anybody's: its init failed.
    Undo,
}

/// Where the sidecar is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nobody's.
    Dormant,
    /// A delivery is pulled and handed to a server. `ending`: what follows was asked for already.
    Waking(Whose, Option<How>),
    /// Somebody's, and served.
    Ready(Whose),
    /// The server died, so often; another one gets the same delivery.
    Reviving(Whose, u32, Option<How>),
    /// The server and all its processes are ended.
    Stopping(Whose, How),
    /// What was left is pushed.
    Pushing(Whose),
    /// What was left is removed.
    Wiping(Whose),
    /// Stopped, and not saved. Everything is in its place.
    Held(Whose),
    /// Nobody's, and not clean.
    Soiled(Whose),
}

/// What is done now. Each is answered by one [`Event::Ended`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Pull, and hand over to a dormant server.
    Wake,
    /// Hand over to another server; nothing is pulled.
    Revive,
    /// End the server and all its processes.
    Stop,
    /// Push, and give the lease back.
    Push,
    /// Remove what the user left.
    Wipe,
}

/// How a work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Done.
    Done,
    /// Not, or not whole.
    Failed,
    /// Not, and nothing was touched.
    Untouched,
}

/// What comes to pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A delivery.
    Init(Whose),
    /// Back to sleep.
    Deinit(How),
    /// The server that serves has exited.
    Died,
    /// The work that was under way has ended.
    Ended(End),
}

/// What is said to whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nobody asked.
    Nothing,
    /// It is so already.
    Done,
    /// When the sidecar rests, it will be known.
    Wait,
    /// Somebody's already, or the server's state is not that.
    Already,
    /// Not now: soon.
    Busy,
}

/// What follows from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where the sidecar is now.
    pub phase: Phase,
    /// What is begun.
    pub work: Option<Work>,
    /// What is said.
    pub answer: Answer,
}

impl Phase {
    /// Whose it is.
    pub const fn whose(&self) -> Option<&Whose> {
        match self {
            Self::Dormant => None,
            Self::Waking(whose, _)
            | Self::Ready(whose)
            | Self::Reviving(whose, ..)
            | Self::Stopping(whose, _)
            | Self::Pushing(whose)
            | Self::Wiping(whose)
            | Self::Held(whose)
            | Self::Soiled(whose) => Some(whose),
        }
    }

    /// Whether a work is under way.
    pub const fn works(&self) -> bool {
        match self {
            Self::Dormant | Self::Ready(_) | Self::Held(_) | Self::Soiled(_) => false,
            Self::Waking(..) | Self::Reviving(..) | Self::Stopping(..) | Self::Pushing(_) | Self::Wiping(_) => true,
        }
    }

    /// In the words of the agent server where it has one.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Dormant => "dormant",
            Self::Waking(..) | Self::Reviving(..) => "initializing",
            Self::Ready(_) => "ready",
            Self::Stopping(..) | Self::Pushing(_) | Self::Wiping(_) => "deinitializing",
            Self::Held(_) => "held",
            Self::Soiled(_) => "soiled",
        }
    }

    /// What follows.
    pub fn step(self, event: Event) -> Step {
        match event {
            Event::Init(whose) => self.init(whose),
            Event::Deinit(how) => self.deinit(how),
            Event::Died => match self {
                Self::Ready(whose) => begin(Self::Reviving(whose, 0, None), Work::Revive, Answer::Nothing),
                other => rest(other, Answer::Nothing),
            },
            Event::Ended(end) => self.ended(end),
        }
    }

    fn init(self, whose: Whose) -> Step {
        let same = self.whose() == Some(&whose);
        match self {
            Self::Dormant => begin(Self::Waking(whose, None), Work::Wake, Answer::Wait),
            Self::Held(_) if same => begin(Self::Reviving(whose, 0, None), Work::Revive, Answer::Wait),
            Self::Ready(_) if same => rest(self, Answer::Done),
            Self::Waking(_, None) | Self::Reviving(_, _, None) if same => rest(self, Answer::Wait),
            Self::Ready(_) | Self::Waking(..) | Self::Reviving(..) | Self::Held(_) => rest(self, Answer::Already),
            Self::Stopping(..) | Self::Pushing(_) | Self::Wiping(_) | Self::Soiled(_) => rest(self, Answer::Busy),
        }
    }

    fn deinit(self, how: How) -> Step {
        match self {
            Self::Dormant => rest(self, Answer::Done),
            Self::Ready(whose) | Self::Held(whose) => stop(whose, how, Answer::Wait),
            // What was there is saved, or was to be lost: it is not pushed again.
            Self::Soiled(whose) => stop(whose, How::Undo, Answer::Wait),
            Self::Waking(whose, ending) => rest(Self::Waking(whose, ending.or(Some(how))), Answer::Wait),
            Self::Reviving(whose, tried, ending) => {
                rest(Self::Reviving(whose, tried, ending.or(Some(how))), Answer::Wait)
            }
            Self::Stopping(..) | Self::Pushing(_) | Self::Wiping(_) => rest(self, Answer::Wait),
        }
    }

    fn ended(self, end: End) -> Step {
        let done = end == End::Done;
        match self {
            Self::Waking(_, _) if end == End::Untouched => rest(Self::Dormant, Answer::Nothing),
            Self::Waking(whose, _) if !done => stop(whose, How::Undo, Answer::Nothing),
            Self::Waking(whose, Some(how)) | Self::Reviving(whose, _, Some(how)) => stop(whose, how, Answer::Nothing),
            Self::Waking(whose, None) => rest(Self::Ready(whose), Answer::Nothing),
            Self::Reviving(whose, _, None) if done => rest(Self::Ready(whose), Answer::Nothing),
            Self::Reviving(whose, tried, None) if tried + 1 < MAX_REVIVALS => {
                begin(Self::Reviving(whose, tried + 1, None), Work::Revive, Answer::Nothing)
            }
            Self::Stopping(whose, How::Save) if done => begin(Self::Pushing(whose), Work::Push, Answer::Nothing),
            Self::Stopping(whose, _) | Self::Pushing(whose) if done => {
                begin(Self::Wiping(whose), Work::Wipe, Answer::Nothing)
            }
            Self::Wiping(_) if done => rest(Self::Dormant, Answer::Nothing),
            Self::Stopping(whose, How::Undo) | Self::Wiping(whose) => rest(Self::Soiled(whose), Answer::Nothing),
            Self::Reviving(whose, _, None) | Self::Stopping(whose, _) | Self::Pushing(whose) => {
                rest(Self::Held(whose), Answer::Nothing)
            }
            resting => rest(resting, Answer::Nothing),
        }
    }
}

const fn begin(phase: Phase, work: Work, answer: Answer) -> Step {
    Step { phase, work: Some(work), answer }
}

const fn rest(phase: Phase, answer: Answer) -> Step {
    Step { phase, work: None, answer }
}

const fn stop(whose: Whose, how: How, answer: Answer) -> Step {
    begin(Phase::Stopping(whose, how), Work::Stop, answer)
}

#[cfg(test)]
mod tests;
