//! How to bring a save back by hand, with git and tar and nothing of ours.

use std::fmt::Write as _;

use lifecycle::{RuntimeId, Time};

use super::{bundle::Bundle, tree::Packed};
use crate::{inspect::Detail, look::Head};

/// The text of `README.txt`.
pub(crate) fn text(id: &RuntimeId, detail: &Detail, at: Time, bundle: &Bundle, packed: &Packed) -> String {
    let path = detail.worktree.place.path.display();
    let mut text = format!(
        "What furlough saved of the git worktree\n\n    {path}\n\nbefore it was reclaimed, on {at} (runtime {id}).\n\n"
    );
    // Writing to a string can't fail.
    let _ = commits(&mut text, detail, bundle);
    let _ = files(&mut text, detail, packed);
    text
}

fn commits(text: &mut String, detail: &Detail, bundle: &Bundle) -> std::fmt::Result {
    if let Some(remark) = &bundle.remark {
        return writeln!(text, "{remark}\n");
    }
    let Some(git) = &detail.worktree.git else { return Ok(()) };
    let (repository, head) = (git.common.display(), bundle.head.as_deref().unwrap_or("none yet"));
    writeln!(text, "Its repository was {repository}\nChecked out was commit {head}")?;
    if let Head::Branch(name) = &git.head {
        writeln!(text, "on branch {}, which stays in the repository.", String::from_utf8_lossy(name))?;
    }
    if bundle.references.is_empty() {
        return writeln!(text, "Every commit of it is kept by another branch or remote: there is no bundle.\n");
    }
    writeln!(text, "\ncommits.bundle has what no other branch and no remote has:\n")?;
    for (name, hash) in &bundle.references {
        writeln!(text, "    {hash} {name}")?;
    }
    writeln!(text, "\n`head` is what was checked out, `index` what was staged, `tip-N` older places of its reflog.")?;
    writeln!(text, "To have them in the repository again:\n")?;
    writeln!(text, "    git -C REPOSITORY fetch THIS-FOLDER/commits.bundle 'refs/furlough/*:refs/furlough/*'\n")
}

fn files(text: &mut String, detail: &Detail, packed: &Packed) -> std::fmt::Result {
    writeln!(text, "tree.tar.zst has the files (`tree/`) and what git kept beside them (`admin/`).")?;
    writeln!(text, "To have the files again, in a worktree of the commit above or in an empty folder:\n")?;
    writeln!(text, "    git -C REPOSITORY worktree add PLACE COMMIT")?;
    writeln!(text, "    tar --zstd -xf THIS-FOLDER/tree.tar.zst -C PLACE --strip-components=1 tree\n")?;
    writeln!(text, "Files that had been deleted are deleted again by hand; `git status` then shows the same changes.")?;
    if !detail.tiers.is_empty() {
        writeln!(text, "\nLeft out, since tools make them again:\n")?;
        for folder in &detail.tiers {
            writeln!(text, "    {}", folder.path.display())?;
        }
    }
    if !packed.unkept.is_empty() {
        writeln!(text, "\nNot saved, since a tar can't hold them:\n")?;
        for what in &packed.unkept {
            writeln!(text, "    {what}")?;
        }
    }
    Ok(())
}
