"""Measures a cold start: our functions beside a Node and a Python handler of the heartbeat function's main job.

    .ci/ministack VENV PYTHON functions/heartbeat/benches/peers/cold.py BINARIES BUNDLE [ROUNDS]

BINARIES: the folder of the release binaries. BUNDLE: peer.mjs as `npm run --silent bundle` writes it. PYTHON has boto3.
Lambda's Runtime API is a stub in this process; S3, Secrets Manager and DynamoDB are ministack, the same for all. No
microVM is started and no package is fetched, for none of them. Two times are taken of each fresh process, in turn:

    first poll     from the fork to the arrival of its first request for an event; and what it spent of processors until
                   then, which other work on the machine changes little
    first answer   from its first event to its answer: configuration, keys and one write over new connections

and the most memory that was resident when it had answered. Node and Python run the file itself, without the runtime
client that Lambda puts around a handler, so that both are a little quicker here than there.
"""

import hashlib
import http.server
import io
import json
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import threading
import time
import zipfile

import boto3

ENDPOINT = os.environ["FURLOUGH_TEST_DYNAMODB"]
REGION, HOST = "eu-central-1", "the token of a host of every backend"
AWS = {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": ENDPOINT}
AWS |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
HERE = pathlib.Path(__file__).parent
CONFIG = '[[backend]]\nname = "docker"\nkind = "docker"\nhost = "unix:///nowhere/docker.sock"\nscope.labels = { a = "b" }\n'


class Runtime(http.server.ThreadingHTTPServer):
    """Lambda's Runtime API for one process at a time."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Invocation)
        self.polls, self.events, self.answers = queue.Queue(), queue.Queue(), queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A process that was killed hangs up, and that is all."""


class Invocation(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.polls.put(time.monotonic())
        event = json.dumps(self.server.events.get()).encode()
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        self.send_header("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + 290_000))
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", f"arn:aws:lambda:{REGION}:123456789012:function:f")
        self.send_header("Content-Length", str(len(event)))
        self.end_headers()
        self.wfile.write(event)

    def do_POST(self):
        size = self.headers["Content-Length"]
        body = self.rfile.read(int(size)) if size else self.chunked()
        self.server.answers.put((time.monotonic(), json.loads(body)))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def chunked(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


def event(method, path, token, body=None):
    request = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "-"}
    context = {"accountId": "1", "apiId": "id", "domainName": "id", "domainPrefix": "id", "requestId": "id", "routeKey": "$default",
               "stage": "$default", "time": "30/Nov/2026:20:00:00 +0000", "timeEpoch": 1796068800000, "http": request}
    return {"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "requestContext": context,
            "headers": {"authorization": f"Bearer {token}", "content-type": "application/json"}, "body": body, "isBase64Encoded": False}


def spent(pid):
    """Milliseconds of processors that the threads of a process have had."""
    threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def started(command, environment, asked):
    """Milliseconds to the first poll, of wall and of processors, and to the first answer; kilobytes resident; the answer."""
    runtime = Runtime()
    environment = AWS | environment | {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{runtime.server_port}", "AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_LOG_GROUP_NAME": "f", "AWS_LAMBDA_LOG_STREAM_NAME": "f", "PATH": os.environ["PATH"],
    }
    begun = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            polled = runtime.polls.get(timeout=60)
            worked = spent(process.pid)
            sent = time.monotonic()
            runtime.events.put(asked)
            answered, answer = runtime.answers.get(timeout=60)
            resident = next(line for line in open(f"/proc/{process.pid}/status") if line.startswith("VmHWM"))
        finally:
            process.kill()
    runtime.shutdown()
    runtime.server_close()
    return (polled - begun) * 1e3, worked, (answered - sent) * 1e3, int(resident.split()[1]), answer


def client(service):
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=ENDPOINT, region_name=REGION, **keys)


def furnished():
    """The environment of a function whose configuration, keys and tables are there."""
    client("s3").create_bucket(Bucket="cold", CreateBucketConfiguration={"LocationConstraint": REGION})
    client("s3").put_object(Bucket="cold", Key="furlough.toml", Body=CONFIG.encode())
    host = {"name": "ada", "token_sha256": hashlib.sha256(HOST.encode()).hexdigest(), "backends": ["*"]}
    secret = {"runtime_keys": ["a key of the runtimes that is long enough"], "hosts": [host]}
    keys = client("secretsmanager").create_secret(Name="cold", SecretString=json.dumps(secret))["ARN"]
    text = lambda *names: [{"AttributeName": name, "AttributeType": "S"} for name in names]
    by = lambda hash, range: [{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]
    due = {"IndexName": "due", "KeySchema": by("due_shard", "due_at"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
    client("dynamodb").create_table(
        TableName="furlough", BillingMode="PAY_PER_REQUEST", KeySchema=by("pk", "sk"), GlobalSecondaryIndexes=[due],
        AttributeDefinitions=text("pk", "sk", "due_shard") + [{"AttributeName": "due_at", "AttributeType": "N"}],
    )
    client("dynamodb").create_table(
        TableName="furlough-actions", BillingMode="PAY_PER_REQUEST", KeySchema=by("runtime", "act"), AttributeDefinitions=text("runtime", "act")
    )
    return {
        "FURLOUGH_CONFIG": "s3://cold/furlough.toml", "FURLOUGH_REPORTS": "s3://cold/reports", "FURLOUGH_KEYS": keys,
        "FURLOUGH_TABLE": "furlough", "FURLOUGH_ACTIONS_TABLE": "furlough-actions",
    }


def zipped(path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path)
    return len(packed.getvalue())


def main(binaries, bundle, rounds="21"):
    binaries, environment = pathlib.Path(binaries), furnished()
    ours = [str(binaries / "heartbeat")]
    registered = started(ours, environment, event("PUT", "/runtimes/docker/a", HOST))[-1]
    token = json.loads(registered["body"])["token"]
    beat = event("POST", "/runtimes/docker/a/heartbeat", token, "{}")
    # The engine is nowhere, so that a tick ends as failed, with its report in the bucket: what it does until then counts.
    tick = {"mode": "report", "backend": "docker"}
    kinds = {
        "heartbeat": (ours, beat, binaries / "heartbeat"),
        "reconcile": ([str(binaries / "reconcile")], tick, binaries / "reconcile"),
        "Node, heartbeat": (["node", bundle], beat, bundle),
        "Python, heartbeat": ([sys.executable, HERE / "peer.py"], beat, HERE / "peer.py"),
    }
    taken = {name: [] for name in kinds}
    for _ in range(int(rounds)):
        for name, (command, asked, _) in kinds.items():
            *measured, answer = started(command, environment, asked)
            if asked is beat:
                assert answer["statusCode"] == 200, (name, answer)
            taken[name].append(measured)
    for name, (_, _, file) in kinds.items():
        poll, work, answer, resident = zip(*taken[name])
        told = lambda times: f"{statistics.median(times):6.1f} ms (best {min(times):.1f})"
        print(f"{name:18} zip {zipped(file) / 1e6:5.2f} MB, {max(resident) / 1024:5.1f} MB resident   first poll {told(poll)}, "
              f"{told(work)} of processors   first answer {told(answer)}")


main(*sys.argv[1:])
