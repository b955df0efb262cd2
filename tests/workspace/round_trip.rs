//! Pushed and pulled, over and over: the tree is equal each time.

use std::fs;

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use workspace::{Pushed, Way};

use super::{
    lab::Lab,
    picture::assert_equal,
    trees::{apply, edits},
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work)
}

#[tokio::test]
async fn a_tree_comes_back_whole() {
    let lab = Lab::new();
    let (here, there) = (lab.host("here"), lab.bare_host("there"));
    fs::create_dir_all(here.project.join("src/empty")).unwrap();
    fs::write(here.project.join("src/main.rs"), "fn main() {}").unwrap();
    fs::write(here.project.join("long"), vec![7; 3 << 20]).unwrap();
    let manifest = lab.push(&here).await;
    assert_eq!((manifest.generation, manifest.layers.len()), (1, 1));
    assert_eq!(lab.pull(&there).await, Way::Fresh);
    assert_equal(&here.project, &there.project);
    assert_eq!(lab.pull(&there).await, Way::Same);
}

/// Five cycles of edits. Each is pushed from one host; a second pulls the difference, and a third everything.
#[test]
fn any_edits_come_back_over_five_cycles() {
    let mut runner = TestRunner::new(ProptestConfig { cases: 10, ..ProptestConfig::default() });
    let cycles = vec(edits(24), 5);
    let result = runner.run(&cycles, |cycles| {
        block_on(async {
            let lab = Lab::new();
            let (here, second) = (lab.host("here"), lab.bare_host("second"));
            for (number, edits) in cycles.iter().enumerate() {
                apply(&here.project, edits);
                let before = super::picture::picture(&here.project);
                match lab.try_push(&here).await.unwrap() {
                    Pushed::Committed { .. } | Pushed::Unchanged(_) => {}
                    other => panic!("{other:?}"),
                }
                assert_eq!(super::picture::picture(&here.project), before, "a push changes nothing");
                lab.pull(&second).await;
                assert_equal(&here.project, &second.project);
                let third = lab.bare_host(&format!("third-{number}"));
                lab.pull(&third).await;
                assert_equal(&here.project, &third.project);
            }
            // Whoever has pulled can push: the next edit is a delta of theirs.
            fs::write(second.project.join("handed-over"), "on").unwrap();
            let manifest = lab.push(&second).await;
            assert_eq!(manifest.parent.is_some(), manifest.generation > 1);
        });
        Ok(())
    });
    result.unwrap();
}
