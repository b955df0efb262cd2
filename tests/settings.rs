//! The environment is read in one room, and all of it is in the README.

use std::{
    fs,
    path::{Path, PathBuf},
};

use settings::system::VARIABLES;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Every Rust source below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => sources(&path),
            Some(extension) if extension == "rs" => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn the_readme_names_every_variable() {
    let readme = fs::read_to_string(format!("{ROOT}/README.md")).unwrap();
    let missing: Vec<_> = VARIABLES
        .iter()
        .map(|variable| variable.name())
        .filter(|name| !readme.contains(&format!("`{name}`")))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// clippy.toml forbids `std::env::var` elsewhere; this sees what it can't: a flag that clap fills from a variable.
#[test]
fn no_flag_reads_the_environment_by_itself() {
    let all: Vec<_> =
        ["functions", "shared"].iter().flat_map(|folder| sources(&Path::new(ROOT).join(folder))).collect();
    assert!(all.len() > 50, "the walk must reach what is known to be there: {}", all.len());
    let from_env = |line: &str| {
        let attribute = line.trim_start();
        let words = || attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
        (attribute.starts_with("#[arg(") || attribute.starts_with("#[clap(")) && words().any(|word| word == "env")
    };
    let found: Vec<_> = all.iter().filter(|path| fs::read_to_string(path).unwrap().lines().any(from_env)).collect();
    assert_eq!(found, Vec::<&PathBuf>::new());
}
