//! The binary, and a folder to run it in.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use serde_json::Value;
use tempfile::TempDir;

/// The demo's worktrees, by the beginning of their ids.
pub(crate) const HELD: &str = "a51f0c3e";
pub(crate) const PUSHED: &str = "3c9e12d4";
pub(crate) const UNPUSHED: &str = "c07b5ad9";
pub(crate) const DIRTY: &str = "52d8f6a1";
pub(crate) const SHARED: &str = "e8341bc7";
pub(crate) const PACKAGES: &str = "7f20e95b";
pub(crate) const FRESH: &str = "14ab87f3";

/// The `furlough` binary of this build. Cargo builds another package's binary for no test, so it is built here,
/// once, into the same target folder and with the same profile.
pub(crate) fn furlough() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        // <target>/<profile>/deps/all-…
        let profile = test.parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "furlough", "--target-dir"]).arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).status().unwrap();
        assert!(built.success(), "the furlough binary does not build");
        profile.join("furlough")
    });
    &BINARY
}

/// How a run of the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The same run, which must have ended with `code`.
    #[track_caller]
    pub(crate) fn ending(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

/// A folder that is the whole world of the command.
pub(crate) struct Folder {
    temp: TempDir,
}

impl Folder {
    /// With nothing in it.
    pub(crate) fn empty() -> Self {
        Self { temp: TempDir::new().unwrap() }
    }

    /// With the demo's repository, worktrees, conversations and configuration, as nothing had happened to them yet.
    pub(crate) fn demo() -> Self {
        let folder = Self::empty();
        folder.run(&["demo", "--prepare", "--dir", "demo"]).ending(0);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    /// The demo's folder.
    pub(crate) fn demo_path(&self) -> PathBuf {
        self.path().join("demo")
    }

    /// The worktree whose id begins with `start`.
    pub(crate) fn worktree(&self, start: &str) -> PathBuf {
        let root = self.demo_path().join("conversation-worktrees");
        let found = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        let found = found.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(start));
        found.last().expect("the demo has it").join("shop")
    }

    /// The command with nothing of this process's environment but PATH.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(furlough());
        isolate(&mut command, self.path());
        if self.demo_path().join("furlough.toml").exists() {
            command.env("FURLOUGH_CONFIG", self.demo_path().join("furlough.toml"));
        }
        command.args(args);
        command
    }

    /// Runs the command in this folder.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// Runs it with `--json`, and gives the document.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str], code: i32) -> Value {
        self.run(&[args, &["--json"]].concat()).ending(code).json()
    }

    /// Writes a file in this folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// Shows a command nothing of this machine but its programs: no home, no engine, no configuration.
#[expect(clippy::disallowed_methods, reason = "programs are found by PATH, which a child must be given")]
pub(crate) fn isolate(command: &mut Command, folder: &Path) {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("USER", "ada")
        .env("TMPDIR", scratch(folder))
        .env("FURLOUGH_DATA", folder.join("demo/data"))
        .env("OH_CONVERSATION_WORKTREE_ROOT", folder.join("no-worktrees"))
        .env("DOCKER_HOST", format!("unix://{}", folder.join("no.sock").display()))
        .current_dir(folder);
}

/// Where throw-away files go, apart from what is looked at for traces.
fn scratch(folder: &Path) -> PathBuf {
    let scratch = folder.join("tmp");
    fs::create_dir_all(&scratch).unwrap();
    scratch
}

/// Every path below `folder` with its times, its size and what it is: what changes when anything is written.
pub(crate) fn traces(folder: &Path) -> Vec<(PathBuf, String)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let mut queue = vec![folder.to_owned()];
    while let Some(path) = queue.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            queue.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let trace = format!(
            "{} {:o} {} {}.{} {}.{}",
            meta.ino(),
            meta.mode(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec()
        );
        found.push((path, trace));
    }
    found.sort();
    found
}

/// Every file below `folder` with its content.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = traces(folder).into_iter().map(|(path, _)| path).filter(|path| path.is_file());
    files.map(|path| (path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}
