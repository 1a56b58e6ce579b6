"""Folds and norms have the same bits whatever registers the processor has: `CRESSET_ISA` holds each run to one instruction set, and what
other kinds of processors give is held to the digests of x86-64's baseline."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

RUN = """
import hashlib
import cresset

def digest(t):
    return hashlib.sha256(bytes(t.contiguous().untyped_storage())).hexdigest()[:16]

def bits(t):  # as they are, and with one NaN for all: the sign of a new one differs between kinds of processors
    return digest(t) + " " + digest(cresset.where(t.isnan(), t.new_tensor(float("nan")), t) if t.is_floating_point() else t)

FOLDS = {
    "sum": lambda x, dim: x.sum(dim), "mean": lambda x, dim: x.mean(dim), "nansum": lambda x, dim: x.nansum(dim),
    "amax": lambda x, dim: x.amax(dim), "amin": lambda x, dim: x.amin(dim), "argmax": lambda x, dim: x.argmax(dim),
    "var": lambda x, dim: x.var(dim), "norm 1": lambda x, dim: x.norm(1, dim), "norm 2": lambda x, dim: x.norm(2, dim),
    "norm inf": lambda x, dim: x.norm(float("inf"), dim), "prod": lambda x, dim: (1 + x / 100).prod(dim), "cumsum": lambda x, dim: x.cumsum(dim),
}
cresset.manual_seed(0)
for dtype in (cresset.float32, cresset.float64, cresset.bfloat16, cresset.float16):
    for rows, columns in ((3, 7), (5, 16), (4, 31), (7, 1000), (300, 77), (2, 5000)):
        x = (cresset.rand(rows, columns, dtype=cresset.float64) * 6 - 3).to(dtype)  # without functions of a C library
        y = x.clone()
        y[0, columns // 2], y[-1, -1] = float("nan"), float("inf")
        for name, fold in FOLDS.items():
            for which, t in (("plain", x), ("NaN", y), ("strided", x.t())):
                for dim in (0, 1):
                    print(name, dtype, rows, columns, which, dim, bits(fold(t, dim)), sep="|")
        weight = cresset.rand(columns, dtype=cresset.float64).to(dtype)
        if rows > 2:
            parts = cresset.native_batch_norm(x, weight, weight, None, None, True, 0.1, 1e-5)
            grads = cresset.ops.aten.native_batch_norm_backward(x.flip(0), x, weight, None, None, *parts[1:], True, 1e-5, [True] * 3)
            print("batch_norm", dtype, rows, columns, *map(bits, (*parts, *grads)), sep="|")
        print("layer_norm", dtype, rows, columns, bits(cresset.nn.functional.layer_norm(x, (columns,), weight, weight)), sep="|")
"""


def lines_at(level: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", RUN], env={**os.environ, "CRESSET_ISA": level}, capture_output=True, text=True, timeout=600)
    if "CRESSET_ISA: " in done.stderr:  # this processor or this build has no such level
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def at_best() -> list[str]:
    return lines_at("")


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_folds_have_the_same_bits_at_every_level(level, at_best):
    here = lines_at(level)
    assert len(here) > 1000
    assert [pair for pair in zip(here, at_best) if pair[0] != pair[1]] == []


# Of the last columns of all lines of a fold, in order. A change of the order of additions changes them: at all levels alike.
DIGESTS = {
    "sum": "3e8d573b005f875c", "mean": "275073aab7f035b2", "nansum": "19ecccc23aad3395", "amax": "03c3b1f99bc80596",
    "amin": "290bd2237f90922d", "argmax": "3166c0a78f6453a0", "var": "77c30ee8e2460b5f", "norm 1": "8e6cae192a11113b",
    "norm 2": "f9f0f69b6dab4252", "norm inf": "3ac42683939cabc8", "prod": "95b3fbffd55e3192", "cumsum": "d383cf1f1f96fe1c",
    "layer_norm": "56b0374f764924b1", "batch_norm": "fb2229546e51e370",
}


def test_every_processor_gives_the_same_bits(at_best):
    found = {}
    for line in at_best:
        found.setdefault(line.split("|")[0], hashlib.sha256()).update(line.split()[-1].encode())
    assert {name: total.hexdigest()[:16] for name, total in found.items()} == DIGESTS


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_against_numpy_at_every_level(level):
    """Fourier transforms, whose blocks are as wide as registers, and products of integers and of few rows."""
    here = Path(__file__).parent
    files = [here / "test_integer_products.py", here / "test_few_rows.py", here / "test_bfloat16_products.py", here.parent / "python/test_fft.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "products or lines_at_once or long_lengths", *files],
                          env={**os.environ, "CRESSET_ISA": level}, capture_output=True, text=True, timeout=600)  # fmt: skip
    if "CRESSET_ISA: " in done.stdout + done.stderr:
        pytest.skip("this processor or this build has no such level")
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout


CORE = """
import ctypes, os, cresset
cresset.ones(2, 2) @ cresset.ones(2, 2)
library = next(line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line)
core = ctypes.CDLL(library).openblas_get_corename
core.restype = ctypes.c_char_p
print(core().decode(), os.environ.get("OPENBLAS_CORETYPE"))
"""


def core_of_openblas(**variables):
    environment = {key: value for key, value in os.environ.items() if key not in ("OPENBLAS_CORETYPE", "CRESSET_ISA")} | variables
    return subprocess.run([sys.executable, "-c", CORE], env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_products_use_what_the_processor_has():
    """OpenBLAS takes kernels without AVX for processors that it does not know; it is told their kind, unless the user has."""
    capability = cresset.backends.cpu.get_cpu_capability()
    core, variable = core_of_openblas()
    assert variable == "None"
    if capability in ("AVX2", "AVX512"):
        assert core in ("Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")
        assert core_of_openblas(OPENBLAS_CORETYPE="Nehalem") == ["Nehalem", "Nehalem"]
