//! The OpenAPI document against the API that is deployed. What its answers are is tried by `.ci/run`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    TEMPLATE,
    coherent::leads,
    template::{Stack, yaml},
};

const OPENAPI: &str = include_str!("../../infra/openapi.yaml");

#[test]
fn every_route_that_is_deployed_is_described_and_no_other() {
    let document = yaml(OPENAPI);
    let methods = ["get", "put", "post", "delete", "patch"];
    let paths = document["paths"].as_object().unwrap().iter();
    let described: Vec<_> = paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys().filter(|key| methods.contains(&key.as_str()));
            methods.map(move |method| (method.to_uppercase(), path))
        })
        .collect();
    let routes = Stack::new(TEMPLATE, &[]).of("AWS::ApiGatewayV2::Route");
    let deployed: Vec<_> = routes.values().map(|route| route["Properties"]["RouteKey"].as_str().unwrap()).collect();
    for (method, path) in &described {
        let ways: Vec<_> = deployed.iter().filter(|key| leads(key, method, path)).collect();
        assert_eq!(ways.len(), 1, "{method} {path}: {ways:?}");
    }
    for key in deployed {
        assert!(described.iter().any(|(method, path)| leads(key, method, path)), "{key} is not described");
    }
}

#[test]
fn what_it_refers_to_is_there() {
    let document = yaml(OPENAPI);
    let mut missing = Vec::new();
    let mut queue = vec![&document];
    while let Some(node) = queue.pop() {
        match node {
            Value::Object(entries) => {
                if let Some(Value::String(reference)) = entries.get("$ref")
                    && document.pointer(reference.trim_start_matches('#')).is_none()
                {
                    missing.push(reference.clone());
                }
                queue.extend(entries.values());
            }
            Value::Array(items) => queue.extend(items),
            _ => {}
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// A body that is sent today is one that the document allows: unknown fields are refused by both.
#[test]
fn bodies_have_the_fields_that_the_function_reads() {
    let schemas = yaml(OPENAPI)["components"]["schemas"].clone();
    let fields =
        |schema: &Value| -> BTreeSet<String> { schema["properties"].as_object().unwrap().keys().cloned().collect() };
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let refused = |told: String| told.split_once(", at line").unwrap().0.to_owned();
    let beat = heartbeat::body::read::<heartbeat::body::Beat>(b"{\"x\":1}").unwrap_err().0;
    assert!(refused(beat).ends_with("expected `busy_for`"));
    assert_eq!(fields(&schemas["Beat"]), set(&["busy_for"]));
    let saved = heartbeat::body::read::<heartbeat::body::Saved>(b"{\"x\":1}").unwrap_err().0;
    assert!(refused(saved).ends_with("expected one of `workspace`, `generation`, `age`"));
    assert_eq!(fields(&schemas["Saved"]), set(&["age", "generation", "workspace"]));
    let register = heartbeat::body::read::<heartbeat::body::Register>(b"{\"x\":1}").unwrap_err().0;
    assert!(refused(register).ends_with("expected `labels`"));
    assert_eq!(fields(&schemas["Register"]), set(&["labels"]));
    let batch = heartbeat::body::read::<heartbeat::body::Batch>(b"{\"heartbeats\":[{\"x\":1}]}").unwrap_err().0;
    assert!(refused(batch).ends_with("expected one of `runtime`, `token`, `busy_for`"));
    let item = &schemas["Batch"]["properties"]["heartbeats"];
    assert_eq!(fields(&item["items"]), set(&["busy_for", "runtime", "token"]));
    assert_eq!(item["maxItems"], json!(heartbeat::body::MAX_BATCH));
}
