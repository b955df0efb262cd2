//! The two streams: the answer on stdout, progress and warnings on stderr.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;
use settings::system;
use telemetry::{Colours, Verbosity};

use crate::answer::{Answer, Fault};

/// What a stretch of text looks like where colours are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Headings and names.
    Bold,
    /// What is said in passing.
    Dim,
    /// Good, or kept.
    Green,
    /// Look here.
    Yellow,
    /// Gone, refused or failed.
    Red,
    /// A command to type.
    Cyan,
}

/// How the command talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// stdout takes colours.
    pub(crate) colours: bool,
    /// stderr is watched by a person.
    pub(crate) watched: bool,
    /// One JSON document on stdout, nothing else.
    pub(crate) json: bool,
}

impl Terminal {
    /// From the streams as they are; `no_colour` is the user's wish (<https://no-color.org>).
    pub(crate) fn new(json: bool, no_colour: bool) -> Self {
        let colours = !json && !no_colour && io::stdout().is_terminal();
        Self { colours, watched: io::stderr().is_terminal(), json }
    }

    /// `text` in `style`, where colours are on.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Red => "31",
            Style::Cyan => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Sets up the log, on stderr. `verbose`: how often that was asked for.
    pub(crate) fn log(self, verbose: u8) -> Result<(), Fault> {
        let filter = system::env(system::Variable::Log).map_err(|error| Fault::usage("environment", error))?;
        let colours = if self.colours && self.watched { Colours::On } else { Colours::Off };
        telemetry::terminal(Verbosity::from_flags(0, verbose), filter.as_deref(), colours)
            .map_err(|error| Fault::usage("environment", error))
    }

    /// A line of the answer as it comes, for commands that go on for a while. Nothing under `--json`.
    pub(crate) fn say(self, line: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { write_line(&mut io::stdout().lock(), line) }
    }

    /// A line on stderr that is no part of the answer.
    #[expect(clippy::unused_self, reason = "what is said goes through the terminal, whichever stream it takes")]
    pub(crate) fn note(self, line: &str) {
        // Nobody is left to tell when stderr is closed.
        let _ = write_line(&mut io::stderr().lock(), line);
    }

    /// Says so on stderr when the answer could not be written.
    pub(crate) fn written(self, shown: io::Result<()>) -> io::Result<()> {
        shown.inspect_err(|error| self.note(&format!("error: the answer could not be written: {error}")))
    }

    /// The answer.
    pub(crate) fn answer(self, answer: &Answer) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            // Null: it was told already, a line at a time.
            return if answer.json.is_null() { Ok(()) } else { write_line(&mut out, &format!("{:#}", answer.json)) };
        }
        if answer.text.is_empty() { Ok(()) } else { write_line(&mut out, &answer.text) }
    }

    /// What went wrong: on stdout as JSON under `--json`, else on stderr.
    pub(crate) fn fault(self, fault: &Fault) -> io::Result<()> {
        if self.json {
            return write_line(&mut io::stdout().lock(), &format!("{:#}", fault.json()));
        }
        // Faults of a configuration say so themselves, one by one.
        let said = if fault.message.starts_with("error: ") { "" } else { "error: " };
        self.note(&format!("{said}{}", fault.message));
        Ok(())
    }
}

/// A JSON line as it comes, for `run`.
pub(crate) fn emit(value: &Value) -> io::Result<()> {
    write_line(&mut io::stdout().lock(), &value.to_string())
}

/// A reader that left (`furlough list | head -1`) has what it wanted: that is no failure.
fn write_line(out: &mut impl Write, line: &str) -> io::Result<()> {
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
