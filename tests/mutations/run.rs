//! Plants each fault of the list alone, in a copy of the tree, and demands that the tests named beside it fail.
//!
//! ```text
//! cargo run -p furlough-tests --bin mutate                        every fault: about a minute each
//! cargo run -p furlough-tests --bin mutate -- --sample 4 --turn 7 the seventh four of them
//! cargo run -p furlough-tests --bin mutate -- hold pause          those with these words in their names
//! cargo run -p furlough-tests --bin mutate -- --against FILTER    tells which of them these tests catch
//! ```
//!
//! The copy and its build are in `target/mutations`, so that the checkout is never written to. A fault that does not
//! compile is none; one whose tests pass is a missing test; so is one whose tests were not run or did not pass
//! without it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};

use cargo_metadata::Message;
use tokio::process::Command;

mod list;

use list::Mutation;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// How long one set of tests may take. A fault that makes them wait is not caught by that.
const PATIENCE: Duration = Duration::from_mins(5);

/// Which faults, and against which tests.
#[derive(Debug, Default)]
struct Wish {
    words: Vec<String>,
    sample: Option<usize>,
    turn: usize,
    /// Other tests of `furlough-tests` than those that the list names.
    against: Option<String>,
}

/// What became of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// By this test, the first of those that failed.
    Caught(String),
    Survived,
    Hung,
    NotBuilt(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1)).await {
        Ok(code) => code,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let wish = wish(args)?;
    let all = list::read(Path::new(ROOT))?;
    let chosen = chosen(&all, &wish);
    let copy = Copied::make().await?;
    say(&format!("{} of {} faults, in {}", chosen.len(), all.len(), copy.tree.display()));
    clean(&copy, &chosen, &wish).await?;
    let mut fates = Vec::new();
    for fault in chosen {
        let fate = plant(&copy, fault, &wish).await?;
        say(&format!("{:<9} {}: {} ({})", word(&fate), fault.invariant, fault.name, detail(&fate)));
        if fate == Fate::Survived {
            say(&format!("          a test is missing: {}", fault.why));
        }
        fates.push(fate);
    }
    let caught = fates.iter().filter(|fate| matches!(fate, Fate::Caught(_))).count();
    say(&format!("{caught} of {} caught", fates.len()));
    let done = wish.against.is_some() || caught == fates.len();
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wish(mut args: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish = Wish::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("`{text}` is no number"));
        match arg.as_str() {
            "--sample" => wish.sample = Some(value().and_then(number)?),
            "--turn" => wish.turn = value().and_then(number)?,
            "--against" => wish.against = Some(value()?),
            _ => wish.words.push(arg),
        }
    }
    Ok(wish)
}

/// Those with one of the words, or this turn's sample; those of one file one after another, as they are built.
fn chosen<'a>(all: &'a [Mutation], wish: &Wish) -> Vec<&'a Mutation> {
    let named = |fault: &&Mutation| wish.words.is_empty() || wish.words.iter().any(|word| fault.name.contains(word));
    let mut chosen: Vec<_> = all.iter().filter(named).collect();
    if let Some(sample) = wish.sample.filter(|sample| *sample < chosen.len()) {
        let start = (wish.turn % chosen.len()) * sample;
        chosen = (start..start + sample).map(|at| chosen[at % chosen.len()]).collect();
    }
    chosen.sort_by_key(|fault| &fault.file);
    chosen
}

/// The tests that a fault is tried on: of which package, and which.
fn tests<'a>(fault: &'a Mutation, wish: &'a Wish) -> (&'a str, &'a str) {
    match &wish.against {
        Some(filter) => ("furlough-tests", filter),
        None => (&fault.package, &fault.caught_by),
    }
}

/// Without a fault all of the tests pass, and there are some.
async fn clean(copy: &Copied, chosen: &[&Mutation], wish: &Wish) -> Result<(), String> {
    let mut filters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for fault in chosen {
        let (package, filter) = tests(fault, wish);
        let of = filters.entry(package).or_default();
        if !of.contains(&filter) {
            of.push(filter);
        }
    }
    for (package, filters) in filters {
        let binaries = copy.build(package).await?.map_err(|why| format!("without a fault, {package}: {why}"))?;
        for filter in filters {
            match copy.test(&binaries, filter).await? {
                Fate::Survived => {}
                fate => return Err(format!("without a fault, {package} {filter}: {}", detail(&fate))),
            }
        }
    }
    Ok(())
}

