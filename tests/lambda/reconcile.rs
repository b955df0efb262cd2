//! The reconcile function, on an engine that behaves.

use std::{collections::BTreeSet, time::Duration};

use pass::notify::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use serde_json::{Value, json};
use settings::system;

use super::cloud::{Answered, BUCKET, Cloud, Function, receiver};
use crate::{
    docker::stub::{Engine, sandbox},
    simulators::{
        Server,
        daytona::{Daytona, KEY},
    },
};

const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:furlough/notify-AbCdEf";

/// Suspends what has run for more than a minute.
fn config(engine: &Engine, mode: &str) -> String {
    format!(
        "mode = \"{mode}\"\n\
         [[backend]]\nname = \"box\"\nkind = \"docker\"\nhost = \"unix://{}\"\nopenhands = true\nstop_grace = \"1s\"\n\
         [[policy]]\nname = \"all\"\nlifetime.max = \"1m\"\n\
         [budget]\nsuspend = {{ max = \"100%\", min = 10, per = \"1h\" }}\n",
        engine.socket().display()
    )
}

/// A sandbox that has run for two hours.
fn old() -> Value {
    let mut container = sandbox("running");
    container["State"]["StartedAt"] = system::now().minus(Duration::from_hours(2)).to_string().into();
    container
}

async fn started(cloud: &Cloud) -> Function {
    let (config, reports) = (format!("s3://{BUCKET}/furlough.toml"), format!("s3://{BUCKET}/reports"));
    cloud.start("reconcile", &[("FURLOUGH_CONFIG", &config), ("FURLOUGH_REPORTS", &reports)]).await
}

async fn summary(function: &mut Function, event: Value) -> Value {
    match function.invoke(event).await {
        Answered::Response(summary) => summary,
        Answered::Error(error) => panic!("{error}\n{}", function.log()),
    }
}

async fn error(function: &mut Function, event: Value) -> String {
    match function.invoke(event).await {
        Answered::Error(error) => error["errorMessage"].as_str().unwrap().to_owned(),
        Answered::Response(summary) => panic!("{summary}\n{}", function.log()),
    }
}

#[tokio::test]
async fn by_hand_a_tick_only_reports_whatever_the_configuration_says() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([old()]);
    cloud.put("furlough.toml", &config(&engine, "enforce"));
    let mut function = started(&cloud).await;
    let told = summary(&mut function, json!({ "mode": "report", "backends": ["box"] })).await;
    assert_eq!(engine.changes(), Vec::<String>::new());
    assert_eq!((&told["backends"][0]["ended"], &told["backends"][0]["acts"]["left"]), (&json!("completed"), &json!(1)));
}

#[tokio::test]
async fn a_tick_suspends_what_is_over_its_limit_and_reports_it() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([old()]);
    cloud.put("furlough.toml", &config(&engine, "enforce"));
    let mut function = started(&cloud).await;
    let told = summary(&mut function, json!({ "backend": "box" })).await;
    assert_eq!(engine.status(1).as_deref(), Some("exited"), "{told}\n{}", function.log());
    assert_eq!((&told["backends"][0]["ended"], &told["backends"][0]["acts"]["done"]), (&json!("completed"), &json!(1)));

    let reports = cloud.objects("reports/");
    let [(key, body)] = &reports[..] else { panic!("{reports:?}") };
    assert!(told["report"].as_str().unwrap().ends_with(key.as_str()));
    let report: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(report["entries"][0]["fate"], json!("done"));

    let metrics = function.metrics();
    let [line] = &metrics[..] else { panic!("{metrics:?}") };
    let counted = |name: &str| line[name].as_f64();
    assert_eq!(
        (counted("PassCompleted"), counted("PassFailed"), counted("ActsDone")),
        (Some(1.0), Some(0.0), Some(1.0))
    );

    let rights: BTreeSet<_> = settings::functions::RECONCILE.permissions.iter().map(|right| right.action).collect();
    let asked = cloud.asked();
    let without: Vec<_> = asked.iter().filter(|call| !rights.contains(call.as_str())).collect();
    assert_eq!(without, Vec::<&String>::new(), "it asks for nothing that it has no right to");
}

