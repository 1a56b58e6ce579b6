"""Snippets of Python in both packages: `tools/differential snippets FOLDER [--only REGEX] [--timeout SECONDS] [-v]`.

A file holds snippets that begin with a line `### name`. Each runs in a process of its own, once with PyTorch and once with Cresset
as `torch`, in an empty folder; what it prints, its warnings and how it ends are compared. Snippets find torch, nn, F, np and common
modules as names, and `e(f, *args)`, which prints the result of a call or its error; `step(text)` runs statements as the prompt of an
interpreter does. Lines that differ and are listed in differential_meant.toml with a reason are meant.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from pathlib import Path

# Texts that differ between any two builds, and names of the packages' own.
REPLACED = [
    (r"0x[0-9a-f]{6,}", "0xADDR"),
    (r"cresset", "torch"),
    (r'File "[^"]*"', 'File "…"'),
    (r" ?\(Triggered internally at [^)]*\)", ""),
    (r"\b(special|linalg|fft)\.\1_", r"\1."),
    (r"torch\.functional\.", "torch."),
    (r"'torch\._C\.TensorBase'", "'Tensor'"),
    (r"(Could not run '[\w:.]+' with arguments from the '\w+' backend\.).*", r"\1"),  # then PyTorch lists what it was built with
]
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
UNIMPORTANT = re.compile(r"`torch\.jit\.\w+` is deprecated|The use of `x\.T`")


def plain(text: str) -> str:
    for pattern, new in REPLACED:
        text = re.sub(pattern, new, text)
    return text


def snippets(file: Path) -> list[tuple[str, str]]:
    """(name, text) of each snippet of a file."""
    found: list[tuple[str, list[str]]] = []
    for line in file.read_text().splitlines(keepends=True):
        if line.startswith("### "):
            found.append((f"{file.stem}/{line[4:].strip()}", []))
        elif found:
            found[-1][1].append(line)
    return [(name, "".join(lines)) for name, lines in found]


def run_here(name: str, text: str) -> None:
    """In the snippet's own process."""
    import collections
    import contextlib
    import copy
    import functools
    import gc
    import inspect
    import linecache
    import logging
    import math
    import pickle
    import threading
    import weakref

    import numpy as np
    import torch

    def e(f, *args, full=False):
        try:
            print(plain(repr(f(*args))))
        except BaseException as error:
            print("EXC", type(error).__name__, "|", plain(str(error) if full else str(error)[:600]))

    def step(text):
        """Shows what the statements print and give, or their error; the next step goes on either way."""
        sys.displayhook = lambda value: value is None or print(plain(repr(value)))
        try:
            exec(compile(text + "\n", f"<{name}>", "single"), space)
        except SyntaxError:
            print("EXC SyntaxError |")
        except BaseException as error:
            print("EXC", type(error).__name__, "|", plain(str(error)[:600]))

    names = dict(
        step=step, torch=torch, nn=torch.nn, F=torch.nn.functional, Function=torch.autograd.Function, np=np, e=e, raises=e, norm=plain, collections=collections,
        contextlib=contextlib, copy=copy, functools=functools, gc=gc, inspect=inspect, io=io, logging=logging, math=math, os=os,
        pickle=pickle, sys=sys, threading=threading, warnings=warnings, weakref=weakref,
    )  # fmt: skip
    space = sys.modules["__main__"].__dict__
    space.update(names)
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(keepends=True), f"<{name}>")
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            exec(compile(text, f"<{name}>", "exec"), space)
        except BaseException as error:
            print("TOP-EXC", type(error).__name__, "|", plain(str(error)[:800]))
    for warning in seen:
        print("WARN", warning.category.__name__, "|", plain(str(warning.message))[:300])
    sys.stdout.flush()


def run_apart(name: str, text: str, timeout: float) -> str:
    """What the snippet prints in a child process, and how that ended when not well."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(read)
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", 0), write_through=True)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run_here(name, text)
        os._exit(0)
    os.close(write)
    chunks, deadline, late = [], time.monotonic() + timeout, False
    while True:
        ready = select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            late = True
            os.kill(process, signal.SIGKILL)
            break
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(read)
    _, status = os.waitpid(process, 0)
    shown = plain(b"".join(chunks).decode("utf8", "replace"))
    if late:
        shown += f"\nCRASH no end after {timeout:.0f} s"
    elif status:
        shown += f"\nCRASH signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"\nCRASH status {os.WEXITSTATUS(status)}"
    return shown


def run_all(package: str, folder: str, only: str, timeout: float) -> None:
    """Child interpreter: prints {name: text} as JSON."""
    if package == "cresset":
        import cresset.as_torch

        cresset.as_torch.install()
    import torch

    torch.set_num_threads(1)
    out = os.dup(1)
    files = sorted(Path(folder).glob("*.py"))
    results = {name: run_apart(name, text, timeout) for file in files for name, text in snippets(file) if re.search(only, name)}
    with os.fdopen(out, "w") as pipe:
        json.dump(results, pipe)


def lines_of(text: str) -> list[str]:
    return [line for line in text.strip().split("\n") if not UNIMPORTANT.search(line)]


def last_place(number: str) -> float:
    """What one in the last digit that is shown is worth: 0.001 for 1.234, 10 for 1.2e2; 0 for an integer."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2])) if "." in digits or exponent else 0.0


