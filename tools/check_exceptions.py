#!/usr/bin/env python3
"""Which destructors, moves, swaps and noexcept functions let an exception out? Such a one ends the process.

clang-tidy's bugprone-exception-escape follows calls into every function whose body it sees, so the merged sources of the preset `dev` are
what to give it: `python tools/check_exceptions.py [REGEX of files]`. It is no part of the build: `pip install clang-tidy` (17 or later), or
CLANG_TIDY=<program>. The exit status is 1 when something was found. ALLOWED has what may stay, with reasons.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# {name of the function: why its exceptions cannot occur}
ALLOWED = {
    "main": "names of options that CLI11 refuses: they are constants",
    "~CompilationUnit": "bad_weak_ptr of enable_shared_from_this: types are always held by shared pointers",
}
CHECK = "bugprone-exception-escape"


def program() -> str:
    found = os.environ.get("CLANG_TIDY") or shutil.which("clang-tidy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not found:
        sys.exit("check_exceptions: there is no clang-tidy; pip install clang-tidy, or name one in CLANG_TIDY.")
    return found


def findings(text: str) -> list[str]:
    """Its warnings and errors, each with the notes that belong to it, below the repository only."""
    blocks = re.split(r"(?m)^(?=/[^\n]*: (?:warning|error): )", text)
    return [b.rstrip() for b in blocks if re.match(r"/[^\n]*: (?:warning|error): ", b)]


def look_at(file: str, build: Path, tidy: str) -> list[str]:
    command = [tidy, "-p", str(build), "--quiet", f"--checks=-*,{CHECK}", "--header-filter=.*/(src|include|compat)/.*", "--extra-arg=-Wno-everything", file]
    done = subprocess.run(command, capture_output=True, text=True)
    found = findings(done.stdout)
    return found or ([f"{file}: error: {done.stderr[-500:]}"] if done.returncode else [])


def allowed(finding: str) -> bool:
    name = re.search(r"thrown in function '([^']+)'", finding.split("\n")[0])
    return bool(name and name[1] in ALLOWED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="?", default=r"/src/", help="regular expression of sources (default: the libraries and bindings)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="a configured build folder (default: build/dev)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    database = json.loads((options.build / "compile_commands.json").read_text())
    # The headers that are compiled alone, and the same kernels for other instruction sets, have nothing new.
    files = sorted({entry["file"] for entry in database if re.search(options.files, entry["file"]) and "_check_alone" not in entry.get("output", "")})
    if not files:
        sys.exit(f"check_exceptions: {options.build} compiles nothing that matches {options.files!r}.")
    tidy, seen, found = program(), set(), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for blocks in pool.map(lambda file: look_at(file, options.build, tidy), files):
            for block in blocks:
                head = block.split("\n")[0]
                if head in seen or allowed(block):
                    continue
                seen.add(head)
                found += 1
                print(block, end="\n\n", flush=True)
    print(f"check_exceptions: {len(files)} sources, {found or 'nothing'} found.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
