"""The simulator of Modal, driven by Modal's own client: what our client meets is what theirs meets."""

import os
import sys

address, token_id, token_secret = sys.argv[1:]
os.environ.update(
    MODAL_SERVER_URL=address, MODAL_TOKEN_ID=token_id, MODAL_TOKEN_SECRET=token_secret, MODAL_DISABLE_API_PROXY="1"
)

import modal  # noqa: E402  (it reads the environment)

app = "ap-0000000000000000000001"

# Both generations, over more pages than one.
listed = list(modal.Sandbox.list(app_id=app))
assert len({sandbox.object_id for sandbox in listed}) == 5, listed
first = [sandbox for sandbox in listed if len(sandbox.object_id) == len("sb-") + 22]
second = [sandbox for sandbox in listed if sandbox not in first]
assert (len(first), len(second)) == (3, 2), listed
assert len(list(modal.Sandbox.list(app_id=app, tags={"number": "3"}))) == 1

# Terminated, seen to be, and a second time is no error; by its id it is known to have ended.
for sandbox in (first[0], second[0]):
    assert sandbox.poll() is None
    sandbox.terminate()
    again = modal.Sandbox.from_id(sandbox.object_id)
    assert again.poll() == 137, again.poll()
    again.terminate()
assert len(list(modal.Sandbox.list(app_id=app))) == 3

# One that never was.
try:
    modal.Sandbox.from_id("sb-" + "z" * 22).poll()
    raise AssertionError("it is there")
except modal.exception.NotFoundError:
    pass
print("modal: the client met what it expects")
