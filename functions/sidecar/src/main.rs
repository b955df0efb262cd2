//! The sidecar: reads its flags and its key, starts, and pushes before it ends.

use std::{error::Error, sync::Arc};

use clap::Parser as _;
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use settings::system::{self, Variable};
use sidecar::{InitKey, Options, Sidecar, front::MIN_KEY_BYTES, host::HttpHosts};
use tokio::signal::unix::{Signal, SignalKind, signal};
use workspace::{blobs::http::Http, time::Clock};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    telemetry::function(system::env(Variable::Log)?.as_deref())?;
    // Code of a user that runs as the same user can't read the key from memory, and its orphans come back to be ended.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(options))
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let name = Variable::InitKey.name();
    let key = system::env(Variable::InitKey)?.and_then(|key| InitKey::new(&key));
    let key = key.ok_or_else(|| format!("`{name}` is blank, or has less than {MIN_KEY_BYTES} bytes"))?;
    sidecar::files::make_private(&options.scratch)?;
    let clock = Clock::new(|| system::now().millis());
    let hosts = Arc::new(HttpHosts::new(Arc::new(Http::new()?), clock)?);
    let mut signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    tracing::info!(listen = %listener.local_addr()?, "the sidecar listens");
    let (router, sidecar) = Sidecar::start(&options, key, hosts, Some(getpid().as_raw_nonzero().get()));
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served?,
        () = told(&mut signals) => {}
    }
    Ok(sidecar.end().await?)
}

async fn told((terminate, interrupt): &mut (Signal, Signal)) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
