//! `furlough check` and `furlough schema`: the configuration itself.

use std::path::Path;

use lifecycle::{duration::Human, policy::Mode};
use serde_json::json;
use settings::{SettingsError, Severity, Source};

use crate::{
    answer::{Answer, Exit, Fault},
    render::words::count,
    terminal::{Style, Terminal},
};

/// The faults of a configuration, each with its line; warnings don't fail.
pub(crate) fn check(file: Option<&Path>, config: Option<&Path>, terminal: Terminal) -> Result<Answer, Fault> {
    let settings = match settings::load(file.or(config)) {
        Ok(settings) => settings,
        Err(SettingsError::Faults(faults)) => {
            let errors = faults.faults.iter().filter(|fault| fault.severity == Severity::Error).count();
            let head = format!("{} has {}", faults.file, count((errors + faults.omitted) as u64, "fault"));
            let text = format!("{faults}\n\n{}", terminal.paint(Style::Red, &head));
            let json = json!({ "ok": false, "file": faults.file, "faults": faults.faults, "omitted": faults.omitted });
            return Ok(Answer { text, json, exit: Exit::Usage });
        }
        Err(SettingsError::NotFound { path, .. }) if file.is_some() => {
            let next = "name a configuration, or none for the one that every command reads";
            return Err(Fault::usage(
                "configuration_unreadable",
                format!("there is no file `{}`; {next}", path.display()),
            ));
        }
        Err(other) => return Err(faulty(&other)),
    };
    let name = match &settings.source {
        Source::File(path) => path.display().to_string(),
        Source::Text(name) => name.clone(),
        Source::BuiltIn { .. } => "the built-in configuration".to_owned(),
    };
    let mut lines: Vec<_> = settings.warnings.iter().map(|warning| warning.in_file(&name).to_string()).collect();
    let policy = &settings.policy;
    lines.push(format!(
        "{} {}: {}, {}, mode {}, plans valid for {}",
        terminal.paint(Style::Green, "ok"),
        settings.source,
        count(settings.backends.len() as u64, "backend"),
        count(policy.rules.len() as u64, "policy rule"),
        mode(policy.mode),
        Human(policy.plan_valid),
    ));
    let json = json!({ "ok": true, "file": name, "faults": settings.warnings, "omitted": 0, "policy": policy.hash() });
    Ok(Answer::done(lines.join("\n"), json))
}

/// The word of the configuration.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Report => "report",
        Mode::Enforce => "enforce",
    }
}

/// The JSON Schema of the configuration; it is the answer with and without `--json`.
pub(crate) fn schema() -> Answer {
    let schema = settings::schema();
    Answer::done(format!("{schema:#}"), schema)
}

/// A configuration that can't be used, whatever the reason.
pub(crate) fn faulty(error: &SettingsError) -> Fault {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    // `Faults` is transparent: its own text is there already, and it has no source.
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let code = if matches!(error, SettingsError::Faults(_)) { "configuration" } else { "configuration_unreadable" };
    Fault::usage(code, message)
}
