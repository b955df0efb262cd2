use std::fs;

use tempfile::TempDir;

use super::*;
use crate::Kind;

/// A machine with nothing on it.
struct Bench {
    folder: TempDir,
    machine: Machine,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine {
            folder: folder.path().to_owned(),
            config: None,
            home: None,
            docker_host: None,
            docker_socket: folder.path().join("docker.sock"),
            worktree_root: folder.path().join("worktrees"),
            conversations: None,
        };
        Self { folder, machine }
    }

    /// A configuration that is known by the name of its policy.
    fn config(&self, path: &str, policy: &str) -> PathBuf {
        self.file(path, format!("[[policy]]\nname = \"{policy}\"\n"))
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn policy(&self, explicit: Option<&Path>) -> String {
        self.machine.load(explicit).unwrap().policy.rules[0].name.to_string()
    }

    fn error(&self, explicit: &Path) -> String {
        let error = self.machine.load(Some(explicit)).unwrap_err().to_string();
        error.replace(self.folder.path().to_str().unwrap(), "DIR")
    }
}

#[test]
fn the_flag_goes_before_the_variable_before_the_folder_before_the_built_in() {
    let mut bench = Bench::new();
    assert_eq!(bench.policy(None), "built-in");
    bench.config("furlough.toml", "of the folder");
    assert_eq!(bench.policy(None), "of the folder");
    bench.machine.config = Some(bench.config("b.toml", "of the variable"));
    assert_eq!(bench.policy(None), "of the variable");
    let flag = bench.config("a.toml", "of the flag");
    assert_eq!(bench.policy(Some(&flag)), "of the flag");
    assert_eq!(bench.machine.load(Some(&flag)).unwrap().source, Source::File(flag));
}

#[test]
fn what_is_named_and_not_there_is_never_passed_over() {
    let mut bench = Bench::new();
    bench.config("furlough.toml", "of the folder");
    let missing = bench.folder.path().join("missing.toml");
    assert_eq!(bench.error(&missing), "there is no file `DIR/missing.toml`, which `--config` names");
    assert_eq!(bench.error(Path::new("")), "there is no file ``, which `--config` names");
    bench.machine.config = Some(missing);
    let error = bench.machine.load(None).unwrap_err().to_string();
    assert!(error.ends_with("missing.toml`, which `FURLOUGH_CONFIG` names"), "{error}");

    let bench = Bench::new();
    std::os::unix::fs::symlink("nowhere", bench.folder.path().join("furlough.toml")).unwrap();
    let error = bench.machine.load(None).unwrap_err().to_string();
    assert!(error.ends_with("furlough.toml`, which a link names"), "{error}");
}

#[test]
fn what_is_no_configuration_is_told_clearly() {
    let bench = Bench::new();
    let read = |path: &str, content: &[u8]| bench.error(&bench.file(path, content));
    assert_eq!(bench.error(bench.folder.path()), "`DIR` is a folder; name the file in it, such as `DIR/furlough.toml`");
    assert_eq!(
        read("a", b"mode = \"report\"\n# \xff\xfe\n"),
        "`DIR/a` is not UTF-8 text: line 2 has a byte that is none"
    );
    let large = vec![b'#'; usize::try_from(MAX_BYTES).unwrap() + 1];
    assert_eq!(read("b", &large), "`DIR/b` is larger than 1048576 bytes, the limit of a configuration");
    assert!(bench.machine.load(Some(&bench.file("c", &large[1..]))).is_ok(), "the limit itself is allowed");
    let below_a_file = bench.file("d", "").join("furlough.toml");
    assert_eq!(bench.error(&below_a_file), "can't read `DIR/d/furlough.toml`");
    assert!(read("e", b"mode = \"x\"").contains("--> DIR/e:1:8"));
}

#[test]
fn paths_are_relative_to_the_file_and_the_home() {
    let mut bench = Bench::new();
    bench.machine.home = Some("/home/ann".into());
    let text = "[[backend]]\nname = \"w\"\nkind = \"worktree\"\nroot = \"trees/./\"\nconversations = \"~/c\"\nrepositories = [\"/r\", \"~\"]\n";
    let file = bench.file("below/f.toml", text);
    let worktree = |settings: Settings| match settings.backends.into_iter().next().unwrap().kind {
        Kind::Worktree(worktree) => worktree,
        other => panic!("{other:?}"),
    };
    let read = worktree(bench.machine.load(Some(&file)).unwrap());
    assert_eq!(read.root, Some(bench.folder.path().join("below/trees")));
    assert_eq!(read.conversations, Some("/home/ann/c".into()));
    let repositories: Vec<_> = read.repositories.iter().map(|r| (r.name.as_str(), r.path.to_str().unwrap())).collect();
    assert_eq!(repositories, [("r", "/r"), ("ann", "/home/ann")]);

    bench.machine.home = None;
    let error = bench.error(&file);
    assert!(error.contains("`~` is unknown here: HOME is not set; write the whole path"), "{error}");
}