def rounded_alike(theirs: str, ours: str) -> bool:
    """The same text, but for numbers that differ by one in the last digit that is shown."""
    if NUMBER.sub("#", re.sub(r"\s+", " ", theirs)) != NUMBER.sub("#", re.sub(r"\s+", " ", ours)):
        return False
    pairs = zip(NUMBER.findall(theirs), NUMBER.findall(ours))
    return all(a == b or abs(float(a) - float(b)) <= 1.01 * max(last_place(a), last_place(b)) for a, b in pairs)


def kind_of(theirs: list[str], ours: list[str]) -> str:
    """`same`, `words` (only messages and warnings differ) or `differs`."""
    if theirs == ours:
        return "same"
    bare = lambda lines: [line.split("|")[0] if line.startswith(("EXC", "TOP-EXC")) else line for line in lines if not line.startswith("WARN")]  # noqa: E731
    return "words" if bare(theirs) == bare(ours) else "differs"


class Meant:
    """The differences that are meant: "reason" = ["snippet @ pattern", ...]. The snippet may have wildcards; every line that one side shows in a
    place that differs contains a pattern."""

    def __init__(self, file: Path) -> None:
        rules = tomllib.loads(file.read_text()) if file.exists() else {}
        self.rules = [
            (reason, re.compile(fnmatch.translate(name)), re.compile(pattern))
            for reason, entries in rules.items()
            for name, pattern in (entry.split(" @ ", 1) for entry in entries)
        ]

    def reason(self, name: str, sides: tuple[list[str], list[str]]) -> str | None:
        """Why the lines differ, None when they should not."""
        for reason in dict.fromkeys(reason for reason, _, _ in self.rules):
            patterns = [pattern for why, place, pattern in self.rules if why == reason and place.match(name)]
            if any(lines and all(any(pattern.search(line) for pattern in patterns) for line in lines) for lines in sides):
                return reason
        return None


def compare(theirs: dict[str, str], ours: dict[str, str], verbose: bool, meant: Meant | None = None, rounding: bool = False) -> int:
    """Prints what differs; the number of snippets whose results do. With `rounding`, numbers may differ by one in the last digit that is shown."""
    kinds: dict[str, list[str]] = {"same": [], "meant": [], "words": [], "differs": []}
    for name in theirs:
        a, b = lines_of(theirs[name]), lines_of(ours.get(name, "CRASH not run"))
        kind = kind_of(a, b)
        places = [
            (a[i1:i2], b[j1:j2])
            for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
            if tag != "equal" and not (rounding and rounded_alike("\n".join(a[i1:i2]), "\n".join(b[j1:j2])))
        ]
        if kind != "same" and not places:
            kind = "same"
        if meant and kind != "same":
            places = [pair for pair in places if meant.reason(name, pair) is None]
            kind = kind if places else "meant"
        kinds[kind].append(name)
        if kind in ("same", "meant") or (kind == "words" and not verbose):
            continue
        print(f"===== {kind} {name}")
        for pair in places:
            for mark, part in zip(("PyTorch", "Cresset"), pair):
                for line in part[:12]:
                    print(f"   {mark} {line[:400]}")
    crashed = [name for name, text in ours.items() if "\nCRASH" in text and "\nCRASH" not in theirs[name]]
    print(f"{len(theirs)} snippets: {len(kinds['same'])} the same, {len(kinds['meant'])} meant, {len(kinds['words'])} with other words or warnings, {len(kinds['differs'])} differ"
          + (f"; ended badly: {', '.join(crashed)}" if crashed else ""))
    return len(kinds["differs"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/differential snippets", description="Runs snippets in both packages and compares what they print.")
    parser.add_argument("folder", help="*.py files of snippets")
    parser.add_argument("--only", default="", metavar="REGEX", help="snippets whose file/name contains a match")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for one snippet")
    parser.add_argument("--rounding", action="store_true", help="numbers may differ by one in the last digit that is shown")
    parser.add_argument("-v", "--verbose", action="store_true", help="show other words and warnings too")
    parser.add_argument("--run", choices=("torch", "cresset"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_all(options.run, options.folder, options.only, options.timeout)
        return 0
    if not list(Path(options.folder).glob("*.py")):
        sys.exit(f"differential: no *.py files in {options.folder}.")
    import oracle

    python, found = oracle.oracle_python(), {}
    environment = {**os.environ, "PYTHONPATH": str(oracle.ROOT / "python"), "OMP_NUM_THREADS": "1"}
    for package in ("torch", "cresset"):
        command = [str(python), __file__, options.folder, "--only", options.only, "--timeout", str(options.timeout), "--run", package]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"differential: {package} could not run the snippets.")
        found[package] = json.loads(done.stdout)
    return 1 if compare(found["torch"], found["cresset"], options.verbose, Meant(Path(__file__).parent / "differential_meant.toml"), options.rounding) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
