#!/usr/bin/env python3
"""Compares this build with a real PyTorch, live: every operator of its test table (op_db), on CPU.

usage: tools/oracle.py [--only REGEX] [--dtypes LIST] [-v] [--json FILE] [--jobs N] [--samples N]

The interpreter with PyTorch is CRESSET_ORACLE_PYTHON, else build/oracle/bin/python, which is made when it is missing. Both
packages run in one process there, so it must have the Python version of the build. Each operator runs in a process of its own: a
crash or an endless loop is a verdict too. A verdict is about one operator with one dtype, or about its error inputs; it fails
when a result, dtype, shape, gradient or error class differs. Strides are counted apart. Verdicts that oracle_known.toml lists with a
reason are known to fail. The exit status is 1 when another one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import venv
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tools/oracle_known.toml"
PACKAGES = ["torch==2.13.0", "numpy", "expecttest"]
DTYPES = "float32,float64,int64,bool,complex64"


def oracle_python() -> Path:
    """The interpreter with PyTorch; makes a virtual environment the first time."""
    if "CRESSET_ORACLE_PYTHON" in os.environ:
        return Path(os.environ["CRESSET_ORACLE_PYTHON"])
    folder = ROOT / "build/oracle"
    python = folder / "bin/python"
    if not (folder / "complete").exists():
        print(f"oracle: installing {', '.join(PACKAGES)} into {folder.relative_to(ROOT)}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        if subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES]).returncode:
            sys.exit("oracle: pip failed; set CRESSET_ORACLE_PYTHON to an interpreter that has these packages.")
        (folder / "complete").touch()
    return python


def enter_oracle(program: str = __file__) -> None:
    """Continues with a program in the oracle's interpreter, with this tree's package and test helpers on its path."""
    python = oracle_python()
    version = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout.split()
    built = {file.name.split("-")[1] for file in (ROOT / "python/cresset").glob("_C.cpython-*")}
    if "".join(version) not in built:
        sys.exit(f"oracle: {python} is Python {'.'.join(version)}, but the extension is built for {sorted(built)}. Give another CRESSET_ORACLE_PYTHON.")
    paths = [str(ROOT / "python"), str(ROOT / "tests/conformance")]
    environment = {**os.environ, "CRESSET_ORACLE_RUNS": "1", "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    os.execve(python, [str(python), program, *sys.argv[1:]], environment)


def run_operator(number: int, options: argparse.Namespace, pipe) -> None:
    """Child process: sends the verdicts of one operator."""
    import oracle_compare

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pipe.send(oracle_compare.verdicts(number, options.dtypes.split(","), options.samples))
        except Exception as error:
            pipe.send(f"the comparison itself failed: {type(error).__name__}: {error}")


def run_all(numbers: list[int], options: argparse.Namespace):
    """(number, verdicts or the reason why there are none), as the operators finish."""
    import multiprocessing
    import multiprocessing.connection

    context = multiprocessing.get_context("fork")
    waiting = list(reversed(numbers))
    running: dict[int, tuple] = {}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            number = waiting.pop()
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=run_operator, args=(number, options, there))
            process.start()
            there.close()
            running[number] = (process, here, time.monotonic() + options.timeout)
        multiprocessing.connection.wait([here for _, here, _ in running.values()], timeout=0.2)
        for number, (process, here, deadline) in list(running.items()):
            result = None
            if here.poll():
                try:
                    result = here.recv()
                except EOFError:
                    process.join()
                    result = f"the process ended with status {process.exitcode}"
            elif time.monotonic() > deadline:
                process.kill()
                result = f"no end after {options.timeout:.0f} s"
            if result is not None:
                process.join()
                del running[number]
                yield number, result


def report(found: dict[str, dict], options: argparse.Namespace) -> int:
    """Prints the table; the number of verdicts that fail."""
    import known
    import replay

    reasons = known.read(KNOWN)
    columns = ("passed", "failed", "missing", "known", "strides")
    lines: dict[str, Counter[str]] = {}
    for name, verdict in found.items():
        operator, dtype = name.split("|")
        line = lines.setdefault(replay.family(operator), Counter())
        listed = (operator, dtype) in reasons
        if listed and verdict["status"] == "passed":
            print(f"{operator} [{dtype}] passes, but is listed in {KNOWN.name}")
        elif listed:
            verdict["status"] = "known"
        line[verdict["status"]] += 1
        line["strides"] += bool(verdict["strides"])
        if options.verbose and verdict["status"] not in ("passed", "known"):
            print(f"{name.replace('|', ' [')}] {verdict['differ']}/{verdict['calls']}: {verdict['problems'][0]}")
        if options.verbose and verdict["strides"]:
            print(f"{name.replace('|', ' [')}] strides: {verdict['strides'][0]}")
    print(f"{'':14}" + "".join(f"{column:>9}" for column in columns))
    for family, line in sorted(lines.items()):
        print(f"{family:14}" + "".join(f"{line[column]:9}" for column in columns))
    total = sum(lines.values(), Counter())
    print(
        f"{total['passed']} passed, {total['failed']} failed, {total['missing']} of operators that do not exist, {total['known']} known to fail; "
        f"other strides in {total['strides']}"
    )
    return total["failed"] + total["missing"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="operators whose name contains a match")
    parser.add_argument("--dtypes", default=DTYPES, metavar="LIST", help=f"dtypes to compare (default {DTYPES})")
    parser.add_argument("--samples", type=int, default=0, metavar="N", help="at most N samples of an operator and dtype (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for one operator")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the first difference of each verdict that fails")
    options = parser.parse_args()
    if "CRESSET_ORACLE_RUNS" not in os.environ:
        enter_oracle()

    import oracle_compare

    names = oracle_compare.names()
    found: dict[str, dict] = {}
    for number, result in run_all([i for i, name in enumerate(names) if re.search(options.only, name)], options):
        if isinstance(result, str):
            result = {f"{names[number]}|all": {"status": "failed", "calls": 1, "differ": 1, "problems": [result], "strides": []}}
        found |= result
    found = dict(sorted(found.items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 1 if report(found, options) else 0


if __name__ == "__main__":
    sys.exit(main())
