//! The demo's configuration, written to be read.

use std::time::Duration;

use super::engine::{Engine, LABEL};

/// After this long containers that were seen once are due: `unknown.after`, `clock.coalesce` and `clock.skew` together,
/// and a little more.
pub(crate) const CONTAINERS_REST: Duration = Duration::from_millis(3_500);

const WORKTREES: &str = r#"# The demo's configuration. Change it, then `furlough check` and `furlough plan`.

mode = "report"                # `run` only reports; `apply PLAN` acts, within the budgets

[[backend]]
name = "worktrees"
kind = "worktree"
root = "conversation-worktrees"
conversations = "conversations"
trust_times = true             # the demo made them just now, and their files say that they are old
price.running = "0.002/h"      # what a worktree's disk costs

[[policy]]
name = "worktrees"
match.backend = ["worktrees"]
idle.after = "30m"
retention.suspended = "14d"    # idle for longer than both together: delete
files.dependencies = "3d"      # idle for longer: git-ignored packages go, the work stays
workspace = "save"             # what would be lost is saved first, or the worktree is kept

[budget]                       # what is not named here may not be done at all
suspend = { min = 5, per = "10m" }
delete = { min = 10, per = "10m" }
shed = { min = 10, per = "10m" }

[trash]
keep = "7d"
"#;

/// The configuration of a demo, with containers where an engine answers.
pub(crate) fn text(engine: Option<&Engine>) -> String {
    let Some(engine) = engine else { return WORKTREES.to_owned() };
    let (host, mark) = (toml_text(&engine.host), toml_text(&engine.mark));
    format!(
        r#"{WORKTREES}
[clock]                        # nothing here sends heartbeats, and there is one clock
coalesce = "1s"
skew = "1s"

[[backend]]
name = "containers"
kind = "docker"
host = {host}
scope.labels = {{ "{LABEL}" = {mark} }}
stop_grace = "1s"
price = {{ running = "0.08/h", suspended = "0.004/h" }}

[[policy]]
name = "containers"
match.backend = ["containers"]
idle.after = "1s"
unknown.after = "1s"           # nothing is known of their activity: suspend, never delete
workspace = "save"
"#
    )
}

/// A basic TOML string: every character that needs it is escaped.
fn toml_text(text: &str) -> String {
    // JSON's escapes of a string are TOML's.
    serde_json::Value::from(text).to_string()
}
