//! What a push sees, what it leaves out and says so, and what a pull never does by itself.

use std::{fs, os::unix::net::UnixListener, path::PathBuf, process::Command, time::Duration};

use filetime::{FileTime, set_file_mtime};
use tokio::sync::watch;
use workspace::{
    Local, Pulled, Push, Pushed, Ready, Way,
    exclude::Rules,
    manifest::{Exclusion, Manifest, Note},
    member::Member,
    pull, push,
};

use super::{
    lab::{Host, Lab, place},
    picture::assert_equal,
    trees::content,
};

async fn unchanged(lab: &Lab, host: &Host) {
    let pushed = lab.try_push(host).await.unwrap();
    assert!(matches!(pushed, Pushed::Unchanged(_)), "{pushed:?}");
}

/// The paths of the last layer's members that were there before.
fn replaced(manifest: &Manifest) -> Vec<String> {
    manifest.layers.last().unwrap().replaced.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn nothing_changed_is_nothing_pushed_however_often() {
    let lab = Lab::new();
    let here = lab.host("here");
    fs::write(here.project.join("work"), "work").unwrap();
    fs::hard_link(here.project.join("work"), here.project.join("also")).unwrap();
    lab.push(&here).await;
    let objects = || fs::read_dir(lab.folder.path().join("bucket/workspaces/w/layers")).unwrap().count();
    for _ in 0..3 {
        unchanged(&lab, &here).await;
    }
    assert_eq!(objects(), 1);
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    unchanged(&lab, &there).await;
}

#[tokio::test]
async fn a_change_that_only_ctime_tells_is_pushed_and_one_of_ctime_alone_is_not() {
    let lab = Lab::new();
    let here = lab.host("here");
    let (work, rest, long) = (here.project.join("work"), here.project.join("rest"), here.project.join("long"));
    let old = FileTime::from_unix_time(1_700_000_000, 5);
    fs::write(&work, "before").unwrap();
    fs::write(&rest, "stays").unwrap();
    fs::write(&long, content(3 << 20, 1)).unwrap();
    for path in [&work, &rest, &long] {
        set_file_mtime(path, old).unwrap();
    }
    lab.push(&here).await;
    // The same length, and the old time again: a writer that hides.
    fs::write(&work, "behind").unwrap();
    for path in [&work, &rest, &long] {
        set_file_mtime(path, old).unwrap();
    }
    let manifest = lab.push(&here).await;
    assert_eq!(replaced(&manifest), ["project", "project/work"]);
    fs::write(&long, content(3 << 20, 2)).unwrap();
    set_file_mtime(&long, old).unwrap();
    let manifest = lab.push(&here).await;
    assert_eq!(replaced(&manifest), ["project", "project/long"]);
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    assert_equal(&here.project, &there.project);
}

#[tokio::test]
async fn a_cache_that_is_lost_broken_or_another_trees_costs_a_full_push_and_nothing_else() {
    let lab = Lab::new();
    let here = lab.host("here");
    fs::write(here.project.join("work"), "work").unwrap();
    lab.push(&here).await;
    let cache = here.state.join("cache");
    let whole = fs::read(&cache).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (number, broken) in [None, Some(&whole[..whole.len() - 1]), Some(&flipped), Some(b"")].into_iter().enumerate() {
        match broken {
            None => fs::remove_file(&cache).unwrap(),
            Some(bytes) => fs::write(&cache, bytes).unwrap(),
        }
        fs::write(here.project.join("work"), format!("work {number}")).unwrap();
        let manifest = lab.push(&here).await;
        assert_eq!(manifest.layers.len(), 1, "case {number}");
        let there = lab.bare_host(&format!("there-{number}"));
        lab.pull(&there).await;
        assert_equal(&here.project, &there.project);
    }
    // The tree was copied elsewhere, with its state: its inodes are others.
    let copy = lab.bare_host("copy");
    for (from, to) in [(&here.project, &copy.project), (&here.state, &copy.state)] {
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    }
    fs::write(copy.project.join("work"), "in the copy").unwrap();
    assert_eq!(lab.push(&copy).await.layers.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_kept_is_named() {
    let lab = Lab::new();
    let here = lab.host("here");
    assert!(Command::new("mkfifo").arg(here.project.join("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(here.project.join("socket")).unwrap();
    fs::write(here.project.join("work"), "work").unwrap();
    fs::create_dir(here.project.join("conversation")).unwrap();
    fs::write(here.project.join("conversation/owner_lease.json"), "{}").unwrap();
    let manifest = lab.push(&here).await;
    let named: Vec<_> = manifest.left_out.iter().map(|note| (note.path.to_string(), note.why.as_str())).collect();
    assert_eq!(
        named,
        [
            ("project/pipe".to_owned(), "a FIFO has no content"),
            ("project/socket".to_owned(), "a socket belongs to a process")
        ]
    );
    assert!(manifest.keeps_all_work(), "neither is anybody's work");
    let torn = Manifest { torn: vec![Member::parse("project/work").unwrap()], ..Manifest::clone(&manifest) };
    let unread = Note { path: Member::parse("project/work").unwrap(), why: "it can't be read".to_owned() };
    let unread = Manifest { left_out: vec![unread], ..Manifest::clone(&manifest) };
    assert_eq!([torn, unread].map(|manifest| manifest.keeps_all_work()), [false, false]);
    let rules: Vec<_> = manifest.exclusions.iter().map(|rule| rule.names.as_str()).collect();
    assert_eq!(rules, [".owner_lease.lock", "owner_lease.json"]);
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    let members = fs::read_dir(&there.project).unwrap().count();
    assert_eq!((members, there.project.join("conversation").read_dir().unwrap().count()), (2, 0));
}

#[tokio::test]
async fn caches_are_left_out_only_by_a_rule_that_the_manifest_has() {
    let lab = Lab::new();
    let here = lab.host("here");
    fs::create_dir_all(here.project.join("node_modules/.cache")).unwrap();
    fs::write(here.project.join("node_modules/.cache/big"), "made again").unwrap();
    fs::write(here.project.join(".env"), "SECRET=1").unwrap();
    let rule = Exclusion { names: "node_modules/.cache".to_owned(), why: "bundlers make it again".to_owned() };
    let request = Push { rules: Rules::new([rule.clone()]).unwrap(), ..lab.push_request(&here).await };
    let Pushed::Committed { manifest, .. } = push(&lab.store, &*lab.commit, request).await.unwrap() else { panic!() };
    assert!(manifest.exclusions.contains(&rule));
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    assert_eq!(fs::read_to_string(there.project.join(".env")).unwrap(), "SECRET=1");
    assert!(there.project.join("node_modules").exists() && !there.project.join("node_modules/.cache").exists());
    // What the rule names is no local change, and stays where it is.
    fs::create_dir(there.project.join("node_modules/.cache")).unwrap();
    assert_eq!(lab.pull(&there).await, Way::Same);
}

#[tokio::test]
async fn a_pull_never_overwrites_work_that_no_snapshot_has() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), "1").unwrap();
    lab.push(&here).await;
    lab.pull(&there).await;
    fs::write(here.project.join("work"), "2").unwrap();
    lab.push(&here).await;
    fs::write(there.project.join("untracked"), "only here").unwrap();
    let Pulled::LocalChanges { some } = lab.try_pull(&there).await.unwrap() else { panic!() };
    assert!(some.iter().any(|path| path.to_string() == "project/untracked"), "{some:?}");
    assert_eq!(fs::read_to_string(there.project.join("untracked")).unwrap(), "only here");
    let stranger = lab.host("stranger");
    fs::write(stranger.project.join("other"), "of somebody").unwrap();
    assert_eq!(lab.try_pull(&stranger).await.unwrap(), Pulled::Occupied(stranger.project.canonicalize().unwrap()));
    for host in [&there, &stranger] {
        let told = workspace::Pull { local: Local::Discard, ..lab.pull_request(host).await };
        let pulled = pull(&lab.store, told, &watch::Sender::default()).await.unwrap();
        assert!(matches!(pulled, Pulled::Whole { way: Way::Fresh, .. }), "{pulled:?}");
        assert_equal(&here.project, &host.project);
    }
}

#[tokio::test]
async fn a_difference_moves_only_itself_and_what_is_no_more_goes() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::create_dir(here.project.join("gone")).unwrap();
    fs::write(here.project.join("gone/file"), "x").unwrap();
    fs::write(here.project.join("stays"), content(2 << 20, 3)).unwrap();
    lab.push(&here).await;
    lab.pull(&there).await;
    let inode = |path: PathBuf| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let before = inode(there.project.join("stays"));
    fs::remove_dir_all(here.project.join("gone")).unwrap();
    fs::write(here.project.join("gone"), "a file now").unwrap();
    lab.push(&here).await;
    assert_eq!(lab.pull(&there).await, Way::Difference);
    assert_equal(&here.project, &there.project);
    assert_eq!(inode(there.project.join("stays")), before, "what did not change was not written");
}

#[tokio::test]
async fn a_workspace_larger_than_its_place_is_refused_before_anything_is_read() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::write(here.project.join("work"), vec![1; 2000]).unwrap();
    lab.push(&here).await;
    let request = workspace::Pull { limit_bytes: Some(1999), ..lab.pull_request(&there).await };
    let refused = pull(&lab.store, request, &watch::Sender::default()).await.unwrap_err();
    assert!(matches!(refused, workspace::Error::Quota { bytes: 2000, limit: 1999 }), "{refused}");
    assert!(!there.project.exists());
}

#[tokio::test]
async fn hot_files_are_ready_first_and_edits_made_then_are_not_lost() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::create_dir_all(here.project.join("node_modules/pkg")).unwrap();
    fs::write(here.project.join("main.js"), "hot").unwrap();
    fs::write(here.project.join("node_modules/pkg/index.js"), content(6 << 20, 9)).unwrap();
    let manifest = lab.push(&here).await;
    assert!(manifest.layers[0].hot >= 1 && manifest.layers[0].hot < manifest.layers[0].frames.len());
    let ready = watch::Sender::new(Ready::Nothing);
    let mut hot: watch::Receiver<Ready> = ready.subscribe();
    let editing = async {
        let hot = hot.wait_for(|ready| *ready != Ready::Nothing).await.unwrap().clone();
        // On a fast machine everything may be there by now.
        let root = match hot {
            Ready::Hot(places) => places[0].clone(),
            _ => there.project.clone(),
        };
        fs::write(root.join("main.js"), "edited").or_else(|_| fs::write(there.project.join("main.js"), "edited"))
    };
    let (pulled, edited) = tokio::join!(pull(&lab.store, lab.pull_request(&there).await, &ready), editing);
    assert!(matches!(pulled.unwrap(), Pulled::Whole { way: Way::Fresh, .. }));
    edited.unwrap();
    assert_eq!(*ready.borrow(), Ready::Whole);
    assert_eq!(fs::read_to_string(there.project.join("main.js")).unwrap(), "edited");
    let manifest = lab.push(&there).await;
    assert_eq!(replaced(&manifest), ["project", "project/main.js"]);
}

