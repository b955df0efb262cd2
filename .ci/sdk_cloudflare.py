"""The simulator of Cloudflare, driven by Cloudflare's own client, which is for Node: FURLOUGH_TEST_NODE has it."""

import os
import subprocess
import sys

script = os.path.join(os.path.dirname(__file__), "sdk_cloudflare.mjs")
subprocess.run(["node", script, os.environ["FURLOUGH_TEST_NODE"], *sys.argv[1:]], check=True)
