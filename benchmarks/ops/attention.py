"""Attention over long sequences, forward and backward, beside the peer (PyTorch): ratios of time, and memory that the steps added.

    python benchmarks/ops/attention.py [--peer PYTHON] [--threads N] [--isa LEVEL ...] [--clock cpu] [--tokens N ...] [--rounds N]

Two heads of 64 features; each row runs in a process of its own, the two programs in turn. A figure is the median over the rounds.
"""

import argparse
import importlib
import json
import resource
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peer import LEVELS, find_peer, run_json


def measure(module: str, threads: int, tokens: int, causal: bool, backward: bool, clock) -> dict:
    T = importlib.import_module(module)
    T.set_num_threads(threads)
    T.manual_seed(0)
    q, k, v = (T.randn(1, 2, tokens, 64, requires_grad=backward) for _ in range(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(2):  # the first one warms up
        at = clock()
        out = T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if backward:
            out.sum().backward()
        times.append(clock() - at)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"s": times[-1], "memory": (after - before) / 1024}


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        module, threads, tokens, causal, backward, clock = sys.argv[2:]
        clock = time.process_time if clock == "cpu" else time.perf_counter
        print(json.dumps(measure(module, int(threads), int(tokens), causal == "True", backward == "True", clock)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", choices=LEVELS, nargs="+", default=["best"], help="instruction sets")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048, 16384])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    peer = find_peer(args.peer)
    programs = [(sys.executable, "cresset")] + ([(peer, "torch")] if peer else [])
    for level in args.isa:
        print(f"{args.threads} threads, instruction set {level}\n{'':36s}" + "".join(f"{module:>14s} {'memory':>10s}" for _, module in programs))
        for tokens in args.tokens:
            for causal in (False, True):
                for backward in (False, True):
                    text, medians = f"{tokens:6d} tokens{', causal' if causal else '':8s}{', and backward' if backward else '':14s}", []
                    samples: list[list[dict]] = [[] for _ in programs]
                    for _ in range(args.rounds):
                        for (python, module), found in zip(programs, samples, strict=True):
                            command = [python, Path(__file__), "--measure", module, args.threads, tokens, causal, backward, args.clock]
                            found.append(run_json([str(c) for c in command], args.threads, level))
                    for found in samples:
                        medians.append(statistics.median(f["s"] for f in found))
                        text += f"{medians[-1] * 1e3:11.1f} ms {statistics.median(f['memory'] for f in found):6.0f} MiB"
                    print(text + (f" {medians[0] / medians[1]:6.2f}" if peer else ""), flush=True)


if __name__ == "__main__":
    main()
