"""Times operators beside the peer (PyTorch) where one is installed: ratios (smaller is better), and for streaming operators the
share of the bandwidth of a large copy on this machine.

    python benchmarks/ops/run.py [--peer PYTHON] [--threads N ...] [--isa LEVEL ...] [--clock cpu] [--rounds N] [--only REGEX] [--json FILE]

Both programs run in turn, so that other load on the machine falls on both; a figure is the median over the rounds.
--isa holds both to lower instruction sets (baseline, avx2) than the processor's best; --clock cpu counts processor time, for busy machines.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import find_peer, parse_rows, run_json

COPY = """
import numpy, sys, threading, time
n, threads = 1 << 24, int(sys.argv[1])
pairs = [(numpy.ones(n, numpy.float32), numpy.zeros(n, numpy.float32)) for _ in range(threads)]
def copy_all():
    workers = [threading.Thread(target=lambda a, b: [numpy.copyto(b, a) for _ in range(8)], args=pair) for pair in pairs]
    start = time.perf_counter()
    for w in workers: w.start()
    for w in workers: w.join()
    return time.perf_counter() - start
print(8 * 2 * 4 * n * threads / min(copy_all() for _ in range(3)))
"""


def copy_bandwidth(threads: int) -> float:
    """Bytes read and written in a second by copies of 64 MiB."""
    return float(subprocess.run([sys.executable, "-c", COPY, str(threads)], capture_output=True, text=True, check=True).stdout)


def measure(peer: str | None, threads: int, level: str, rounds: int, only: str, clock: str) -> dict[str, dict[str, float | None]]:
    """name -> seconds of ours and the peer's, bytes, flops."""
    samples: dict[str, dict[str, list[float]]] = {}
    facts: dict[str, dict[str, float]] = {}
    programs = [("ours", sys.executable, "cresset")] + ([("peer", peer, "torch")] if peer else [])
    for _ in range(rounds):
        for who, python, module in programs:
            for name, figure in run_json([python, HERE / "cases.py", module, str(threads), only, clock], threads, level).items():
                facts[name] = figure
                samples.setdefault(name, {"ours": [], "peer": []})[who].append(figure["s"])
    return {name: {"ours": statistics.median(by["ours"]), "peer": statistics.median(by["peer"]) if by["peer"] else None,
                   "bytes": facts[name]["bytes"], "flops": facts[name]["flops"]} for name, by in samples.items()}


def show(figures: dict, threads: int, level: str) -> None:
    copy = copy_bandwidth(threads)
    print(f"{threads} thread{'s' if threads > 1 else ''}, instruction set {level}; a large copy moves {copy / 1e9:.1f} GB/s")
    print(f"{'':44s} {'cresset us':>11s} {'peer us':>11s} {'ratio':>7s}  rate")
    for name, f in figures.items():
        rate = ""
        if f["bytes"] > 10_000_000:
            rate = f"{f['bytes'] / f['ours'] / 1e9:6.1f} GB/s, {f['bytes'] / f['ours'] / copy:4.0%} of a copy"
        elif f["flops"]:
            rate = f"{f['flops'] / f['ours'] / 1e9:6.1f} GFLOP/s"
        ratio = f["ours"] / f["peer"] if f["peer"] else None
        print(f"{name:44s} {f['ours'] * 1e6:11.2f} {'' if ratio is None else format(f['peer'] * 1e6, '11.2f'):>11s} "
              f"{'' if ratio is None else format(ratio, '7.2f'):>7s}  {rate}{'  SLOWER' if ratio and ratio > 1.05 else ''}")
    ratios = sorted(f["ours"] / f["peer"] for f in figures.values() if f["peer"])
    if ratios:
        slower = sum(r > 1.05 for r in ratios)
        print(f"median ratio {statistics.median(ratios):.2f}; {slower} of {len(ratios)} rows slower than the peer by more than 5 %")


def main() -> None:
    args = parse_rows(__doc__)
    peer = find_peer(args.peer)
    everything = {}
    for level in args.isa:
        for threads in args.threads:
            figures = measure(peer, threads, level, args.rounds, args.only, args.clock)
            everything.setdefault(level, {})[threads] = figures
            show(figures, threads, level)
    if args.json:
        args.json.write_text(json.dumps(everything, indent=2))


if __name__ == "__main__":
    main()
