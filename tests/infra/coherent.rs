//! What AWS's own tools can't see in the template: whether it means what the code means.

use std::{collections::BTreeSet, path::Path, time::Duration};

use heartbeat::route::{self, Route};
use ledger::{Ledger, Options};
use reconcile::Event;
use serde_json::{Value, json};
use settings::{
    Address,
    functions::{FUNCTIONS, Function, Need, RECONCILE, Resource},
    system::Variable,
};
use telemetry::metrics::{BACKEND, METRICS, NAMESPACE};

use super::{TEMPLATE, template::Stack};

/// The secrets that a configuration may name, in these tests.
const SECRET: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:notify-AbCdEf";

/// What AWS itself asks of a function's role: its log, and where failed ticks go.
fn platform(function: &Function) -> Vec<(String, String)> {
    let log = match function.name {
        "heartbeat" => "<HeartbeatLog.Arn>",
        "workspace" => "<WorkspaceLog.Arn>",
        _ => "<ReconcileLog.Arn>",
    };
    let mut rights = vec![("logs:CreateLogStream", log), ("logs:PutLogEvents", log)];
    if *function == RECONCILE {
        rights.push(("sqs:SendMessage", "<Failures.Arn>"));
    }
    rights.into_iter().map(|(action, on)| (action.to_owned(), on.to_owned())).collect()
}

/// Where a thing of the code stands in the template.
fn arn(resource: Resource) -> &'static str {
    match resource {
        Resource::Records => "<Records.Arn>",
        Resource::DueIndex => "<Records.Arn>/index/due",
        Resource::Actions => "<Actions.Arn>",
        Resource::Reports => "<Bucket.Arn>/reports/*",
        Resource::ConfigObject => "<Bucket.Arn>/furlough.toml",
        Resource::Keys => "<Keys.Id>",
        Resource::WorkspaceKeys => "<WorkspaceKeys.Id>",
        Resource::RuntimeRecords => "<Records.Arn> below runtime/*",
        Resource::WorkspaceRecords => "<Records.Arn> below workspace/*",
        Resource::WorkspaceObjects => "<Bucket.Arn>/workspaces/*",
        Resource::Bucket => "<Bucket.Arn>",
        Resource::ConfiguredSecrets => SECRET,
    }
}

fn value(variable: Variable) -> &'static str {
    match variable {
        Variable::Config => "s3://<Bucket>/furlough.toml",
        Variable::Reports => "s3://<Bucket>/reports",
        Variable::Table => "<Records>",
        Variable::ActionsTable => "<Actions>",
        Variable::Keys => "<Keys.Id>",
        Variable::WorkspaceKeys => "<WorkspaceKeys.Id>",
        Variable::Workspaces => "s3://<Bucket>",
        Variable::Origin => "<Api.ApiEndpoint>",
        Variable::Log => "info",
        other => panic!("no function reads {}", other.name()),
    }
}

/// What is wrong with a template, in one line each.
async fn faults(text: &str) -> Vec<String> {
    let chosen = [("ConfiguredSecrets", json!([SECRET])), ("HostAuthentication", json!("iam"))];
    let stack = Stack::new(text, &chosen);
    let mut faults = functions(&stack);
    faults.extend(safe(&stack));
    faults.extend(metrics(&stack));
    faults.extend(routes(&stack));
    faults.extend(tables(&stack).await);
    for every in stack.declared("Every")["AllowedValues"].as_array().unwrap() {
        for mode in ["report", "configured"] {
            let chosen = [("Every", every.clone()), ("Mode", json!(mode)), ("Backend", json!("e2b"))];
            faults.extend(schedules(&Stack::new(text, &chosen), mode));
        }
    }
    faults
}

fn differ(what: &str, found: &impl std::fmt::Debug, wanted: &impl std::fmt::Debug) -> String {
    format!("{what}: the template has {found:?}, the code {wanted:?}")
}

