"""Times collectives and steps of training between processes of this host beside PyTorch, both over Gloo.

    python benchmarks/distributed/run.py [--peer PYTHON] [--ranks N] [--rounds N] [--json FILE]

The two take turns, medians over the rounds; "ratio" is ours over the peer's (smaller is better). On a busy machine a figure is as much about who gets a
core: more rounds.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import find_peer, run_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    peer = find_peer(args.peer)
    programs = {"cresset": sys.executable, **({"torch": peer} if peer else {})}
    samples: dict = {module: {} for module in programs}
    for _ in range(args.rounds):
        for module, python in programs.items():
            for name, seconds in run_json([python, HERE / "cases.py", module, str(args.ranks)]).items():
                samples[module].setdefault(name, []).append(seconds)
    figures = {module: {name: statistics.median(given) for name, given in cases.items()} for module, cases in samples.items()}
    print(f"microseconds a call, {args.ranks} ranks\n{'':32s} {'cresset':>10s} {'torch':>10s} {'ratio':>7s}")
    for name, ours in figures["cresset"].items():
        theirs = figures["torch"][name] if peer else None
        print(f"{name:32s} {ours * 1e6:10.0f}" + (f" {theirs * 1e6:10.0f} {ours / theirs:7.2f}{'  SLOWER' if ours > theirs else ''}" if theirs else ""))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
