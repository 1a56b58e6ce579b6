"""Measures what the profiler costs while it records, beside the peer (PyTorch) where one is installed.

python benchmarks/profiler/run.py [--peer PYTHON]
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from peer import find_peer, run_json  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python with torch")
    peer = find_peer(parser.parse_args().peer)
    ours = run_json([sys.executable, HERE / "cases.py", "cresset"])
    theirs = run_json([peer, HERE / "cases.py", "torch"]) if peer else {}
    print(f"{'nanoseconds an event':<24}{'cresset':>10}{'peer':>10}{'ratio':>8}")
    for name, ns in ours.items():
        print(f"{name:<24}{ns:>10.0f}" + (f"{theirs[name]:>10.0f}{ns / theirs[name]:>8.2f}" if theirs else ""))


if __name__ == "__main__":
    main()
