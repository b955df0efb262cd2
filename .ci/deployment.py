"""Deploys the template with release binaries where no AWS account is, and uses it.

    .ci/engine docker -- .ci/ministack FOLDER PYTHON .ci/deployment.py BINARIES

BINARIES: the folder of `heartbeat`, `reconcile` and `workspace`. PYTHON has aws-sam-cli, for its transform, boto3 and AWS's own
runtime emulator. Shown: every resource of the transformed template is created; a runtime is registered and sends a
heartbeat through the HTTP API; a tick of the schedule stops a real container, tells a receiver under a signature whose
secret is in Secrets Manager, and leaves a report; a workspace is brought to whoever stands where a sidecar would, who
writes, reads and commits an object with nothing but what it was told; each binary answers under the runtime emulator. Not shown: IAM, alarms, throttling and quotas, which ministack does not enforce.
"""

import hashlib
import hmac
import http.server
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile

import boto3
import samcli

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENDPOINT = os.environ["FURLOUGH_TEST_DYNAMODB"]
HOST = "the token of a host of every backend"
AWS = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
FUNCTIONS = {"Heartbeat": "heartbeat", "Reconcile": "reconcile", "Workspace": "workspace"}
SIGNS = "what notices are signed with"


def client(service):
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=ENDPOINT, region_name=AWS["AWS_REGION"], **keys)


def ask(url, method="GET", body=None, token=None, host=None):
    """The status and the JSON of an answer."""
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Host": host} if host else {}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def until(what, look, seconds):
    """Looks again and again, and fails after so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(1)
    sys.exit(f"{what}: not within {seconds} s")


def zipped(binary):
    """A function's package: its binary as `bootstrap`, executable."""
    info = zipfile.ZipInfo("bootstrap")
    info.external_attr = 0o755 << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(info, binary.read_bytes())
    return packed.getvalue()


def deployed(binaries, secret):
    """Creates the stack. Its outputs."""
    s3 = client("s3")
    s3.create_bucket(Bucket="code", CreateBucketConfiguration={"LocationConstraint": AWS["AWS_REGION"]})
    for name, binary in FUNCTIONS.items():
        package = zipped(binaries / binary)
        print(f"{binary}.zip: {len(package) / 1e6:.2f} MB")
        s3.put_object(Bucket="code", Key=f"{binary}.zip", Body=package)
    zips = [f"{name}=s3://code/{binary}.zip" for name, binary in FUNCTIONS.items()]
    transform = [sys.executable, ROOT / ".ci/transform.py", ROOT / "infra/template.yaml", *zips]
    template = subprocess.run(transform, check=True, capture_output=True, text=True).stdout
    stacks, chosen = client("cloudformation"), {"Every": "1", "Mode": "configured", "ConfiguredSecrets": secret}
    parameters = [{"ParameterKey": name, "ParameterValue": value} for name, value in chosen.items()]
    stacks.create_stack(StackName="furlough", TemplateBody=template, Parameters=parameters, Capabilities=["CAPABILITY_IAM"])

    def ended():
        stack = stacks.describe_stacks(StackName="furlough")["Stacks"][0]
        return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack

    stack = until("the stack", ended, 120)
    resources = stacks.describe_stack_resources(StackName="furlough")["StackResources"]
    if stack["StackStatus"] != "CREATE_COMPLETE":
        events = stacks.describe_stack_events(StackName="furlough")["StackEvents"]
        sys.exit("\n".join(f"{e['LogicalResourceId']}: {e.get('ResourceStatusReason')}" for e in events))
    absent = {"AlarmSubscription"}  # its condition, an address, does not hold
    missing = json.loads(template)["Resources"].keys() - absent - {r["LogicalResourceId"] for r in resources}
    assert not missing, f"not created: {missing}"
    print(f"created: {len(resources)} resources")
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def container():
    """A real container that runs and is Furlough's; its id."""
    docker = ["docker", "--host", os.environ["FURLOUGH_TEST_DOCKER"]]
    run = [*docker, "run", "--detach", "--network=none", "--label=managed-by=furlough", os.environ["FURLOUGH_TEST_IMAGE"]]
    started = subprocess.run([*run, "/bin/sleep", "3600"], check=True, capture_output=True, text=True)
    return started.stdout.strip()


