//! The app server: `/api/v1`.

use lifecycle::Time;
use serde_json::{Value, json};

use super::{Asked, OpenHands, Refused, Reply, Sandbox, Trouble, agent_server, written};

const MOST: usize = 100;

impl OpenHands {
    pub(super) fn app(&mut self, asked: &Asked, path: &[&str], now: Time) -> Result<Reply, Refused> {
        match (asked.method.as_str(), path) {
            ("GET", ["sandboxes", "search"]) => self.search(asked),
            ("GET", ["sandboxes"]) => Ok(self.batch(asked)),
            ("POST", ["sandboxes"]) => {
                let spec = asked.query("sandbox_spec_id").unwrap_or("ghcr.io/openhands/agent-server:main-python");
                let id = self.starts(now, spec, None);
                Ok(Reply::json(200, self.info(asked, &id)))
            }
            ("POST", ["sandboxes", _, "pause"]) if self.no_pause => Err((405, "Method Not Allowed".to_owned())),
            ("POST", ["sandboxes", id, "pause"]) => {
                let (takes, trouble) = (self.pause_takes, self.trouble);
                let sandbox = self.reached(id)?;
                if matches!(sandbox.status, "running" | "error") {
                    sandbox.turns("paused", "running", now.plus(takes), now);
                }
                heard(trouble)
            }
            ("POST", ["sandboxes", id, "resume"]) => {
                self.oldest_pause(id);
                let (takes, trouble) = (self.resume_takes, self.trouble);
                let sandbox = self.reached(id)?;
                match sandbox.status {
                    "paused" => sandbox.turns("running", "starting", now.plus(takes), now),
                    "starting" | "running" => {}
                    _ => return Err((409, "Sandbox cannot be resumed from its current state".to_owned())),
                }
                heard(trouble)
            }
            ("DELETE", ["sandboxes", _]) => self.delete(asked, now),
            ("GET", ["app-conversations", "search"]) => self.talks(asked),
            _ => Err((404, "Not Found".to_owned())),
        }
    }

    /// The sandbox, if its runtime can be asked for. Every failure of that is told as "not found".
    fn reached(&mut self, id: &str) -> Result<&mut Sandbox, Refused> {
        let down = matches!(self.trouble, Some(Trouble::Down | Trouble::DownAndSaid));
        let found = self.sandboxes.get_mut(id).filter(|sandbox| !down && sandbox.status != "stopped");
        found.ok_or((404, "Not Found".to_owned()))
    }

    /// The path says nothing: it is the query that is read.
    fn delete(&mut self, asked: &Asked, now: Time) -> Result<Reply, Refused> {
        let Some(id) = asked.query("sandbox_id") else {
            let missing =
                json!([{"type": "missing", "loc": ["query", "sandbox_id"], "msg": "Field required", "input": null}]);
            return Ok(Reply::json(422, json!({"detail": missing})));
        };
        let (takes, trouble) = (self.delete_takes, self.trouble);
        let Some(sandbox) = self.sandboxes.get_mut(id) else { return Err((404, "Not Found".to_owned())) };
        let kept = || (503, format!("Could not complete delete for sandbox {id}: All connection attempts failed"));
        if matches!(trouble, Some(Trouble::Down | Trouble::DownAndSaid)) {
            return Err(kept());
        }
        let status = sandbox.status;
        sandbox.turns("deleted", status, now.plus(takes), now);
        self.tick(now);
        if trouble == Some(Trouble::Deaf) { Err(kept()) } else { Ok(success()) }
    }

    /// The newest first, by their place in the list.
    fn search(&self, asked: &Asked) -> Result<Reply, Refused> {
        if self.trouble == Some(Trouble::Down) {
            return Err((500, "Internal Server Error".to_owned()));
        }
        let mut ids: Vec<_> = self.sandboxes.iter().collect();
        ids.sort_by_key(|(id, sandbox)| (std::cmp::Reverse(sandbox.created), id.as_str()));
        let (from, to, next) = page(asked, ids.len())?;
        let items: Vec<_> = ids[from..to].iter().map(|(id, _)| self.info(asked, id)).collect();
        Ok(Reply::json(200, json!({"items": items, "next_page_id": next})))
    }

