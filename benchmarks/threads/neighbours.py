"""Throughput on a busy machine: steps a second with all processors' threads over those with one, beside 0, 1 and 2 processes that compute.

    python benchmarks/threads/neighbours.py [--peer PYTHON] [--threads N] [--neighbours N ...] [--rounds N] [--seconds S] [--only REGEX] [--json FILE]

A ratio below 1 is a loss: more threads did less. One thread and several take turns in one process; a figure is the median of the rounds.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import find_peer, run_json


def beside(neighbours: int, measure):
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(neighbours)]
    try:
        return measure()
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default="", help="regular expression over the names")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    peer = find_peer(args.peer)
    names = json.loads(subprocess.run([sys.executable, HERE / "cases.py", "--list"], capture_output=True, text=True, check=True).stdout)
    programs = [(sys.executable, "cresset")] + ([(peer, "torch")] if peer else [])
    everything: dict = {}
    print(f"{'':26s} neighbours  " + "  ".join(f"{module:>28s}" for _, module in programs))
    for name in filter(re.compile(args.only).search, names):
        for neighbours in args.neighbours:
            text = f"{name:26s} {neighbours:10d}  "
            for python, module in programs:
                command = [python, HERE / "cases.py", module, str(args.threads), name, str(args.seconds)]
                samples = [beside(neighbours, lambda: run_json(command, args.threads)) for _ in range(args.rounds)]  # noqa: B023
                one, several = (statistics.median(s[key] for s in samples) for key in ("one", "several"))
                everything[f"{name}, {neighbours} neighbours, {module}"] = {"one": one, "several": several}
                text += f"{one:9.1f} {several:9.1f} /s {several / one:6.2f}  "
            print(text, flush=True)
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