#[tokio::test]
async fn what_is_told_is_signed_with_a_secret_that_is_asked_for_once() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([old()]);
    let (url, mut notices) = receiver().await;
    let notify = format!("[notify]\nurl = \"{url}\"\nsecret.arn = \"{ARN}\"\n");
    cloud.put("furlough.toml", &(config(&engine, "enforce") + &notify));
    let mut function = started(&cloud).await;
    let told = error(&mut function, json!({ "backend": "box" })).await;
    assert_eq!(told, format!("`notify.secret`: can't read `{ARN}`: ResourceNotFoundException: no such secret"));
    assert_eq!(engine.calls(), Vec::<String>::new(), "nothing is done that nobody could be told of");
    assert!(function.metrics().iter().any(|line| line["ConfigFault"] == json!(1.0)));

    cloud.secret(ARN, "hush, this signs");
    cloud.asked();
    summary(&mut function, json!({ "backend": "box" })).await;
    summary(&mut function, json!({ "backend": "box" })).await;
    let (headers, body) = notices.try_recv().expect("the act is told");
    let stamp = headers[TIMESTAMP_HEADER].to_str().unwrap();
    let signed = format!("sha256={}", sign(b"hush, this signs", stamp, &body));
    assert_eq!(headers[SIGNATURE_HEADER].to_str().unwrap(), signed);
    let asked = cloud.asked().into_iter().filter(|call| call == "secretsmanager:GetSecretValue").count();
    assert_eq!(asked, 1, "of two ticks of one environment");
    assert!(!function.log().contains("hush"), "{}", function.log());
}

#[tokio::test]
async fn a_providers_key_is_a_secret_of_secrets_manager_and_is_in_no_log() {
    let cloud = Cloud::new().await;
    let provider = Server::start(Daytona::default(), system::now).await;
    provider.state().add("idle", system::now(), |_| {});
    cloud.put(
        "furlough.toml",
        &format!(
            "[[backend]]\nname = \"boxes\"\nkind = \"daytona\"\nurl = \"{}/api\"\napi_key.arn = \"{ARN}\"\n\
             scope.labels = {{ team = \"a\" }}\n[[policy]]\nname = \"all\"\nidle.after = \"30m\"\n",
            provider.address()
        ),
    );
    let mut function = started(&cloud).await;
    let told = error(&mut function, json!({ "backend": "boxes" })).await;
    let missing = format!("can't read `{ARN}`: ResourceNotFoundException: no such secret");
    assert_eq!(told, format!("backend `boxes`: `api_key`: {missing}"));
    cloud.secret(ARN, KEY);
    let told = summary(&mut function, json!({ "backend": "boxes" })).await;
    assert_eq!(told["backends"][0]["ended"], json!("completed"), "{told}\n{}", function.log());
    assert!(!provider.calls().is_empty());
    assert!(!function.log().contains(KEY), "{}", function.log());
}

#[tokio::test]
async fn a_backend_that_can_t_be_asked_fails_the_invocation_and_the_report_is_there() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([]);
    let gone = config(&engine, "enforce").replace("/s\"", "/none\"");
    cloud.put("furlough.toml", &gone);
    let mut function = started(&cloud).await;
    let told = error(&mut function, json!({ "backend": "box" })).await;
    assert!(told.starts_with("the pass failed for `box`: "), "{told}");
    assert_eq!(cloud.objects("reports/").len(), 1);
    let metrics = function.metrics();
    assert!(metrics.iter().any(|line| line["PassFailed"] == json!(1.0)), "{metrics:?}");
}

#[tokio::test]
async fn what_it_can_t_do_is_told_before_anything_is_begun() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([old()]);
    cloud.put("furlough.toml", &config(&engine, "enforce"));
    let mut function = started(&cloud).await;
    let told = error(&mut function, json!({ "backend": "bx" })).await;
    assert_eq!(told, "no backend is called `bx` in the configuration");
    let told = error(&mut function, json!({ "mode": "enforce" })).await;
    assert!(told.starts_with("the event is none of ours: unknown variant `enforce`"), "{told}");
    function.time(Duration::from_secs(20));
    let told = error(&mut function, json!({})).await;
    assert!(told.contains("raise the function's timeout"), "{told}");
    assert_eq!(engine.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn of_two_ticks_at_once_one_has_the_backend() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([old()]);
    cloud.put("furlough.toml", &config(&engine, "enforce"));
    let now = system::now();
    let until = now.plus(Duration::from_mins(1));
    let lease = cloud.ledger.lease_unit(&"box".parse().unwrap(), "another", until, now).await.unwrap();
    assert!(matches!(lease, ledger::Leased::Won { .. }));
    let mut function = started(&cloud).await;
    let told = summary(&mut function, json!({ "backend": "box" })).await;
    assert_eq!(told["backends"][0]["ended"], json!("busy"));
    assert_eq!(engine.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_bad_new_configuration_keeps_the_last_good_one_and_is_counted() {
    let cloud = Cloud::new().await;
    let engine = Engine::with([]);
    let mut function = started(&cloud).await;
    cloud.put("furlough.toml", "mode = \"enfroce\"\n");
    let told = error(&mut function, json!({})).await;
    assert!(told.contains("enforce"), "the fault names the nearest right word: {told}");
    assert!(function.metrics().iter().any(|line| line["ConfigFault"] == json!(1.0)));
    cloud.put("furlough.toml", &config(&engine, "enforce"));
    let told = summary(&mut function, json!({})).await;
    assert_eq!(told["backends"][0]["ended"], json!("completed"), "{}", function.log());
}
