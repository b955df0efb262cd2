//! Taking back what was done: out of the trash, out of suspension.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use backend::{Outcome, Trashed};
use ledger::{AuditLine, LedgerError, UNDO};
use lifecycle::{Action, Activity, Observation, Record, RuntimeId, State, Subject, Time, Token};

use crate::{
    Pass, PassError, Woken,
    context::Context,
    examine::{self, Look, Writes},
    listing,
    scene::Scene,
};

/// How many acts of one runtime are looked through for those that can be taken back.
const HISTORY: usize = 100;

/// How many runtimes' histories are looked through for acts that can be taken back, those that rest since lately
/// first. What is older is still there by its name in the trash.
const LOOKED_AT: usize = 1_000;

/// A backend's records by runtime.
type Records = BTreeMap<RuntimeId, Record>;

/// An act that is not taken back yet, and how it can be.
#[derive(Debug, Clone, PartialEq)]
pub struct Undoable {
    /// On which runtime.
    pub runtime: RuntimeId,
    /// What was done, in words.
    pub action: String,
    /// When.
    pub at: Time,
    /// Which pass did it; `None`: the history does not tell.
    pub owner: Option<String>,
    /// Under which token; `None`: the history does not tell.
    pub token: Option<Token>,
    /// Its path or image with its name, as the history has it; empty: the history does not tell.
    pub about: Arc<str>,
    /// Where the work was saved before, which outlives the trash.
    pub saved: Option<String>,
    /// How it is taken back.
    pub way: Way,
}

/// How an act is taken back.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// Out of the trash.
    Trash(Vec<Trashed>),
    /// It was suspended: it is resumed.
    Resume,
    /// Not any more, or never.
    None,
}

/// What came of taking an act back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Undone {
    /// It is as it was.
    Back,
    /// It was so already, by somebody else.
    AlreadyBack,
    /// Under way; a later pass looks.
    Pending,
    /// It can't be taken back as things stand: something new stands there, it is claimed.
    Refused(String),
    /// It could not be asked, or it is not known what came of it.
    Failed(String),
}

impl Pass {
    /// The acts that are not taken back yet, newest first, and which backends could not tell. What was deleted
    /// for ever is among them, so that "the last acts" are the last ones.
    pub async fn undoable(&self) -> Result<(Vec<Undoable>, Vec<String>), PassError> {
        let deadline = self.clock.now().plus(self.limits.duration);
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for unit in &self.units {
            let cx = Context { pass: self, unit, deadline };
            let known = listing::known(cx).await?.records;
            if let Some(role) = &unit.backend.undo {
                match cx.calls().within(cx.limits().act_timeout, role.trashed()).await {
                    Ok(trashed) => found.extend(in_trash(cx, trashed, &known).await?),
                    Err(error) => errors.push(format!("`{}`: the trash could not be read: {error}", cx.name())),
                }
            }
            let trashed: HashSet<_> = found.iter().map(|act| act.runtime.clone()).collect();
            found.extend(at_rest(cx, known, &trashed).await?);
        }
        found.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.runtime.cmp(&b.runtime)));
        Ok((found, errors))
    }

    /// Takes one act back. A full idle period passes afterwards: whoever takes back, wants it.
    pub async fn undo(&self, act: &Undoable) -> Undone {
        let Some(unit) = self.units.iter().find(|unit| unit.backend.name == *act.runtime.backend()) else {
            return Undone::Refused(format!("backend `{}` is not configured", act.runtime.backend()));
        };
        let cx = Context { pass: self, unit, deadline: self.clock.now().plus(self.limits.duration) };
        let undone = match &act.way {
            Way::Resume => resumed(cx, &act.runtime, self.wake(&act.runtime).await).await,
            Way::Trash(entries) => out_of_trash(cx, &act.runtime, entries).await,
            Way::None => Undone::Refused(lost(act)),
        };
        if undone == Undone::Back {
            note(cx, act).await;
        }
        undone
    }
}

