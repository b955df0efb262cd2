//! What is found, and what is said of what can't be.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, sync::Arc};

use backend::{ErrorKind, Sighting, Target};
use backend_worktree::{Repository, Root, backend};
use lifecycle::{Loss, Ownership, State, policy::WorkspaceRule};

use super::world::{World, bytes, commit, content, git, list, name, refusal, runtime, uuid, write};

#[tokio::test]
async fn the_layout_of_openhands_is_listed_with_branch_conversation_and_repository() {
    let world = World::new();
    let tree = world.tree(7);
    let (seen, unreadable) = list(&world.backend()).await;
    assert_eq!((seen.len(), unreadable.len()), (1, 0));
    let label = |key: &str| seen[0].labels.get(key).cloned().unwrap();
    assert_eq!(seen[0].id, tree.id);
    assert_eq!((seen[0].state, seen[0].ownership, seen[0].sharers), (State::Running, Ownership::Ours, 1));
    assert_eq!(label("branch"), format!("openhands/{}", uuid(7)));
    assert_eq!(label("conversation"), tree.hex());
    assert_eq!(label("repository"), world.repository.join(".git").to_str().unwrap());
    assert_eq!(seen[0].about.as_ref(), tree.path.to_str().unwrap());
}

#[tokio::test]
async fn a_backend_of_worktrees_rests_and_has_no_suspend() {
    let can = World::new().backend().capabilities();
    assert!(can.rests && can.delete && can.saves_first && can.files && can.undo, "{can:?}");
    assert_eq!((can.suspend, can.archive), (None, false));
}

#[tokio::test]
async fn a_root_that_is_a_link_is_an_error_that_says_where_it_leads() {
    let world = World::new();
    let link = world.folder.path().join("link");
    symlink(&world.root, &link).unwrap();
    let mut options = world.options();
    options.root = Some(Root::Configured(link.clone()));
    let error = backend(options).list.list(None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Local);
    assert_eq!(
        error.message,
        format!(
            "worktree root `{}` is a symbolic link to `{}`; a link is never followed: set `root` to the folder itself",
            link.display(),
            world.root.display()
        )
    );
}

