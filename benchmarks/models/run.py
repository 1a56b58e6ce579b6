"""Times steps of whole models, eager, beside the peer (PyTorch) where one is installed: ratios of time and memory (smaller is better).

    python benchmarks/models/run.py [--peer PYTHON] [--threads N ...] [--isa LEVEL ...] [--clock cpu] [--rounds N] [--only REGEX] [--json FILE]

Each model runs in a process of its own, the two programs in turn; a figure is the median over the rounds. "differs" marks a row whose first result
is not the peer's, within 1 % (training and bfloat16 round differently): its time says nothing.
"""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import find_peer, parse_rows, run_json


def measure(python: str, module: str, threads: int, name: str, level: str, clock: str) -> dict:
    return run_json([python, HERE / "cases.py", module, str(threads), name, clock], threads, level)


def median_of(samples: list[dict]) -> dict:
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}


def row(name: str, ours: dict, peer: dict | None) -> str:
    text = f"{name:42s} {ours['s'] * 1e3:10.2f} ms {ours['peak']:7.0f} MiB {ours['system']:5.0%}"
    if peer is None:
        return text
    differs = abs(ours["check"] - peer["check"]) > 0.01 * abs(peer["check"])
    ratio = ours["s"] / peer["s"]
    return (f"{text} {peer['s'] * 1e3:10.2f} ms {peer['peak']:7.0f} MiB {peer['system']:5.0%} {ratio:7.2f}"
            f"{'  SLOWER' if ratio > 1.05 else ''}{'  differs' if differs else ''}")  # fmt: skip


def main() -> None:
    args = parse_rows(__doc__)
    peer = find_peer(args.peer)
    names = json.loads(subprocess.run([sys.executable, HERE / "cases.py", "--list"], capture_output=True, text=True, check=True).stdout)
    everything: dict = {}
    for level in args.isa:
        for threads in args.threads:
            print(f"{threads} thread{'s' if threads > 1 else ''}, instruction set {level}\n{'':42s} {'cresset':>13s} {'memory':>11s} {'sys':>5s} {'peer':>13s}"
                  f" {'memory':>11s} {'sys':>5s} {'ratio':>7s}")  # fmt: skip
            ratios = []
            for name in filter(re.compile(args.only).search, names):
                ours, theirs = [], []
                for _ in range(args.rounds):
                    ours.append(measure(sys.executable, "cresset", threads, name, level, args.clock))
                    if peer:
                        theirs.append(measure(peer, "torch", threads, name, level, args.clock))
                mine, other = median_of(ours), median_of(theirs) if theirs else None
                everything.setdefault(level, {}).setdefault(threads, {})[name] = {"ours": mine, "peer": other}
                ratios += [mine["s"] / other["s"]] if other else []
                print(row(name, mine, other), flush=True)
            if ratios:
                print(f"median ratio {statistics.median(ratios):.2f}; {sum(r > 1.05 for r in ratios)} of {len(ratios)} rows slower than the peer by more than 5 %")
    if args.json:
        args.json.write_text(json.dumps(everything, indent=2))


if __name__ == "__main__":
    main()
