//! A push or a pull as it goes on, and its end when somebody interrupts.

use std::{pin::pin, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use workspace::{Progress, Watched};

use crate::{answer::Fault, parts::Plant, stop::Stop, terminal::Terminal};

/// How often the bar is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// Does `work`, and shows how far it is. Interrupted once, it is given up; a second time it is left as it is.
pub(super) async fn watched<T>(
    plant: &Plant,
    what: String,
    watched: &Watched,
    work: impl Future<Output = T>,
) -> Result<T, Fault> {
    let mut stop = Stop::new(&plant.stopped, plant.terminal)?;
    let bar = Bar::new(plant.terminal, what);
    let mut work = pin!(work);
    let mut given_up = false;
    loop {
        let asked = tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            asked = stop.within(TICK) => asked,
        };
        match (asked, given_up) {
            (false, _) => bar.show(watched.progress()),
            (true, false) => {
                plant
                    .terminal
                    .note("interrupted: it is given up, and what was there stays; once more to leave at once");
                watched.stop();
                given_up = true;
            }
            (true, true) => {
                let problem = "interrupted at work: what was there is whole; the lease ends by itself in some minutes";
                return Err(Fault::failed("interrupted", problem));
            }
        }
    }
}

/// One line on stderr, where somebody looks at it.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(terminal: Terminal, what: String) -> Self {
        let template = "{msg} [{bar:24}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        let bar = terminal.watched.then(|| {
            let bar = ProgressBar::new(0).with_message(what);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self(bar)
    }

    fn show(&self, Progress { total, done, .. }: Progress) {
        if let Some(bar) = self.0.as_ref().filter(|_| total > 0) {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
