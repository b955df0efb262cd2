//! What is told while a pass works: a bar where a terminal watches, a line an act where not.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use lifecycle::Item;
use pass::{Step, Watch};

use crate::{
    names::{decoded, named},
    stop::Stopped,
    terminal::Terminal,
};

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Whoever watches this terminal, and may stop what is to come.
pub(crate) fn watch(terminal: Terminal, stopped: Stopped) -> Arc<dyn Watch> {
    if terminal.watched {
        Arc::new(Bar { line: Mutex::default(), stopped })
    } else {
        Arc::new(Lines { terminal, stopped })
    }
}

/// The runtime of an act in full, and the name that people gave it.
fn name(item: &Item) -> String {
    named(&decoded(&item.runtime), &item.evidence.about)
}

/// One line on stderr that is drawn over and over, and gone when the pass ends.
struct Bar {
    line: Mutex<Option<ProgressBar>>,
    stopped: Stopped,
}

impl Bar {
    fn show(&self, message: String) {
        let mut slot = self.line.lock().unwrap_or_else(PoisonError::into_inner);
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
            Step::Began { item } => self.show(format!("{} {}", item.action, name(item))),
            Step::Ended { .. } => {}
        }
    }

    fn stopped(&self) -> bool {
        self.stopped.is_set()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let slot = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = slot.take() {
            bar.finish_and_clear();
        }
    }
}

/// A log keeps every line, so only acts are told.
struct Lines {
    terminal: Terminal,
    stopped: Stopped,
}

impl Watch for Lines {
    fn step(&self, step: Step<'_>) {
        if let Step::Ended { item, done } = step {
            let ended = if done { "done" } else { "not done" };
            self.terminal.note(&format!("{} {}: {ended}", item.action, name(item)));
        }
    }
    fn stopped(&self) -> bool {
        self.stopped.is_set()
    }
}
