//! What is told of a runtime, and to whom.

use lifecycle::{Action, Reason, RuntimeId, Time, Token};

use crate::{
    attempt::Ready,
    context::Context,
    notify::{Event, EventKind, NotifyError},
};

/// Gives notice of a deletion. Delivered means that the receiver acknowledged it.
pub(crate) async fn give(cx: Context<'_>, ready: &Ready, until: Time) -> Result<(), NotifyError> {
    let Some(notifier) = &cx.pass.notifier else {
        return Err(NotifyError::Configuration("absent, so no notice can be given and nothing is deleted".to_owned()));
    };
    let now = cx.now();
    let before = cx.rules(&ready.seen.labels).and_then(|rules| rules.notice_before_delete).unwrap_or_default();
    let mut event = event(cx, ready, EventKind::Notice);
    event.id = format!("{}/notice/{}", ready.item.runtime, ready.item.evidence.idle_from.millis());
    event.action = Some(Action::Delete);
    event.delete_after = Some(now.plus(before).plus(cx.policy().slack()));
    let left = until.since(now);
    match tokio::time::timeout(left, notifier.deliver(&event)).await {
        Ok(delivered) => delivered,
        Err(_) => Err(NotifyError::Configuration("the receiver did not answer before the claim's end".to_owned())),
    }
}

/// Tells of something that happened. Nothing waits for it, so a failure is logged and that is all.
pub(crate) async fn tell(cx: Context<'_>, ready: &Ready, token: Token, kind: EventKind) {
    let mut event = event(cx, ready, kind);
    event.id = format!("{}/act/{token}", ready.item.runtime);
    send(cx, &event).await;
}

/// Tells that a runtime was called back.
pub(crate) async fn woken(cx: Context<'_>, id: &RuntimeId, token: Token) {
    let event = Event {
        id: format!("{id}/act/{token}"),
        event: EventKind::Woken,
        runtime: id.clone(),
        backend: cx.name().clone(),
        action: None,
        reason: None,
        about: String::new(),
        delete_after: None,
        policy: cx.policy().hash(),
        at: cx.now(),
    };
    send(cx, &event).await;
}

async fn send(cx: Context<'_>, event: &Event) {
    let Some(notifier) = &cx.pass.notifier else { return };
    let told = tokio::time::timeout(cx.limits().look_timeout, notifier.deliver(event)).await;
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(runtime = %event.runtime, %error, "an event was not delivered"),
        Err(_) => tracing::warn!(runtime = %event.runtime, "an event was not delivered in time"),
    }
}

fn event(cx: Context<'_>, ready: &Ready, kind: EventKind) -> Event {
    let item = &ready.item;
    Event {
        id: String::new(),
        event: kind,
        runtime: item.runtime.clone(),
        backend: cx.name().clone(),
        action: Some(item.action),
        reason: Some::<Reason>(item.reason.clone()),
        about: item.evidence.about.to_string(),
        delete_after: None,
        policy: cx.policy().hash(),
        at: cx.now(),
    }
}
