//! Running git on a repository whose files an agent may have written.
//!
//! **Why a view.** A repository's configuration can name programs: filters, fsmonitor, hooks, textconv, ssh, gpg, pagers,
//! a credential helper. Naming each away would need a list that is right for every version of git. So git is
//! shown a folder of ours as the common directory, with links to the objects and the references, and a configuration that
//! holds only what `KEPT` names. What the repository configures is never read, so nothing of it can run.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::look::absent;

/// Where a `git` without a path is looked for, and what git itself may start.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";

/// The most that one run may write on stdout: the names of about a million files.
const MAX_OUTPUT_BYTES: u64 = 128 << 20;
/// What is kept of stderr.
const MAX_COMPLAINT_BYTES: u64 = 4 << 10;
/// The most of a repository's configuration that is read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// What a view takes over of a repository's configuration: how bytes are stored and compared, no programs, no paths.
const KEPT: [&str; 8] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
];

/// What of the common directory a view links to.
const LINKED: [&str; 6] = ["objects", "refs", "packed-refs", "reftable", "info", "shallow"];

/// Given at every run, though a view has none of what they turn off: two locks on one door.
const SETTINGS: [&str; 10] = [
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "gc.auto=0",
];

/// Git could not be asked, or did not answer as it should. Says what happened, for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitFault {
    #[error("could not start `{program}`: {error}; set `git` to where it is", program = program.display())]
    Start { program: PathBuf, error: io::Error },
    #[error("`git {verb}` took longer than {after:?}")]
    Slow { verb: String, after: Duration },
    #[error("`git {verb}` wrote more than {MAX_OUTPUT_BYTES} bytes")]
    Long { verb: String },
    #[error("`git {verb}` failed: {complaint}")]
    Failed { verb: String, complaint: String },
    #[error("could not prepare a view of `{path}` for git: {error}", path = path.display())]
    View { path: PathBuf, error: io::Error },
}

/// The git program with its limits.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    pub program: PathBuf,
    pub timeout: Duration,
    pub scratch: PathBuf,
}

/// A repository as git is shown it. Removed when dropped.
#[derive(Debug)]
pub(crate) struct View {
    folder: PathBuf,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
}

impl View {
    /// The folder of ours that stands for the common directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Git {
    /// A view of a repository without a work tree: its shared references and objects.
    pub(crate) async fn repository(&self, common: &Path) -> Result<View, GitFault> {
        let fault = |error| GitFault::View { path: common.to_owned(), error };
        let folder = self.folder(common).map_err(fault)?;
        let view = View { git_dir: folder.clone(), folder, work_tree: None };
        let config = absent(crate::look::read_limited(&common.join("config"), MAX_CONFIG_BYTES)).map_err(fault)?;
        if let Some(config) = config {
            // Read from a copy, and by a git that stands in our own folder.
            let copy = view.folder.join("theirs");
            fs::write(&copy, config).map_err(fault)?;
            let args = [OsStr::new("config"), "--no-includes".as_ref(), "--file".as_ref(), copy.as_os_str()];
            let listed = self.run(&view, args.into_iter().chain(["-z".as_ref(), "--list".as_ref()]), &[]).await?;
            fs::write(view.folder.join("config"), kept(&listed)).map_err(fault)?;
        }
        Ok(view)
    }

    /// The same with a linked worktree.
    pub(crate) async fn worktree(&self, common: &Path, admin: &Path, tree: &Path) -> Result<View, GitFault> {
        let mut view = self.repository(common).await?;
        admin.clone_into(&mut view.git_dir);
        view.work_tree = Some(tree.to_owned());
        Ok(view)
    }

