//! Answers in the shapes that openhands-agent-server 1.58.2 was measured to give.

use serde_json::{Value, json};

pub(super) fn server_info(uptime: u32, idle_time: u32) -> Value {
    json!({
        "uptime": f64::from(uptime), "idle_time": f64::from(idle_time), "title": "OpenHands Agent Server",
        "version": "1.58.2", "sdk_version": "1.58.2", "tools_version": "1.58.2", "workspace_version": "unknown",
        "build_git_sha": "unknown", "build_git_ref": "unknown", "usable_tools": ["terminal", "file_editor"],
        "runtime_idle_timeout_seconds": null, "conversation_runtime": "local",
        "available_conversation_runtimes": [], "capabilities": ["tool_catalog_v1"],
        "app_backend_ingress_url": null, "max_foreground_terminal_timeout_seconds": null,
        "docs": "/docs", "redoc": "/redoc",
    })
}

pub(super) fn page(items: &[Value]) -> Value {
    json!({ "items": items, "next_page_id": null })
}

pub(super) fn page_before(items: &[Value], next: &str) -> Value {
    json!({ "items": items, "next_page_id": next })
}

pub(super) fn conversation(id: &str, execution_status: &str, updated_at: &str) -> Value {
    json!({
        "id": id, "workspace": { "working_dir": "/workspace/project", "kind": "LocalWorkspace" },
        "persistence_dir": "/workspace/conversations/c1", "execution_status": execution_status,
        "created_at": "2026-11-30T08:00:00.123456Z", "updated_at": updated_at, "title": null, "tags": {},
        "parent_conversation_id": null, "sub_conversation_ids": [],
        "runtime_info": { "runtime_status": "available", "can_resume": true, "runtime_error": null },
    })
}

pub(super) fn bash_command(id: &str, timestamp: &str, timeout: u64) -> Value {
    json!({ "command": "sleep 15", "cwd": null, "timeout": timeout, "id": id, "timestamp": timestamp, "kind": "BashCommand" })
}

pub(super) fn bash_output(command_id: &str, timestamp: &str, exit_code: Option<i64>) -> Value {
    json!({
        "id": "7ce99da908ef4b93a8459b98dca8a31c", "timestamp": timestamp, "command_id": command_id, "order": 0,
        "exit_code": exit_code, "stdout": null, "stderr": null, "kind": "BashOutput",
    })
}

pub(super) fn dormant() -> Value {
    json!({
        "detail": "Internal Server Error",
        "exception": "503: server is in deferred-init state 'dormant'; call POST /api/init first",
    })
}
