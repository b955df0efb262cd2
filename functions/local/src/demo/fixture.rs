//! The demo's folder: a real repository with a real remote, real worktrees in OpenHands' layout, and the
//! conversations that they belong to, as old as the story says.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use filetime::FileTime;
use lifecycle::Time;

use super::{
    git::git,
    story::{Left, TREES, Tree},
};
use crate::answer::Fault;

/// The repository's name, and so the last part of each worktree's path.
const REPOSITORY: &str = "shop";

/// Where the demo's things are. Everything is inside `folder`.
#[derive(Debug)]
pub(crate) struct Fixture {
    /// All of it.
    pub(crate) folder: PathBuf,
    /// The main repository.
    pub(crate) repository: PathBuf,
    /// `<worktrees>/<conversation>/shop`.
    pub(crate) worktrees: PathBuf,
    /// `<conversations>/<conversation without dashes>/`.
    pub(crate) conversations: PathBuf,
    /// Furlough's own data.
    pub(crate) data: PathBuf,
    /// The configuration.
    pub(crate) config: PathBuf,
}

impl Fixture {
    /// The places in `folder`.
    pub(crate) fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            repository: folder.join(REPOSITORY),
            worktrees: folder.join("conversation-worktrees"),
            conversations: folder.join("conversations"),
            data: folder.join("data"),
            config: folder.join("furlough.toml"),
        }
    }

    /// Makes everything but the configuration and the data.
    pub(crate) fn make(&self, now: Time) -> Result<(), Fault> {
        self.make_repository(now)?;
        for tree in &TREES {
            self.make_worktree(tree, now)?;
        }
        for tree in &TREES {
            self.age(tree, now)?;
        }
        Ok(())
    }

    fn make_repository(&self, now: Time) -> Result<(), Fault> {
        let born = now.minus(std::time::Duration::from_hours(90 * 24));
        let (remote, main) = (self.folder.join("remote.git"), &self.repository);
        let git = |folder: &Path, args: &[&str]| git(folder, &self.folder, born, args);
        for folder in [&remote, main, &self.worktrees, &self.conversations] {
            fs::create_dir_all(folder).map_err(|error| local(folder, &error))?;
        }
        git(&remote, &["init", "--quiet", "--bare"])?;
        git(main, &["init", "--quiet"])?;
        write(&main.join("README.md"), "# Shop\n\nA shop that does not exist.\n")?;
        write(&main.join("prices.py"), "def total(prices):\n    return sum(prices)\n")?;
        write(&main.join(".gitignore"), "node_modules/\n.cache/\n")?;
        git(main, &["add", "--all"])?;
        git(main, &["commit", "--quiet", "--message", "A shop"])?;
        // Absolute, since the worktrees that share it lie elsewhere.
        git(main, &["remote", "add", "origin", utf8(&remote)?])?;
        git(main, &["push", "--quiet", "--set-upstream", "origin", "main"])
    }

    fn make_worktree(&self, tree: &Tree, now: Time) -> Result<(), Fault> {
        let at = now.minus(tree.idle);
        let path = self.path(tree);
        let branch = format!("openhands/{}", tree.conversation);
        let git = |folder: &Path, args: &[&str]| git(folder, &self.folder, at, args);
        fs::create_dir_all(self.worktrees.join(tree.conversation)).map_err(|error| local(&path, &error))?;
        git(&self.repository, &["worktree", "add", "--quiet", "-b", &branch, utf8(&path)?, "main"])?;
        write(&path.join("work.md"), &format!("# {}\n\nDone by an agent that does not exist.\n", tree.task))?;
        git(&path, &["add", "--all"])?;
        git(&path, &["commit", "--quiet", "--message", tree.task])?;
        if tree.left != Left::Unpushed {
            git(&path, &["push", "--quiet", "--set-upstream", "origin", &branch])?;
        }
        if tree.left == Left::Dirty {
            write(&path.join("prices.py"), "def total(prices):\n    return round(sum(prices), 2)\n")?;
            write(&path.join("notes.txt"), "Ask about the tax on shipping.\n")?;
        }
        install(&path, tree.packages)?;
        self.converse(tree.conversation, &path, tree.task)?;
        tree.shared_with.map_or(Ok(()), |(other, _)| self.converse(other, &path, tree.task))
    }

    /// Where the worktree of `tree` is.
    pub(crate) fn path(&self, tree: &Tree) -> PathBuf {
        self.worktrees.join(tree.conversation).join(REPOSITORY)
    }

    fn conversation(&self, id: &str) -> PathBuf {
        self.conversations.join(id.replace('-', ""))
    }

    /// What an agent server keeps of a conversation in a worktree.
    fn converse(&self, id: &str, worktree: &Path, task: &str) -> Result<(), Fault> {
        let folder = self.conversation(id);
        let events = folder.join("events");
        fs::create_dir_all(&events).map_err(|error| local(&events, &error))?;
        let workspace = serde_json::json!({ "kind": "LocalWorkspace", "working_dir": worktree });
        let meta = serde_json::json!({ "id": id, "title": task, "workspace": workspace });
        let state = serde_json::json!({ "id": id, "workspace": workspace, "execution_status": "finished" });
        let event = serde_json::json!({ "kind": "MessageEvent", "source": "user", "text": task });
        write(&folder.join("meta.json"), &format!("{meta:#}\n"))?;
        write(&folder.join("base_state.json"), &format!("{state:#}\n"))?;
        write(&events.join(format!("event-00000-{id}.json")), &format!("{event:#}\n"))
    }

    /// Sets the times of everything that tells of the activity of `tree`.
    fn age(&self, tree: &Tree, now: Time) -> Result<(), Fault> {
        let path = self.path(tree);
        let at = now.minus(tree.idle);
        let admin = self.admin(tree.conversation)?;
        for place in [self.worktrees.join(tree.conversation), admin, self.conversation(tree.conversation)] {
            touch(&place, at).map_err(|error| local(&place, &error))?;
        }
        for refs in [".git/refs/heads/openhands", ".git/logs/refs/heads/openhands"] {
            let place = self.repository.join(refs).join(tree.conversation);
            touch(&place, at).map_err(|error| local(&place, &error))?;
        }
        let Some((other, idle)) = tree.shared_with else { return Ok(()) };
        let place = self.conversation(other);
        touch(&place, now.minus(idle)).map_err(|error| local(&path, &error))
    }

    /// `<repository>/.git/worktrees/<name>`, where git chose the name.
    fn admin(&self, conversation: &str) -> Result<PathBuf, Fault> {
        let link = self.worktrees.join(conversation).join(REPOSITORY).join(".git");
        let text = fs::read_to_string(&link).map_err(|error| local(&link, &error))?;
        let path = text.trim().strip_prefix("gitdir: ").unwrap_or_default();
        Ok(PathBuf::from(path))
    }
}

