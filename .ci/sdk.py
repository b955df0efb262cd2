"""Drives a provider's simulator with the provider's own, unmodified SDK: python .ci/sdk.py PROVIDER SERVER

PROVIDER is a simulator of tests/simulators and a script beside this one; this Python has the SDK; SERVER is the built
example `providers_serve`. What the SDK asked for is printed at the end.
"""

import os
import runpy
import subprocess
import sys
from collections import Counter

provider, server = sys.argv[1:]
with subprocess.Popen([server, provider], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as simulator:
    try:
        sys.argv[1:] = simulator.stdout.readline().split()
        runpy.run_path(os.path.join(os.path.dirname(__file__), f"sdk_{provider}.py"), run_name="__main__")
    finally:
        simulator.stdin.close()  # It prints what it was asked, and ends.
    calls = Counter(line.split("?")[0] for line in simulator.stdout.read().splitlines())
print(f"{calls.total()} requests:")
for call, times in sorted(calls.items()):
    print(f"{times:5} {call}")
