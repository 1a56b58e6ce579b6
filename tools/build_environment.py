"""What programs need in their environment to run what a build folder has, sanitizers included."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A test asks for more memory than there is; under a sanitizer that must fail as it does without.
NO_MEMORY = "allocator_may_return_null=1"


def of_cpp() -> dict[str, str]:
    return {name: os.environ.get(name, NO_MEMORY) for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}


def of_python(build: Path) -> dict[str, str]:
    """What Python needs to use the module of a build folder that has one of its own (sanitizers) instead of the source tree's."""
    if not (build / "python").is_dir():
        return {}
    found = {"PYTHONPATH": str(build / "python"), "PYTHONMALLOC": "malloc"}
    sanitizers = next((line.split("=", 1)[1] for line in (build / "CMakeCache.txt").read_text().splitlines()
                       if line.startswith("CRESSET_SANITIZE:")), "")  # fmt: skip
    # The interpreter is not instrumented: the run-time library comes first, with the C++ library whose `throw` it watches.
    if "address" in sanitizers:
        found |= {"LD_PRELOAD": preloaded("libasan.so"), "ASAN_OPTIONS": f"{NO_MEMORY}:detect_leaks=0"}  # the interpreter's leaks are not ours
    elif "thread" in sanitizers:
        found |= {"LD_PRELOAD": preloaded("libtsan.so"), "TSAN_OPTIONS": f"{NO_MEMORY}:suppressions={ROOT / 'tests/tsan.supp'}"}
    return found


def preloaded(runtime: str) -> str:
    libraries = [subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
                 for name in (runtime, "libstdc++.so.6")]  # fmt: skip
    return ":".join(libraries)