/// Arguments of git are text here.
fn utf8(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| {
        let message = format!("`{}` is not UTF-8; give another folder with `--dir`", path.display());
        Fault::usage("demo_folder", message)
    })
}

/// Packages as an installer leaves them: many small files that git ignores.
fn install(worktree: &Path, bytes: usize) -> Result<(), Fault> {
    const EACH: usize = 100_000;
    for index in 0..bytes.div_ceil(EACH) {
        let folder = worktree.join("node_modules").join(format!("package-{index:02}"));
        fs::create_dir_all(&folder).map_err(|error| local(&folder, &error))?;
        let line = format!("export const part{index} = 'a package that does not exist';\n");
        let text = line.repeat(EACH.min(bytes - index * EACH) / line.len());
        write(&folder.join("index.js"), &text)?;
    }
    Ok(())
}

/// Sets the time of a path and of all below it, links themselves rather than what they point at.
fn touch(path: &Path, at: Time) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            touch(&entry?.path(), at)?;
        }
    }
    let millis = at.millis();
    let nanos = u32::try_from(millis.rem_euclid(1000) * 1_000_000).unwrap_or(0);
    let time = FileTime::from_unix_time(millis.div_euclid(1000), nanos);
    filetime::set_symlink_file_times(path, time, time)
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    fs::write(path, text).map_err(|error| local(path, &error))
}

/// A fault of this machine's disk.
pub(crate) fn local(path: &Path, error: &io::Error) -> Fault {
    Fault::failed("demo_folder", format!("`{}`: {error}", path.display()))
}
