"""What the benchmarks share: the peer's interpreter, the options of tables, and running a program that prints one JSON object."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

# What holds Cresset, PyTorch and the libraries below both to an instruction set.
LEVELS = {
    "baseline": {"CRESSET_ISA": "baseline", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "OPENBLAS_CORETYPE": "Nehalem",
                 "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "avx2": {"CRESSET_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "best": {},
}


def parse_rows(doc):
    """The options of a table of rows: peer, threads, isa, clock, rounds, only, json."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--isa", choices=LEVELS, nargs="+", default=["best"], help="instruction sets")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="regular expression over the names")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def find_peer(given):
    for python in (given, os.environ.get("CRESSET_PEER_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


def run_json(command, threads=1, level="best"):
    """The object that a program prints as its last line, held to an instruction set of LEVELS."""
    env = {**os.environ, **LEVELS[level], "OMP_NUM_THREADS": str(threads), "CRESSET_NUM_THREADS": str(threads)}
    out = subprocess.run(command, capture_output=True, text=True, env=env)
    if out.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{out.stdout}{out.stderr}")
    return json.loads(out.stdout.splitlines()[-1])
