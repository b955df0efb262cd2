//! Processes: which there are below a server or of a user, and their end.
//!
//! **Invariants.** A process that was started by a user's server ends before the next user comes: found by its user
//! where each server has one, else by its descent from the sidecar, to which orphans come back.

use std::{collections::BTreeMap, fs, time::Duration};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::keeper::Failed;

/// How often is looked again for what does not end.
const LOOKS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(50);

/// Which processes are a server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All of this user.
    Of(u32),
    /// All below this process, which adopts orphans; not itself.
    Below(i32),
    /// These, found while the server lived.
    These(Vec<i32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    /// The real, the effective, the saved and the filesystem's.
    users: [u32; 4],
    ended: bool,
}

/// The fields after the name, which may have spaces and parentheses: the state, and the parent.
fn parse(stat: &str) -> Option<(bool, i32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    Some((ended, fields.next()?.parse().ok()?))
}

/// From the status. The owner of the folder in /proc is root's, where a process has itself made undumpable.
fn users(status: &str) -> Option<[u32; 4]> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let users: Vec<u32> = line.split_whitespace().filter_map(|user| user.parse().ok()).collect();
    users.try_into().ok()
}

fn all() -> BTreeMap<i32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let look = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let (ended, parent) = parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?;
        let users = users(&fs::read_to_string(entry.path().join("status")).ok()?)?;
        Some((id, Process { parent, users, ended }))
    };
    entries.filter_map(look).collect()
}

impl Which {
    fn among(&self, all: &BTreeMap<i32, Process>) -> Vec<i32> {
        let is_one = |id: i32, process: &Process| match self {
            Self::Of(user) => process.users.contains(user),
            Self::Below(top) => is_below(all, id, *top),
            Self::These(ids) => ids.contains(&id),
        };
        let living = all.iter().filter(|(_, process)| !process.ended);
        living.filter(|(id, process)| is_one(**id, process)).map(|(id, _)| *id).collect()
    }
}

fn is_below(all: &BTreeMap<i32, Process>, id: i32, top: i32) -> bool {
    let parent = |id: &i32| all.get(id).map(|process| process.parent);
    // A chain is as long as the table at most, whatever changed while it was read.
    std::iter::successors(parent(&id), parent).take(all.len()).any(|above| above == top)
}

/// A process and all below it, now.
pub fn tree(top: i32) -> Vec<i32> {
    [vec![top], Which::Below(top).among(&all())].concat()
}

/// Ends them all, and looks until none is left.
pub async fn end(which: &Which) -> Result<(), Failed> {
    let mut left = Vec::new();
    for _ in 0..LOOKS {
        left = which.among(&all());
        if left.is_empty() {
            return Ok(());
        }
        for pid in left.iter().filter_map(|id| Pid::from_raw(*id)) {
            // One that has gone meanwhile is what was wanted.
            _ = kill_process(pid, Signal::KILL);
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Err(Failed(format!("processes do not end: {left:?}")))
}

/// Takes the ends of the orphans that came to this process, so that they do not stay in the table.
pub fn reap(own: i32) {
    let ended = |(id, process): (i32, Process)| (process.parent == own && process.ended).then_some(id);
    for pid in all().into_iter().filter_map(ended).filter_map(Pid::from_raw) {
        // Of a child that somebody waits for, the end is taken here or there: either is one.
        _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_descent_whatever_it_calls_itself() {
        assert_eq!(parse("7 (a) Z 1) S 3 7 7"), Some((false, 3)));
        assert_eq!(parse("7 (sh) Z 3 7"), Some((true, 3)));
        assert_eq!(parse("7 sh S 3"), None);
        assert_eq!(users("Name:\tsh\nUid:\t5\t6\t6\t6\nGid:\t0\t0\t0\t0\n"), Some([5, 6, 6, 6]));
        assert_eq!(users("Name:\tsh\n"), None);
        let process = |parent| Process { parent, users: [5, 5, 0, 0], ended: false };
        let all = BTreeMap::from([(1, process(0)), (3, process(1)), (4, process(3)), (5, process(1)), (6, process(4))]);
        assert_eq!(Which::Below(3).among(&all), [4, 6]);
        assert_eq!(Which::These(vec![5, 9]).among(&all), [5]);
        assert_eq!(Which::Of(5).among(&all), [1, 3, 4, 5, 6]);
        assert_eq!(Which::Of(6).among(&all), [0; 0]);
    }

    #[test]
    fn a_table_that_changed_while_it_was_read_has_an_end() {
        let circle = BTreeMap::from([
            (3, Process { parent: 4, users: [5; 4], ended: false }),
            (4, Process { parent: 3, users: [5; 4], ended: false }),
        ]);
        assert_eq!(Which::Below(9).among(&circle), [0; 0]);
    }
}
