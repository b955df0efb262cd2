//! The one task that knows where the sidecar is: it hears what is asked, does one work at a time, and answers.
//!
//! ```text
//! front ─► Keeper ─► Phase::step ─► Work ─► Effects ─► how it ended ─► Phase::step …
//! ```
//!
//! **Invariants.** A work goes on when whoever asked for it has gone, and its end is told to everybody who asked
//! meanwhile. Whoever asks while it rests is answered at once. A server's death is seen also when it came before
//! anybody looked.
//!
//! **Must never know**: how anything is done.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use workspace::key::Name;

use crate::{
    delivery::{Activity, Delivery, Whose},
    machine::{Answer, End, Event, How, Phase, Step, Work},
};

/// How many questions may wait for the keeper.
const ASKED: usize = 64;

/// Why a work was not done. Its text is shown to whoever asks for the state: it has no secret in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// Why a wake was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAwake {
    /// And nothing was touched.
    Untouched(Failed),
    /// What was begun has to be undone.
    Begun(Failed),
}

/// What a work does to the world.
#[async_trait]
pub trait Effects: Send + Sync + 'static {
    /// Pulls, and hands over to a dormant server.
    async fn wake(&self, delivery: &Delivery) -> Result<(), NotAwake>;
    /// Hands over to another server.
    async fn revive(&self, delivery: &Delivery) -> Result<(), Failed>;
    /// Ends the server and all its processes. Done again, it is done.
    async fn stop(&self, delivery: &Delivery) -> Result<(), Failed>;
    /// Pushes, and gives the lease back.
    async fn push(&self, delivery: &Delivery) -> Result<(), Failed>;
    /// Removes what the user left. Done again, it is done.
    async fn wipe(&self, delivery: &Delivery) -> Result<(), Failed>;
    /// Pushes while the server runs, and holds the lease for longer.
    async fn keep(&self, delivery: &Delivery) -> Result<(), Failed>;
    /// Ends when the server that serves has exited, or if there is none.
    async fn exited(&self);
}

/// Where the sidecar is, to whoever asks.
#[derive(Debug, Clone)]
pub struct Status {
    /// The phase's word.
    pub state: &'static str,
    /// Why a work failed, until something else is asked for.
    pub error: Option<Failed>,
    /// What was delivered to whoever is served.
    pub serving: Option<Arc<Delivery>>,
}

/// What is said to whoever asked for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It is so.
    Done,
    /// Somebody's already: the state's word.
    Already(&'static str),
    /// The workspace that was meant is not here: another one is.
    Another,
    /// Not now: the state's word.
    Busy(&'static str),
    /// It was tried.
    Failed(Failed),
}

enum Asked {
    Init(Box<Delivery>),
    Deinit(Option<Name>, How),
    Keep,
}

struct Question {
    asked: Asked,
    reply: oneshot::Sender<Reply>,
}

/// Hands questions to the task.
#[derive(Debug, Clone)]
pub struct Keeper {
    questions: mpsc::Sender<Question>,
    status: watch::Receiver<Status>,
}

impl Keeper {
    /// Begins it. What was changed is pushed every `push_every`.
    pub fn start(effects: Arc<dyn Effects>, push_every: Duration) -> Self {
        let (questions, asked) = mpsc::channel(ASKED);
        let (telling, status) = watch::channel(Status { state: Phase::Dormant.word(), error: None, serving: None });
        let task = Task {
            effects,
            push_every,
            phase: Phase::Dormant,
            delivery: None,
            work: None,
            keeping: None,
            waiting: Vec::new(),
            error: None,
            telling,
        };
        tokio::spawn(task.run(asked));
        Self { questions, status }
    }

    /// Brings a workspace.
    pub async fn init(&self, delivery: Delivery) -> Reply {
        self.ask(Asked::Init(Box::new(delivery))).await
    }

    /// Takes it away: whatever is there, or the workspace of this name alone.
    pub async fn deinit(&self, workspace: Option<Name>, how: How) -> Reply {
        self.ask(Asked::Deinit(workspace, how)).await
    }

    /// Has pushed what there is, if somebody is served; does not wait for its end.
    pub async fn keep(&self) {
        self.ask(Asked::Keep).await;
    }

    /// Where the sidecar is.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    async fn ask(&self, asked: Asked) -> Reply {
        let gone = || Reply::Failed(Failed("the sidecar is ending".to_owned()));
        let (reply, replied) = oneshot::channel();
        if self.questions.send(Question { asked, reply }).await.is_err() {
            return gone();
        }
        replied.await.unwrap_or_else(|_| gone())
    }
}

/// Somebody who waits for the sidecar to rest.
struct Waiting {
    /// Whose it has to be then; nobody's after a deinit.
    wanted: Option<Whose>,
    reply: oneshot::Sender<Reply>,
}

struct Task {
    effects: Arc<dyn Effects>,
    push_every: Duration,
    phase: Phase,
    delivery: Option<Arc<Delivery>>,
    work: Option<JoinHandle<(End, Option<Failed>)>>,
    /// A push while the server runs.
    keeping: Option<JoinHandle<()>>,
    waiting: Vec<Waiting>,
    error: Option<Failed>,
    telling: watch::Sender<Status>,
}

