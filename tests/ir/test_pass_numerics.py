"""Graphs behind passes against NumPy in double precision: numbers at which short formulas fail."""

import math

import numpy as np
import pytest

import cresset
from cresset import _C


def lowered(text, *passes, options=()):
    graph = _C.parse_ir(text)
    for name in passes:
        assert _C._jit_run_pass(name, graph, list(options))[0] == "changed"
    graph.lint()
    return lambda *inputs: _C._jit_run_graph(graph, [cresset.tensor(x) for x in inputs])[0].numpy()


LOG_SOFTMAX = """graph(%x : Tensor):
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %y = aten::log_softmax(%x, %dim, %none)
  return (%y)
"""
VAR = """graph(%x : Tensor):
  %dims : int[] = prim::Constant[value=[-1]]()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %y = aten::var(%x, %dims, %yes, %no)
  return (%y)
"""
GELU = """graph(%x : Tensor):
  %how : str = prim::Constant[value="APPROXIMATE"]()
  %y = aten::gelu(%x, %how)
  return (%y)
"""
REMAINDER = """graph(%a : Tensor, %b : Tensor):
  %y = aten::remainder(%a, %b)
  return (%y)
"""


def log_softmax(x):
    x = x.astype(np.float64)
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


@pytest.mark.parametrize("scale", [1, 1e2, 1e4, 1e30])
def test_log_softmax_of_large_logits(scale):
    x = (np.random.default_rng(0).standard_normal((4, 7)) * scale).astype(np.float32)
    np.testing.assert_allclose(lowered(LOG_SOFTMAX, "unpack_log_softmax")(x), log_softmax(x), rtol=1e-5, atol=1e-5)


def test_the_short_log_softmax_fails_there():
    x = np.array([[0.0, 200.0]], np.float32)
    short = lowered(LOG_SOFTMAX, "unpack_log_softmax", options=["stable_numerics=0"])(x)
    assert short[0, 0] == -math.inf and np.isfinite(lowered(LOG_SOFTMAX, "unpack_log_softmax")(x)).all()


@pytest.mark.parametrize("mean", [0, 1e2, 1e4, 1e6])
def test_var_of_large_means(mean):
    x = (np.random.default_rng(1).standard_normal((3, 1000)) + mean).astype(np.float32)
    np.testing.assert_allclose(lowered(VAR, "unpack_var")(x), x.astype(np.float64).var(-1, ddof=1), rtol=1e-4)


def test_the_short_var_fails_there():
    x = (np.random.default_rng(1).standard_normal((3, 1000)) + 1e5).astype(np.float32)
    exact = x.astype(np.float64).var(-1, ddof=1)
    short = lowered(VAR, "unpack_var", options=["stable_numerics=0"])(x)
    assert (np.abs(short - exact) > 0.1 * exact).any()


def test_std_is_never_nan_for_equal_values():
    text = VAR.replace("aten::var", "aten::std")
    x = np.full((2, 64), 12345.678, np.float32)
    assert (lowered(text, "unpack_std", "unpack_var")(x) == 0).all()


def test_gelu_is_exact():
    x = np.linspace(-10, 10, 401)
    exact = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x])
    np.testing.assert_allclose(
        lowered(GELU.replace("APPROXIMATE", "none"), "reduce_gelu")(x), exact, rtol=1e-12, atol=1e-14
    )
    tanh = lowered(GELU.replace("APPROXIMATE", "tanh"), "reduce_gelu")(x)
    formula = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(tanh, formula, rtol=1e-12, atol=1e-14)
    difference = np.abs(
        lowered(GELU.replace("APPROXIMATE", "none"), "reduce_gelu", options=["approximate_gelu=1"])(x) - exact
    ).max()
    assert 1e-5 < difference < 5e-4  # what the note promises


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e10, -1e10, 1e300, 5e-324, math.inf, -math.inf, math.nan]


def test_remainder_of_floats():
    a, b = (np.array(v) for v in zip(*[(x, y) for x in SPECIAL for y in SPECIAL]))
    with np.errstate(invalid="ignore"):
        expected = np.remainder(a, b)
    # NumPy gives NaN for a finite number and an infinite divisor of the other sign only in old versions: Python decides.
    for i, (x, y) in enumerate(zip(a, b)):
        if math.isfinite(x) and y and not math.isnan(y):
            expected[i] = x % y if math.isfinite(y) or x == 0 or (x < 0) == (y < 0) else y
    np.testing.assert_array_equal(lowered(REMAINDER, "reduce_remainder")(a, b), expected)


def test_remainder_of_integers():
    values = [0, 1, -1, 7, -7, 2**62, -(2**62)]
    a, b = (np.array(v) for v in zip(*[(x, y) for x in values for y in values if y]))
    np.testing.assert_array_equal(lowered(REMAINDER, "reduce_remainder")(a, b), np.remainder(a, b))
