"""The simulator of E2B, driven by E2B's own SDK: what our client meets is what theirs meets."""

import sys

from e2b import Sandbox, SandboxQuery, SandboxState

address, key = sys.argv[1:]
api = {"api_key": key, "api_url": address}


def listed(limit=None, **query):
    pages, found = Sandbox.list(query=SandboxQuery(**query), limit=limit, **api), []
    while pages.has_next:
        found += pages.next_items()
    return found


# Made, found by its metadata over more pages than one, and by its id.
team = {"team": "a b&c=d"}
made = [Sandbox.create(metadata=metadata, timeout=600, **api) for metadata in [team, team, team, {}]]
ours = [sandbox.sandbox_id for sandbox in made[:3]]
found = listed(limit=2, metadata=team)
assert sorted(item.sandbox_id for item in found) == sorted(ours), found
assert len(listed()) == 4
info = Sandbox.get_info(ours[0], **api)
assert (info.state, info.metadata) == (SandboxState.RUNNING, team)

# Its end is put off.
Sandbox.set_timeout(ours[0], 3600, **api)
assert Sandbox.get_info(ours[0], **api).end_at > info.end_at

# Paused: true by what is answered, and by what is seen. A second time is no error.
Sandbox.pause(ours[0], **api)
paused = Sandbox.get_info(ours[0], **api)
assert (paused.state, paused.started_at) == (SandboxState.PAUSED, info.started_at)
assert [item.sandbox_id for item in listed(state=[SandboxState.PAUSED])] == [ours[0]]
assert Sandbox.pause(ours[0], **api) is False

# Resumed: another run.
Sandbox.connect(ours[0], timeout=600, **api)
resumed = Sandbox.get_info(ours[0], **api)
assert resumed.state == SandboxState.RUNNING and resumed.started_at > info.started_at

# Killed once.
assert Sandbox.kill(ours[0], **api) is True
assert Sandbox.kill(ours[0], **api) is False
assert len(listed()) == 3

# A timeout of nothing ends it at once.
Sandbox.set_timeout(ours[1], 0, **api)
assert len(listed()) == 2
print("e2b: the SDK met what it expects")