impl Task {
    async fn run(mut self, mut asked: mpsc::Receiver<Question>) {
        let mut due = interval(self.push_every);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let ready = matches!(self.phase, Phase::Ready(_));
            tokio::select! {
                question = asked.recv() => match question {
                    Some(Question { asked: Asked::Keep, reply }) => {
                        if ready {
                            self.keep();
                            due.reset();
                        }
                        // Whoever asked may have gone.
                        _ = reply.send(Reply::Done);
                    }
                    Some(question) => self.answer(question),
                    None => return,
                },
                ended = ended(&mut self.work) => {
                    self.work = None;
                    self.error = ended.1.or(self.error.take());
                    self.take(Event::Ended(ended.0));
                    due.reset();
                }
                () = self.effects.exited(), if ready => {
                    tracing::warn!("the agent server has exited; another one takes its place");
                    self.take(Event::Died);
                }
                _ = due.tick(), if ready => self.keep(),
            }
        }
    }

    fn answer(&mut self, question: Question) {
        let Question { asked, reply } = question;
        let (event, wanted) = match asked {
            Asked::Init(delivery) => {
                let whose = delivery.whose();
                if self.phase == Phase::Dormant {
                    self.delivery = Some(Arc::from(delivery));
                } else if self.phase.whose() == Some(&whose) {
                    self.tell_of(delivery.activity);
                }
                (Event::Init(whose.clone()), Some(whose))
            }
            Asked::Deinit(Some(name), _) if self.phase.whose().is_some_and(|whose| whose.workspace != name) => {
                // Whoever asked may have gone.
                _ = reply.send(Reply::Another);
                return;
            }
            Asked::Deinit(_, how) => (Event::Deinit(how), None),
            Asked::Keep => return,
        };
        if !self.phase.works() {
            self.error = None;
        }
        let told = match self.step(event) {
            Answer::Wait => {
                self.waiting.push(Waiting { wanted, reply });
                return;
            }
            Answer::Done | Answer::Nothing => Reply::Done,
            Answer::Already => Reply::Already(self.phase.word()),
            Answer::Busy => Reply::Busy(self.phase.word()),
        };
        // Whoever asked may have gone.
        _ = reply.send(told);
    }

    fn take(&mut self, event: Event) {
        self.step(event);
        if self.phase.works() {
            return;
        }
        for Waiting { wanted, reply } in std::mem::take(&mut self.waiting) {
            let so = match &self.phase {
                Phase::Dormant => wanted.is_none(),
                Phase::Ready(whose) => wanted.as_ref() == Some(whose),
                _ => false,
            };
            let why = || self.error.clone().unwrap_or_else(|| Failed(format!("the sidecar is {}", self.phase.word())));
            _ = reply.send(if so { Reply::Done } else { Reply::Failed(why()) });
        }
    }

    fn step(&mut self, event: Event) -> Answer {
        let before = self.phase.word();
        let Step { phase, work, answer } = std::mem::replace(&mut self.phase, Phase::Dormant).step(event);
        self.phase = phase;
        self.work = work.and_then(|work| self.begin(work)).or_else(|| self.work.take());
        if self.phase == Phase::Dormant {
            self.delivery = None;
        }
        let state = self.phase.word();
        if state != before {
            tracing::info!(state, before, "the sidecar is in another state");
        }
        let serving = self.delivery.clone().filter(|_| matches!(self.phase, Phase::Ready(_)));
        self.telling.send_replace(Status { state, error: self.error.clone(), serving });
        answer
    }

    /// The same delivery again may bring another registration of its runtime.
    fn tell_of(&mut self, activity: Option<Activity>) {
        if let Some(known) = &self.delivery
            && activity.is_some()
            && known.activity != activity
        {
            self.delivery = Some(Arc::new(Delivery { activity, ..Delivery::clone(known) }));
        }
    }

    /// Pushes beside the server, unless the last such push is still under way.
    fn keep(&mut self) {
        let Some(delivery) = self.delivery.clone() else { return };
        if self.keeping.as_ref().is_some_and(|keeping| !keeping.is_finished()) {
            return;
        }
        let effects = self.effects.clone();
        self.keeping = Some(tokio::spawn(async move {
            if let Err(why) = effects.keep(&delivery).await {
                tracing::warn!(workspace = %delivery.workspace.name, %why, "could not push while the server runs");
            }
        }));
    }

    fn begin(&self, work: Work) -> Option<JoinHandle<(End, Option<Failed>)>> {
        let (effects, delivery) = (self.effects.clone(), self.delivery.clone()?);
        Some(tokio::spawn(async move {
            let failed = match work {
                Work::Wake => match effects.wake(&delivery).await {
                    Err(NotAwake::Untouched(why)) => return (End::Untouched, Some(why)),
                    Err(NotAwake::Begun(why)) => Err(why),
                    Ok(()) => Ok(()),
                },
                Work::Revive => effects.revive(&delivery).await,
                Work::Stop => effects.stop(&delivery).await,
                Work::Push => effects.push(&delivery).await,
                Work::Wipe => effects.wipe(&delivery).await,
            };
            match failed {
                Ok(()) => (End::Done, None),
                Err(why) => (End::Failed, Some(why)),
            }
        }))
    }
}

/// Waits for a work's end; for ever, where none is under way.
async fn ended(work: &mut Option<JoinHandle<(End, Option<Failed>)>>) -> (End, Option<Failed>) {
    match work {
        // A work that panics has failed.
        Some(work) => {
            work.await.unwrap_or_else(|error| (End::Failed, Some(Failed(format!("a work broke off: {error}")))))
        }
        None => std::future::pending().await,
    }
}
