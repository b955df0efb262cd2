//! Through the sidecar to the server: bodies as they come, both ways, and upgrades.

use reqwest::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::lab::{Host, Lab, ready, session_key};

async fn woken() -> Lab {
    let host = Host::new();
    let lab = Lab::new(&host).await;
    let delivery = host.delivery("a", &lab).await;
    assert_eq!(lab.init(&delivery).await, ready());
    lab
}

#[tokio::test]
async fn events_come_when_they_are_sent() {
    let lab = woken().await;
    let folder = tempfile::tempdir().unwrap();
    let request = lab.client.get(format!("{}/events", lab.base)).header("X-Session-API-Key", session_key("a"));
    let mut answer = request.header("x-folder", folder.path().to_str().unwrap()).send().await.unwrap();
    // The server sends each only after the one before it was read here.
    for number in 0..3 {
        assert_eq!(answer.chunk().await.unwrap().unwrap(), format!("data: {number}\n\n"));
        std::fs::write(folder.path().join((number + 1).to_string()), "").unwrap();
    }
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn large_bodies_go_through_both_ways() {
    let lab = woken().await;
    let body: Vec<u8> = (0..8_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    let request = lab.client.post(format!("{}/echo", lab.base)).header("X-Session-API-Key", session_key("a"));
    let answer = request.body(body.clone()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.bytes().await.unwrap() == body, "another body came back");
}

#[tokio::test]
async fn an_upgraded_connection_is_a_tunnel_until_the_server_ends() {
    let lab = woken().await;
    let mut socket = tokio::net::TcpStream::connect(lab.base.strip_prefix("http://").unwrap()).await.unwrap();
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: sandbox\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Session-API-Key: {}\r\n\r\n",
        session_key("a")
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: websocket"), "{head}");
    for word in ["hello", "again"] {
        socket.write_all(word.as_bytes()).await.unwrap();
        let mut said = [0; 10];
        socket.read_exact(&mut said).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&said), word.repeat(2));
    }
    assert_eq!(lab.deinit().await.0, StatusCode::OK);
    assert_eq!(socket.read(&mut [0; 1]).await.unwrap_or(0), 0, "the tunnel outlives its server");
}
