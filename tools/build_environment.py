"""What programs need in their environment to run what a build folder has, sanitizers included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A test asks for more memory than there is; under a sanitizer that must fail as it does without.
NO_MEMORY = "allocator_may_return_null=1"


def setting(build: Path, name: str) -> str:
    """A variable in the cache of CMake, or nothing."""
    cache = build / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    return next((line.split("=", 1)[1] for line in lines if line.startswith(f"{name}:")), "")


def emulated_python(build: Path) -> Path | None:
    """The interpreter for the module of a build for AArch64 (cmake/arm64.cmake): that of its sysroot, under qemu."""
    sysroot = setting(build, "CRESSET_ARM64_SYSROOT")
    return Path(os.path.normpath(sysroot), "usr/bin/python3-arm64") if sysroot else None


def python_of_tests() -> str:
    """The interpreter that has what tests need: that of tools/setup where it ran, else this one."""
    ours = ROOT / ".venv/bin/python"
    return str(ours) if ours.exists() else sys.executable


def of_cpp() -> dict[str, str]:
    return {name: os.environ.get(name, NO_MEMORY) for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}


def of_python(build: Path) -> dict[str, str]:
    """What Python needs to use the module of a build folder that has one of its own (sanitizers) instead of the source tree's."""
    if not (build / "python").is_dir():
        return {}
    if emulated := emulated_python(build):
        # Its own NumPy, and what is Python alone (pytest) from this interpreter.
        own, ours = emulated.parents[1] / "lib/python3/dist-packages", next(path for path in sys.path if path.endswith("site-packages"))
        return {"PYTHONPATH": f"{build / 'python'}:{own}:{ours}"}
    found = {"PYTHONPATH": str(build / "python"), "PYTHONMALLOC": "malloc"}
    sanitizers = setting(build, "CRESSET_SANITIZE")
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