fn functions(stack: &Stack) -> Vec<String> {
    let found = stack.of("AWS::Serverless::Function");
    let binary = |function: &Value| function["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap_or("").to_owned();
    let names: BTreeSet<_> = found.values().map(binary).collect();
    let known: BTreeSet<_> = FUNCTIONS.iter().map(|function| function.name.to_owned()).collect();
    if names != known {
        return vec![differ("functions", &names, &known)];
    }
    let mut faults = Vec::new();
    for function in FUNCTIONS {
        let resource = found.values().find(|resource| binary(resource) == function.name).unwrap();
        faults.extend(built(stack, function, resource));
        faults.extend(environment(function, &resource["Properties"]["Environment"]["Variables"]));
        faults.extend(rights(stack, function, &resource["Properties"]["Role"]));
    }
    faults
}

fn built(stack: &Stack, function: &Function, resource: &Value) -> Vec<String> {
    let (mut faults, properties, globals) = (Vec::new(), &resource["Properties"], stack.globals());
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra")).join(properties["CodeUri"].as_str().unwrap());
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let package: toml::Table = manifest.parse().unwrap();
    if !package["bin"].as_array().unwrap().iter().any(|bin| bin["name"].as_str() == Some(function.name)) {
        faults.push(format!("{}: no such binary is built in its CodeUri", function.name));
    }
    let how = (&resource["Metadata"]["BuildMethod"], &globals["Runtime"], &globals["Handler"]);
    let wanted = (&json!("rust-cargolambda"), &json!("provided.al2023"), &json!("bootstrap"));
    if how != wanted {
        faults.push(differ("how a function is built", &how, &wanted));
    }
    let timeout = Duration::from_secs(properties["Timeout"].as_u64().unwrap_or(0));
    if *function == RECONCILE {
        let usual = settings::parse("", "the built-in policy").unwrap();
        faults.extend(reconcile::limits(&usual, timeout).err().map(|error| error.to_string()));
    }
    if *function != RECONCILE && timeout >= Duration::from_secs(30) {
        faults.push(format!("an HTTP API waits 30 s, the {} function longer", function.name));
    }
    if properties["ReservedConcurrentExecutions"].is_null() {
        faults.push(format!("{}: nothing bounds how many run at once", function.name));
    }
    faults
}

fn environment(function: &Function, found: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let found = found.as_object().unwrap();
    for used in function.variables {
        let name = used.variable.name();
        match found.get(name) {
            Some(set) if set == value(used.variable) => {}
            Some(set) => faults.push(differ(name, set, &value(used.variable))),
            None if used.need == Need::Required => faults.push(format!("{}: {name} is not set", function.name)),
            None => {}
        }
    }
    let read: BTreeSet<_> = function.variables.iter().map(|used| used.variable.name()).collect();
    let unread = found.keys().filter(|name| !read.contains(name.as_str()));
    faults.extend(unread.map(|name| format!("{}: {name} is set, and nothing reads it", function.name)));
    for name in ["FURLOUGH_CONFIG", "FURLOUGH_REPORTS"] {
        let address = found.get(name).and_then(Value::as_str).map(str::parse::<Address>);
        if matches!(address, Some(Err(_) | Ok(Address::File(_)))) {
            faults.push(format!("{}: {name} is no address of an object", function.name));
        }
    }
    faults
}

fn rights(stack: &Stack, function: &Function, role: &Value) -> Vec<String> {
    let roles = stack.of("AWS::IAM::Role");
    let role = roles.iter().find(|(name, _)| *role == format!("<{name}.Arn>"));
    let Some((_, role)) = role else { return vec![format!("{}: it has no role of its own", function.name)] };
    if !role["Properties"]["ManagedPolicyArns"].is_null() {
        return vec![format!("{}: a managed policy allows more than is needed", function.name)];
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let mut found = BTreeSet::new();
    for policy in role["Properties"]["Policies"].as_array().unwrap() {
        for statement in policy["PolicyDocument"]["Statement"].as_array().unwrap() {
            for action in list(&statement["Action"]) {
                for on in list(&statement["Resource"]) {
                    let on = on.as_str().unwrap().to_owned() + &below(statement);
                    found.insert((action.as_str().unwrap().to_owned(), on));
                }
            }
        }
    }
    let needed = function.permissions.iter().map(|right| (right.action.to_owned(), arn(right.on).to_owned()));
    let needed: BTreeSet<_> = needed.chain(platform(function)).collect();
    let more = found.difference(&needed).map(|right| format!("{}: it may {right:?} and need not", function.name));
    let less = needed.difference(&found).map(|right| format!("{}: it may not {right:?} and must", function.name));
    more.chain(less).collect()
}

/// The keys of a table that a right is bound to, as the end of what it is for.
fn below(statement: &Value) -> String {
    let condition = &statement["Condition"];
    if condition.is_null() {
        return String::new();
    }
    let keys = &condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    keys[0].as_str().map_or_else(|| format!(" if {condition}"), |keys| format!(" below {keys}"))
}

/// The tables against those that the ledger makes for itself where there is no template.
async fn tables(stack: &Stack) -> Vec<String> {
    let store = embedded::memory().unwrap();
    let ledger = Ledger::new(store.client(), Options::default());
    ledger.create_tables().await.unwrap();
    let asked = |operation: &str, table: &str| {
        let target = format!("DynamoDB_20120810.{operation}");
        let (status, told) = store.answer(&target, json!({ "TableName": table }).to_string().as_bytes());
        assert_eq!(status, 200, "{told}");
        serde_json::from_str::<Value>(&told).unwrap()
    };
    let usual = ledger::Tables::default();
    let mut faults = Vec::new();
    for (name, table) in [("Records", &usual.main), ("Actions", &usual.actions)] {
        let made = &asked("DescribeTable", table)["Table"];
        let expiry = &asked("DescribeTimeToLive", table)["TimeToLiveDescription"]["AttributeName"];
        let found = &stack.resources()[name]["Properties"];
        for part in ["KeySchema", "AttributeDefinitions"] {
            if sorted(&found[part]) != sorted(&made[part]) {
                faults.push(differ(&format!("{part} of {name}"), &found[part], &made[part]));
            }
        }
        let index = |index: &Value| {
            (index["IndexName"].clone(), sorted(&index["KeySchema"]), index["Projection"]["ProjectionType"].clone())
        };
        let indexes = |table: &Value| -> Vec<_> {
            table["GlobalSecondaryIndexes"].as_array().into_iter().flatten().map(index).collect()
        };
        if indexes(found) != indexes(made) {
            faults.push(differ(&format!("indexes of {name}"), &indexes(found), &indexes(made)));
        }
        let expires = &found["TimeToLiveSpecification"];
        if (&expires["AttributeName"], &expires["Enabled"]) != (expiry, &json!(true)) {
            faults.push(differ(&format!("expiry of {name}"), expires, expiry));
        }
        if found["BillingMode"] != "PAY_PER_REQUEST"
            || found["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] != true
        {
            faults.push(format!("{name} is not on demand, or can't be taken back to an earlier time"));
        }
    }
    faults
}

fn sorted(list: &Value) -> Vec<String> {
    let mut list: Vec<_> = list.as_array().into_iter().flatten().map(Value::to_string).collect();
    list.sort_unstable();
    list
}

/// Each backend has its schedule, and an alarm that waits three ticks of it for a pass.
fn schedules(stack: &Stack, mode: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let alarms = stack.of("AWS::CloudWatch::Alarm");
    let mut waiting: BTreeSet<_> = alarms
        .values()
        .filter(|alarm| alarm["Properties"]["MetricName"] == "PassCompleted")
        .map(Value::to_string)
        .collect();
    for (name, schedule) in stack.of("AWS::Scheduler::Schedule") {
        let properties = &schedule["Properties"];
        let Some(every) = seconds(properties["ScheduleExpression"].as_str().unwrap_or_default()) else {
            faults.push(format!("{name}: EventBridge takes no `{}`", properties["ScheduleExpression"]));
            continue;
        };
        let input = properties["Target"]["Input"].as_str().unwrap_or_default();
        let event = serde_json::from_str(input).map_err(|error| error.to_string());
        let event = event.and_then(|event| Event::read(event).map_err(|error| error.to_string()));
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let [backend] = &event.backends[..] else {
            faults.push(format!("{name}: a schedule is for one backend, so that no slow one holds up others"));
            continue;
        };
        if event.report_only != (mode == "report") {
            faults.push(format!("{name}: Mode is {mode}, and its event is {input}"));
        }
        let waits = |alarm: &&Value| {
            let alarm = &alarm["Properties"];
            alarm["Dimensions"] == json!([{ "Name": BACKEND, "Value": backend.as_str() }])
                && (&alarm["MetricName"], &alarm["Period"]) == (&json!("PassCompleted"), &json!(every))
                && (&alarm["EvaluationPeriods"], &alarm["TreatMissingData"]) == (&json!(3), &json!("breaching"))
        };
        match alarms.values().find(waits) {
            Some(alarm) => drop(waiting.remove(&alarm.to_string())),
            None => faults.push(format!("{name}: no alarm waits three of its ticks for a pass")),
        }
    }
    faults
        .extend(waiting.into_iter().map(|alarm| format!("no schedule makes the passes that this waits for: {alarm}")));
    faults
}

/// How often a rate comes. EventBridge refuses `rate(1 minutes)` and `rate(5 minute)`.
fn seconds(expression: &str) -> Option<u64> {
    let (number, unit) = expression.strip_prefix("rate(")?.strip_suffix(')')?.split_once(' ')?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let one = [("minute", 60), ("hour", 3_600), ("day", 86_400)].into_iter();
    let found = one.into_iter().find(|(name, _)| if number == 1 { *name == unit } else { unit == format!("{name}s") });
    found.map(|(_, seconds)| number * seconds)
}

/// Whatever waits for a metric of ours, or shows one, names one that the code writes.
fn metrics(stack: &Stack) -> Vec<String> {
    let known: BTreeSet<_> = METRICS.iter().map(|metric| metric.name()).collect();
    let mut faults = Vec::new();
    for (name, alarm) in stack.of("AWS::CloudWatch::Alarm") {
        let properties = &alarm["Properties"];
        let metric = properties["MetricName"].as_str().unwrap_or_default();
        let ours = properties["Namespace"] == NAMESPACE;
        if ours && !known.contains(metric)
            || !ours && !properties["Namespace"].as_str().unwrap_or_default().starts_with("AWS/")
        {
            faults.push(format!("{name}: nothing writes `{metric}`"));
        }
        if properties["AlarmActions"] != json!(["<Alarms>"]) {
            faults.push(format!("{name}: it tells nobody"));
        }
    }
    for (name, dashboard) in stack.of("AWS::CloudWatch::Dashboard") {
        let body: Value = match serde_json::from_str(dashboard["Properties"]["DashboardBody"].as_str().unwrap()) {
            Ok(body) => body,
            Err(error) => return vec![format!("{name}: {error}")],
        };
        let widgets = body["widgets"].as_array().unwrap().iter();
        let shown = widgets.flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap().clone());
        let ours = shown.filter(|metric| metric[0] == NAMESPACE).map(|metric| metric[1].as_str().unwrap().to_owned());
        let ours: BTreeSet<_> = ours.collect();
        faults.extend(
            ours.iter()
                .filter(|metric| !known.contains(metric.as_str()))
                .map(|metric| format!("{name}: nothing writes `{metric}`")),
        );
        let unseen = known.iter().filter(|metric| !ours.contains(**metric));
        faults.extend(unseen.map(|metric| format!("{name}: it does not show `{metric}`")));
    }
    faults
}

/// What the function is asked, as an HTTP API has decoded it: the slash of an id is one like any other.
const ASKED: [(&str, &str, &str); 7] = [
    ("register", "PUT", "/runtimes/docker/a/b"),
    ("heartbeat", "POST", "/runtimes/docker/a/b/heartbeat"),
    ("saved", "POST", "/runtimes/docker/a/b/saved"),
    ("batch", "POST", "/heartbeats"),
    ("events", "POST", "/hooks/openhands/docker/a/b/events/c"),
    ("conversation", "POST", "/hooks/openhands/docker/a/b/conversations"),
    ("health", "GET", "/health"),
];

/// The routes of the API against those that the functions read.
fn routes(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let workspaces = workspace_function::ASKED.iter().map(|(what, _)| format!("/workspaces/w/{what}"));
    let workspaces: Vec<_> = workspaces.collect();
    let deployed = stack.of("AWS::ApiGatewayV2::Route");
    let key = |route: &Value| route["Properties"]["RouteKey"].as_str().unwrap_or_default().to_owned();
    for (name, resource) in &deployed {
        let key = key(resource);
        let target = if ASKED.iter().any(|(_, method, path)| leads(&key, method, path)) {
            "integrations/<Integration>"
        } else if workspaces.iter().any(|path| leads(&key, "POST", path)) {
            "integrations/<WorkspaceIntegration>"
        } else {
            faults.push(format!("{name}: the function has no `{key}`"));
            continue;
        };
        if resource["Properties"]["Target"] != target {
            faults.push(format!("{name}: it leads to no function that reads it"));
        }
        let by_host = ["PUT /runtimes/", "/init", "/deinit"].iter().any(|part| key.contains(part));
        if by_host != (resource["Properties"]["AuthorizationType"] == "AWS_IAM") {
            faults.push(format!("{name}: who may ask is not as HostAuthentication says"));
        }
    }
    for path in &workspaces {
        if !deployed.values().any(|route| leads(&key(route), "POST", path)) {
            faults.push(format!("no route leads to `{path}`"));
        }
    }
    for (asked, method, path) in ASKED {
        assert_eq!(route::read(method, path).as_ref().map(told), Ok(asked));
        if !deployed.values().any(|route| leads(&key(route), method, path)) {
            faults.push(format!("no route leads to `{asked}`"));
        }
    }
    faults
}

/// Whether a route of an HTTP API takes a path: `{name}` is one segment, `{name+}` all that are left.
pub(super) fn leads(key: &str, method: &str, path: &str) -> bool {
    let Some((only, pattern)) = key.split_once(' ') else { return false };
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    only == method
        && loop {
            match (wanted.next(), found.next()) {
                (None, None) => break true,
                (Some(rest), Some(_)) if rest.ends_with("+}") => break wanted.next().is_none(),
                (Some(want), Some(have)) if want.starts_with('{') || want == have => {}
                _ => break false,
            }
        }
}

/// Fails to compile when the function has a further route, so that the template is thought of.
fn told(route: &Route) -> &'static str {
    match route {
        Route::Register(_) => "register",
        Route::Heartbeat(_) => "heartbeat",
        Route::Saved(_) => "saved",
        Route::Batch => "batch",
        Route::Events(_) => "events",
        Route::Conversation(_) => "conversation",
        Route::Health => "health",
    }
}

/// What must outlive a mistake, and what nobody else may read.
fn safe(stack: &Stack) -> Vec<String> {
    let (mut faults, resources) = (Vec::new(), stack.resources());
    for name in ["Records", "Actions", "Bucket", "Keys", "WorkspaceKeys"] {
        let kept = (&resources[name]["DeletionPolicy"], &resources[name]["UpdateReplacePolicy"]);
        if kept != (&json!("Retain"), &json!("Retain")) {
            faults.push(format!("{name} goes when the stack goes"));
        }
    }
    let bucket = &resources["Bucket"]["Properties"];
    let closed = ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"];
    if !closed.iter().all(|way| bucket["PublicAccessBlockConfiguration"][way] == true) {
        faults.push("the bucket can be made public".to_owned());
    }
    if bucket["VersioningConfiguration"]["Status"] != "Enabled" {
        faults.push("the bucket keeps no versions".to_owned());
    }
    let policy = &resources["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"][0];
    let only_tls = policy["Effect"] == "Deny" && policy["Condition"]["Bool"]["aws:SecureTransport"] == "false";
    if !only_tls || policy["Resource"] != json!(["<Bucket.Arn>", "<Bucket.Arn>/*"]) {
        faults.push("the bucket answers without TLS".to_owned());
    }
    let logs = stack.of("AWS::Logs::LogGroup");
    let kept_for_ever = logs.iter().filter(|(_, log)| log["Properties"]["RetentionInDays"].is_null());
    faults.extend(kept_for_ever.map(|(name, _)| format!("{name} is kept for ever")));
    if stack.declared("Mode")["Default"] != "report" {
        faults.push("a first deployment acts".to_owned());
    }
    faults
}

#[tokio::test]
async fn the_template_means_what_the_code_means() {
    assert_eq!(faults(TEMPLATE).await, Vec::<String>::new());
}

/// Single faults, each of which would be deployed and found later: what is replaced, by what, and what is told.
const PLANTED: &[(&str, &str, &str)] = &[
    // Three that cfn-lint passes on the transformed template too.
    ("{ AttributeName: due_at, KeyType: RANGE }", "{ AttributeName: due_at, KeyType: RNGE }", "indexes of Records"),
    ("{ AttributeName: sk, KeyType: RANGE }", "{ AttributeName: sk, KeyType: RANGE, Kind: S }", "KeySchema of Records"),
    ("Schedule: rate(1 minute),", "Schedule: rate(1 minutes),", "EventBridge takes no"),
    ("Schedule: rate(5 minutes),", "Schedule: rate(10 minutes),", "no alarm waits three of its ticks"),
    ("IndexName: due", "IndexName: dues", "indexes of Records"),
    ("ProjectionType: KEYS_ONLY", "ProjectionType: ALL", "indexes of Records"),
    ("AttributeName: act, KeyType", "AttributeName: at, KeyType", "KeySchema of Actions"),
    ("AttributeName: expires_at", "AttributeName: expires", "expiry of Records"),
    ("Binary: heartbeat", "Binary: heartbeats", "functions"),
    ("CodeUri: ../functions/heartbeat", "CodeUri: ../functions/reconcile", "no such binary"),
    ("FURLOUGH_KEYS: !GetAtt Keys.Id", "FURLOUGH_KEY: !GetAtt Keys.Id", "FURLOUGH_KEYS is not set"),
    ("FURLOUGH_TABLE: !Ref Records", "FURLOUGH_TABLE: !Ref Actions", "FURLOUGH_TABLE"),
    ("FURLOUGH_REPORTS: !Sub s3://${Bucket}/reports", "FURLOUGH_REPORTS: !Sub ${Bucket}/reports", "FURLOUGH_REPORTS"),
    ("dynamodb:Scan, ", "", "it may not (\"dynamodb:Scan\""),
    (
        "Action: dynamodb:UpdateItem, Resource: !GetAtt Records.Arn",
        "Action: dynamodb:*, Resource: !GetAtt Records.Arn",
        "and need not",
    ),
    ("\"${Bucket.Arn}/reports/*\"", "\"${Bucket.Arn}/*\"", "and need not"),
    ("\"${Records.Arn}/index/due\"", "\"${Records.Arn}/index/*\"", "and need not"),
    ("Timeout: 300", "Timeout: 60", "raise the function's timeout"),
    ("Timeout: 25", "Timeout: 60", "waits 30 s"),
    ("MetricName: PassFailed", "MetricName: PassesFailed", "nothing writes `PassesFailed`"),
    ("[\"Furlough\", \"ActsUnknown\"]", "[\"Furlough\", \"ActsUnkown\"]", "nothing writes `ActsUnkown`"),
    ("Dimensions: [{ Name: Backend, Value: !Ref Backend }]", "Dimensions: []", "no alarm waits three of its ticks"),
    ("'{\"backend\":\"${Backend}\"}'", "'{\"backends\":\"${Backend}\"}'", "the event is none of ours"),
    ("'{\"mode\":\"report\",\"backend\":\"${Backend}\"}'", "'{\"backend\":\"${Backend}\"}'", "Mode is report"),
    ("RouteKey: POST /heartbeats", "RouteKey: PUT /heartbeats", "the function has no"),
    ("POST /workspaces/{name}/parts", "POST /workspaces/{name}/part", "no route leads to `/workspaces/w/parts`"),
    (
        "Target: !Sub integrations/${WorkspaceIntegration}",
        "Target: !Sub integrations/${Integration}",
        "leads to no function",
    ),
    (
        "RouteKey: POST /workspaces/{name}/init\n      AuthorizationType: !If [ByIam, AWS_IAM, NONE]",
        "RouteKey: POST /workspaces/{name}/init",
        "not as HostAuthentication says",
    ),
    ("dynamodb:LeadingKeys: [\"runtime/*\"]", "dynamodb:LeadingKeys: [\"*\"]", "and need not"),
    ("dynamodb:LeadingKeys: [\"workspace/*\"]", "dynamodb:LeadingKeys: [\"*\"]", "and need not"),
    ("\"${Bucket.Arn}/workspaces/*\"", "\"${Bucket.Arn}/*\"", "and need not"),
    ("FURLOUGH_ORIGIN: !GetAtt Api.ApiEndpoint", "FURLOUGH_ORIGIN: !Ref Api", "FURLOUGH_ORIGIN"),
    ("Timeout: 29", "Timeout: 30", "the workspace function longer"),
    ("PUT /runtimes/{runtime+}", "PUT /runtimes/{backend}/{id}", "no route leads to `register`"),
    ("RouteKey: GET /health", "RouteKey: POST /heartbeats", "no route leads to `health`"),
    ("aws:SecureTransport: \"false\"", "aws:SecureTransport: \"true\"", "without TLS"),
    ("RestrictPublicBuckets: true", "RestrictPublicBuckets: false", "made public"),
    ("Default: report", "Default: configured", "a first deployment acts"),
];

#[tokio::test]
async fn a_planted_fault_is_told() {
    let mut missed = Vec::new();
    for (old, new, told) in PLANTED {
        assert!(TEMPLATE.contains(old), "{old}");
        let faults = faults(&TEMPLATE.replacen(old, new, 1)).await;
        if !faults.iter().any(|fault| fault.contains(told)) {
            missed.push(format!("{new}: {faults:?}"));
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}
