//! Every command in the README does what the README says.

use std::{fmt::Write, fs, process::Command};

use crate::cli::bench::{Folder, furlough, isolate, ran};

const README: &str = include_str!("../README.md");

/// The commands of each ```console block, with the exit code that their comment names.
fn blocks() -> Vec<Vec<(String, i32)>> {
    let mut blocks = Vec::new();
    for block in README.split("```console\n").skip(1) {
        let body = block.split("```").next().unwrap();
        let commands = body.lines().filter_map(|line| line.strip_prefix("$ "));
        blocks.push(commands.map(|line| (line.to_owned(), code(line))).collect());
    }
    blocks
}

fn code(line: &str) -> i32 {
    let told = line.split("# exit code ").nth(1);
    told.map_or(0, |told| told.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap())
}

#[test]
fn every_command_in_it_runs_and_ends_as_it_says() {
    let folder = Folder::empty();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(furlough(), bin.join("furlough")).unwrap();
    let blocks = blocks();
    assert!(blocks.len() >= 2, "the README has console blocks");
    let mut script = format!("PATH={}:$PATH\n", bin.display());
    for (line, code) in blocks.iter().flatten() {
        write!(script, "{line}\ncode=$?; [ $code = {code} ] || {{ echo \"ended with $code: \"{line:?}; exit 99; }}\n")
            .unwrap();
    }
    let mut shell = Command::new("bash");
    isolate(&mut shell, folder.path());
    let ended = ran(shell.args(["-c", &script]));
    assert_eq!(ended.code, 0, "{ended:#?}");
}

#[test]
fn it_names_no_command_that_is_not_there() {
    let help = Folder::empty().run(&["--help"]).ending(0).out;
    let known: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let named = README.split("furlough ").skip(1).filter_map(|rest| rest.split([' ', '`', '\n', '|']).next());
    let commands = named.filter(|word| word.chars().all(|c| c.is_ascii_lowercase()) && word.len() > 2);
    let unknown: Vec<_> = commands.filter(|word| !known.contains(word)).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn what_it_links_to_is_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let links = README.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    let missing: Vec<_> = links.filter(|link| !fs::exists(format!("{root}/{link}")).unwrap()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
