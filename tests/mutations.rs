//! The list of planted faults fits the tree that it is about. `cargo run -p furlough-tests --bin mutate` plants them.

use std::{collections::BTreeSet, fs, path::Path};

mod list;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_fault_has_its_one_place_and_changes_one_line_of_it() {
    let list = list::read(Path::new(ROOT)).unwrap();
    for fault in &list {
        let text = fs::read_to_string(Path::new(ROOT).join(&fault.file)).unwrap();
        let planted = fault.planted(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(text.lines().count(), planted.lines().count(), "`{}` changes the number of lines", fault.name);
        let changed = text.lines().zip(planted.lines()).filter(|(before, after)| before != after);
        assert_eq!(changed.count(), 1, "`{}` is a fault in one line", fault.name);
    }
}

#[test]
fn the_list_is_of_different_faults_in_what_keeps_the_invariants() {
    let list = list::read(Path::new(ROOT)).unwrap();
    let names: BTreeSet<_> = list.iter().map(|fault| &fault.name).collect();
    assert_eq!(names.len(), list.len(), "two faults have one name");
    assert!(list.iter().all(|fault| !fault.why.is_empty() && !fault.caught_by.is_empty()));
    let packages: BTreeSet<_> = list.iter().map(|fault| &*fault.package).collect();
    assert_eq!(packages, BTreeSet::from(["furlough-tests", "lifecycle"]));
    let invariants: BTreeSet<_> = list.iter().map(|fault| fault.invariant).collect();
    assert_eq!(invariants, (1..=8).collect(), "each invariant of the protocol has a fault that breaks it");
    let crates: BTreeSet<_> = list.iter().filter_map(|fault| fault.file.split('/').nth(1)).collect();
    assert_eq!(crates, BTreeSet::from(["ledger", "lifecycle", "pass"]));
}