def status(id):
    docker = ["docker", "--host", os.environ["FURLOUGH_TEST_DOCKER"], "inspect", "--format={{.State.Status}}", id]
    return subprocess.run(docker, check=True, capture_output=True, text=True).stdout.strip()


class Receiver(http.server.HTTPServer):
    """Takes notices on this machine."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Notice)
        self.notices = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Notice(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.notices.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def configuration(receiver, secret):
    """Stops what has run for a second, in real earnest."""
    return f"""
mode = "enforce"
[notify]
url = "http://127.0.0.1:{receiver.server_port}/"
secret.arn = "{secret}"
[[backend]]
name = "docker"
kind = "docker"
host = "{os.environ["FURLOUGH_TEST_DOCKER"]}"
scope.labels = {{ managed-by = "furlough" }}
stop_grace = "1s"
[[policy]]
name = "all"
lifetime.max = "1s"
[budget]
suspend = {{ max = "100%", min = 10, per = "1h" }}
"""


def heartbeats(outputs, id):
    """One life of a runtime, through the API."""
    api = api_of(outputs)
    path = f"{ENDPOINT}/runtimes/docker/{id}"
    code, told = ask(path, "PUT", {}, "not a token", api)
    # Not 503: the key that the stack has made can be used as it is.
    assert (code, told["code"]) == (401, "unauthorized"), (code, told)
    secrets, keys = client("secretsmanager"), outputs["Keys"]
    document = json.loads(secrets.get_secret_value(SecretId=keys)["SecretString"])
    digest = hashlib.sha256(HOST.encode()).hexdigest()
    document["hosts"] = [{"name": "ada", "token_sha256": digest, "backends": ["*"]}]
    secrets.put_secret_value(SecretId=keys, SecretString=json.dumps(document))

    def registered():
        code, told = ask(path, "PUT", {"labels": {"team": "a"}}, HOST, api)
        return told["token"] if code == 200 else None

    token = until("a registration under a new host's token", registered, 60)
    code, told = ask(f"{path}/heartbeat", "POST", {}, token, api)
    assert (code, told["code"]) in [(200, "recorded"), (200, "coalesced")], (code, told)
    key = {"pk": {"S": f"runtime/docker/{id}"}, "sk": {"S": "record"}}
    record = client("dynamodb").get_item(TableName=outputs["Records"], Key=key)["Item"]
    assert record["ep"]["N"] == "1", record  # its epoch: the first registration
    code, _ = ask(f"{path}/heartbeat", "POST", {}, token[:-1] + ("0" if token[-1] != "0" else "1"), api)
    assert code == 401, code
    code, told = ask(f"{ENDPOINT}/runtimes/docker/shop%2Fa%20b", "PUT", {}, HOST, api)
    assert code == 200, (code, told)
    key["pk"]["S"] = "runtime/docker/shop%2Fa%20b"
    assert "Item" in client("dynamodb").get_item(TableName=outputs["Records"], Key=key)
    print("through the API: registered, recorded; a wrong token: 401; an id with a slash and a space is one id")


def api_of(outputs):
    """The name by which ministack knows the API."""
    host = outputs["Url"].split("//")[1].split("/")[0]
    return f"{host.split('.')[0]}.execute-api.localhost:{ENDPOINT.rsplit(':', 1)[1]}"


class Sidecar(http.server.BaseHTTPRequestHandler):
    """Whoever stands where a sidecar would: keeps what it is told."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.deliveries.append((self.headers["X-Init-API-Key"], json.loads(body)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"state": "ready", "error": null}')

    def log_message(self, *_):
        pass


