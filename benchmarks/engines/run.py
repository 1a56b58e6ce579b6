"""Times compiled models beside PyTorch (eager, frozen, compiled), ONNX Runtime and OpenVINO, where the peer's Python has them.

    python benchmarks/engines/run.py [--peer PYTHON] [--threads N ...] [--isa LEVEL ...] [--clock cpu] [--rounds N] [--only REGEX]
                                     [--programs NAME ...] [--json FILE]

A process for each figure, the programs in turn, medians over the rounds. "best" is the quickest of the others, "ratio" ours over it (smaller is
better); at lower instruction sets programs that do not keep to them are not among those others; build times are from the module to the first result.
"differs": the result is not the peer's within 1e-3, and the row's time says nothing.
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
from peer import LEVELS, find_peer, run_json

OURS, PEERS = ["cresset", "cresset-bf16", "cresset-int8", "cresset-compile", "cresset-eager"], ["torch-eager", "torch-frozen", "torch-compile", "onnxruntime", "openvino"]
# Peers round to lower precision nowhere; weights of two programs are drawn from one seed.
TOLERANCE = 1e-3


def is_lowered(program: str, name: str) -> bool:
    """Does a program keep to a lower instruction set? ONNX Runtime never does; OpenVINO in its convolutions, but not in products of matrices: its runtime
    model names them gemm_mlas_f32, and at SSE4.1 they are as quick as at AVX-512."""
    return program != "onnxruntime" and not (program == "openvino" and re.search("BERT|ViT|GPT|LSTM|recommender", name))


def measure(programs, peer, threads, name, level, clock, seconds, rounds) -> dict:
    samples: dict = {p: [] for p in programs}
    for _ in range(rounds):
        for p in programs:
            python = sys.executable if p in OURS else peer
            samples[p].append(run_json([python, HERE / "cases.py", p, str(threads), name, clock, str(seconds)], threads, level))
    return {p: {key: statistics.median(s[key] for s in given) for key in given[0]} for p, given in samples.items()}


def row(name: str, level: str, figures: dict) -> tuple[str, float | None]:
    text = f"{name:38s} " + " ".join(f"{f['s'] * 1e3:9.2f}" for f in figures.values())
    ours, others = figures["cresset"], {p: f for p, f in figures.items() if p in PEERS and (level == "best" or is_lowered(p, name))}
    if not others:
        return text, None
    best = min(others, key=lambda p: others[p]["s"])
    ratio = ours["s"] / others[best]["s"]
    differs = any(abs(f["check"] - ours["check"]) > TOLERANCE * abs(ours["check"]) for f in others.values())
    compiled = figures.get("torch-compile")
    build = f" {ours['build'] / compiled['build']:7.2f}" if compiled else ""
    eager = figures.get("torch-eager")
    memory = f" {ours['peak'] / eager['peak']:7.2f}" if eager else ""
    return f"{text}  {best:14s} {ratio:5.2f}{build}{memory}{'  SLOWER' if ratio > 1 else ''}{'  differs' if differs else ''}", ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with torch, and onnxruntime and openvino if they are to be there")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--isa", choices=LEVELS, nargs="+", default=["best"], help="instruction sets")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="regular expression over the names")
    parser.add_argument("--programs", nargs="+", choices=OURS + PEERS, default=["cresset", "cresset-eager", *PEERS])
    parser.add_argument("--seconds", type=float, default=4.0, help="of runs, for each figure")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    peer = find_peer(args.peer)
    programs = ["cresset", *(p for p in args.programs if p != "cresset" and (p in OURS or peer))]
    names = json.loads(subprocess.run([sys.executable, HERE / "cases.py", "--list"], capture_output=True, text=True, check=True).stdout)
    everything: dict = {}
    for level in args.isa:
        for threads in args.threads:
            print(f"{threads} thread{'s' if threads > 1 else ''}, instruction set {level}: milliseconds, then the best of the others, ratio, build ratio to"
                  f" torch-compile, memory ratio to torch-eager\n{'':38s} " + " ".join(f"{p[-9:]:>9s}" for p in programs))  # fmt: skip
            ratios = []
            for name in filter(re.compile(args.only).search, names):
                figures = measure(programs, peer, threads, name, level, args.clock, args.seconds, args.rounds)
                everything.setdefault(level, {}).setdefault(threads, {})[name] = figures
                text, ratio = row(name, level, figures)
                ratios += [] if ratio is None else [ratio]
                print(text, flush=True)
            if ratios:
                print(f"median ratio {statistics.median(ratios):.2f}; {sum(r > 1 for r in ratios)} of {len(ratios)} rows slower than the best of the others")
    if args.json:
        args.json.write_text(json.dumps(everything, indent=2))


if __name__ == "__main__":
    main()
