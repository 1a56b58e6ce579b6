"""Products of one row (a model that writes a word at a time) with weights of 8 and 4 bits, beside bfloat16 and beside the peer (PyTorch).

    python benchmarks/ops/packed.py [--peer PYTHON] [--threads N] [--isa LEVEL ...] [--size N] [--rounds N] [--rows N]

The weights of several layers do not fit into caches together, as in a model. Times are the processor's; a figure is the median over the
rounds, in which the two programs take turns.
"""

import argparse
import importlib
import json
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import LEVELS, find_peer, run_json

LAYERS = 4


def measure(module: str, threads: int, n: int, rows: int) -> dict:
    """Seconds of a layer by kind."""
    T = importlib.import_module(module)
    T.set_num_threads(threads)
    x = T.randn(rows, n).bfloat16()
    dense = [T.randn(n, n).bfloat16() for _ in range(LAYERS)]
    codes = [T.randint(-127, 128, (n, n), dtype=T.int8) for _ in range(LAYERS)]
    halves = [T._convert_weight_to_int4pack_for_cpu(T.randint(0, 16, (n, n), dtype=T.int32), 2) for _ in range(LAYERS)]
    scales, groups = T.rand(n).bfloat16(), T.rand(n // 32, n, 2).bfloat16()
    kinds = {
        "bfloat16": lambda i: T.nn.functional.linear(x, dense[i]),
        "int8": lambda i: T._weight_int8pack_mm(x, codes[i], scales),
        "int4": lambda i: T._weight_int4pack_mm_for_cpu(x, halves[i], 32, groups),
    }
    out = {}
    for kind, call in kinds.items():
        best = float("inf")
        for _ in range(4):
            start = time.process_time()
            for i in range(LAYERS):
                call(i)
            best = min(best, (time.process_time() - start) / LAYERS)
        out[kind] = best
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", nargs="*", default=["best"], choices=sorted(LEVELS))
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.threads, options.size, options.rows)))
        return
    peer = find_peer(options.peer)
    programs = {"cresset": sys.executable, **({"torch": peer} if peer else {})}
    for level in options.isa:
        found = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, python in programs.items():
                command = [python, __file__, "--measure", name, "--threads", str(options.threads), "--size", str(options.size), "--rows", str(options.rows)]
                found[name].append(run_json(command, options.threads, level))
        typical = {name: {kind: statistics.median(r[kind] for r in rounds) for kind in rounds[0]} for name, rounds in found.items()}
        for kind, seconds in typical["cresset"].items():
            beside = f", {seconds / typical['torch'][kind]:.2f} of PyTorch's" if peer else ""
            print(f"{level:9} {kind:9} {seconds * 1e3:7.2f} ms, {seconds / typical['cresset']['bfloat16']:.2f} of bfloat16's{beside}")


if __name__ == "__main__":
    main()
