"""Runs the functions at home: under `cargo lambda watch`, against the stores that `furlough serve --stores` opens.

    .ci/engine docker -- python3 .ci/watch.py FURLOUGH BINARIES CARGO_LAMBDA

FURLOUGH and CARGO_LAMBDA are the programs; BINARIES is the folder of `heartbeat`, `reconcile` and `workspace`, so that nothing is
compiled here (`--only-lambda-apis`). Events are those that the crate aws_lambda_events is tested with, out of the
registry's copy that the workspace was built with. Everything listens on this machine alone.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
# None is asked for, but the SDK wants some.
CREDENTIALS = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def ask(url, method="GET", body=None, token=None, timeout=60):
    """The status and the JSON of an answer; None where none came in time."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except (urllib.error.URLError, TimeoutError):
        return None


def until(what, look):
    """Looks again and again, for half a minute."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.2)
    sys.exit(f"{what}: not within 30 s")


def example(name):
    """An event of aws_lambda_events' own tests."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version=1", "--offline"], cwd=ROOT, check=True, capture_output=True)
    packages = json.loads(metadata.stdout)["packages"]
    manifest = next(package["manifest_path"] for package in packages if package["name"] == "aws_lambda_events")
    return json.loads((pathlib.Path(manifest).parent / "src/fixtures" / f"example-{name}.json").read_text())


def request(method, path):
    """What an HTTP API sends for a principal of IAM, asking this."""
    event = example("apigw-v2-request-iam")
    event |= {"rawPath": path, "isBase64Encoded": False, "body": "{}"}
    event["requestContext"]["http"] |= {"method": method, "path": path}
    return event


def started(folder):
    docker = os.environ["FURLOUGH_TEST_DOCKER"]
    run = ["docker", "--host", docker, "run", "--detach", "--network=none", "--label=managed-by=furlough"]
    run += [os.environ["FURLOUGH_TEST_IMAGE"], "/bin/sleep", "3600"]
    container = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    (folder / "furlough.toml").write_text(
        f'[[backend]]\nname = "docker"\nkind = "docker"\nhost = "{docker}"\nscope.labels = {{ managed-by = "furlough" }}\n'
        '[[policy]]\nname = "all"\nlifetime.max = "1s"\n'
    )
    return container


def tried(activity, watch, folder, container):
    function = f"http://127.0.0.1:{watch}/2015-03-31/functions"
    invoke = lambda name, event, timeout=60: ask(f"{function}/{name}/invocations", "POST", event, timeout=timeout)
    # What was asked before a function has come is never answered.
    until("the heartbeat function", lambda: invoke("heartbeat", request("GET", "/health"), 3))
    until("the reconcile function", lambda: invoke("reconcile", {"backend": "nowhere"}, 3))
    told = invoke("heartbeat", request("PUT", f"/runtimes/docker/{container}"))[1]
    assert told["statusCode"] == 200, told
    token = json.loads(told["body"])["token"]
    # One set of records and of keys: what the function signed, `furlough serve` takes.
    code, told = ask(f"http://127.0.0.1:{activity}/runtimes/docker/{container}/heartbeat", "POST", {}, token)
    assert code == 200, (code, told)
    url = f"http://127.0.0.1:{watch}/lambda-url/heartbeat/runtimes/docker/{container}"
    code, told = ask(f"{url}/heartbeat", "POST", {}, token)
    assert code == 200, (code, told)
    code, told = ask(url, "DELETE")
    assert (code, told["code"]) == (405, "method"), (code, told)
    print("heartbeat: an IAM principal's registration as an HTTP API sends it, and heartbeats by its function URL")
    until("the workspace function", lambda: invoke("workspace", request("POST", "/workspaces/w/lease"), 3))
    told = invoke("workspace", request("POST", "/workspaces/w/deinit"))[1]
    assert told["statusCode"] == 422, told
    url = f"http://127.0.0.1:{watch}/lambda-url/workspace/workspaces/w"
    host = (folder / "data/host-token").read_text()
    for what, token, wanted in [("deinit", host, 422), ("lease", host, 401), ("deinit", "none", 401)]:
        code, told = ask(f"{url}/{what}", "POST", {}, token)
        assert code == wanted, (what, code, told)
    print("workspace: an IAM principal and a host are heard, a host is no sandbox")
    code, told = invoke("reconcile", example("eventbridge-schedule"))
    assert code == 200 and told["backends"][0]["ended"] in ["completed", "busy"], (code, told)
    print(f"reconcile: a schedule's own event, {told['backends'][0]['ended']}")
    code, told = invoke("reconcile", {"mode": "report", "backend": "nowhere"})
    assert "no backend is called `nowhere`" in json.dumps(told), (code, told)
    assert list((folder / "reports").rglob("*.json")), "a report is in its folder"


def main(furlough, binaries, cargo_lambda):
    binaries = pathlib.Path(binaries).resolve()
    furlough, cargo_lambda = pathlib.Path(furlough).resolve(), pathlib.Path(cargo_lambda).resolve()
    activity, stores, watch = free_port(), free_port(), free_port()
    processes = []
    with tempfile.TemporaryDirectory() as name, open(pathlib.Path(name) / "log", "w+") as log:
        folder = pathlib.Path(name)
        container = started(folder)

        def begun(command, environment, cwd=folder):
            environment = {key: os.environ[key] for key in ["PATH", "HOME"]} | environment
            processes.append(subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

        try:
            serve = [furlough, "--config", folder / "furlough.toml", "serve", "--listen", f"127.0.0.1:{activity}"]
            begun([*serve, "--stores", "--stores-listen", f"127.0.0.1:{stores}"], {"FURLOUGH_DATA": str(folder / "data")})
            until("furlough serve", lambda: ask(f"http://127.0.0.1:{activity}/health"))
            begun([cargo_lambda, "lambda", "watch", "--only-lambda-apis", "-A", "127.0.0.1", "-P", str(watch)], {}, ROOT)
            until("cargo lambda watch", lambda: listens(watch))
            for name in ["heartbeat", "reconcile", "workspace"]:
                begun([binaries / name], CREDENTIALS | {
                    "AWS_LAMBDA_RUNTIME_API": f"http://127.0.0.1:{watch}/.rt/{name}", "AWS_LAMBDA_FUNCTION_NAME": name,
                    "AWS_LAMBDA_FUNCTION_VERSION": "1", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
                    "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{stores}", "FURLOUGH_CONFIG": str(folder / "furlough.toml"),
                    "FURLOUGH_KEYS": str(folder / "data/keys.json"), "FURLOUGH_REPORTS": str(folder / "reports"),
                    "FURLOUGH_WORKSPACE_KEYS": str(folder / "data/workspace-keys.json"),
                    "FURLOUGH_WORKSPACES": "s3://nothing-is-read", "FURLOUGH_ORIGIN": f"http://127.0.0.1:{activity}",
                })
            tried(activity, watch, folder, container)
        except BaseException:
            log.seek(0)
            print(log.read()[-8000:], file=sys.stderr)
            raise
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()


main(*sys.argv[1:])
