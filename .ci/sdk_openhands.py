"""The simulator of OpenHands, driven by OpenHands' own clients: what our client meets is what theirs meet.

Of the app server's API its client has making, looking, resuming and deleting; it says itself that it has no pause. The
Runtime API's client pauses, and both are asked about the same sandboxes here.
"""

import os
import sys

# It asks the internet for the prices of models, and prints a banner.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}

import httpx  # noqa: E402
from openhands.workspace import APIRemoteWorkspace, OpenHandsCloudWorkspace  # noqa: E402

address, key = sys.argv[1:]


def cloud(**more):
    return OpenHandsCloudWorkspace(cloud_api_url=address, cloud_api_key=key, **more)


def runtime(session, **more):
    more = {"server_image": "ghcr.io/openhands/agent-server:1.58.2-python", "session_id": session, **more}
    return APIRemoteWorkspace(runtime_api_url=address, runtime_api_key=key, **more)


def sandboxes():
    answer = httpx.get(f"{address}/api/v1/sandboxes/search", headers={"Authorization": f"Bearer {key}"})
    return {item["id"]: item["status"] for item in answer.raise_for_status().json()["items"]}


# Made, and its agent server found.
one = cloud(sandbox_spec_id="ghcr.io/openhands/agent-server:1.58.2-python", keep_alive=True)
name, first_key = one._sandbox_id, one.api_key
assert one.alive and first_key, one
assert sandboxes() == {name: "RUNNING"}

# The same one through the Runtime API: paused, which takes its key away.
other = runtime(name, keep_alive=True)
assert other.api_key == first_key
other.pause()
assert sandboxes() == {name: "PAUSED"}

# Resumed by the app server: with another key.
again = cloud(sandbox_id=name, keep_alive=True)
assert again.api_key not in (None, first_key)
again.resume()
assert sandboxes() == {name: "RUNNING"}

# One of the Runtime API's own: made, paused, attached to, which resumes it, and stopped at its end.
third = runtime("agent-server-1", keep_alive=True)
third.pause()
assert sandboxes()["agent-server-1"] == "PAUSED"
with runtime("agent-server-1") as fourth:
    assert sandboxes()["agent-server-1"] == "RUNNING"
assert sandboxes() == {name: "RUNNING"}

# Deleted, by path and query.
again.keep_alive = False
again.cleanup()
assert sandboxes() == {}
for kept in (one, other, third):
    kept.cleanup()
print("openhands: the clients met what they expect")
