//! What a listing of very many worktrees and their conversations costs: `cargo bench -p backend-worktree`.
//!
//! Made by hand in a throw-away folder: worktrees in OpenHands' layout, all of one repository, each with a conversation that worked
//! in it. Listed to the end twice, as a process that goes on running does: first with every conversation's state to be read, then
//! with none that changed. Printed for each: the time that passed, the time on a processor, and the most memory so far.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic, and prints what it measured")]

use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::LazyLock,
    time::{Duration, Instant},
};

use backend::{Backend, Clock};
use backend_worktree::{Options, Root};
use lifecycle::{BackendName, Ownership, Time};

const WORKTREES: usize = 100_000;

/// 2100-01-01T00:00:00Z: later than any file that is made here.
const NOW: Time = Time::from_millis(4_102_444_800_000);

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let ((), making) = timed(|| make(folder.path()));
    println!("{WORKTREES} worktrees and conversations made in {:.1} s", making.passed.as_secs_f64());
    let name = BackendName::new("worktrees").unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = Options {
        root: Some(Root::Configured(at("trees"))),
        conversations: Some(at("conversations")),
        // None is started: a listing needs no git.
        git: "/nonexistent/git".into(),
        ..Options::new(name, Clock::fixed(NOW), at("saves"), folder.path().to_owned())
    };
    let backend = backend_worktree::backend(options);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut whole = true;
    for what in ["first", "again"] {
        let (seen, spent) = timed(|| runtime.block_on(listed(&backend)));
        println!(
            "{what}: {seen} listed in {:.2} s, {:.2} s of CPU, {} MB at most",
            spent.passed.as_secs_f64(),
            spent.processor.as_secs_f64(),
            most_resident_bytes() / 1_000_000
        );
        whole &= seen == WORKTREES;
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many of ours are listed, page by page, with one conversation each.
async fn listed(backend: &Backend) -> usize {
    let (mut seen, mut token) = (0, None);
    loop {
        let page = backend.list.list(token.as_ref()).await.unwrap();
        assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        seen += page.seen.iter().filter(|seen| seen.ownership == Ownership::Ours && seen.sharers == 1).count();
        match page.next {
            Some(next) => token = Some(next),
            None => return seen,
        }
    }
}

fn make(top: &Path) {
    let common = top.join("shop/.git");
    fs::create_dir_all(common.join("objects")).unwrap();
    fs::write(common.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    for n in 0..WORKTREES {
        let uuid = format!("{n:08x}-0000-4000-8000-000000000000");
        let (tree, admin) = (top.join("trees").join(&uuid).join("shop"), common.join(format!("worktrees/shop{n}")));
        let conversation = top.join("conversations").join(uuid.replace('-', ""));
        for folder in [&tree, &admin, &conversation.join("events")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        fs::write(admin.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        fs::write(admin.join("commondir"), "../..\n").unwrap();
        fs::write(admin.join("HEAD"), format!("ref: refs/heads/openhands/{uuid}\n")).unwrap();
        fs::write(admin.join("index"), "").unwrap();
        let works_in = serde_json::json!({ "workspace": { "working_dir": tree }, "execution_status": "finished" });
        for file in ["meta.json", "base_state.json"] {
            fs::write(conversation.join(file), works_in.to_string()).unwrap();
        }
    }
}

/// What something took.
struct Spent {
    passed: Duration,
    processor: Duration,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; nothing that it measures reads it")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let (began, processor) = (START.elapsed(), processor());
    let done = work();
    let passed = START.elapsed().saturating_sub(began);
    (done, Spent { passed, processor: self::processor().saturating_sub(processor) })
}

/// What this process spent on processors, by all of its threads: fields 14 and 15 of `/proc/self/stat`, in hundredths of a second;
/// nothing where there is no such file.
fn processor() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The most memory that this process has had so far: `VmHWM` of `/proc/self/status`; 0 where there is none.
fn most_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}
