"""The simulator of Daytona, driven by Daytona's own SDK: what our client meets is what theirs meets."""

import sys
import time

from daytona import (
    CreateSandboxFromSnapshotParams,
    Daytona,
    DaytonaConfig,
    DaytonaError,
    DaytonaNotFoundError,
    ListSandboxesQuery,
    SandboxState,
)

address, key = sys.argv[1:]
daytona = Daytona(DaytonaConfig(api_key=key, api_url=f"{address}/api", target="us"))


def until(sandbox, state):
    for _ in range(100):
        sandbox.refresh_data()
        if sandbox.state == state:
            return
        time.sleep(0.1)
    raise AssertionError(f"{sandbox.id} is {sandbox.state}, not {state}")


def ids(**query):
    return {sandbox.id for sandbox in daytona.list(ListSandboxesQuery(**query))}


# Made, found by its labels over more pages than one, and by its id.
made = [
    daytona.create(CreateSandboxFromSnapshotParams(language="python", labels={"team": team}, auto_stop_interval=30))
    for team in ["a", "a", "a", "b"]
]
ours, other = made[:3], made[3]
assert ids(labels={"team": "a"}, limit=2, sort="createdAt", order="asc") == {sandbox.id for sandbox in ours}
assert ids() == {sandbox.id for sandbox in made}
one = daytona.get(ours[0].id)
assert (one.state, one.auto_stop_interval, one.labels["team"]) == (SandboxState.STARTED, 30, "a")

# Its timers, and what a zero means in each.
one.set_autostop_interval(0)
one.set_auto_archive_interval(0)
one.set_auto_delete_interval(-1)
one.refresh_data()
assert (one.auto_stop_interval, one.auto_archive_interval, one.auto_delete_interval) == (0, 43200, -1)

# Stopped, started, stopped, archived, deleted.
one.stop()
assert one.state == SandboxState.STOPPED
assert ids(states=["stopped"]) == {one.id}
one.start()
until(one, SandboxState.STARTED)
one.stop()
one.archive()
until(one, SandboxState.ARCHIVED)
one.delete()
for _ in range(100):
    try:
        daytona.get(one.id)
    except DaytonaNotFoundError:
        break
    time.sleep(0.1)
else:
    raise AssertionError("it is still there")

# A stop of an ephemeral one deletes it.
ours[1].set_auto_delete_interval(0)
ours[1].stop()
for _ in range(100):
    if ours[1].id not in ids():
        break
    time.sleep(0.1)
else:
    raise AssertionError("it outlived its stop")

# What is refused, in the SDK's own errors.
for refused in [lambda: ours[2].archive(), lambda: daytona.get("nope"), lambda: other.pause()]:
    try:
        refused()
    except DaytonaError:
        continue
    raise AssertionError("it was not refused")
print("daytona: the SDK met what it expects")
