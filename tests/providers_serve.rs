//! The simulators as a process, for the providers' own SDKs: `cargo run -p furlough-tests --example providers_serve -- daytona`.
//!
//! Prints the address and the key, and serves until its standard input ends. Its clock is this machine's.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "an SDK has no hands behind the provider's back; a command prints, and fails loudly"
)]

mod simulators;

use std::io::{Read as _, Write as _};

use settings::system;
use simulators::{Provider, Server, cloudflare, daytona, e2b, modal, openhands};

#[tokio::main]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("cloudflare") => {
            // Cloudflare's client makes none, so that what it lists is there from the beginning.
            let mut provider = cloudflare::Cloudflare::default();
            let now = system::now();
            for _ in 0..5 {
                provider.add(now, |_| {});
            }
            provider.add(now, |sandbox| sandbox.sleep(now));
            serve(provider, cloudflare::KEY).await;
        }
        Some("daytona") => serve(daytona::Daytona::default(), daytona::KEY).await,
        Some("e2b") => serve(e2b::E2b::default(), e2b::KEY).await,
        Some("modal") => {
            // Modal's client makes them by images and files, of which there are none here: they are there already.
            let server = modal::ModalServer::start(system::now).await;
            let now = system::now();
            for number in 0..5 {
                let tag = |sandbox: &mut modal::Sandbox| {
                    sandbox.app.clone_from(&"ap-0000000000000000000001".to_owned());
                    sandbox.tags.insert("number".to_owned(), number.to_string());
                };
                let mut state = server.state();
                state.page = 2;
                if number < 3 {
                    state.add(now, tag)
                } else {
                    state.add_second(now, tag)
                };
            }
            println!("{} {} {}", server.address(), modal::TOKEN.0, modal::TOKEN.1);
            std::io::stdout().flush().unwrap();
            tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
            println!("{}", server.calls().join("\n"));
        }
        Some("openhands") => serve(openhands::OpenHands::default(), openhands::KEY).await,
        other => panic!("{other:?} is no simulator; there are `cloudflare`, `daytona`, `e2b`, `modal` and `openhands`"),
    }
}

async fn serve<P: Provider>(provider: P, key: &str) {
    let server = Server::start(provider, system::now).await;
    println!("{} {key}", server.address());
    std::io::stdout().flush().unwrap();
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    println!("{}", server.calls().join("\n"));
}
