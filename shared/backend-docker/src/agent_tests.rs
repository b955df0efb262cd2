//! Where an agent server is looked for.

use serde_json::{Value, json};

use super::*;

fn at(network: &str, command: &[&str], ports: &Value) -> Result<String, String> {
    let raw = json!({
        "Id": "0", "Name": "/oh-agent-server-1", "State": {"Status": "running"},
        "HostConfig": {"NetworkMode": network},
        "Config": {"Cmd": command},
        "NetworkSettings": {"Ports": ports},
    });
    address(&serde_json::from_value(raw).unwrap())
}

fn published(host: &str, port: &str) -> Value {
    json!({"HostIp": host, "HostPort": port})
}

#[test]
fn a_port_published_on_loopback_or_everywhere_is_asked_on_loopback() {
    for host in ["", "0.0.0.0", "127.0.0.1"] {
        let ports = json!({"8000/tcp": [published(host, "32768")], "8001/tcp": [published(host, "1")]});
        assert_eq!(at("bridge", &["--host", "0.0.0.0"], &ports), Ok("http://127.0.0.1:32768".to_owned()), "{host}");
    }
    let six = json!({"8000/tcp": [published("::", "32769")]});
    assert_eq!(at("bridge", &[], &six), Ok("http://[::1]:32769".to_owned()));
}

#[test]
fn the_command_line_tells_another_port() {
    let ports = json!({"9000/tcp": [published("", "32768")]});
    for command in [&["--port", "9000"][..], &["--port=9000"], &["x", "--port", "9000", "y"]] {
        assert_eq!(at("bridge", command, &ports), Ok("http://127.0.0.1:32768".to_owned()), "{command:?}");
        assert_eq!(at("host", command, &json!({})), Ok("http://127.0.0.1:9000".to_owned()), "{command:?}");
    }
    assert_eq!(at("host", &["--port", "0"], &Value::Null), Ok("http://127.0.0.1:8000".to_owned()));
}

#[test]
fn a_key_goes_to_no_other_host() {
    let nowhere =
        "port 8000 of container `oh-agent-server-1` is not published on this host's loopback: its agent can't be asked";
    for ports in [
        Value::Null,
        json!({}),
        json!({"8000/tcp": null}),
        json!({"8000/tcp": []}),
        json!({"8000/tcp": [published("192.0.2.7", "32768")]}),
        json!({"8000/tcp": [published("", "")]}),
        json!({"8000/udp": [published("", "32768")]}),
    ] {
        assert_eq!(at("bridge", &[], &ports), Err(nowhere.to_owned()), "{ports}");
    }
}