#[tokio::test]
async fn several_roots_come_back_each_to_its_place() {
    let lab = Lab::new();
    let folder = lab.folder.path();
    for root in ["p", "c", "h"] {
        fs::create_dir(folder.join(root)).unwrap();
        fs::write(folder.join(root).join("file"), root).unwrap();
    }
    let roots = |prefix: &str| {
        let at = |name: &str| folder.join(format!("{prefix}{name}"));
        place(&[("project", &at("p")), ("conversations", &at("c")), ("home", &at("h"))], &at("state"))
    };
    let here = lab.host("here");
    let request = Push { place: roots(""), ..lab.push_request(&here).await };
    push(&lab.store, &*lab.commit, request).await.unwrap();
    let request = workspace::Pull { place: roots("new-"), ..lab.pull_request(&here).await };
    pull(&lab.store, request, &watch::Sender::default()).await.unwrap();
    for root in ["p", "c", "h"] {
        assert_equal(&folder.join(root), &folder.join(format!("new-{root}")));
    }
    let one = workspace::Pull { local: Local::Discard, ..lab.pull_request(&here).await };
    let refused = pull(&lab.store, one, &watch::Sender::default()).await.unwrap_err();
    assert!(matches!(refused, workspace::Error::Roots(_)), "{refused}");
}

#[tokio::test]
async fn a_chain_ends_in_a_new_base() {
    let lab = Lab::new();
    let here = lab.host("here");
    let mut lengths = Vec::new();
    for number in 0..19 {
        fs::write(here.project.join("work"), number.to_string()).unwrap();
        lengths.push(lab.push(&here).await.layers.len());
        lab.pass(Duration::from_secs(1));
    }
    let expected: Vec<_> = (1..=17).chain(1..=2).collect();
    assert_eq!(lengths, expected);
    let there = lab.bare_host("there");
    lab.pull(&there).await;
    assert_equal(&here.project, &there.project);
}
