"""What the benchmarks share: the peer's interpreter, and running a program that prints one JSON object."""

import json
import os
import subprocess
import sys


def find_peer(given):
    for python in (given, os.environ.get("CRESSET_PEER_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


def run_json(command, threads=1):
    out = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads), "CRESSET_NUM_THREADS": str(threads)})
    if out.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{out.stdout}{out.stderr}")
    return json.loads(out.stdout.splitlines()[-1])
