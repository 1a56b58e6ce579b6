"""Libraries that PyTorch's test files load. An installed PyTorch brings them compiled; their sources are part of the tests, so here the same
sources are compiled against Cresset's headers. One that does not compile is absent. NO_PROFILING is the sources' own switch for what only the
profiler of PyTorch's mobile runtime has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build/peer_tests/lib"

# Below the folder of tests.
SOURCES = {
    "libtorchbind_test.so": ["cpp/jit/test_custom_class_registrations.cpp"],
    "libjitbackend_test.so": ["cpp/jit/test_backend_lib.cpp"],
    "libbackend_with_compiler.so": ["cpp/jit/test_backend_compiler_lib.cpp", "cpp/jit/test_backend_compiler_preprocess.cpp"],
}


def _above(tests: Path) -> Path:
    """A folder with the tests as `test/` and nothing beside: their own parent may have PyTorch's headers, which are not what is tested."""
    folder = FOLDER / "include"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "test"
    if not link.is_symlink() or link.resolve() != tests.resolve():
        link.unlink(missing_ok=True)
        link.symlink_to(tests.resolve(), target_is_directory=True)
    return folder


def prepare(tests: Path, file: str, build: Path = ROOT / "build/dev") -> None:
    """Compiles what a test file names, or one whose tests it takes over."""
    text = (tests / file).read_text(errors="replace")
    for taken in re.findall(r"^from (jit\.\w+) import", text, re.MULTILINE):
        path = tests / f"{taken.replace('.', '/')}.py"
        text += path.read_text(errors="replace") if path.exists() else ""
    if "torchbind_impls" in text:  # a helper that loads it when it is called
        text += "libtorchbind_test.so"
    for name in re.findall(r"lib\w+\.so", text):
        sources = [tests / source for source in SOURCES.get(name, [])]
        library, inputs = FOLDER / name, [*sources, build / "lib/libcresset_ir.so"]
        if not sources or not all(i.exists() for i in inputs) or library.exists() and all(library.stat().st_mtime >= i.stat().st_mtime for i in inputs):
            continue
        roots = [_above(tests), ROOT / "include", build / "gen/include", ROOT / "compat/torch/include", build / "gen/compat"]
        command = ["g++", "-std=c++20", "-w", "-O0", "-fPIC", "-shared", "-rdynamic", "-DNO_PROFILING", *(f"-I{root}" for root in roots), *sources, "-o", library]
        FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*command, f"-L{build / 'lib'}", "-lcresset_ir", "-lcresset_cpu", "-lcresset", f"-Wl,-rpath,{build / 'lib'}"], capture_output=True, text=True)
        if done.returncode:
            library.unlink(missing_ok=True)
            print(f"peer-tests: {name} does not compile: {done.stderr[:500]}", file=sys.stderr)