/// What lies in the trash, by the act that put it there. Notes are in reach of agents, who may plant any number: only
/// a runtime that has a record is worth a question for its history.
async fn in_trash(cx: Context<'_>, trashed: Vec<Trashed>, known: &Records) -> Result<Vec<Undoable>, LedgerError> {
    let mut by_runtime: BTreeMap<RuntimeId, Vec<Trashed>> = BTreeMap::new();
    for entry in trashed {
        by_runtime.entry(entry.runtime.clone()).or_default().push(entry);
    }
    let mut acts = Vec::new();
    let mut asked = 0;
    for (runtime, mut entries) in by_runtime {
        let asks = known.contains_key(&runtime) && asked < LOOKED_AT;
        let lines = if asks { cx.ledger().history(&runtime, HISTORY).await? } else { Vec::new() };
        asked += usize::from(asks);
        for line in lines {
            let of_line = |entry: &mut Trashed| line.undo.iter().any(|name| **name == *entry.entry);
            let mine: Vec<_> = entries.extract_if(.., of_line).collect();
            if !mine.is_empty() {
                acts.push(told(line, Way::Trash(mine)));
            }
        }
        acts.extend(entries.into_iter().map(untold));
    }
    Ok(acts)
}

fn told(line: AuditLine, way: Way) -> Undoable {
    let about = line.about();
    let AuditLine { runtime, token, at, action, owner, saved, .. } = line;
    Undoable { runtime, action, at, owner: Some(owner), token: Some(token), about, saved, way }
}

/// Killed between the act and its line, or the records are others: the trash alone tells.
fn untold(entry: Trashed) -> Undoable {
    let action = match entry.tier {
        lifecycle::Tier::Runtime => "delete".to_owned(),
        tier => format!("shed {tier}"),
    };
    let (runtime, at) = (entry.runtime.clone(), entry.at);
    let about = "".into();
    Undoable { runtime, action, at, owner: None, token: None, about, saved: None, way: Way::Trash(vec![entry]) }
}

/// Why nothing brings it back, and what is left of it.
fn lost(act: &Undoable) -> String {
    match &act.saved {
        Some(saved) => {
            format!("it is in no trash any more; its work is saved in `{saved}`, which says how to get it back")
        }
        None => "it is in no trash, and its backend keeps nothing of it".to_owned(),
    }
}

/// What the last act suspended, or deleted for ever.
async fn at_rest(cx: Context<'_>, known: Records, trashed: &HashSet<RuntimeId>) -> Result<Vec<Undoable>, LedgerError> {
    let rests = |record: &Record| matches!(record.state, State::Suspended | State::Gone);
    let mut lately: Vec<_> = known.into_iter().filter(|(_, record)| rests(record)).collect();
    lately.sort_by_key(|(_, record)| std::cmp::Reverse(record.state_since));
    let mut acts = Vec::new();
    for (runtime, record) in lately.into_iter().take(LOOKED_AT) {
        let (action, way) = match record.state {
            State::Suspended => (Action::Suspend, Way::Resume),
            State::Gone if !trashed.contains(&runtime) => (Action::Delete, Way::None),
            _ => continue,
        };
        // The newest line is that act's; what somebody else stopped or removed is not ours to take back.
        let newest = cx.ledger().history(&runtime, 1).await?.pop();
        let ours = |line: &AuditLine| line.action == action.to_string() && line.token == record.token;
        acts.extend(newest.filter(ours).map(|line| told(line, way)));
    }
    Ok(acts)
}

