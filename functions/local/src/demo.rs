//! `furlough demo`: a throw-away folder with real worktrees (and containers, where an engine answers), then a plan,
//! an apply and an undo in it. Nothing outside the folder is touched but the containers that it made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lifecycle::{Plan, Report};
use pass::Outcome;
use serde_json::json;
use settings::system;

mod config;
mod engine;
mod fixture;
mod git;
mod likeness;
mod script;
mod story;
mod waiter;

use crate::{
    answer::{Answer, Exit, Fault, to_json},
    cli,
    commands::{apply, hold, plan, run, undo},
    parts::Plant,
    render,
    stop::Stopped,
    terminal::Terminal,
};
use engine::Engine;
use fixture::{Fixture, local};
use likeness::Likeness;

/// Makes the folder, and unless only that was asked for, plans, applies and takes back in it.
pub(crate) async fn command(asked: &cli::Demo, terminal: Terminal) -> Result<Answer, Fault> {
    let fixture = Fixture::at(&folder(asked.dir.as_deref())?);
    terminal.say(&script::title(&fixture, terminal)).map_err(output)?;
    fixture.make(system::now())?;
    let engine = engine(&fixture).await;
    fs::write(&fixture.config, config::text(engine.as_ref().ok())).map_err(|error| local(&fixture.config, &error))?;
    let plant = plant(&fixture, terminal)?;
    for tree in story::TREES.iter().filter(|tree| tree.held) {
        let runtime = cli::Runtime { name: tree.conversation.to_owned() };
        let why = "the release needs it".to_owned();
        let _: Answer = hold::hold(&plant, &cli::Hold { runtime, span: Some("30d".to_owned()), why }).await?;
    }
    terminal.say(&script::scene(engine.as_ref().err().map(String::as_str), terminal)).map_err(output)?;
    let made =
        json!({ "folder": fixture.folder, "config": fixture.config, "data": fixture.data, "engine": engine.is_ok() });
    let closing = script::closing(&fixture, engine.as_ref().ok(), asked.prepare, terminal);
    if asked.prepare {
        return Ok(Answer::done(closing, made));
    }
    let acted = act(&plant, &fixture, engine.is_ok()).await?;
    let mut document = made;
    document["plan"] = to_json(&acted.plan);
    document["report"] = to_json(&acted.report);
    document["undo"] = acted.undone.json.clone();
    document["files_as_before"] = json!(acted.same);
    let exit = apply::ending(&acted.report).max(acted.undone.exit);
    Ok(Answer { text: closing, json: document, exit: if acted.same { exit } else { Exit::Failed } })
}

struct Acted {
    plan: Plan,
    report: Report,
    undone: Answer,
    /// Every file of every worktree is as it was.
    same: bool,
}

async fn act(plant: &Plant, fixture: &Fixture, engine: bool) -> Result<Acted, Fault> {
    let terminal = plant.terminal;
    let say = |text: String| terminal.say(&text).map_err(output);
    if engine {
        say(script::first_pass(terminal))?;
        let _: Answer = run::command(plant, true).await?;
        // A container that nobody has seen work counts from when it was first seen, and the policy gives it a second.
        tokio::time::sleep(config::CONTAINERS_REST).await;
    }
    let file = fixture.folder.join("plan.json");
    let plan::Planned { plan, notes } = plan::make(plant).await?;
    plan::write(&plan, &file)?;
    say(script::planned(&render::plan::table(&plan, &notes, terminal), terminal))?;
    let before = Likeness::of(&fixture.worktrees)?;
    let (Outcome { report, .. }, notes) = apply::apply(plant, &plan).await?;
    say(script::applied(&render::report::text(&report, &notes, terminal), &fixture.data, terminal))?;
    let pass = plant.acting("undo").await?;
    let undone = undo::answer(&undo::undo(&pass, None, terminal).await?, terminal);
    let after = Likeness::of(&fixture.worktrees)?;
    say(script::undone(&undone.text, &before, &after, terminal))?;
    Ok(Acted { plan, report, undone, same: before == after })
}

/// A new folder: the one that was asked for, else one under the system's folder for temporary files.
fn folder(asked: Option<&Path>) -> Result<PathBuf, Fault> {
    let Some(asked) = asked else {
        let made = tempfile::Builder::new().prefix("furlough-demo-").tempdir_in(system::temp_dir());
        return Ok(made.map_err(|error| local(&system::temp_dir(), &error))?.keep());
    };
    let folder = std::path::absolute(asked).map_err(|error| local(asked, &error))?;
    fs::create_dir(&folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message =
                format!("`{}` is there already; the demo makes a new folder, and touches no other", folder.display());
            Fault::usage("demo_folder", message)
        }
        std::io::ErrorKind::NotADirectory => {
            let message = format!("`{}` is below a file; name a folder that can be made", folder.display());
            Fault::usage("demo_folder", message)
        }
        std::io::ErrorKind::NotFound => {
            let message = format!("the folder that `{}` is to be in is not there; make it first", folder.display());
            Fault::usage("demo_folder", message)
        }
        _ => local(&folder, &error),
    })?;
    Ok(folder)
}

/// The engine on this machine, with the demo's containers, if one answers; else why not.
async fn engine(fixture: &Fixture) -> Result<Engine, String> {
    let host = system::env(system::Variable::DockerHost).map_err(|error| error.to_string())?;
    let host = host.unwrap_or_else(|| backend_docker::DEFAULT_HOST.to_owned());
    let mark = fixture.folder.file_name().unwrap_or_default().to_string_lossy();
    let unique = system::unique();
    // A name of an image may have lower case letters, digits and dashes.
    let mark: String = mark.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let engine = Engine::answering(&host, &format!("{mark}-{}", unique.get(..8).unwrap_or(&unique))).await?;
    engine.make().await.map_err(|fault| fault.message)?;
    Ok(engine)
}

fn plant(fixture: &Fixture, terminal: Terminal) -> Result<Plant, Fault> {
    let settings = settings::load(Some(&fixture.config)).map_err(|error| crate::commands::faulty(&error))?;
    Ok(Plant { settings, data: fixture.data.clone(), terminal, stopped: Stopped::default() })
}

fn output(error: std::io::Error) -> Fault {
    Fault::failed("output", error)
}