    /// A repository of our own that borrows the objects of `other` and has no references yet.
    pub(crate) async fn borrowing(&self, common: &Path) -> Result<View, GitFault> {
        let view = self.repository(common).await?;
        let build = || -> io::Result<()> {
            for name in ["objects", "refs", "packed-refs", "reftable"] {
                absent(fs::remove_file(view.folder.join(name)))?;
            }
            fs::create_dir_all(view.folder.join("refs/furlough"))?;
            fs::create_dir_all(view.folder.join("objects/info"))?;
            let config = fs::read_to_string(view.folder.join("config"))?;
            // Our references are files, whatever theirs are.
            let config: Vec<_> = config.lines().filter(|line| !line.contains("refstorage")).collect();
            fs::write(view.folder.join("config"), config.join("\n") + "\n")?;
            let mut alternate = std::os::unix::ffi::OsStrExt::as_bytes(common.join("objects").as_os_str()).to_vec();
            alternate.push(b'\n');
            fs::write(view.folder.join("objects/info/alternates"), alternate)
        };
        build().map_err(|error| GitFault::View { path: common.to_owned(), error })?;
        Ok(view)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "names a scratch folder apart from other processes'; decides nothing"
    )]
    fn folder(&self, common: &Path) -> io::Result<PathBuf> {
        static SEQUENCE: AtomicU64 = AtomicU64::new(0);
        let folder = loop {
            let n = SEQUENCE.fetch_add(1, Ordering::Relaxed);
            let folder = self.scratch.join(format!("furlough-git-{}-{n}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => break folder,
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        let common = fs::canonicalize(common)?;
        for name in LINKED {
            if common.join(name).symlink_metadata().is_ok() {
                symlink(common.join(name), folder.join(name))?;
            }
        }
        fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(folder.join("config"), kept(b""))?;
        Ok(folder)
    }

    /// Runs git and gives what it wrote on stdout. A status other than 0 is an error.
    pub(crate) async fn run<A: AsRef<OsStr>>(
        &self,
        view: &View,
        args: impl IntoIterator<Item = A>,
        stdin: &[u8],
    ) -> Result<Vec<u8>, GitFault> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let verb = args.first().map(|verb| verb.to_string_lossy().into_owned()).unwrap_or_default();
        let mut child = self
            .command(view, &args)
            .spawn()
            .map_err(|error| GitFault::Start { program: self.program.clone(), error })?;
        let group = child.id();
        let (input, output, complaint) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let work = async {
            let feed = async {
                // Git may end before it has read all; its status tells.
                if let Some(mut input) = input {
                    let _ = input.write_all(stdin).await;
                }
            };
            let ((), output, complaint) =
                tokio::join!(feed, limited(output, MAX_OUTPUT_BYTES), drained(complaint, MAX_COMPLAINT_BYTES));
            (output, complaint, child.wait().await)
        };
        let Ok((output, complaint, status)) = tokio::time::timeout(self.timeout, work).await else {
            end_group(group);
            return Err(GitFault::Slow { verb, after: self.timeout });
        };
        let Ok(Some(output)) = output else {
            end_group(group);
            return Err(GitFault::Long { verb });
        };
        match status {
            Ok(status) if status.success() => Ok(output),
            status => {
                let complaint = String::from_utf8_lossy(&complaint).trim().replace('\n', "; ");
                let complaint = if complaint.is_empty() { format!("{status:?}") } else { complaint };
                Err(GitFault::Failed { verb, complaint })
            }
        }
    }

    fn command(&self, view: &View, args: &[OsString]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(SETTINGS).args(args).env_clear().envs([
            ("PATH", PATH),
            ("HOME", "/nonexistent"),
            ("XDG_CONFIG_HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_AUTHOR_NAME", "furlough"),
            ("GIT_AUTHOR_EMAIL", "furlough@localhost"),
            ("GIT_COMMITTER_NAME", "furlough"),
            ("GIT_COMMITTER_EMAIL", "furlough@localhost"),
        ]);
        command.env("GIT_DIR", &view.git_dir).env("GIT_COMMON_DIR", &view.folder);
        match &view.work_tree {
            Some(tree) => command.env("GIT_WORK_TREE", tree).current_dir(tree),
            None => command.current_dir(&view.folder),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

/// All that comes, or `None` when it is more than `limit`.
async fn limited(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit + 1).read_to_end(&mut bytes).await?;
    }
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// The first `limit` bytes; the rest is read too, so that the writer does not wait.
async fn drained(from: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(limit).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    bytes
}

/// Ends git and whatever it started.
fn end_group(leader: Option<u32>) {
    let pid = leader.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Our configuration, with the few values of theirs that are plain words.
fn kept(listed: &[u8]) -> String {
    let set = |section: &mut String, name: &str, value: &str| section.extend(["\t", name, " = ", value, "\n"]);
    let mut extensions = String::new();
    let mut core = String::new();
    for entry in listed.split(|b| *b == 0) {
        let Some((key, value)) = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('\n')) else {
            continue;
        };
        let word = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric());
        match key.split_once('.') {
            Some(("core", name)) if word && KEPT.contains(&key) => set(&mut core, name, value),
            Some(("extensions", name)) if word && KEPT.contains(&key) => set(&mut extensions, name, value),
            _ => {}
        }
    }
    let version = i32::from(!extensions.is_empty());
    format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{core}[extensions]\n{extensions}")
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample::select};

    use super::*;

    /// An entry of `git config -z --list`: words that are kept and words that are not, with any value.
    fn entry() -> impl Strategy<Value = Vec<u8>> {
        let keys = [&KEPT[..], &["core.fsmonitor", "filter.x.clean"]].concat();
        (select(keys), ".{0,12}").prop_map(|(key, value)| format!("{key}\n{value}\0").into_bytes())
    }

    proptest! {
        /// Whatever an agent wrote into the configuration, git is shown words of ours with plain values.
        #[test]
        fn no_configuration_of_theirs_gets_a_word_in(
            entries in collection::vec(entry(), 0..6),
            bytes in collection::vec(any::<u8>(), 0..40),
        ) {
            let listed = [entries.concat(), bytes].concat();
            for line in kept(&listed).lines().filter(|line| !line.starts_with('[')) {
                let (name, value) = line.trim_start().split_once(" = ").unwrap();
                let ours = ["repositoryformatversion", "bare"].contains(&name);
                prop_assert!(ours || KEPT.iter().any(|key| key.ends_with(&format!(".{name}"))), "{}", line);
                prop_assert!(!value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric()), "{}", line);
            }
        }
    }

    #[test]
    fn of_their_configuration_only_plain_words_are_kept() {
        let listed = b"core.filemode\nfalse\0core.fsmonitor\n/tmp/x\0core.eol\na\n[core]fsmonitor=x\0\
            extensions.objectformat\nsha256\0filter.x.clean\nrm\0extensions.worktreeconfig\ntrue\0core.bare\ntrue\0";
        assert_eq!(
            kept(listed),
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tfilemode = false\n[extensions]\n\tobjectformat = sha256\n"
        );
    }
}
