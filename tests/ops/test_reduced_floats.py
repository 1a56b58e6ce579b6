"""Arithmetic of float16 and bfloat16 that no block of floats stands between: every length up to a few strips, at every instruction set.

Expected values: of float16 NumPy's; of bfloat16 the nearest number of all that there are, the even one of two, to NumPy's sum in float32.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import cresset

SPECIAL = [0.0, -0.0, 1.0, -1.0, 65504.0, -65504.0, 6e-8, 3e-5, float("inf"), float("-inf"), float("nan"), 1.0009765625, 255.5, 3.38e38, 1e-40]
BFLOATS = (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)  # the numbers from 0 up that are finite


def to_bfloat16(values):
    """Bits of the nearest numbers; the step beyond the greatest one is infinity's."""
    magnitude = np.abs(values.astype(np.float64))
    steps = np.append(BFLOATS, 2.0**128)
    high = np.clip(np.searchsorted(steps, magnitude), 1, len(steps) - 1)
    below, above = magnitude - steps[high - 1], steps[high] - magnitude
    chosen = np.where((below < above) | ((below == above) & (high % 2 == 1)), high - 1, high)
    return np.where(np.isnan(values), 0x7FC0, np.where(np.isinf(magnitude), 0x7F80, chosen) | (np.signbit(values).astype(np.int64) << 15))


def samples(dtype, n):
    generator = np.random.default_rng(n)
    values = generator.standard_normal((2, n)).astype(np.float32) * 10.0 ** generator.integers(-6, 5, (2, n)).astype(np.float32)
    places = generator.integers(0, n, (2, max(1, n // 4)))
    for row in range(2):
        values[row, places[row]] = generator.choice(SPECIAL, places.shape[1]).astype(np.float32)
    return [cresset.from_numpy(row).to(dtype) for row in values]


def bits(t):
    return t.view(cresset.int16).numpy().astype(np.int64) & 0xFFFF


def expected(dtype, exact):
    with np.errstate(all="ignore"):
        return exact.astype(np.float16).view(np.uint16).astype(np.int64) if dtype == cresset.float16 else to_bfloat16(exact)


def same(found, wanted, exact):
    return (found == wanted) | np.isnan(exact)


CALLS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "add with alpha": (lambda a, b: cresset.add(a, b, alpha=2), lambda a, b: a + 2 * b),
    "rsub": (lambda a, b: cresset.rsub(a, b), lambda a, b: b - a),
    "in place": (lambda a, b: a.clone().mul_(b), lambda a, b: a * b),
    "out": (lambda a, b: cresset.add(a, b, out=cresset.empty_like(a)), lambda a, b: a + b),
    "div": (lambda a, b: a / b, lambda a, b: a / b),
    # Numbers are not rounded to the type of memory.
    "times a number": (lambda a, b: a * 1.1, lambda a, b: a * np.float32(1.1)),
    "number in place": (lambda a, b: b.clone().sub_(1e-3), lambda a, b: b - np.float32(1e-3)),
    "number first": (lambda a, b: 2.3 - a, lambda a, b: np.float32(2.3) - a),
    "over a number": (lambda a, b: a / 3, lambda a, b: a / np.float32(3)),
    "times one element": (lambda a, b: a * cresset.tensor(0.7), lambda a, b: a * np.float32(0.7)),
    "neg": (lambda a, b: -a, lambda a, b: -a),
    "abs": (lambda a, b: a.abs(), lambda a, b: abs(a)),
    "clamp": (lambda a, b: a.clamp(-0.3, 0.7), lambda a, b: a.clip(np.float32(-0.3), np.float32(0.7))),
    "clamp from below": (lambda a, b: a.clamp(min=0.7), lambda a, b: np.maximum(a, np.float32(0.7))),
    "maximum": (lambda a, b: cresset.maximum(a, b), np.maximum),
    "fmin": (lambda a, b: cresset.fmin(a, b), np.fmin),
    # Products by powers of two, and of two such numbers, are exact in float, so it does not matter where one is rounded.
    "addcmul": (lambda a, b: cresset.addcmul(a, b, b, value=0.5), lambda a, b: a + b * b / 2),
    "lerp": (lambda a, b: cresset.lerp(a, b, 0.25), lambda a, b: a + (b - a) / 4),
    "leaky_relu": (lambda a, b: cresset.nn.functional.leaky_relu(a, 0.25), lambda a, b: np.where(a > 0, a, a / 4)),
    "square": (lambda a, b: a**2, lambda a, b: a * a),
    "cube": (lambda a, b: a.pow(3), lambda a, b: a * a * a),
    "root": (lambda a, b: a.pow(0.5), lambda a, b: np.sqrt(a + np.float32(0))),
}


def check(dtype, name):
    ours, numpys = CALLS[name]
    for n in [*range(1, 50), 1000, 200_003]:
        a, b = samples(dtype, n)
        with np.errstate(all="ignore"):
            exact = numpys(a.float().numpy(), b.float().numpy())
        found = ours(a, b)
        assert found.dtype == dtype and found.isnan().numpy().tolist() == np.isnan(exact).tolist()
        assert same(bits(found), expected(dtype, exact), exact).all(), (name, dtype, n)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16])
def test_every_length(dtype, name):
    check(dtype, name)


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_every_instruction_set(level):
    code = "import cresset, test_reduced_floats as t\nfor d in (cresset.float16, cresset.bfloat16):\n    for name in t.CALLS: t.check(d, name)"
    folder = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env={**os.environ, "CRESSET_ISA": level}, capture_output=True, text=True, timeout=300)
    if "CRESSET_ISA: " in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16])
@pytest.mark.parametrize("k", [1, 15, 16, 17, 64, 100, 768])
def test_a_vector_and_a_matrix(dtype, k):
    """The matrix is read as it is where its lines are contiguous along the sum. A result is one rounding from a sum in double."""
    generator = np.random.default_rng(k)
    x, w, c = (cresset.from_numpy(generator.standard_normal(shape).astype(np.float32)).to(dtype) for shape in ((1, k), (37, k), (1, 37)))
    exact = x.double() @ w.double().t()
    for found, wanted in [
        (x @ w.t(), exact), (cresset.mm(w, x.t()).t(), exact), (cresset.mv(w, x[0])[None], exact), (x @ w.t().contiguous(), exact),
        (cresset.addmm(c, x, w.t(), beta=0.5, alpha=2), 0.5 * c.double() + 2 * exact), (cresset.nn.functional.linear(x, w), exact),
        (x @ w[:, ::2].repeat(1, 2)[:, :k].t(), x.double() @ w[:, ::2].repeat(1, 2)[:, :k].double().t()) if k > 1 else (x @ w.t(), exact),
    ]:  # fmt: skip
        step = cresset.finfo(dtype).eps
        assert ((found.double() - wanted).abs() <= step * wanted.abs() + 1e-5 * (1 + k**0.5)).all(), (dtype, k)
