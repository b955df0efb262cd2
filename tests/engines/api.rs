//! The test's own client of the engine, apart from the one under test.

use std::path::Path;

use reqwest::{Client, Method};
use serde_json::{Value, json};

/// Asks the engine behind one socket.
#[derive(Clone)]
pub(crate) struct Api(Client);

impl Api {
    pub(crate) fn new(host: &str) -> Self {
        let socket = host.strip_prefix("unix://").unwrap();
        Self(Client::builder().unix_socket(Path::new(socket)).no_proxy().pool_max_idle_per_host(0).build().unwrap())
    }

    /// The status and the body of whatever it answers.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Vec<u8>) {
        let mut request = self.0.request(method, format!("http://localhost{path}"));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
    }

    /// The same where it has to succeed; a body that is no JSON is `null`.
    async fn must(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, bytes) = self.call(method.clone(), path, body).await;
        let told = String::from_utf8_lossy(&bytes);
        assert!((200..=204).contains(&status) || status == 304, "{method} {path} answered {status}: {told}");
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.must(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str) -> Value {
        self.must(Method::POST, path, None).await
    }

    pub(crate) async fn send(&self, path: &str, body: Value) -> Value {
        self.must(Method::POST, path, Some(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> u16 {
        self.call(Method::DELETE, path, None).await.0
    }

    /// What the engine tells of a container; `None`: there is none.
    pub(crate) async fn look(&self, container: &str) -> Option<Value> {
        let (status, bytes) = self.call(Method::GET, &format!("/containers/{container}/json"), None).await;
        match status {
            200 => Some(serde_json::from_slice(&bytes).unwrap()),
            // podman, asked while it removes the container, answers 500.
            404 | 500 => None,
            _ => panic!("the engine can't be asked for `{container}`: {status}"),
        }
    }

    /// Starts a command in a container and leaves it alone.
    pub(crate) async fn exec(&self, container: &str, command: &[&str]) {
        let made = self.send(&format!("/containers/{container}/exec"), json!({"Cmd": command})).await;
        let exec = made["Id"].as_str().unwrap().to_owned();
        self.send(&format!("/exec/{exec}/start"), json!({"Detach": true})).await;
    }

    /// One file of a container's, also of one that is stopped; empty while there is none.
    pub(crate) async fn file(&self, container: &str, path: &str) -> String {
        let archive = format!("/containers/{container}/archive?path={path}");
        let (status, bytes) = self.call(Method::GET, &archive, None).await;
        let mut text = String::new();
        if status == 200 {
            for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
                std::io::Read::read_to_string(&mut entry.unwrap(), &mut text).unwrap();
            }
        }
        text
    }
}
