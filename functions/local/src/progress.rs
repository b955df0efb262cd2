//! What is told while a pass works: a bar where a terminal watches, a line an act where not.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use pass::{Step, Watch};

use crate::{names::decoded, terminal::Terminal};

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Whoever watches this terminal.
pub(crate) fn watch(terminal: Terminal) -> Arc<dyn Watch> {
    if terminal.watched { Arc::new(Bar::default()) } else { Arc::new(Lines(terminal)) }
}

/// One line on stderr that is drawn over and over, and gone when the pass ends.
#[derive(Default)]
struct Bar(Mutex<Option<ProgressBar>>);

impl Bar {
    fn show(&self, message: String) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TURN);
            bar
        });
        bar.set_message(message);
    }
}

impl Watch for Bar {
    fn step(&self, step: Step<'_>) {
        match step {
            Step::Listed { backend, runtimes } => self.show(format!("{backend}: {runtimes} listed")),
            Step::Looked { backend, done, of } => self.show(format!("{backend}: {done} of {of} looked at")),
            Step::Began { item } => self.show(format!("{} {}", item.action, decoded(&item.runtime))),
            Step::Ended { .. } => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let slot = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = slot.take() {
            bar.finish_and_clear();
        }
    }
}

/// A log keeps every line, so only acts are told.
struct Lines(Terminal);

impl Watch for Lines {
    fn step(&self, step: Step<'_>) {
        if let Step::Ended { item, done } = step {
            let ended = if done { "done" } else { "not done" };
            self.0.note(&format!("{} {}: {ended}", item.action, decoded(&item.runtime)));
        }
    }
}
