//! The Runtime API.

use lifecycle::Time;
use serde_json::{Value, json};

use super::{Asked, OpenHands, Refused, Reply, Sandbox, agent_server};

impl OpenHands {
    pub(super) fn runtime(&mut self, asked: &Asked, path: &[&str], now: Time) -> Result<Reply, Refused> {
        match (asked.method.as_str(), path) {
            ("GET", ["list"]) => {
                let running = self.sandboxes.iter().filter(|(_, sandbox)| sandbox.status == "running");
                let runtimes: Vec<_> = running.map(|(id, sandbox)| sandbox.row(id, asked)).collect();
                Ok(Reply::json(200, json!({"runtimes": runtimes})))
            }
            ("GET", ["runtime", runtime]) => {
                let found = self.sandboxes.iter().find(|(_, sandbox)| sandbox.runtime == *runtime);
                let (id, sandbox) = found.ok_or_else(not_found)?;
                Ok(Reply::json(200, sandbox.row(id, asked)))
            }
            ("GET", ["sessions", id]) => {
                let sandbox = self.sandboxes.get(*id).ok_or_else(not_found)?;
                Ok(Reply::json(200, sandbox.row(id, asked)))
            }
            ("POST", ["start"]) => {
                let text = |field: &str| asked.body[field].as_str().unwrap_or_default().to_owned();
                let id = self.starts(now, &text("image"), Some(text("session_id")));
                Ok(Reply::json(200, self.sandboxes[&id].row(&id, asked)))
            }
            ("POST", [verb @ ("pause" | "resume" | "stop")]) => self.turned(asked, verb, now),
            _ => Err((404, "Not Found".to_owned())),
        }
    }

    fn turned(&mut self, asked: &Asked, verb: &str, now: Time) -> Result<Reply, Refused> {
        if verb == "pause" && self.no_pause {
            return Err((405, "Method Not Allowed".to_owned()));
        }
        let takes = (self.pause_takes, self.resume_takes, self.delete_takes);
        let wanted = asked.body["runtime_id"].as_str();
        let found = self.sandboxes.iter_mut().find(|(_, sandbox)| Some(sandbox.runtime.as_str()) == wanted);
        let (id, sandbox) = found.ok_or_else(not_found)?;
        match verb {
            "pause" => sandbox.turns("paused", "running", now.plus(takes.0), now),
            "resume" => sandbox.turns("running", "starting", now.plus(takes.1), now),
            _ => {
                let status = sandbox.status;
                sandbox.turns("deleted", status, now.plus(takes.2), now);
            }
        }
        let row = sandbox.row(id, asked);
        self.tick(now);
        Ok(Reply::json(200, row))
    }
}

impl Sandbox {
    fn row(&self, id: &str, asked: &Asked) -> Value {
        let pod = match self.status {
            "running" => "ready",
            "starting" => "pending",
            _ => "not found",
        };
        json!({
            "runtime_id": self.runtime, "session_id": id, "url": agent_server(asked), "session_api_key": self.session_key(),
            "status": self.status, "pod_status": pod, "restart_count": 0, "restart_reasons": [], "work_hosts": {},
        })
    }
}

fn not_found() -> Refused {
    (404, "Runtime not found".to_owned())
}
