"""Measures the overhead of calls and the memory of a training step, beside the peer (PyTorch) where one is installed, and prints ratios against the budgets.

    python benchmarks/run.py [--peer PYTHON] [--rounds N] [--json FILE]

The peer is measured in the same run, in turn with us, so that other load on the machine falls on both. A figure is the
median over the rounds. `--peer` names a Python that has torch; default: this one, else CRESSET_PEER_PYTHON, else none.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from peer import find_peer, run_json

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent

# name -> budget as a share of the peer's time (smaller is better), from the design.
BUDGETS = {
    "cpp: add, one element": 1 / 8,
    "py: x + y, one element": 1 / 4,
    "cpp: ten-op chain, forward and backward": 1 / 3,
    "py: ten-op chain, forward and backward": 1 / 3,
    "cpp: custom Function, forward and backward": 1 / 4,
    "py: custom Function, forward and backward": 1 / 2,
    "py: Python operator by its name": 1 / 3,
    "py: Python operator, six arguments": 1 / 3,
    "py: custom_op": 1 / 3,
}
ABSOLUTE = {"py: no-op custom operator": 1000.0, "py: __torch_function__, an argument": 5.0}  # ns
IMPORT_BUDGET_MS, IMPORT_BUDGET_MB, LIBRARY_BUDGET_MB = 60, 25, 10


def build_peer(peer, folder):
    """Compiles the same C++ source against the peer's headers; returns the program or None when that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    program, source = folder / "dispatch_bench_peer", HERE / "dispatch" / "dispatch_bench.cpp"
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    base = Path(subprocess.run([peer, "-c", "import torch; print(torch.__path__[0])"], capture_output=True, text=True, check=True).stdout.strip())
    command = ["g++", "-std=c++20", "-O2", "-DCRESSET_BENCH_PEER", str(source), "-o", str(program), f"-I{base}/include", f"-I{base}/include/torch/csrc/api/include",
               f"-L{base}/lib", f"-Wl,-rpath,{base}/lib", "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print("the peer's C++ program does not compile here:", done.stderr.splitlines()[-1] if done.stderr else "", file=sys.stderr)
        return None
    return program


def import_cost(python, module):
    """(seconds, resident MiB) that the import adds to an empty interpreter."""
    code = ("import resource, time; a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; t = time.perf_counter(); "
            f"import {module}; print(time.perf_counter() - t, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a) / 1024)")
    seconds, mib = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(mib)


def memory(peer):
    """Peak MiB of a training step; backward may not need more than the peer's."""
    cases = HERE / "autograd" / "memory.py"
    mine, other = run_json([sys.executable, cases, "cresset"]), run_json([peer, cases, "torch"]) if peer else {}
    for name, mib in mine.items():
        verdict = "" if name not in other or name != "mlp backward" else "  met" if mib <= other[name] else "  MISSED"
        print(f"{'peak of ' + name:40s} {mib:6.0f} MiB{f', peer {other[name]:.0f} MiB' if other else ''}{verdict}")
    return {"ours": mine, "peer": other}


def stripped_size(library):
    if not shutil.which("strip"):
        return None
    target = ROOT / "build" / "bench" / "stripped.so"
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", target, library], check=True)
    return target.stat().st_size / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    args = parser.parse_args()
    peer = find_peer(args.peer)
    python_cases = HERE / "dispatch" / "cases.py"
    ours = {"cpp": [args.build / "bin" / "dispatch_bench"], "py": [sys.executable, python_cases, "cresset"]}
    theirs = {}
    if peer:
        theirs["py"] = [peer, python_cases, "torch"]
        if program := build_peer(peer, ROOT / "build" / "bench"):
            theirs["cpp"] = [program]
    samples = {"ours": {}, "peer": {}}
    for _ in range(args.rounds):
        for who, commands in (("ours", ours), ("peer", theirs)):
            for command in commands.values():
                for name, ns in run_json(command).items():
                    samples[who].setdefault(name, []).append(ns)

    figures = {}
    print(f"{'ns a call, median of ' + str(args.rounds):48s} {'cresset':>10s} {'peer':>10s} {'ratio':>7s}  budget")
    for name, values in samples["ours"].items():
        mine = statistics.median(values)
        other = statistics.median(samples["peer"][name]) if name in samples["peer"] else None
        budget = BUDGETS.get(name)
        verdict = ""
        if budget and other:
            verdict = f"<= {budget:.3f}  {'met' if mine / other <= budget else 'MISSED'}"
        elif name in ABSOLUTE:
            verdict = f"<= {ABSOLUTE[name]:.0f} ns  {'met' if mine <= ABSOLUTE[name] else 'MISSED'}"
        figures[name] = {"ns": mine, "peer_ns": other}
        print(f"{name:48s} {mine:10.1f} {other if other is None else round(other, 1)!s:>10s} {'' if other is None else f'{mine / other:7.3f}':>7s}  {verdict}")

    figures["memory"] = memory(peer)
    numbers = [import_cost(sys.executable, "cresset") for _ in range(args.rounds)]
    ms, mb = statistics.median(s for s, _ in numbers) * 1e3, statistics.median(m for _, m in numbers)
    print(f"import cresset: {ms:.0f} ms (budget {IMPORT_BUDGET_MS}), {mb:.1f} MiB resident (budget {IMPORT_BUDGET_MB})", end="")
    if peer:
        print(f"; peer {import_cost(peer, 'torch')[0] * 1e3:.0f} ms", end="")
    print()
    sizes = {name: stripped_size(args.build / "lib" / f"lib{name}.so") for name in ("cresset", "cresset_cpu", "cresset_ir", "cresset_nn")}
    size = sizes["cresset"]
    if size is not None:
        print("stripped, MiB: " + ", ".join(f"lib{name}.so {mib:.1f}" for name, mib in sizes.items()) + f" (budget {LIBRARY_BUDGET_MB} for libcresset, 25 for all)")
    figures["import"] = {"ms": ms, "mib": mb}
    figures["library"] = {"mib": size}
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