def sent(request, method, body=None):
    """Sends a signed request as it is."""
    headers = {name: value for name, value in request["headers"] if name.lower() not in ["host", "content-length"]}
    with urllib.request.urlopen(urllib.request.Request(request["url"], body, headers, method=method), timeout=60) as answer:
        return answer.read()


def workspaces(outputs):
    """A new workspace's way to a sandbox, and a generation of it."""
    api, secrets, keys = api_of(outputs), client("secretsmanager"), outputs["WorkspaceKeys"]
    document = json.loads(secrets.get_secret_value(SecretId=keys)["SecretString"])
    document["hosts"] = [{"name": "ada", "token_sha256": hashlib.sha256(HOST.encode()).hexdigest()}]
    secrets.put_secret_value(SecretId=keys, SecretString=json.dumps(document))
    sidecar = http.server.HTTPServer(("127.0.0.1", 0), Sidecar)
    sidecar.deliveries = []
    threading.Thread(target=sidecar.serve_forever, daemon=True).start()
    init = {
        "sidecar": f"http://127.0.0.1:{sidecar.server_port}", "init_key": "a bootstrap key", "owner": "sandbox-1",
        "roots": {"project": "/workspace/project"}, "agent": {"session_api_keys": ["a key"]},
    }
    url = f"{ENDPOINT}/workspaces/w"
    code, told = until("a workspace's init", lambda: (told := ask(f"{url}/init", "POST", init, HOST, api))[0] != 401 and told, 60)
    assert (code, told["state"]) == (200, "ready"), (code, told)
    key, delivery = sidecar.deliveries[-1]
    assert key == "a bootstrap key" and len(delivery["agent"]["secret_key"]) == 64, delivery
    token, lease = delivery["token"], delivery["lease"]
    manifest = f"workspaces/w/manifests/00000001-{lease['token']:014}-00000000000000ab.json"
    body = b"what a manifest would be"
    code, told = ask(f"{url}/parts", "POST", {"put": {"key": manifest, "bytes": len(body)}}, token, api)
    assert code == 200, (code, told)
    sent(told["signed"][0], "PUT", body)
    code, told = ask(f"{url}/parts", "POST", {"get": {"key": manifest}}, token, api)
    assert sent(told["signed"][0], "GET") == body, (code, told)
    code, told = ask(f"{url}/lease", "POST", {"lease": lease, "ttl_ms": 60_000}, token, api)
    assert code == 200 and "until_ms" in told, (code, told)
    head = {"manifest": manifest, "blake3": "00" * 32, "generation": 1, "as_of_ms": 1, "bytes": len(body)}
    commit = {"commit": {"lease": lease, "replaces": 0, "head": head, "release": True}}
    for _ in range(2):
        code, told = ask(f"{url}/commit", "POST", commit, token, api)
        assert (code, told) == (200, "done"), (code, told)
    kept = client("s3").list_objects_v2(Bucket=outputs["Bucket"], Prefix="workspaces/w/")["Contents"]
    assert {entry["Key"] for entry in kept} == {manifest, "workspaces/w/secret-key"}, kept
    print("through the API: a workspace at a sandbox, an object written and read by signed requests, a generation committed")


