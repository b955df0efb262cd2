//! The house's walls: which crate may depend on which read from `cargo metadata`; and what a change must pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// What each crate of ours may depend on, and no other crate of ours.
const EDGES: &[(&str, &[&str])] = &[
    ("lifecycle", &[]),
    ("workspace", &[]),
    ("telemetry", &[]),
    ("tokens", &[]),
    ("embedded", &[]),
    ("backend", &["lifecycle"]),
    ("settings", &["lifecycle"]),
    ("aws", &["settings"]),
    ("ledger", &["lifecycle", "workspace"]),
    ("backend-docker", &["backend", "lifecycle"]),
    ("backend-worktree", &["backend", "lifecycle"]),
    ("backend-rest", &["backend", "lifecycle"]),
    ("backend-modal", &["backend", "lifecycle"]),
    ("pass", &["backend", "ledger", "lifecycle", "workspace"]),
    // It stands where agents run: no credentials of AWS, and nothing that could use them.
    ("sidecar", &["lifecycle", "settings", "telemetry", "workspace"]),
    // Both speak the protocol that the sidecar's module writes down.
    ("workspace-function", &["aws", "ledger", "lifecycle", "settings", "sidecar", "telemetry", "tokens", "workspace"]),
    ("heartbeat", &["aws", "ledger", "lifecycle", "settings", "telemetry", "tokens", "workspace"]),
    (
        "reconcile",
        &[
            "aws",
            "backend",
            "backend-docker",
            "backend-modal",
            "backend-rest",
            "backend-worktree",
            "ledger",
            "lifecycle",
            "pass",
            "settings",
            "telemetry",
        ],
    ),
    (
        "furlough",
        &[
            "aws",
            "backend",
            "backend-docker",
            "backend-modal",
            "backend-rest",
            "backend-worktree",
            "embedded",
            // The functions without their Lambdas: `furlough serve` answers with the same router, and both build the
            // same backends.
            "heartbeat",
            "reconcile",
            "ledger",
            "lifecycle",
            "pass",
            "settings",
            "telemetry",
            "workspace",
            "workspace-function",
        ],
    ),
];

/// What `lifecycle` must never reach, however far down: a runtime, a network, an SDK.
const IMPURE: &[&str] = &[
    "tokio",
    "async-trait",
    "futures",
    "hyper",
    "reqwest",
    "axum",
    "bollard",
    "tonic",
    "rusqlite",
    "rustix",
    "mio",
    "socket2",
];

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).exec().unwrap()
}

fn ours(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata.workspace_packages();
    let names: BTreeSet<_> = packages.iter().map(|package| package.name.to_string()).collect();
    packages
        .iter()
        .map(|package| {
            let edges = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
            let edges = edges.map(|d| d.name.clone()).filter(|name| names.contains(name)).collect();
            (package.name.to_string(), edges)
        })
        .collect()
}

#[test]
fn every_edge_is_drawn() {
    let allowed: BTreeMap<_, _> = EDGES.iter().copied().collect();
    let mut undrawn = Vec::new();
    for (package, edges) in ours(&metadata()) {
        if package == "furlough-tests" {
            continue;
        }
        match allowed.get(package.as_str()) {
            None => undrawn.push(format!("{package} is in no row of EDGES")),
            Some(allowed) => undrawn.extend(
                edges
                    .iter()
                    .filter(|edge| !allowed.contains(&edge.as_str()))
                    .map(|edge| format!("{package} -> {edge}")),
            ),
        }
    }
    assert_eq!(undrawn, Vec::<String>::new());
}

#[test]
fn lifecycle_reaches_no_runtime_no_network_and_no_sdk() {
    let metadata = metadata();
    let resolve = metadata.resolve.as_ref().unwrap();
    let names: BTreeMap<_, _> = metadata.packages.iter().map(|p| (&p.id, p.name.to_string())).collect();
    let start = names.iter().find(|(_, name)| *name == "lifecycle").unwrap().0;
    let mut reached = BTreeSet::new();
    let mut queue = vec![*start];
    while let Some(id) = queue.pop() {
        let node = resolve.nodes.iter().find(|node| node.id == *id).unwrap();
        let normal =
            |dep: &&cargo_metadata::NodeDep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
        for dep in node.deps.iter().filter(normal) {
            if reached.insert(names[&dep.pkg].clone()) {
                queue.push(&dep.pkg);
            }
        }
    }
    let impure: Vec<_> =
        reached.iter().filter(|name| IMPURE.contains(&name.as_str()) || name.starts_with("aws-")).collect();
    assert_eq!(impure, Vec::<&String>::new());
    assert!(reached.contains("jiff"), "the walk must reach what is known to be there: {reached:?}");
}

#[test]
fn no_folder_of_crates_is_nested() {
    let root = metadata().workspace_root;
    for package in metadata().workspace_packages() {
        let folder = package.manifest_path.parent().unwrap().strip_prefix(&root).unwrap();
        let depth = folder.components().count();
        assert!(depth <= 2, "{folder} is nested deeper than the members glob sees");
    }
}

/// Every Rust source below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The modules of this binary that only the feature `engines` has, as the test runner names them.
fn behind_engines() -> BTreeSet<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(tests).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut modules = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let place = path.strip_prefix(tests).unwrap().with_extension("");
        let parents: Vec<_> = place.iter().map(|part| part.to_str().unwrap()).filter(|part| *part != "all").collect();
        for gated in text.split("#[cfg(feature = \"engines\")]\n").skip(1) {
            let module = gated.trim_start().strip_prefix("mod ").expect("the feature is for whole modules");
            let name = module.split([';', ' ']).next().unwrap();
            modules.insert([&parents[..], &[name, ""]].concat().join("::"));
        }
    }
    modules
}

/// A test that nothing runs guards nothing.
#[test]
fn ci_runs_every_test_that_needs_an_engine() {
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/run")).unwrap();
    let runs = script.lines().filter_map(|line| line.split("--features engines -- ").nth(1));
    let filters: Vec<_> = runs.flat_map(str::split_whitespace).collect();
    let modules = behind_engines();
    assert!(modules.contains("worktree::disks::"), "the walk must reach what is known to be there: {modules:?}");
    let unrun: Vec<_> = modules.iter().filter(|module| !filters.iter().any(|filter| module.contains(filter))).collect();
    assert_eq!(unrun, Vec::<&String>::new());
}