#[test]
fn a_backend_without_an_engine_takes_the_one_of_the_environment() {
    let mut bench = Bench::new();
    let file = bench.file("f.toml", "[[backend]]\nname = \"d\"\nkind = \"docker\"\nopenhands = true\n");
    let host = |bench: &Bench| match bench.machine.load(Some(&file)).map(|settings| settings.backends[0].kind.clone()) {
        Ok(Kind::Docker(docker)) => docker.host,
        other => panic!("{other:?}"),
    };
    assert_eq!(host(&bench), "unix:///var/run/docker.sock");
    bench.machine.docker_host = Some("unix:///run/user/1000/podman.sock".to_owned());
    assert_eq!(host(&bench), "unix:///run/user/1000/podman.sock");
    bench.machine.docker_host = Some("tcp://10.0.0.1:2375".to_owned());
    let error = bench.error(&file);
    assert!(error.contains("DOCKER_HOST is `tcp://10.0.0.1:2375`, and only sockets are spoken to"), "{error}");
}

#[test]
fn a_newcomer_gets_what_is_on_the_machine_in_report_mode() {
    let mut bench = Bench::new();
    let settings = bench.machine.load(None).unwrap();
    assert_eq!(settings.backends, []);
    assert_eq!(settings.warnings.len(), 1, "that nothing is looked at is told");
    let told = settings.source.to_string().replace(bench.folder.path().to_str().unwrap(), "DIR");
    assert_eq!(
        told,
        "no configuration: the built-in example policy, in report mode; \
         no OpenHands worktrees at `DIR/worktrees`; no Docker engine at `DIR/docker.sock`"
    );

    bench.file("worktrees/x/repo/file", "");
    bench.file("conversations/x", "");
    bench.file("docker.sock", "");
    bench.machine.conversations = Some(bench.folder.path().join("conversations"));
    let settings = bench.machine.load(None).unwrap();
    let kinds: Vec<_> = settings.backends.iter().map(|b| (b.name.as_str(), b.kind.clone())).collect();
    let worktrees = crate::Worktree {
        root: Some(bench.folder.path().join("worktrees")),
        conversations: Some(bench.folder.path().join("conversations")),
        repositories: Vec::new(),
        trust_times: false,
    };
    let docker = crate::Docker {
        host: format!("unix://{}/docker.sock", bench.folder.path().display()),
        scope: crate::Scope::default(),
        openhands: true,
        stop_grace: std::time::Duration::from_mins(1),
    };
    assert_eq!(kinds, [("worktrees", Kind::Worktree(worktrees)), ("docker", Kind::Docker(docker))]);
    assert_eq!((settings.policy.mode, settings.warnings), (lifecycle::policy::Mode::Report, Vec::new()));
    let Source::BuiltIn { text, .. } = settings.source else { panic!() };
    let own = bench.file("furlough.toml", text);
    assert_eq!(bench.machine.load(Some(&own)).unwrap().policy, settings.policy, "it is a configuration to start from");
}

#[test]
fn an_engine_that_can_t_be_spoken_to_is_told_and_left_out() {
    let mut bench = Bench::new();
    bench.file("docker.sock", "");
    bench.machine.docker_host = Some("ssh://build.example.com".to_owned());
    let settings = bench.machine.load(None);
    let settings = settings.unwrap();
    assert_eq!(settings.backends, []);
    assert!(settings.source.to_string().ends_with("DOCKER_HOST is left out: only `unix://` sockets are read"));
}

#[test]
fn a_root_that_is_not_text_or_has_quotes_in_it_harms_nothing() {
    use std::os::unix::ffi::OsStrExt;
    let mut bench = Bench::new();
    let quoted = bench.folder.path().join("a \"b\" \\ 'c'");
    fs::create_dir(&quoted).unwrap();
    bench.machine.worktree_root.clone_from(&quoted);
    let settings = bench.machine.load(None).unwrap();
    assert!(matches!(&settings.backends[0].kind, Kind::Worktree(worktree) if worktree.root == Some(quoted)));

    for odd in [b"\xff".as_slice(), b"a\n[[policy]]"] {
        bench.machine.worktree_root = bench.folder.path().join(std::ffi::OsStr::from_bytes(odd));
        fs::create_dir(&bench.machine.worktree_root).unwrap();
        let settings = bench.machine.load(None).unwrap();
        assert_eq!(settings.backends, []);
        assert!(settings.source.to_string().contains("left out: the path is not plain text"));
    }
}
