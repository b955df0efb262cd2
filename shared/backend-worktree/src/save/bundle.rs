//! The commits that the repository may lose, and the index, as one bundle that git itself verifies.

use std::{ffi::OsString, fs, io, path::Path};

use crate::{
    commits::Commits,
    git::{Git, GitFault, View},
    inspect::Detail,
    look::{Admin, Head, absent},
};

/// The bundle's name in a save.
pub(crate) const FILE: &str = "commits.bundle";

/// What was bundled.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    /// References in the bundle, by name; empty: there is none.
    pub references: Vec<(String, String)>,
    /// The commit that was checked out.
    pub head: Option<String>,
    /// What people should know.
    pub remark: Option<String>,
}

/// Writes and verifies the bundle, if there is something to put into it.
pub(crate) async fn bundle(git: &Git, detail: &Detail, part: &Path) -> Result<Bundle, String> {
    let (Some(admin), Some(commits)) = (&detail.worktree.git, &detail.commits) else {
        let remark = "The repository was gone when this was saved, and its commits with it. The tree is all there is.";
        return Ok(Bundle { remark: Some(remark.into()), ..Bundle::default() });
    };
    let fault = |fault: GitFault| format!("its commits could not be saved: {fault}");
    write(git, detail, admin, commits, part).await.map_err(fault)
}

async fn write(git: &Git, detail: &Detail, admin: &Admin, commits: &Commits, part: &Path) -> Result<Bundle, GitFault> {
    let theirs = git.repository(&admin.common).await?;
    let ours = git.borrowing(&admin.common).await?;
    let mut bundle = Bundle { head: commits.head.clone(), ..Bundle::default() };
    let mut wanted = present(git, &ours, &commits.tips).await?;
    wanted.retain(|hash| Some(hash) != commits.head.as_ref());
    let mut references: Vec<_> = commits.head.iter().map(|hash| ("head".to_owned(), hash.clone())).collect();
    references.extend(wanted.into_iter().enumerate().map(|(n, hash)| (format!("tip-{n}"), hash)));
    if detail.staged {
        let index = index_commit(git, &ours, &detail.worktree.admin, commits.head.as_deref()).await?;
        references.push(("index".to_owned(), index));
    }
    let kept = kept_elsewhere(git, &theirs, &admin.head).await?;
    for (name, hash) in references {
        let file = ours.folder().join("refs/furlough").join(&name);
        fs::write(&file, format!("{hash}\n")).map_err(|error| GitFault::View { path: file, error })?;
        if count(git, &ours, &hash, &kept).await? > 0 {
            bundle.references.push((format!("refs/furlough/{name}"), hash));
        }
    }
    if bundle.references.is_empty() {
        return Ok(bundle);
    }
    let names: String = bundle.references.iter().flat_map(|(name, _)| [name, "\n"]).collect();
    let file = part.join(FILE);
    let create = [OsString::from("bundle"), "create".into(), "--quiet".into(), file.clone().into(), "--stdin".into()];
    git.run(&ours, create, (names + &kept).as_bytes()).await?;
    git.run(&theirs, [OsString::from("bundle"), "verify".into(), "--quiet".into(), file.into()], &[]).await?;
    Ok(bundle)
}

/// Those of the hashes that are commits of the repository; a reflog may name some that were pruned.
async fn present(git: &Git, view: &View, hashes: &[String]) -> Result<Vec<String>, GitFault> {
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let answer = git.run(view, ["cat-file", "--batch-check"], (hashes.join("\n") + "\n").as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer);
    let commits = text.lines().filter_map(|line| line.split_once(" commit ")).map(|(hash, _)| hash.to_owned());
    Ok(commits.collect())
}

/// What the repository keeps without this worktree's branch: every other reference, one `^hash` a line.
async fn kept_elsewhere(git: &Git, theirs: &View, head: &Head) -> Result<String, GitFault> {
    let answer = git.run(theirs, ["for-each-ref", "--format=%(objectname) %(refname)"], &[]).await?;
    let mut kept = String::new();
    for line in answer.split(|b| *b == b'\n') {
        let mut words = line.splitn(2, |b| *b == b' ');
        let (Some(hash), Some(name)) = (words.next(), words.next()) else { continue };
        if !matches!(head, Head::Branch(own) if own == name) {
            kept.extend(["^", &String::from_utf8_lossy(hash), "\n"]);
        }
    }
    Ok(kept)
}

async fn count(git: &Git, view: &View, hash: &str, kept: &str) -> Result<u64, GitFault> {
    let answer = git.run(view, ["rev-list", "--count", "--stdin"], format!("{hash}\n{kept}").as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer);
    text.trim().parse().map_err(|_| GitFault::Failed { verb: "rev-list".into(), complaint: text.trim().into() })
}

/// The index as a commit of our own: what was staged is in no commit of theirs. Files with a conflict are
/// left out of it; their sides are in the commits of the merge, and the index itself is in the tree.
async fn index_commit(git: &Git, ours: &View, admin: &Path, head: Option<&str>) -> Result<String, GitFault> {
    copy_index(admin, ours.folder()).map_err(|error| GitFault::View { path: admin.to_owned(), error })?;
    let unmerged = git.run(ours, ["ls-files", "--unmerged", "-z"], &[]).await?;
    let mut removals = Vec::new();
    for entry in unmerged.split(|b| *b == 0).filter(|entry| !entry.is_empty()) {
        let path = entry.iter().position(|b| *b == b'\t').map_or(entry, |tab| &entry[tab + 1..]);
        let hash = entry.split(|b| *b == b' ').nth(1).map_or(40, <[u8]>::len);
        removals.extend_from_slice(format!("0 {}\t", "0".repeat(hash)).as_bytes());
        removals.extend_from_slice(path);
        removals.push(0);
    }
    if !removals.is_empty() {
        git.run(ours, ["update-index", "-z", "--index-info"], &removals).await?;
    }
    let word = |answer: Vec<u8>| String::from_utf8_lossy(&answer).trim().to_owned();
    let tree = word(git.run(ours, ["write-tree"], &[]).await?);
    let mut args = vec!["commit-tree", tree.as_str(), "-m", "the index, as furlough found it"];
    args.extend(head.iter().flat_map(|head| ["-p", head]));
    Ok(word(git.run(ours, args, &[]).await?))
}

fn copy_index(admin: &Path, to: &Path) -> io::Result<()> {
    absent(fs::copy(admin.join("index"), to.join("index")))?;
    for entry in fs::read_dir(admin)? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with("sharedindex.") {
            fs::copy(admin.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}
