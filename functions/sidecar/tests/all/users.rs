//! Two users, one after the other, in one sandbox.

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};

use super::lab::{Host, KEY, Lab, ready};

#[tokio::test]
async fn the_next_user_finds_nothing_of_the_last_one() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let first = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&first).await, ready());
    let theirs = lab.variables("a").await;
    let left: Vec<PathBuf> = [&theirs["HOME"], &theirs["TMPDIR"], lab.root().to_str().unwrap()]
        .iter()
        .map(|folder| Path::new(folder).join("left"))
        .collect();
    for path in &left {
        lab.write("a", path, "of a").await;
    }
    let process = lab.ask("a", Method::POST, "/daemon", "").await.1;
    assert!(Path::new("/proc").join(&process).exists());
    assert_eq!(lab.deinit().await.0, StatusCode::OK);
    let alive = std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(!alive, "a process of the first user is left");
    lab.until_state("dormant").await;

    let second = host.delivery("b", &lab).await;
    assert_eq!(lab.init(&second).await, ready());
    for path in &left {
        assert_eq!(lab.get("b", &format!("/file{}", path.display())).await.0, StatusCode::NOT_FOUND, "{path:?}");
    }
    assert_eq!(lab.get("a", "/told").await.0, StatusCode::UNAUTHORIZED, "the first user's key is good for nothing");
    let ours = lab.variables("b").await;
    for name in ["HOME", "TMPDIR", "PORT", "OH_SECRET_KEY"] {
        assert_ne!(theirs[name], ours[name], "{name}");
    }
    assert!(!lab.get("b", "/told").await.1.contains("of a"));
    let known: Vec<_> = std::fs::read_dir(lab.scratch()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(known.len(), 3, "the workspace, its place and the server's folder: {known:?}");
}

/// Else code of a user could open the sidecar, or the next server.
#[tokio::test]
async fn no_key_of_the_sidecar_is_in_the_server() {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    let variables = lab.variables("a").await;
    assert!(!variables.values().any(|value| value.contains(KEY)));
    assert_eq!(
        lab.post("/deinit", &variables["OH_SECRET_KEY"], &serde_json::json!({})).await.0,
        StatusCode::UNAUTHORIZED
    );
}
