//! The heartbeat function.

use std::collections::BTreeSet;

use lifecycle::RuntimeId;
use serde_json::{Value, json};

use super::cloud::{Answered, BUCKET, Cloud, Function};
use crate::ledger::fixture::committed;

const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:furlough/keys-AbCdEf";
const HOST: &str = "the token of a host of every backend";
const CONFIG: &str = "[[backend]]\nname = \"box\"\nkind = \"docker\"\nscope.labels = { a = \"b\" }\n";

/// An event as an HTTP API sends it (payload format 2.0), with the principal that it authenticated, if it did.
pub(super) fn event(method: &str, path: &str, token: Option<&str>, body: Option<&str>, iam: Option<&str>) -> Value {
    let mut event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": { "content-type": "application/json", "host": "id.execute-api.eu-central-1.amazonaws.com" },
        "requestContext": {
            "accountId": "123456789012", "apiId": "id", "domainName": "id.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "id", "requestId": "id", "routeKey": "$default", "stage": "$default",
            "time": "30/Nov/2026:20:00:00 +0000", "timeEpoch": 1_796_068_800_000_i64,
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test" },
        },
        "isBase64Encoded": false,
    });
    if let Some(token) = token {
        event["headers"]["authorization"] = format!("Bearer {token}").into();
    }
    if let Some(body) = body {
        event["body"] = body.into();
    }
    if let Some(arn) = iam {
        event["requestContext"]["authorizer"] = json!({ "iam": {
            "accessKey": "AKIA", "accountId": "123456789012", "callerId": "AIDA", "cognitoIdentity": null,
            "principalOrgId": null, "userArn": arn, "userId": "AIDA",
        } });
    }
    event
}

/// The status and the body of an answer.
pub(super) async fn ask(function: &mut Function, event: Value) -> (u64, Value) {
    let Answered::Response(answer) = function.invoke(event).await else { panic!("{}", function.log()) };
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    (answer["statusCode"].as_u64().unwrap(), body)
}

fn keys() -> String {
    let digest = heartbeat::keys::digest(HOST);
    let host = json!({ "name": "all", "token_sha256": digest, "backends": ["*"] });
    json!({ "runtime_keys": ["a key of the runtimes that is long enough"], "hosts": [host] }).to_string()
}

async fn started(cloud: &Cloud) -> Function {
    let config = format!("s3://{BUCKET}/conf/furlough.toml");
    cloud.start("heartbeat", &[("FURLOUGH_CONFIG", &config), ("FURLOUGH_KEYS", ARN)]).await
}

#[tokio::test]
async fn it_registers_and_records_with_its_configuration_in_s3_and_its_keys_in_secrets_manager() {
    let cloud = Cloud::new().await;
    cloud.put("conf/furlough.toml", CONFIG);
    cloud.secret(ARN, &keys());
    let mut function = started(&cloud).await;
    let (status, told) = ask(&mut function, event("PUT", "/runtimes/box/a", Some(HOST), None, None)).await;
    assert_eq!((status, &told["code"]), (200, &json!("registered")), "{}", function.log());
    let token = told["token"].as_str().unwrap().to_owned();
    let beat = event("POST", "/runtimes/box/a/heartbeat", Some(&token), Some(r#"{"busy_for":"10m"}"#), None);
    let (status, told) = ask(&mut function, beat).await;
    assert_eq!((status, &told["code"]), (200, &json!("recorded")));
    let id: RuntimeId = "box/a".parse().unwrap();
    let record = cloud.ledger.get(&id).await.unwrap().unwrap();
    assert_eq!(record.epoch, 1);
    assert!(record.busy_until.is_some());
    committed(&cloud.ledger, "ada", 1).await;
    let save = r#"{"workspace":"ada","generation":1,"age":"1s"}"#;
    let saved = event("POST", "/runtimes/box/a/saved", Some(&token), Some(save), None);
    let (status, told) = ask(&mut function, saved).await;
    assert_eq!((status, &told["code"]), (200, &json!("saved")));
    assert!(cloud.ledger.get(&id).await.unwrap().unwrap().saved_as_of.is_some());
    let (status, _) = ask(&mut function, event("POST", "/runtimes/box/a/heartbeat", Some("wrong"), None, None)).await;
    assert_eq!(status, 401);
    // An id with a slash, as a gateway that decodes paths hands it over.
    let (status, _) = ask(&mut function, event("PUT", "/runtimes/box/3c9e/shop", Some(HOST), None, None)).await;
    assert_eq!(status, 200);
    assert!(cloud.ledger.get(&"box/3c9e%2Fshop".parse().unwrap()).await.unwrap().is_some());

    let rights = settings::functions::HEARTBEAT.permissions;
    let rights: BTreeSet<_> = rights.iter().map(|right| right.action.to_owned()).collect();
    let asked: BTreeSet<_> = cloud.asked().into_iter().collect();
    assert_eq!(asked, rights, "what it asks for is what it has a right to, and no more");

    let log = function.log();
    for secret in [HOST, token.as_str(), "a key of the runtimes"] {
        assert!(!log.contains(secret), "{log}");
    }
    let metrics = function.metrics();
    let counted = metrics.iter().flat_map(|line| line.as_object().unwrap().keys());
    assert!(counted.into_iter().any(|name| name == "Registrations"), "{log}");
}

#[tokio::test]
async fn whom_the_gateway_authenticated_by_iam_registers_without_a_token() {
    let cloud = Cloud::new().await;
    cloud.put("conf/furlough.toml", CONFIG);
    cloud.secret(ARN, &keys());
    let mut function = started(&cloud).await;
    let role = "arn:aws:sts::123456789012:assumed-role/host/session";
    let (status, _) = ask(&mut function, event("PUT", "/runtimes/box/a", None, None, Some(role))).await;
    assert_eq!(status, 200);
    let (status, _) = ask(&mut function, event("PUT", "/runtimes/box/b", None, None, None)).await;
    assert_eq!(status, 401);
}

#[tokio::test]
async fn without_a_configuration_or_keys_it_acknowledges_nothing_and_an_alarm_hears_of_it() {
    let cloud = Cloud::new().await;
    cloud.secret(ARN, &keys());
    let mut function = started(&cloud).await;
    let (status, told) = ask(&mut function, event("PUT", "/runtimes/box/a", Some(HOST), None, None)).await;
    assert_eq!((status, &told["code"]), (503, &json!("unavailable")));
    assert!(function.metrics().iter().any(|line| line["ConfigFault"] == json!(1.0)), "{}", function.log());
    cloud.put("conf/furlough.toml", CONFIG);
    let (status, _) = ask(&mut function, event("PUT", "/runtimes/box/a", Some(HOST), None, None)).await;
    assert_eq!(status, 200, "as soon as it is there");
}
