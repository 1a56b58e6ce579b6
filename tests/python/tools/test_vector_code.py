"""Each loop runs at the level that it was compiled for: the machine code of every loop over floats or doubles has vectors of its instruction set, or
calls functions that have, unless scalar_loops.toml says why not. A loop that the compiler no longer vectorises would give the same numbers, several
times slower."""

import platform
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import cresset

# What the vectors of a set look like. Whole registers of AVX-512 are asked for at that level, not its masks.
VECTORS = {
    "baseline": re.compile(r"\t(add|sub|mul|div|max|min|sqrt|cmp\w*|and|andn|or|xor|unpck[lh]|shuf|cvt\w+2)p[sd]\s|\tp(add|sub|cmp|and|or|xor|unpck|shuf|srl|sra|sll)\w*\s"),
    "avx2": re.compile("%ymm"),
    "avx512": re.compile("%zmm"),
}
VECTOR_CALL = "_ZGV"  # the names of the C library's functions of vectors begin so
FUNCTION = re.compile(r"[0-9a-f]+ <(?:\w[\w:<> ]* )?cresset::cpu::(\w+)::\(anonymous namespace\)::(.+)>:")
# Loops of rows of the operator table, folds, and the loops of softmax, norms and pools.
LOOP = re.compile(
    r"(\w+_loop|SumOf|ProductOf|CountOf|ExtremeOf|MomentsOf|exponentials_of|largest|forward_columns|backward_row|backward_columns|move_weights|"
    r"forward_rows|backward_rows|take_row|take_tap|add_row)<(float|double)(?:,[^()]*)?>(?:::(run|columns|sum))?\(")


def library() -> Path:
    cresset.ones(1).exp()
    return next(Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "libcresset_cpu.so" in line)


def loops_of(path: Path) -> dict[str, dict[str, bool]]:
    """level -> name of the loop -> whether it has vectors."""
    code = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", "--demangle", str(path)], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, bool]] = {}
    level, name = "", ""
    for line in code.stdout.splitlines():
        if line.endswith(">:"):
            level = name = ""
            match = FUNCTION.match(line)
            if match and match[1] in VECTORS and "[clone .cold]" not in line and (loop := LOOP.match(match[2].replace(f"cresset::cpu::{match[1]}::(anonymous namespace)::", ""))):
                level, name = match[1], f"{loop[1]}<{loop[2]}>" + (f"::{loop[3]}" if loop[3] else "")
                found.setdefault(level, {}).setdefault(name, False)
        elif name and (VECTORS[level].search(line) or VECTOR_CALL in line):
            found[level][name] = True
    return found


@pytest.fixture(scope="module")
def loops():
    if platform.machine() != "x86_64" or not shutil.which("objdump"):
        pytest.skip("needs x86-64 and objdump")
    path = library()
    if re.search("lib(asan|ubsan|tsan)", Path("/proc/self/maps").read_text()):
        pytest.skip("sanitizers' code is other code")
    found = loops_of(path)
    if not found:
        pytest.skip("the library has no names of its functions")
    return found


def listed(level: str) -> set[str]:
    reasons = tomllib.loads((Path(__file__).parent / "scalar_loops.toml").read_text())
    patterns = {p for name, patterns in reasons.items() if name == "every level" or name.startswith(level) for p in sum(patterns.values(), [])}
    return patterns


@pytest.mark.parametrize("level", VECTORS)
def test_loops_have_vectors(loops, level):
    if level not in loops:
        pytest.skip(f"this build has no kernels for {level}")
    scalar = {name for name, vectors in loops[level].items() if not vectors}
    patterns = listed(level)
    assert len(loops[level]) > 300
    assert sorted(name for name in scalar if not any(re.fullmatch(p, name) for p in patterns)) == []
    assert sorted(p for p in patterns if not any(re.fullmatch(p, name) for name in scalar)) == []
