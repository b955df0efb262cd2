//! Several processes on one data folder: each child is this test binary again.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use ledger::{Claimed, Heartbeat, Ledger, Lost};
use lifecycle::State;
use tempfile::TempDir;

use crate::ledger::fixture::{at, due, id, idle_claim, options, seen};

/// The data folder that a child finds in its working directory.
const SHARED: &str = "shared";

const ROUNDS: u32 = 60;
const CHILDREN: usize = 4;

async fn ledger(folder: &Path) -> Ledger {
    let ledger = Ledger::new(embedded::open(folder).unwrap().client(), options());
    ledger.create_tables().await.unwrap();
    ledger
}

/// Does what a line says, `claim NAME` or `beat NAME`, and says what came of it.
async fn obey(ledger: &Ledger, line: &str) -> &'static str {
    match line.split_once(' ') {
        Some(("claim", name)) => {
            let record = ledger.get(&id(name)).await.unwrap().unwrap();
            match ledger.claim(&idle_claim(name, &record, 0, 2_060), at(2_000)).await.unwrap() {
                Claimed::Won(_) => "won",
                Claimed::Lost(Lost::Claimed { .. } | Lost::Active { .. } | Lost::State { .. }) => "lost",
                Claimed::Lost(other) => panic!("{other:?}"),
            }
        }
        Some(("beat", name)) => match ledger.heartbeat(&id(name), None, None, at(2_000)).await.unwrap() {
            Heartbeat::Recorded => "recorded",
            Heartbeat::NotRunning { state: State::Suspending, .. } => "refused",
            other => panic!("{other:?}"),
        },
        _ => panic!("`{line}` is no order"),
    }
}

/// Alone, this obeys itself. As a child of the test below it obeys its input, a line at a time, to its end.
#[tokio::test]
async fn a_hand_obeys() {
    if Path::new(SHARED).is_dir() {
        let ledger = ledger(Path::new(SHARED)).await;
        println!("says ready");
        for line in std::io::stdin().lines() {
            println!("says {}", obey(&ledger, &line.unwrap()).await);
        }
        return;
    }
    let folder = TempDir::new().unwrap();
    let ledger = ledger(folder.path()).await;
    ledger.observe(&seen("a"), due(3_600), at(0)).await.unwrap();
    let mut said = Vec::new();
    for line in ["beat a", "claim a"] {
        said.push(obey(&ledger, line).await);
    }
    assert_eq!(said, ["recorded", "lost"]);
}

/// A process of its own on the same folder.
struct Hand {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Hand {
    fn beside(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "races::processes::a_hand_obeys", "--nocapture"]).current_dir(folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn told(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// The next word that it says, past what the test runner says.
    fn says(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some((_, word)) = line.trim_end().split_once("says ") {
                return word.to_owned();
            }
            line.clear();
        }
        panic!("a hand ended: {:?}", self.child.wait());
    }
}

/// In each second round all four claim; in the others one beats instead.
#[tokio::test]
async fn of_processes_on_one_data_folder_one_wins_each_round() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder.path().join(SHARED)).await;
    let mut hands: Vec<_> = (0..CHILDREN).map(|_| Hand::beside(folder.path())).collect();
    for hand in &mut hands {
        assert_eq!(hand.says(), "ready");
    }
    for round in 0..ROUNDS {
        let name = format!("r{round}");
        ledger.observe(&seen(&name), due(3_600), at(0)).await.unwrap();
        let beats = round as usize / 2 % CHILDREN;
        let order = |n| if round % 2 == 1 && n == beats { format!("beat {name}") } else { format!("claim {name}") };
        for n in (0..CHILDREN).map(|n| (n + round as usize) % CHILDREN) {
            hands[n].told(&order(n));
        }
        let mut said: Vec<_> = hands.iter_mut().map(Hand::says).collect();
        said.sort();
        let fair: &[[&str; CHILDREN]] = match round % 2 {
            0 => &[["lost", "lost", "lost", "won"]],
            _ => &[["lost", "lost", "lost", "recorded"], ["lost", "lost", "refused", "won"]],
        };
        assert!(fair.iter().any(|fair| said == fair), "round {round}: {said:?}");
        let state = ledger.get(&id(&name)).await.unwrap().unwrap().state;
        let claimed = said.contains(&"won".to_owned());
        assert_eq!(state, if claimed { State::Suspending } else { State::Running }, "round {round}");
    }
    for Hand { mut child, input, .. } in hands {
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}
