//! Push and pull against tar and zstd, on one tree, in one run: `cargo bench -p workspace [-- --files N] [-- --dir FOLDER]`.
//!
//! The tree is made by rule: many small texts, some middling files, a few large ones that hardly compress, most of it in
//! `node_modules`. The store is a folder beside it. Each line is the median of the rounds, in seconds of wall time, and its
//! ratio to the same job done by `tar | zstd -1`. Not printed and not done: other peers, added latency, requests' prices.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, measures time, and fails loudly"
)]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;
use workspace::{
    Basis, Local, Place, Pull, Pulled, Push, Pushed, Ready, RootPath, Store, Watched, Way,
    blobs::directory::Directory,
    commit::{Acquired, After, Commit as _, directory::DirectoryCommit},
    exclude::Rules,
    key::Name,
    member::Member,
    pull, push,
    time::Clock,
};

const ROUNDS: usize = 3;
const EDITS: usize = 20;

struct Bench {
    folder: PathBuf,
    store: Store,
    commit: DirectoryCommit,
    nonce: u64,
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let done = work();
    (begin.elapsed(), done)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound).unwrap()
    }
}

const WORDS: [&str; 16] = [
    "const ",
    "function ",
    "return ",
    "(error, result) => {\n",
    "}\n",
    "module.exports = ",
    "require(",
    "'use strict';\n",
    "if (!",
    "options.",
    "length",
    " === ",
    "undefined",
    "  // ",
    "async ",
    ".then(",
];

fn text(numbers: &mut Numbers, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 32);
    while text.len() < bytes {
        text.extend_from_slice(WORDS[numbers.below(16)].as_bytes());
        write!(text, "{:x}", numbers.below(4096)).unwrap();
    }
    text.truncate(bytes);
    text
}

fn noise(numbers: &mut Numbers, bytes: usize) -> Vec<u8> {
    (0..=bytes / 8).flat_map(|_| numbers.next().to_le_bytes()).take(bytes).collect()
}

/// About 11 KB a file in the mean, as in a real repository with its `node_modules`.
fn make_tree(root: &Path, files: usize) {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for number in 0..files {
        let folder = match number % 12 {
            0 => root.join(format!("src/part{}", number / 120)),
            _ => root.join(format!("node_modules/package{}/lib{}", number / 100, number / 12 % 4)),
        };
        fs::create_dir_all(&folder).unwrap();
        let content = match number % 800 {
            0 => noise(&mut numbers, 4 << 20),
            1..80 => {
                let bytes = 4_000 + numbers.below(40_000);
                text(&mut numbers, bytes)
            }
            _ => {
                let bytes = 200 + numbers.below(3_500);
                text(&mut numbers, bytes)
            }
        };
        fs::write(folder.join(format!("file{number}.js")), content).unwrap();
    }
}

impl Bench {
    fn new(folder: PathBuf) -> Self {
        let clock = Clock::new(now);
        let blobs = Directory::new(folder.join("bucket"), [1; 32], 1, Duration::from_hours(1), clock.clone());
        let commit = DirectoryCommit::new(folder.join("records"), clock.clone(), Duration::from_secs(1));
        let store = Store { signer: Arc::new(blobs.clone()), wire: Arc::new(blobs), clock };
        Self { folder, store, commit, nonce: 0 }
    }

    fn place(&self, project: &str) -> Place {
        let root = RootPath { name: Member::parse("project").unwrap(), path: self.folder.join(project) };
        Place::new(vec![root], self.folder.join(format!("{project}.state"))).unwrap()
    }

    fn nonce(&mut self) -> u64 {
        self.nonce += 1 << 16;
        self.nonce
    }

    async fn push(&mut self, name: &Name, project: &str) -> Pushed {
        let acquired = self.commit.acquire(name, project, Duration::from_mins(10)).await.unwrap();
        let Acquired::Granted { lease, head } = acquired else { panic!("the lease is held") };
        let request = Push {
            lease,
            head,
            place: self.place(project),
            rules: Rules::new([]).unwrap(),
            basis: Basis::Known,
            after: After::Release,
            now: now(),
            nonce: self.nonce(),
            level: 1,
            threads: threads(),
            ttl: Duration::from_mins(10),
            watched: Watched::default(),
        };
        push(&self.store, &self.commit, request).await.unwrap()
    }

