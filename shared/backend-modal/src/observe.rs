//! From what Modal shows of a sandbox to what Furlough knows of a runtime. Pure.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lifecycle::{
    Activity, Busy, Cannot, FileSizes, Incarnation, Loss, NativeDeadline, NativeEffect, NativeObserved, Observation,
    Role, RuntimeId, State, Time,
};

use crate::{Options, Terminate, proto::SandboxInfo};

/// The first generation's ids: `sb-`, and 22 letters and digits.
pub(crate) fn is_first(id: &str) -> bool {
    let digits = id.strip_prefix("sb-").unwrap_or_default();
    digits.len() == 22 && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What is said of a sandbox of which no snapshot can be taken.
pub(crate) const NO_SNAPSHOT: &str = "no snapshot of it can be taken from outside: it is of Modal's second generation; \
                                      take one inside, or say `terminate_running = \"discard\"`";

/// A time in seconds, as Modal writes it.
fn time(seconds: f64, what: &str) -> Result<Time, String> {
    const LATEST: f64 = 253_402_300_799.0;
    if !(seconds > 0.0 && seconds <= LATEST) {
        return Err(format!("`{what}` is no time"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "between 1970 and 9999")]
    Ok(Time::from_millis((seconds * 1_000.0).floor() as i64))
}

/// What Furlough knows of it at `now`; `None`: it ended. An error says, for people, what can't be read.
pub(crate) fn observation(info: &SandboxInfo, options: &Options, now: Time) -> Result<Option<Observation>, String> {
    if info.id.is_empty() {
        return Err("`id` is missing".to_owned());
    }
    fields(info, options, now).map_err(|why| {
        let shown: String = info.id.chars().filter(char::is_ascii_graphic).take(40).collect();
        format!("sandbox `{shown}`: {why}")
    })
}

fn fields(info: &SandboxInfo, options: &Options, now: Time) -> Result<Option<Observation>, String> {
    let id = RuntimeId::new(&options.name, info.id.as_bytes()).map_err(|error| error.to_string())?;
    let created = time(info.created_at, "created_at")?;
    let task = info.task_info.as_ref();
    match task.and_then(|task| task.result.as_ref()).map_or(0, |result| result.status) {
        0 if task.is_none_or(|task| task.finished_at == 0.0) => {}
        0..=10 => return Ok(None),
        _ => return Err("it ended in a way that this version does not know".to_owned()),
    }
    let started = task.map(|task| task.started_at).filter(|at| *at != 0.0);
    let started = started.map_or(Ok(created), |at| time(at, "started_at"))?.min(now);
    let labels: BTreeMap<String, String> =
        info.tags.iter().map(|tag| (tag.tag_name.clone(), tag.tag_value.clone())).collect();
    let ends = (info.timeout_secs > 0).then(|| started.plus(Duration::from_secs(info.timeout_secs.into())));
    let lacks = options.terminate == Terminate::AfterSnapshot && !is_first(&info.id);
    Ok(Some(Observation {
        id,
        // An id has one run.
        incarnation: Incarnation::new(info.id.as_str()),
        state: State::Running,
        state_since: Some(started),
        running_since: Some(started),
        // Modal tells nothing of what goes on in a sandbox: that is for heartbeats to tell.
        activity: Activity::Unknown,
        busy: Busy::No,
        ownership: options.scope.ownership(&info.name, &labels),
        labels: Arc::new(labels),
        cannot: if lacks { vec![Cannot { role: Role::Delete, why: NO_SNAPSHOT.into() }] } else { Vec::new() },
        loss: Loss::Unknown,
        files: FileSizes::default(),
        native: Some(Box::new(NativeObserved {
            deadline: ends.map(|at| NativeDeadline { at, effect: NativeEffect::Destroy }),
            ..NativeObserved::default()
        })),
        sharers: 1,
        about: about(info).into(),
    }))
}

/// Its name, and how long it may idle, which was settled when it was made.
fn about(info: &SandboxInfo) -> String {
    let name = if info.name.is_empty() { &info.id } else { &info.name };
    match info.idle_timeout_secs {
        Some(idle) => format!("{name} (Modal ends it after {idle} s without use)"),
        None => name.clone(),
    }
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
