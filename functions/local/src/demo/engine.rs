//! Containers for the demo, on whatever engine answers here. Each has the demo's own label.

use std::{path::Path, time::Duration};

use reqwest::{Client, Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::waiter;
use crate::answer::Fault;

/// The label whose value is the demo's own; the configuration's scope names it.
pub(crate) const LABEL: &str = "furlough.demo";
/// An engine that has not answered by then does not take part.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest that one call may take: making a container can be slow on a busy disk.
const CALL: Duration = Duration::from_secs(15);

/// An engine that answers.
pub(crate) struct Engine {
    client: Client,
    /// `unix:///PATH`, for the configuration.
    pub(crate) host: String,
    /// The value of [`LABEL`].
    pub(crate) mark: String,
}

impl Engine {
    /// The engine at `host`, if it answers. The error says why not, for people.
    pub(crate) async fn answering(host: &str, mark: &str) -> Result<Self, String> {
        let Some(path) = host.strip_prefix("unix://") else {
            return Err(format!("`{host}` is not a `unix://` socket"));
        };
        let client = Client::builder()
            .unix_socket(Path::new(path))
            .no_proxy()
            .tls_certs_only([])
            .build()
            .map_err(|error| format!("no HTTP client: {error}"))?;
        let engine = Self { client, host: host.to_owned(), mark: mark.to_owned() };
        match engine.client.get("http://localhost/_ping").timeout(PATIENCE).send().await {
            Ok(answer) if answer.status().is_success() => Ok(engine),
            Ok(answer) => Err(format!("what is at `{host}` answers {}", answer.status().as_u16())),
            Err(_) => Err(format!("nothing answers at `{host}`")),
        }
    }

    /// One image of a program that waits, and two containers of it: one runs, one was made and never started.
    pub(crate) async fn make(&self) -> Result<(), Fault> {
        let image = waiter::image().map_err(|error| fault(&error.to_string()))?;
        let Some(image) = image else {
            return Err(fault(&format!("no program for the processor `{}`", std::env::consts::ARCH)));
        };
        let repository = format!("/images/create?fromSrc=-&repo={}", self.image());
        self.call(Method::POST, &repository, "application/x-tar", image).await?;
        let running = self.container("works").await?;
        self.container("never-started").await?;
        self.call(Method::POST, &format!("/containers/{running}/start"), "application/json", Vec::new()).await?;
        Ok(())
    }

    /// The image's name. podman takes no tag for what it imports, so that the name itself is the demo's own.
    pub(crate) fn image(&self) -> String {
        format!("furlough-demo-{}", self.mark)
    }

    async fn container(&self, role: &str) -> Result<String, Fault> {
        let settings = json!({
            "Image": self.image(),
            "Cmd": ["/wait"],
            "Labels": { LABEL: self.mark },
            // The program is process 1 and handles no signal: only this one ends it at once.
            "StopSignal": "SIGKILL",
            "HostConfig": { "NetworkMode": "none" },
        });
        let path = format!("/containers/create?name=furlough-demo-{}-{role}", self.mark);
        let answer = self.call(Method::POST, &path, "application/json", settings.to_string().into_bytes()).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let id = answer["Id"].as_str().ok_or_else(|| fault("the engine made a container and told no id"))?;
        Ok(id.to_owned())
    }

    async fn call(&self, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let request = self.client.request(method, format!("http://localhost{path}")).timeout(CALL);
        let answer = request.header(CONTENT_TYPE, kind).body(body).send().await;
        let answer = answer.map_err(|error| fault(&error.to_string()))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| fault(&error.to_string()))?;
        if status.is_success() {
            return Ok(body.to_vec());
        }
        let told: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(fault(&format!("`{path}` answered {}: {}", status.as_u16(), told["message"])))
    }
}

fn fault(message: &str) -> Fault {
    Fault::failed("demo_engine", format!("the demo's containers could not be made: {message}"))
}