    async fn pull(&mut self, name: &Name, project: &str) -> (Duration, Duration, Way) {
        let request = Pull {
            head: self.commit.head(name).await.unwrap().unwrap(),
            place: self.place(project),
            local: Local::Keep,
            limit_bytes: None,
            owner: None,
            nonce: self.nonce(),
            threads: threads(),
            connections: 8,
            watched: Watched::default(),
        };
        let ready = watch::Sender::new(Ready::Nothing);
        let mut watching: watch::Receiver<Ready> = ready.subscribe();
        let begin = Instant::now();
        let hot = tokio::spawn(async move {
            watching.wait_for(|ready| *ready != Ready::Nothing).await.unwrap();
            begin.elapsed()
        });
        let pulled = pull(&self.store, request, &ready).await.unwrap();
        let whole = begin.elapsed();
        let Pulled::Whole { way, .. } = pulled else { panic!("{pulled:?}") };
        (hot.await.unwrap(), whole, way)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn shell(script: &str, folder: &Path) -> Duration {
    let (time, status) = timed(|| Command::new("bash").args(["-c", script]).current_dir(folder).status().unwrap());
    assert!(status.success(), "{script}");
    time
}

fn edit(project: &Path, round: usize) {
    for number in 0..EDITS {
        let file = project.join(format!("src/part{number}/file{}.js", number * 120));
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        writeln!(file, "// round {round}").unwrap();
    }
}

/// The peak of this process so far, in MB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn line(what: &str, ours: Duration, peer: Option<Duration>) {
    let ours = ours.as_secs_f64();
    print!("{what:<34} {ours:>7.3} s");
    if let Some(peer) = peer.map(|peer| peer.as_secs_f64()) {
        print!("   tar and zstd {peer:>7.3} s   {:>5.2} times as fast", peer / ours);
    }
    println!();
}

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|argument| argument == name).map(|at| arguments[at + 1].clone());
    let files = value("--files").map_or(60_000, |files| files.parse().unwrap());
    let parent = value("--dir").map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let folder = tempfile::tempdir_in(parent).unwrap();
    let mut bench = Bench::new(folder.path().to_path_buf());
    let project = folder.path().join("project");
    make_tree(&project, files);
    let bytes = shell_bytes(&project);
    println!("{files} files, {} MB, {} threads, median of {ROUNDS}", bytes / 1_000_000, threads());
    let peer_push: Vec<_> =
        (0..ROUNDS).map(|_| shell("tar -cf - project | zstd -1 -T0 -qfo peer.tar.zst", folder.path())).collect();
    let peer_pull: Vec<_> = (0..ROUNDS)
        .map(|round| {
            shell(&format!("mkdir peer{round} && zstd -dcq peer.tar.zst | tar -xf - -C peer{round}"), folder.path())
        })
        .collect();
    let (peer_push, peer_pull) = (median(peer_push), median(peer_pull));
    measure(&mut bench, &project, peer_push, peer_pull).await;
    println!("peak memory of this process {} MB", peak());
}

fn shell_bytes(project: &Path) -> u64 {
    let output = Command::new("du").args(["-sb"]).arg(project).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

async fn measure(bench: &mut Bench, project: &Path, peer_push: Duration, peer_pull: Duration) {
    let mut full = Vec::new();
    let mut name = Name::new("w").unwrap();
    for round in 0..ROUNDS {
        name = Name::new(&format!("w{round}")).unwrap();
        _ = fs::remove_dir_all(bench.folder.join("project.state"));
        let begin = Instant::now();
        assert!(matches!(bench.push(&name, "project").await, Pushed::Committed { .. }));
        full.push(begin.elapsed());
    }
    line("push, everything", median(full), Some(peer_push));
    // What was written shortly before a scan is read again by the next.
    bench.push(&name, "project").await;
    let mut nothing = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        assert!(matches!(bench.push(&name, "project").await, Pushed::Unchanged(_)));
        nothing.push(begin.elapsed());
    }
    line("push, nothing changed", median(nothing), Some(peer_push));
    let (mut hot, mut whole) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (first, all, way) = bench.pull(&name, &format!("pulled{round}")).await;
        assert_eq!(way, Way::Fresh);
        hot.push(first);
        whole.push(all);
    }
    line("pull, the hot part is ready", median(hot), None);
    line("pull, everything", median(whole), Some(peer_pull));
    let mut edits = Vec::new();
    for round in 0..ROUNDS {
        edit(project, round);
        let begin = Instant::now();
        assert!(matches!(bench.push(&name, "project").await, Pushed::Committed { .. }));
        edits.push(begin.elapsed());
    }
    line("push, 20 files edited", median(edits), Some(peer_push));
    let mut difference = Vec::new();
    for round in 0..ROUNDS {
        let (_, all, way) = bench.pull(&name, &format!("pulled{round}")).await;
        assert_eq!(way, Way::Difference);
        difference.push(all);
    }
    line("pull, the difference", median(difference), Some(peer_pull));
}
