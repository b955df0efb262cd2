//! Which commits a repository may lose when one of its worktrees goes.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, path::Path};

use crate::{
    git::{Git, GitFault, View},
    look::{Admin, Head, is_hash, is_reference, read_limited, read_small},
};

/// The most of a reflog that is read.
const MAX_REFLOG_BYTES: u64 = 16 << 20;
/// The newest entries of the worktree's own reflog that count as work.
const MAX_REFLOG_ENTRIES: usize = 1_000;
/// References of a worktree's own, besides its HEAD.
const OWN_HEADS: [&str; 7] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "ORIG_HEAD",
    "rebase-merge/orig-head",
    "rebase-apply/orig-head",
];

/// What a worktree points at, and how much of it is nowhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Commits {
    /// The commit that is checked out; `None`: there is none yet.
    pub head: Option<String>,
    /// Everything that only this worktree points at: its HEAD, an operation under way, its reflog.
    pub tips: Vec<String>,
    /// Commits of its HEAD that no remote and no other branch has. Its branch keeps them in the repository.
    pub unpushed: u64,
    /// Commits that no reference of the repository has: they go with the worktree.
    pub alone: u64,
}

/// Asks git. `view` shows the shared references alone, not the worktree's; `own` are those of [`in_tables`], if it has any.
pub(crate) async fn commits(
    git: &Git,
    view: &View,
    admin: &Admin,
    folder: &Path,
    own: Vec<String>,
) -> Result<Commits, GitFault> {
    let head = match &admin.head {
        Head::Detached(hash) => Some(hash.clone()),
        Head::Branch(name) => branch_tip(git, view, name).await?,
        // What is checked out is unknown, and with it what would be lost.
        Head::Unreadable | Head::InTables => {
            let complaint = "its `HEAD` names neither a commit nor a branch that git allows".into();
            return Err(GitFault::Failed { verb: "rev-parse".into(), complaint });
        }
    };
    let mut tips = tips(folder);
    tips.extend(own);
    tips.extend(head.clone());
    tips.sort();
    tips.dedup();
    let alone = count(git, view, &tips, None).await?;
    let own = match &admin.head {
        Head::Branch(name) => Some(name.as_slice()),
        _ => None,
    };
    let unpushed = match &head {
        Some(head) => count(git, view, std::slice::from_ref(head), own).await?,
        None => 0,
    };
    Ok(Commits { head, tips, unpushed, alone })
}

/// What is checked out in a worktree whose repository keeps its references in reftables, and what else only that worktree
/// points at. `view` is of the worktree.
pub(crate) async fn in_tables(git: &Git, view: &View) -> Result<(Head, Vec<String>), GitFault> {
    let head = match git.run(view, ["symbolic-ref", "HEAD"], &[]).await {
        Ok(name) if is_reference(name.trim_ascii_end()) => Head::Branch(name.trim_ascii_end().to_vec()),
        _ => {
            let hash = git.run(view, ["rev-parse", "--verify", "HEAD"], &[]).await?;
            hashes(&hash).pop().map_or(Head::Unreadable, Head::Detached)
        }
    };
    // Those that are not there are said to be missing, which is no hash.
    let mut own = hashes(&git.run(view, ["cat-file", "--batch-check"], OWN_HEADS.join("\n").as_bytes()).await?);
    let args = ["for-each-ref", "--format=%(objectname)", "refs/bisect", "refs/worktree", "refs/rewritten"];
    own.extend(hashes(&git.run(view, args, &[]).await?));
    // A branch that has no commit yet has no reflog, which git takes for a mistake.
    let entries = format!("--max-count={MAX_REFLOG_ENTRIES}");
    let args = ["log", "--walk-reflogs", "--ignore-missing", "--format=%H", &entries, "HEAD", "--"];
    own.extend(hashes(&git.run(view, args, &[]).await?));
    Ok((head, own))
}

async fn branch_tip(git: &Git, view: &View, name: &[u8]) -> Result<Option<String>, GitFault> {
    let name = OsString::from_vec(name.to_vec());
    let args = [OsString::from("for-each-ref"), "--format=%(objectname)".into(), "--".into(), name];
    let answer = git.run(view, args, &[]).await?;
    let text = String::from_utf8_lossy(&answer);
    // A prefix that is a folder of branches gives several lines; a branch gives one.
    Ok(text.lines().next().filter(|hash| is_hash(hash) && text.lines().count() == 1).map(str::to_owned))
}

async fn count(git: &Git, view: &View, tips: &[String], own: Option<&[u8]>) -> Result<u64, GitFault> {
    if tips.is_empty() {
        return Ok(0);
    }
    let mut args: Vec<OsString> =
        ["rev-list", "--count", "--ignore-missing", "--stdin", "--not"].map(Into::into).into();
    args.extend(own.map(|name| OsString::from_vec([b"--exclude=", name].concat())));
    args.push("--glob=refs/".into());
    let answer = git.run(view, args, (tips.join("\n") + "\n").as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer);
    text.trim()
        .parse()
        .map_err(|_| GitFault::Failed { verb: "rev-list".into(), complaint: format!("it counted `{}`", text.trim()) })
}

/// The hashes in the administrative folder that no other worktree's HEAD or branch need have.
fn tips(admin: &Path) -> Vec<String> {
    let heads = OWN_HEADS.iter().filter_map(|name| read_small(&admin.join(name)).ok());
    let mut found: Vec<_> = heads.flat_map(|text| hashes(&text)).collect();
    for folder in ["refs/bisect", "refs/worktree", "refs/rewritten"] {
        loose(&admin.join(folder), 8, &mut found);
    }
    let reflog = read_limited(&admin.join("logs/HEAD"), MAX_REFLOG_BYTES).unwrap_or_default();
    let newest = reflog.split(|b| *b == b'\n').rev().take(MAX_REFLOG_ENTRIES);
    let words = newest.filter_map(|line| line.split(|b| *b == b' ').nth(1));
    found.extend(words.flat_map(hashes));
    found
}

fn loose(folder: &Path, left: usize, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && left > 0 => loose(&entry.path(), left - 1, found),
            Ok(kind) if kind.is_file() => found.extend(read_small(&entry.path()).iter().flat_map(|t| hashes(t))),
            _ => {}
        }
    }
}

/// The hashes among the words of `text`, without the one that means "nothing".
fn hashes(text: &[u8]) -> Vec<String> {
    let words = text.split(u8::is_ascii_whitespace).filter_map(|word| std::str::from_utf8(word).ok());
    words.filter(|word| is_hash(word) && word.bytes().any(|b| b != b'0')).map(str::to_owned).collect()
}
