//! A repository that keeps its references in reftables, which git alone reads: all is as in any other.

use std::path::Path;

use lifecycle::{Activity, Cannot, Loss, Observation, Tier, Time, policy::WorkspaceRule};

use super::world::{Tree, World, age, commit, content, git, stamps, write};

/// What a look tells, but for where it is.
type Told = (Loss, Vec<Cannot>, [bool; 3]);

fn told(seen: &Observation) -> Told {
    let measured = [Tier::Caches, Tier::Dependencies, Tier::Runtime].map(|tier| seen.files.of(tier).is_some());
    (seen.loss.clone(), seen.cannot.clone(), measured)
}

/// A worktree's work, a step a look: nothing, a commit, one that was amended away, a detached one, what is staged, a
/// reference of its own.
async fn lived(world: &World, tree: &Tree) -> Vec<Told> {
    let at = &tree.path;
    let mut all = vec![told(&world.see(&tree.id).await)];
    commit(tree, "first");
    all.push(told(&world.see(&tree.id).await));
    git(at, &["commit", "-q", "--amend", "-m", "second"]);
    all.push(told(&world.see(&tree.id).await));
    git(at, &["checkout", "-q", "--detach"]);
    commit(tree, "third");
    all.push(told(&world.see(&tree.id).await));
    write(&at.join("prices.py"), "staged\n");
    git(at, &["add", "prices.py"]);
    all.push(told(&world.see(&tree.id).await));
    git(at, &["update-ref", "refs/worktree/kept", "HEAD"]);
    all.push(told(&world.see(&tree.id).await));
    all
}

/// The references of a save's bundle and the first lines of what they name, sorted.
fn bundled(world: &World, save: &str) -> Vec<String> {
    let bundle = Path::new(save).join("commits.bundle");
    let what = "refs/furlough/*:refs/furlough/*";
    git(&world.repository, &["fetch", "-q", bundle.to_str().unwrap(), what]);
    let mut subjects: Vec<_> = git(&world.repository, &["for-each-ref", "--format=%(subject)", "refs/furlough"])
        .lines()
        .map(str::to_owned)
        .collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn what_is_told_saved_and_taken_back_is_what_it_is_with_references_in_files() {
    let Some(tables) = World::in_tables() else { return };
    let files = World::new();
    let mut outcomes = Vec::new();
    for world in [&files, &tables] {
        let tree = world.furnished(1);
        let told = lived(world, &tree).await;
        let (head, before) = (git(&tree.path, &["rev-parse", "HEAD"]), content(&tree.path));
        let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
        assert!(!tree.path.exists());
        let save = deleted.saved.expect("there was work").to_string();
        let bundled = bundled(world, &save);
        let undo = world.backend().undo.unwrap();
        let _ = undo.undo(&deleted.undo.unwrap()).await.unwrap();
        assert_eq!(git(&tree.path, &["rev-parse", "HEAD"]), head);
        assert_eq!(content(&tree.path), before);
        outcomes.push((told, bundled, deleted.kept.len()));
    }
    assert_eq!(outcomes[1], outcomes[0]);
    let (told, bundled, _) = &outcomes[1];
    assert_eq!(told[0], (Loss::Nothing, vec![], [true; 3]));
    assert_eq!(*bundled, ["first", "the index, as furlough found it", "third"]);
}

#[tokio::test]
async fn on_a_branch_the_branch_is_told_kept_and_what_has_no_commit_yet_is_nothing_lost() {
    let Some(world) = World::in_tables() else { return };
    let tree = world.tree(1);
    commit(&tree, "first");
    assert_eq!(world.see(&tree.id).await.loss, Loss::Work(vec!["1 commit on no remote and no other branch".into()]));
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    let branch = format!("branch `openhands/{}` in `{}`", tree.uuid, world.repository.join(".git").display());
    assert_eq!(deleted.kept, [branch.into()]);
    let unborn = world.tree(2);
    git(&unborn.path, &["checkout", "-q", "--orphan", "new"]);
    git(&unborn.path, &["rm", "-rfq", "."]);
    assert_eq!(world.see(&unborn.id).await.cannot, []);
}

#[tokio::test]
async fn a_look_writes_nothing_and_a_change_of_its_own_references_is_activity() {
    let Some(world) = World::in_tables() else { return };
    let tree = world.tree(1);
    let old: Time = "2001-01-01T00:00:00Z".parse().unwrap();
    age(&world.repository, old);
    age(&tree.path, old);
    let before = (stamps(&world.repository), stamps(&tree.path));
    let mut options = world.options();
    options.trust_times = true;
    let backend = backend_worktree::backend(options);
    let active = async || match super::world::see(&backend, &tree.id).await.activity {
        Activity::At(at) => at,
        other => panic!("{other:?}"),
    };
    assert_eq!(active().await, old);
    assert!((stamps(&world.repository), stamps(&tree.path)) == before, "a look changed something");
    git(&tree.path, &["symbolic-ref", "HEAD", "refs/heads/another"]);
    assert!(active().await > old);
}