    fn batch(&self, asked: &Asked) -> Reply {
        let ids = asked.all("id");
        if ids.len() > MOST {
            return super::error(400, &format!("Cannot request more than 100 sandboxes at once, got {}", ids.len()));
        }
        let found =
            ids.iter().map(|id| if self.sandboxes.contains_key(*id) { self.info(asked, id) } else { Value::Null });
        Reply::json(200, Value::Array(found.collect()))
    }

    /// The status as the app server tells it: an outage reads as if there were none.
    fn status(&self, sandbox: &Sandbox) -> &'static str {
        match (self.trouble, sandbox.status) {
            (Some(Trouble::DownAndSaid), _) => "UNKNOWN",
            (Some(Trouble::Down), _) | (_, "stopped") => "MISSING",
            (_, "running") => "RUNNING",
            (_, "paused") => "PAUSED",
            (_, "starting") => "STARTING",
            (_, "error") => "ERROR",
            // A word of a version to come, for tests.
            (_, other) => other,
        }
    }

    fn info(&self, asked: &Asked, id: &str) -> Value {
        let sandbox = &self.sandboxes[id];
        let status = self.status(sandbox);
        let runs = status == "RUNNING";
        let urls = json!([{"name": "AGENT_SERVER", "url": agent_server(asked), "port": 60_000}]);
        json!({
            "id": id, "created_by_user_id": "u-1", "sandbox_spec_id": sandbox.spec, "status": status,
            "session_api_key": runs.then(|| sandbox.session_key()), "exposed_urls": runs.then_some(urls),
            "created_at": written(sandbox.created),
        })
    }

    /// Also the newest first. Those within others only when they are asked for.
    fn talks(&self, asked: &Asked) -> Result<Reply, Refused> {
        let subs = asked.query("include_sub_conversations") == Some("true");
        let wanted = asked.query("sandbox_id__eq");
        let mut talks: Vec<_> = self
            .conversations
            .iter()
            .filter(|(_, talk)| (subs || talk.parent.is_none()) && wanted.is_none_or(|wanted| wanted == talk.sandbox))
            .collect();
        talks.sort_by_key(|(id, talk)| (std::cmp::Reverse(talk.created), id.as_str()));
        let (from, to, next) = page(asked, talks.len())?;
        let items: Vec<_> = talks[from..to]
            .iter()
            .map(|(id, talk)| {
                let sandbox = self.sandboxes.get(&talk.sandbox);
                let status = sandbox.map_or("MISSING", |sandbox| self.status(sandbox));
                json!({
                    "id": id, "created_by_user_id": null, "sandbox_id": talk.sandbox, "sandbox_status": status,
                    "execution_status": talk.status.filter(|_| status == "RUNNING"), "title": "a talk",
                    "parent_conversation_id": talk.parent, "sub_conversation_ids": [], "tags": talk.tags,
                    "created_at": written(talk.created), "updated_at": written(talk.updated),
                    "session_api_key": sandbox.filter(|_| status == "RUNNING").map(Sandbox::session_key),
                })
            })
            .collect();
        Ok(Reply::json(200, json!({"items": items, "next_page_id": next})))
    }
}

/// From where to where, and the place after it. A place that is no number is the first.
fn page(asked: &Asked, len: usize) -> Result<(usize, usize, Option<String>), Refused> {
    let limit = asked.query("limit").map_or(Ok(MOST), str::parse::<usize>).unwrap_or(0);
    if !(1..=MOST).contains(&limit) {
        return Err((422, "Input should be less than or equal to 100".to_owned()));
    }
    let from = asked.query("page_id").and_then(|page| page.parse::<usize>().ok()).unwrap_or(0).min(len);
    let to = (from + limit).min(len);
    Ok((from, to, (to < len).then(|| to.to_string())))
}

/// A change was made, and whether that is told.
fn heard(trouble: Option<Trouble>) -> Result<Reply, Refused> {
    if trouble == Some(Trouble::Deaf) { Err((404, "Not Found".to_owned())) } else { Ok(success()) }
}

fn success() -> Reply {
    Reply::json(200, json!({"success": true}))
}