def ticked(outputs, id, receiver):
    """What the schedule's own tick has done."""
    until("a tick that stops the container", lambda: status(id) == "exited", 180)
    headers, body = until("a notice of it", lambda: receiver.notices and receiver.notices[0], 30)
    signed = headers["X-Furlough-Timestamp"].encode() + b"." + body
    code = hmac.new(SIGNS.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Furlough-Signature"] == f"sha256={code}", headers
    print("told of it, signed with the secret of Secrets Manager")
    s3 = client("s3")
    reports = lambda: s3.list_objects_v2(Bucket=outputs["Bucket"], Prefix="reports/").get("Contents")
    for listed in until("a report", reports, 30):
        report = json.load(s3.get_object(Bucket=outputs["Bucket"], Key=listed["Key"])["Body"])
        if any(entry["runtime"] == f"docker/{id}" and entry["fate"] == "done" for entry in report["entries"]):
            print(f"a scheduled tick stopped {id[:12]}: {listed['Key']}")
            return
    sys.exit("no report has the act")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def emulated(binary, environment, event):
    """What a binary answers under AWS's own runtime emulator. Its addresses are given: the default is every interface."""
    emulator = pathlib.Path(samcli.__file__).parent / "local/rapid/aws-lambda-rie-x86_64"
    emulator.chmod(0o755)
    port = free_port()
    command = [emulator, "--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
    command += ["--runtime-api-address", f"127.0.0.1:{free_port()}", binary]
    environment = AWS | {"AWS_ENDPOINT_URL": ENDPOINT, "AWS_LAMBDA_FUNCTION_TIMEOUT": "300"} | environment
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process:
        try:
            def answered():
                try:
                    return ask(f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations", "POST", event)[1]
                except (urllib.error.URLError, ConnectionError):
                    return None

            return until(f"{binary} under the emulator", answered, 30)
        finally:
            process.kill()


def under_the_emulator(binaries, outputs):
    config = {"FURLOUGH_CONFIG": f"s3://{outputs['Bucket']}/furlough.toml", "FURLOUGH_TABLE": outputs["Records"]}
    event = {
        "version": "2.0", "routeKey": "$default", "rawPath": "/health", "rawQueryString": "", "headers": {},
        "requestContext": {
            "accountId": "1", "apiId": "id", "domainName": "id", "domainPrefix": "id", "requestId": "id", "routeKey": "$default",
            "stage": "$default", "time": "30/Nov/2026:20:00:00 +0000", "timeEpoch": 1796068800000,
            "http": {"method": "GET", "path": "/health", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "-"},
        },
        "isBase64Encoded": False,
    }
    told = emulated(binaries / "heartbeat", config | {"FURLOUGH_KEYS": outputs["Keys"]}, event)
    assert told["statusCode"] == 200 and json.loads(told["body"])["code"] == "alive", told
    reports = {"FURLOUGH_REPORTS": f"s3://{outputs['Bucket']}/reports", "FURLOUGH_ACTIONS_TABLE": outputs["Actions"]}
    told = emulated(binaries / "reconcile", config | reports, {"mode": "report", "backend": "docker"})
    assert told["backends"][0]["ended"] in ["completed", "busy"], told
    store = {"FURLOUGH_WORKSPACES": f"s3://{outputs['Bucket']}", "FURLOUGH_ORIGIN": outputs["Url"]}
    asked = event | {"rawPath": "/workspaces/w/lease"}
    asked["requestContext"] = event["requestContext"] | {"http": event["requestContext"]["http"] | {"method": "POST", "path": "/workspaces/w/lease"}}
    told = emulated(binaries / "workspace", store | {"FURLOUGH_WORKSPACE_KEYS": outputs["WorkspaceKeys"]}, asked)
    assert told["statusCode"] == 401 and json.loads(told["body"])["code"] == "unauthorized", told
    print("each binary answers under the runtime emulator")


def logs():
    """The ends of the functions' logs."""
    service = client("logs")
    for group in service.describe_log_groups()["logGroups"]:
        for event in service.filter_log_events(logGroupName=group["logGroupName"])["events"][-20:]:
            print(group["logGroupName"], event["message"].rstrip(), file=sys.stderr)


def main(binaries):
    binaries = pathlib.Path(binaries).resolve()
    secret = client("secretsmanager").create_secret(Name="notify", SecretString=SIGNS)["ARN"]
    outputs, receiver = deployed(binaries, secret), Receiver()
    id = container()
    config = configuration(receiver, secret)
    client("s3").put_object(Bucket=outputs["Bucket"], Key="furlough.toml", Body=config.encode())
    try:
        heartbeats(outputs, id)
        workspaces(outputs)
        ticked(outputs, id, receiver)
        under_the_emulator(binaries, outputs)
    except BaseException:
        logs()
        raise


main(*sys.argv[1:])