#[tokio::test]
async fn a_missing_root_is_an_error_where_it_was_written_down_and_nothing_where_it_was_guessed() {
    let world = World::new();
    let missing = world.folder.path().join("missing");
    let mut options = world.options();
    options.root = Some(Root::Configured(missing.clone()));
    let error = backend(options.clone()).list.list(None).await.unwrap_err();
    assert_eq!(
        error.message,
        format!("worktree root `{}` does not exist; mount it, or correct `root`", missing.display())
    );
    options.root = Some(Root::Detected(missing));
    let (seen, unreadable) = list(&backend(options)).await;
    assert_eq!((seen, unreadable), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn names_that_are_not_utf8_are_listed_inspected_deleted_and_brought_back() {
    let world = World::new();
    let folder = world.root.join(uuid(1));
    fs::create_dir(&folder).unwrap();
    let path = folder.join(bytes(b"sh\xffop"));
    let output = std::process::Command::new("git")
        .args(["worktree", "add", "-q", "-b", "odd"])
        .arg(&path)
        .current_dir(&world.repository)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::write(path.join(bytes(b"n\xfete")), "work").unwrap();
    let id = runtime([uuid(1).as_bytes(), b"/sh\xffop"].concat());
    assert!(id.encoded().ends_with("%2Fsh%FFop"), "{id}");
    let before = content(&path);
    let (seen, _) = list(&world.backend()).await;
    assert_eq!(seen.iter().map(|seen| &seen.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(world.see(&id).await.loss, Loss::Work(vec!["1 untracked file".into()]));
    let deleted = world.deleted(&id, WorkspaceRule::Save).await;
    assert!(!path.exists());
    let _ = world.backend().undo.unwrap().undo(&deleted.undo.unwrap()).await.unwrap();
    assert_eq!(content(&path), before);
}

#[tokio::test]
async fn an_id_that_would_be_too_long_is_reported_with_its_path() {
    let world = World::new();
    world.tree(1);
    let long = world.root.join(uuid(2)).join("x".repeat(120));
    fs::create_dir_all(&long).unwrap();
    let (seen, unreadable) = list(&world.backend()).await;
    assert_eq!(seen.len(), 1);
    let expected = format!("`{}`: runtime id has 157 bytes; at most 128 are allowed", long.display());
    assert_eq!(unreadable, [Arc::from(expected)]);
}

#[tokio::test]
async fn what_is_written_into_gits_pointers_makes_one_entry_unreadable_and_the_listing_stays_whole() {
    let world = World::new();
    let tree = world.tree(1);
    let (long, nul) = ("x".repeat(9_000), format!("gitdir: /a{}b\n", '\0'));
    let path_too_long = format!("gitdir: /{}\n", "x/".repeat(3_000));
    for (file, text) in [
        (".git", &long),
        (".git", &nul),
        (".git", &path_too_long),
        ("gitdir", &long),
        ("commondir", &long),
        ("locked", &long),
    ] {
        let odd = world.tree(2);
        let at = if file == ".git" { odd.path.join(file) } else { odd.admin().join(file) };
        let before = fs::read_to_string(&at).unwrap_or_default();
        write(&at, text);
        let backend = world.backend();
        let (mut seen, unreadable) = list(&backend).await;
        assert_eq!(unreadable, Vec::<Arc<str>>::new(), "{file}");
        let odd_seen = seen.pop().unwrap();
        assert_eq!((&odd_seen.id, odd_seen.ownership), (&odd.id, Ownership::Unlabelled), "{file}");
        let says = format!("{}: what git keeps of it can't be read: ", odd.path.display());
        assert!(odd_seen.about.starts_with(&says), "{file}: {}", odd_seen.about);
        assert_eq!(seen.iter().map(|seen| &seen.id).collect::<Vec<_>>(), [&tree.id]);
        let answer =
            backend.delete.unwrap().delete(&Target::of(&odd_seen), WorkspaceRule::Discard, world.bounds()).await;
        assert!(refusal(&answer.unwrap()).starts_with("not a worktree of ours: "), "{file}");
        write(&at, &before);
        if before.is_empty() {
            fs::remove_file(&at).unwrap();
        }
        git(&world.repository, &["worktree", "remove", "--force", odd.path.to_str().unwrap()]);
        git(&world.repository, &["branch", "-D", &format!("openhands/{}", odd.uuid)]);
    }
}

#[tokio::test]
async fn a_head_that_names_no_branch_that_git_allows_is_never_given_to_git_and_keeps_its_worktree() {
    let world = World::new();
    let tree = world.tree(1);
    commit(&tree, "work");
    let written = world.folder.path().join("written");
    for head in
        ["--shell", "refs/heads/*", "refs/heads/../../x", "heads/main", "refs/heads/.invalid", "", "refs/heads/a\u{1}b"]
    {
        write(&tree.admin().join("HEAD"), &format!("ref: {head}\n"));
        let seen = world.see(&tree.id).await;
        assert_eq!(seen.loss, Loss::Unknown, "{head}");
        assert!(!seen.labels.contains_key("branch"), "{head}");
        for rule in [WorkspaceRule::Save, WorkspaceRule::Discard] {
            let answer = world.delete(&tree.id, rule).await;
            assert!(refusal(&answer).starts_with("git can't tell what is in it: "), "{head}: {answer:?}");
        }
        assert!(tree.path.exists() && !written.exists());
    }
}

#[tokio::test]
async fn what_is_no_worktree_is_shown_as_unlabelled_and_never_touched() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    write(&outside.join("precious"), "x");
    let clone = world.root.join(uuid(1)).join("clone");
    fs::create_dir(clone.parent().unwrap()).unwrap();
    git(&world.root, &["clone", "-q", world.repository.to_str().unwrap(), clone.to_str().unwrap()]);
    write(&world.root.join(uuid(2)).join("plain/file"), "x");
    fs::create_dir(world.root.join(uuid(3))).unwrap();
    write(&world.root.join("lost+found/file"), "x");
    symlink(&outside, world.root.join(uuid(4))).unwrap();
    fs::create_dir(world.root.join(uuid(5))).unwrap();
    symlink(&outside, world.root.join(uuid(5)).join("link")).unwrap();
    write(&world.root.join("a file"), "x");
    let copied = world.tree(6);
    let copy = world.root.join(uuid(7)).join("shop");
    write(&copy.join(".git"), &fs::read_to_string(copied.path.join(".git")).unwrap());
    let before = content(&world.root);

    let backend = world.backend();
    let (seen, unreadable) = list(&backend).await;
    assert_eq!(unreadable, Vec::<Arc<str>>::new());
    let strays: Vec<_> = seen.iter().filter(|seen| seen.ownership == Ownership::Unlabelled).collect();
    let said: BTreeSet<_> = strays.iter().map(|seen| seen.about.rsplit(": ").next().unwrap().to_owned()).collect();
    let expected = [
        "a conversation's folder without a worktree".to_owned(),
        "a folder without `.git`".to_owned(),
        "a repository of its own, not a linked worktree".to_owned(),
        "a symbolic link, which is never followed".to_owned(),
        format!("its git folder belongs to `{}`", copied.path.join(".git").display()),
        "not a conversation's folder".to_owned(),
    ];
    assert_eq!(said, expected.into());
    assert_eq!(strays.len(), 7);
    for stray in strays {
        let target = Target::of(stray);
        let inspected = backend.inspect.inspect(&stray.id).await.unwrap();
        assert!(matches!(&inspected, Sighting::Seen(seen) if seen.ownership == Ownership::Unlabelled), "{inspected:?}");
        let delete = backend.delete.as_ref().unwrap();
        let answer = delete.delete(&target, WorkspaceRule::Discard, world.bounds()).await.unwrap();
        assert!(refusal(&answer).starts_with("not a worktree of ours: "), "{answer:?}");
    }
    assert_eq!(content(&world.root), before);
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "x");
}

#[tokio::test]
async fn the_linked_worktrees_of_a_repository_are_ours_never_the_main_one_and_none_twice() {
    let world = World::new();
    let in_root = world.tree(1);
    let feature = world.folder.path().canonicalize().unwrap().join("feature");
    git(&world.repository, &["worktree", "add", "-q", "-b", "feature", feature.to_str().unwrap()]);
    let mut options = world.options();
    options.repositories = vec![Repository { name: "shop".into(), path: world.repository.clone() }];
    let backend = backend(options);
    let (seen, _) = list(&backend).await;
    let ids: BTreeSet<_> = seen.iter().map(|seen| seen.id.clone()).collect();
    assert_eq!(seen.len(), 2);
    assert_eq!(ids, [in_root.id.clone(), runtime("shop/feature")].into());
    let Sighting::Seen(inspected) = backend.inspect.inspect(&runtime("shop/feature")).await.unwrap() else {
        panic!("not there");
    };
    let target = Target::of(&inspected);
    let deleted = backend.delete.as_ref().unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert!(matches!(deleted, backend::Outcome::Done(_)), "{deleted:?}");
    assert!(!feature.exists());
    // The repository may go meanwhile: what lies in its worktrees' trash is still found.
    let mut options = world.options();
    options.root = None;
    let undo = backend_worktree::backend(options).undo.unwrap();
    let trashed = undo.trashed().await.unwrap();
    assert_eq!(trashed.len(), 1);
    assert!(matches!(undo.undo(&trashed[0].entry).await.unwrap(), backend::Outcome::Done(_)));
    assert!(feature.join("prices.py").exists());
    assert_eq!(git(&feature, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_configured_repository_that_is_gone_makes_the_listing_partial() {
    let world = World::new();
    world.tree(1);
    let mut options = world.options();
    let path = world.folder.path().join("nowhere");
    options.repositories = vec![Repository { name: "gone".into(), path: path.clone() }];
    let (seen, unreadable) = list(&backend(options)).await;
    assert_eq!(seen.len(), 1);
    let expected = format!(
        "repository `gone` at `{}`: no git repository is there; correct the path, or take it out of the configuration",
        path.display()
    );
    assert_eq!(unreadable, [Arc::from(expected)]);
}

#[tokio::test]
async fn a_root_that_is_missing_hides_no_repository_and_the_listing_is_partial() {
    let world = World::new();
    let feature = world.folder.path().canonicalize().unwrap().join("feature");
    git(&world.repository, &["worktree", "add", "-q", "-b", "feature", feature.to_str().unwrap()]);
    let mut options = world.options();
    let missing = world.folder.path().join("missing");
    options.root = Some(Root::Configured(missing.clone()));
    options.repositories = vec![Repository { name: "shop".into(), path: world.repository.clone() }];
    let backend = backend(options);
    let (seen, unreadable) = list(&backend).await;
    assert_eq!(seen.iter().map(|seen| &seen.id).collect::<Vec<_>>(), [&runtime("shop/feature")]);
    let expected = format!("worktree root `{}` does not exist; mount it, or correct `root`", missing.display());
    assert_eq!(unreadable, [Arc::from(expected)]);
    assert!(backend.list.disk().await.unwrap().is_some(), "the repository's disk is there to be measured");
}

#[tokio::test]
async fn a_repository_that_names_the_worktree_of_another_does_not_make_it_ours() {
    let world = World::new();
    let top = world.folder.path().canonicalize().unwrap();
    let (other, precious) = (top.join("other"), top.join("precious"));
    git(&top, &["clone", "-q", world.repository.to_str().unwrap(), other.to_str().unwrap()]);
    git(&other, &["worktree", "add", "-q", "-b", "work", precious.to_str().unwrap()]);
    let forged = world.repository.join(".git/worktrees/forged");
    write(&forged.join("gitdir"), &format!("{}\n", precious.join(".git").display()));
    write(&forged.join("commondir"), "../..\n");
    write(&forged.join("HEAD"), "ref: refs/heads/main\n");
    write(&world.repository.join(".git/worktrees/endless/gitdir"), &"x".repeat(9_000));
    let mut options = world.options();
    options.root = None;
    options.repositories = vec![Repository { name: "shop".into(), path: world.repository.clone() }];
    let backend = backend(options);
    let (seen, unreadable) = list(&backend).await;
    assert_eq!(unreadable, Vec::<Arc<str>>::new());
    let mut abouts: Vec<_> =
        seen.iter().map(|seen| (seen.id.to_string(), seen.about.to_string(), seen.ownership)).collect();
    let endless = world.repository.canonicalize().unwrap().join(".git/worktrees/endless");
    let expected = [
        (
            "worktrees/shop%2Fendless".to_owned(),
            format!("{}: its `gitdir` can't be read: more than 8192 bytes", endless.display()),
            Ownership::Unlabelled,
        ),
        (
            "worktrees/shop%2Fforged".to_owned(),
            format!("{}: `{}` names it, but its `.git` leads to another folder", precious.display(), forged.display()),
            Ownership::Unlabelled,
        ),
    ];
    abouts.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(abouts, expected);
    for seen in seen {
        assert!(
            matches!(backend.inspect.inspect(&seen.id).await.unwrap(), Sighting::Seen(again) if again.ownership == Ownership::Unlabelled)
        );
        let delete = backend.delete.as_ref().unwrap();
        let answer = delete.delete(&Target::of(&seen), WorkspaceRule::Discard, world.bounds()).await.unwrap();
        assert!(refusal(&answer).starts_with("not a worktree of ours: "), "{answer:?}");
    }
    assert!(precious.join("prices.py").exists());
}

#[tokio::test]
async fn one_that_vanishes_between_list_and_inspect_is_not_there_and_its_deletion_is_gone() {
    let world = World::new();
    let tree = world.tree(1);
    let backend = world.backend();
    let (seen, _) = list(&backend).await;
    let target = Target::of(&seen[0]);
    fs::remove_dir_all(world.root.join(&tree.uuid)).unwrap();
    assert_eq!(backend.inspect.inspect(&tree.id).await.unwrap(), Sighting::NotThere);
    let answer = backend.delete.unwrap().delete(&target, WorkspaceRule::Save, world.bounds()).await.unwrap();
    assert_eq!(answer, backend::Outcome::Gone);
}

#[tokio::test]
async fn a_worktree_whose_repository_is_gone_is_saved_whole_before_it_goes() {
    let world = World::new();
    let tree = world.furnished(1);
    write(&tree.path.join("notes.md"), "what the agent found out");
    fs::remove_dir_all(&world.repository).unwrap();
    let seen = world.see(&tree.id).await;
    let admin = world.repository.join(".git/worktrees/shop");
    let lost = format!(
        "all of its files: its repository's `{}` is gone, so git can't tell what is elsewhere",
        admin.display()
    );
    assert_eq!(seen.loss, Loss::Work(vec![lost.into()]));
    assert_eq!(seen.cannot.len(), 1, "only the files role lacks: {:?}", seen.cannot);
    let before = content(&tree.path);
    let deleted = world.deleted(&tree.id, WorkspaceRule::Save).await;
    let saved = deleted.saved.unwrap();
    let restored = world.folder.path().join("restored");
    super::saving::unpack(saved.as_ref(), &restored);
    let mut expected = before.clone();
    expected.remove(".git".as_ref() as &std::path::Path);
    assert_eq!(content(&restored), expected);
    // And the whole thing is one undo away, which says what it can't bring back.
    let undo = world.backend().undo.unwrap();
    let backend::Outcome::Done(back) = undo.undo(&deleted.undo.unwrap()).await.unwrap() else { panic!("not undone") };
    assert_eq!(back.origin.as_ref(), tree.path.to_str().unwrap());
    assert_eq!(content(&tree.path), before);
}

#[tokio::test]
async fn five_thousand_worktrees_are_listed_by_pages_without_one_process_of_git() {
    let world = World::new();
    let admins = world.repository.join(".git/worktrees");
    for n in 0..5_000 {
        let path = world.root.join(uuid(n)).join("shop");
        fs::create_dir_all(&path).unwrap();
        let admin = admins.join(format!("shop{n}"));
        fs::write(path.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        fs::create_dir_all(&admin).unwrap();
        fs::write(admin.join("gitdir"), format!("{}\n", path.join(".git").display())).unwrap();
        fs::write(admin.join("commondir"), "../..\n").unwrap();
        fs::write(admin.join("HEAD"), format!("ref: refs/heads/b{n}\n")).unwrap();
    }
    let mut options = world.options();
    options.git = "/nonexistent/git".into();
    let (seen, unreadable) = list(&backend(options)).await;
    let ids: BTreeSet<_> = seen.iter().map(|seen| seen.id.clone()).collect();
    let expected: BTreeSet<_> = (0..5_000).map(|n| runtime(format!("{}/shop", uuid(n)))).collect();
    assert_eq!((seen.len(), unreadable.len()), (5_000, 0));
    assert!(ids == expected, "not each of them, once");
}

#[tokio::test]
async fn a_token_of_another_listing_is_malformed() {
    let world = World::new();
    let token = backend::PageToken("what?".into());
    let error = world.backend().list.list(Some(&token)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Malformed);
}

#[tokio::test]
async fn without_git_an_inspect_says_what_to_set_and_a_deletion_is_refused() {
    let world = World::new();
    let tree = world.tree(1);
    commit(&tree, "work");
    let mut options = world.options();
    options.git = "/nonexistent/git".into();
    let backend = backend(options);
    let seen = super::world::see(&backend, &tree.id).await;
    assert_eq!(seen.loss, Loss::Unknown);
    let answer =
        backend.delete.unwrap().delete(&Target::of(&seen), WorkspaceRule::Discard, world.bounds()).await.unwrap();
    assert_eq!(
        refusal(&answer),
        "git can't tell what is in it: could not start `/nonexistent/git`: No such file or directory (os error 2); \
         set `git` to where it is"
    );
    assert!(tree.path.exists());
    assert_eq!(name().as_str(), "worktrees");
}