async fn out_of_trash(cx: Context<'_>, runtime: &RuntimeId, entries: &[Trashed]) -> Undone {
    let Some(role) = &cx.unit.backend.undo else {
        return Undone::Refused(format!("backend `{}` takes nothing back", cx.name()));
    };
    let mut undone = Undone::AlreadyBack;
    for entry in entries {
        match cx.calls().within(cx.limits().act_timeout, role.undo(&entry.entry)).await {
            Ok(Outcome::Done(_)) => undone = Undone::Back,
            Ok(Outcome::AlreadyDone | Outcome::Gone) => {}
            Ok(Outcome::Refused(why)) => return Undone::Refused(why.to_string()),
            Ok(Outcome::Pending) => return Undone::Pending,
            Ok(Outcome::Moved { .. }) => return Undone::Refused("something else stands there now".to_owned()),
            Ok(Outcome::Unknown(why)) => return Undone::Failed(why.to_string()),
            Err(error) => return Undone::Failed(error.to_string()),
        }
    }
    match wanted(cx, runtime).await {
        Ok(()) => undone,
        Err(why) => Undone::Failed(format!("it is back, and its record does not say so yet: {why}")),
    }
}

/// Takes what is there again into the record, and that somebody wants it.
async fn wanted(cx: Context<'_>, runtime: &RuntimeId) -> Result<(), String> {
    let scene = Scene::read(cx).await.map_err(|error| error.to_string())?;
    let record = cx.ledger().get(runtime).await.map_err(|error| error.to_string())?;
    let subject = match examine::look(cx, &scene, runtime, record, Writes::Record).await {
        Look::Subject(subject) => *subject,
        Look::NotThere => return Err("the backend does not show it".to_owned()),
        Look::Failed(error) => return Err(error.to_string()),
        Look::Ledger(error) => return Err(error.to_string()),
    };
    want(cx, &scene, subject).await.map_err(|error| error.to_string())
}

/// Moves the clock as what a look saw does, since nothing sends heartbeats here: had one come, its silence would look like
/// an outage of all of them. Only where that is not taken, because somebody is at work, a heartbeat tells them.
async fn want(cx: Context<'_>, scene: &Scene, subject: Subject) -> Result<(), LedgerError> {
    let now = cx.now();
    if let Some(seen) = subject.seen {
        let seen = Observation { activity: Activity::At(now), ..*seen };
        let record = examine::observe(cx, scene, &seen, subject.record.map(|record| *record)).await?;
        if record.state == State::Running && record.idle_from >= now && !record.claimed(now) {
            return Ok(());
        }
    }
    cx.ledger().heartbeat(&subject.id, None, None, now).await.map(drop)
}

async fn resumed(cx: Context<'_>, runtime: &RuntimeId, woken: Woken) -> Undone {
    match woken {
        Woken::Running(_) => Undone::Back,
        Woken::AlreadyRunning => Undone::AlreadyBack,
        Woken::Pending => Undone::Pending,
        Woken::Claimed { until } => Undone::Refused(at_work(cx, runtime, until).await),
        Woken::NotFound => Undone::Refused("it is not there any more".to_owned()),
        Woken::Refused(why) => Undone::Refused(why),
        Woken::Failed(why) => Undone::Failed(why),
    }
}

/// Who has the claim that stands in the way, and when to try again.
async fn at_work(cx: Context<'_>, runtime: &RuntimeId, until: Time) -> String {
    let record = cx.ledger().get(runtime).await.ok().flatten();
    let owner = record.and_then(|record| record.claim).map(|claim| format!("`{}`", claim.owner));
    let who = owner.as_deref().unwrap_or("somebody");
    format!("{who} is at work on it, or failed at it; try again at {until}, when that has ended at the latest")
}

/// The undo stands in the history beside its act.
async fn note(cx: Context<'_>, act: &Undoable) {
    let Some(token) = act.token else { return };
    let line = AuditLine {
        runtime: act.runtime.clone(),
        token,
        at: cx.now(),
        action: UNDO.to_owned(),
        outcome: format!("{} taken back", act.action),
        owner: cx.pass.owner.clone(),
        reason: String::new(),
        evidence: String::new(),
        saved: None,
        undo: Vec::new(),
        bytes: 0,
    };
    if let Err(error) = cx.ledger().audit(&line).await {
        tracing::warn!(runtime = %act.runtime, %error, "an undo could not be written into the audit");
    }
}
