//! `furlough serve`: passes, the routes of heartbeats and workspaces, and the stores, in one process.

use std::{sync::Arc, time::Duration};

use heartbeat::{App, Terms};
use settings::{FileOrigin, Kept, system};
use telemetry::metrics::Meter;
use tokio::{sync::watch, task::JoinHandle};

use super::run;
use crate::{
    answer::{Answer, Fault},
    cli::Serve,
    parts::Plant,
    serve::{self, keys},
    terminal::{Style, Terminal},
};

/// The keys are looked at this often.
const FRESH: Duration = Duration::from_secs(10);

/// Serves until somebody interrupts; the pass and the requests under way are finished first.
pub(crate) async fn command(plant: &Plant, asked: &Serve) -> Result<Answer, Fault> {
    check(asked)?;
    let (store, ledger) = plant.store().await?;
    let places = keys::prepare(&plant.data)?;
    let (activity, address) = serve::bind(asked.listen).await?;
    let stores = if asked.stores { Some(serve::bind(asked.stores_listen).await?) } else { None };
    let terminal = plant.terminal;
    let bold = |text: String| terminal.paint(Style::Bold, &text);
    terminal.note(&format!("{} http://{address}", bold("activity on".to_owned())));
    let origin = asked.url.clone().unwrap_or_else(|| format!("http://{address}"));
    terminal.note(&format!("  workspaces too: sidecars are told to ask {origin}"));
    terminal.note(&format!("  a host's token is in `{}`", places.host_token.display()));
    if let Some((_, address)) = &stores {
        say_stores(terminal, &format!("http://{address}"), &origin, plant, &places);
    }
    let workspaces = serve::workspaces::routes(plant, &ledger, &places, &origin).await?;
    let keys = Kept::new(Arc::new(FileOrigin(places.keys)), FRESH, heartbeat::keys::Keys::read);
    let terms = Kept::fixed(Terms::from(&plant.settings));
    let app = Arc::new(App::new(ledger, keys, terms, Arc::new(system::now), Meter::new(|_| {})));
    let (stop, _) = watch::channel(false);
    let mut tasks = vec![tokio::spawn(serve::activity(activity, app, workspaces, stopped(&stop)))];
    if let Some((listener, _)) = stores {
        tasks.push(tokio::spawn(serve::stores(listener, store, stopped(&stop))));
    }
    let answer = run::command(plant, false).await;
    // Nobody is left to hear it when both have ended by themselves.
    let _ = stop.send(true);
    for task in tasks {
        ended(task).await?;
    }
    answer
}

fn check(asked: &Serve) -> Result<(), Fault> {
    if !asked.any_address && !serve::is_local(asked.listen) {
        let problem = format!(
            "{} can be reached from other machines, and this speaks plain HTTP; put a proxy with TLS before it, and say \
             --any-address if you mean it",
            asked.listen
        );
        return Err(Fault::usage("listen", problem));
    }
    if asked.stores && !serve::is_local(asked.stores_listen) {
        let problem = format!("{} is not on this machine alone: the stores ask for no credential", asked.stores_listen);
        return Err(Fault::usage("listen", problem));
    }
    if let Some(url) = asked.url.as_ref().filter(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
        return Err(Fault::usage("url", format!("`{url}` is no HTTP address: write `https://HOST`")));
    }
    Ok(())
}

/// How `cargo lambda watch` finds the stores.
fn say_stores(terminal: Terminal, url: &str, origin: &str, plant: &Plant, places: &keys::Places) {
    terminal.note(&format!(
        "{} {url}: whoever can open a connection on this machine can write every record\n  \
         for `cargo lambda watch -A 127.0.0.1 -P 9310` in another terminal:\n  \
         export AWS_ENDPOINT_URL_DYNAMODB={url} AWS_REGION=local AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n  \
         export FURLOUGH_KEYS={} FURLOUGH_REPORTS={} FURLOUGH_CONFIG=/path/of/your/furlough.toml\n  \
         export FURLOUGH_WORKSPACE_KEYS={} FURLOUGH_ORIGIN={origin} FURLOUGH_WORKSPACES=s3://A-BUCKET",
        terminal.paint(Style::Yellow, "stores on"),
        places.keys.display(),
        plant.data.join("reports").display(),
        places.workspace_keys.display(),
    ));
}

fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stop = stop.subscribe();
    // An error: the sender is gone, and so is the process.
    async move { drop(stop.wait_for(|stop| *stop).await) }
}

async fn ended(task: JoinHandle<std::io::Result<()>>) -> Result<(), Fault> {
    let ended = task.await.map_err(|error| Fault::failed("serve", error))?;
    ended.map_err(|error| Fault::failed("serve", error))
}