async fn plant(copy: &Copied, fault: &Mutation, wish: &Wish) -> Result<Fate, String> {
    let path = copy.tree.join(&fault.file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", fault.file))?;
    write(&path, &fault.planted(&text)?)?;
    let fate = tried(copy, tests(fault, wish)).await;
    write(&path, &text)?;
    fate
}

async fn tried(copy: &Copied, (package, filter): (&str, &str)) -> Result<Fate, String> {
    match copy.build(package).await? {
        Ok(binaries) => copy.test(&binaries, filter).await,
        Err(why) => Ok(Fate::NotBuilt(why)),
    }
}

/// A copy of the tree, and where it is built.
struct Copied {
    tree: PathBuf,
    target: PathBuf,
}

/// A test binary, and the folder of its package.
struct Binary {
    path: PathBuf,
    folder: PathBuf,
}

impl Copied {
    /// Copies what git knows of or would add. A file that is the same already keeps its time, and so its build.
    async fn make() -> Result<Self, String> {
        let all = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = Command::new("git").args(all).current_dir(ROOT).output().await;
        let listed = listed.map_err(|error| format!("git: {error}"))?;
        if !listed.status.success() {
            return Err(format!("git: {}", String::from_utf8_lossy(&listed.stderr)));
        }
        let scratch = Path::new(ROOT).join("target/mutations");
        let copy = Self { tree: scratch.join("tree"), target: scratch.join("target") };
        for name in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            let (from, to) = (Path::new(ROOT).join(name), copy.tree.join(name));
            // Deleted and not yet committed.
            let Ok(bytes) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            let folder = to.parent().unwrap_or(&copy.tree);
            fs::create_dir_all(folder)
                .and_then(|()| fs::copy(&from, &to))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(copy)
    }

    /// Builds a package's tests. The inner error: they do not compile.
    async fn build(&self, package: &str) -> Result<Result<Vec<Binary>, String>, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--quiet", "--no-run", "--tests", "--message-format=json", "-p", package]);
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        let built = cargo.stdin(Stdio::null()).output().await.map_err(|error| format!("cargo: {error}"))?;
        let mut messages = Message::parse_stream(built.stdout.as_slice()).filter_map(Result::ok);
        if !built.status.success() {
            let first = messages.find_map(error);
            return Ok(Err(first.unwrap_or_else(|| String::from_utf8_lossy(&built.stderr).into_owned())));
        }
        Ok(Ok(messages.filter_map(binary).collect()))
    }

    /// Runs the tests that the filter names, until a binary fails.
    async fn test(&self, binaries: &[Binary], filter: &str) -> Result<Fate, String> {
        let mut ran = 0;
        for binary in binaries {
            let mut tests = Command::new(&binary.path);
            tests.arg(filter).current_dir(&binary.folder).stdin(Stdio::null()).kill_on_drop(true);
            let Ok(ended) = tokio::time::timeout(PATIENCE, tests.output()).await else { return Ok(Fate::Hung) };
            let ended = ended.map_err(|error| format!("{}: {error}", binary.path.display()))?;
            let told = String::from_utf8_lossy(&ended.stdout).into_owned();
            if !ended.status.success() {
                return failed(&told).map(Fate::Caught).ok_or(format!("no test failed, but the run did: {told}"));
            }
            ran += told.matches(" ... ok").count();
        }
        if ran == 0 {
            return Err(format!("no test has `{filter}` in its name"));
        }
        Ok(Fate::Survived)
    }
}

/// The first test that failed.
fn failed(told: &str) -> Option<String> {
    let line = told.lines().find(|line| line.ends_with("... FAILED"))?;
    line.strip_prefix("test ")?.split(" ... ").next().map(str::to_owned)
}

fn error(message: Message) -> Option<String> {
    match message {
        Message::CompilerMessage(told) if told.message.level == cargo_metadata::diagnostic::DiagnosticLevel::Error => {
            Some(told.message.message)
        }
        _ => None,
    }
}

fn binary(message: Message) -> Option<Binary> {
    let Message::CompilerArtifact(artifact) = message else { return None };
    let path = artifact.executable.filter(|_| artifact.profile.test)?.into_std_path_buf();
    Some(Binary { path, folder: artifact.manifest_path.into_std_path_buf().parent()?.to_owned() })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Caught(_) => "caught",
        Fate::Survived => "SURVIVED",
        Fate::Hung => "HUNG",
        Fate::NotBuilt(_) => "NOT BUILT",
    }
}

fn detail(fate: &Fate) -> String {
    match fate {
        Fate::Caught(test) => format!("by {test}"),
        Fate::Survived => "every test passed".to_owned(),
        Fate::Hung => format!("the tests did not end within {} s", PATIENCE.as_secs()),
        Fate::NotBuilt(why) => why.clone(),
    }
}

#[expect(clippy::print_stdout, reason = "a command's report")]
fn say(text: &str) {
    println!("{text}");
}
