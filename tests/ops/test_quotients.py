"""fmod, remainder and floor_divide of floats by NumPy's, which are exact too: quotients of any length, blocks in which one is long, results in
an operand's memory; nextafter by NumPy's."""

import numpy as np
import pytest

import cresset

DTYPES = [np.float32, np.float64]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 1e-30, -1e30]


def pairs(dtype, largest_exponent):
    rng = np.random.default_rng(3)
    info = np.finfo(dtype)
    a = (rng.standard_normal(3000) * 10.0 ** rng.uniform(-5, largest_exponent, 3000)).astype(dtype)
    b = (rng.standard_normal(3000) * 10.0 ** rng.uniform(-5, 3, 3000)).astype(dtype)
    a[:200] = (b[:200] * rng.integers(-50, 50, 200)).astype(dtype)  # whole quotients
    a[200:300] = np.nextafter(a[100:200], np.inf)
    some = np.array([*SPECIAL, info.tiny, info.smallest_subnormal, info.max], dtype)
    x, y = (m.ravel() for m in np.meshgrid(some, some))
    return np.concatenate((a, x)), np.concatenate((b, y))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest_exponent", [4, 30])  # the first has blocks of short quotients only
def test_rests(dtype, largest_exponent):
    a, b = pairs(dtype, largest_exponent)
    x, y = cresset.from_numpy(a), cresset.from_numpy(b)
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        shifted = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    np.testing.assert_array_equal(cresset.fmod(x, y).numpy(), rest)
    np.testing.assert_array_equal(np.signbit(cresset.fmod(x, y).numpy()[~np.isnan(rest)]), np.signbit(rest[~np.isnan(rest)]))
    np.testing.assert_array_equal(cresset.remainder(x, y).numpy(), shifted)
    first, second = x.clone(), y.clone()
    np.testing.assert_array_equal(first.fmod_(y).numpy(), rest)
    np.testing.assert_array_equal(cresset.fmod(x, second, out=second).numpy(), rest)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_are_rounded_down(dtype):
    a, b = pairs(dtype, 4)
    usual = np.isfinite(a) & np.isfinite(b) & (np.abs(b) > 1e-5) & (np.abs(a) < 1e5)
    a, b = a[usual], b[usual]
    got = cresset.floor_divide(cresset.from_numpy(a), cresset.from_numpy(b)).numpy()
    np.testing.assert_array_equal(got, np.floor_divide(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [3.0, -0.75, 1e-30, float("inf"), float("nan")])
def test_by_a_number(dtype, number):
    a, _ = pairs(dtype, 4)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cresset.fmod(cresset.from_numpy(a), number).numpy(), np.fmod(a, dtype(number)))
        rest = np.fmod(dtype(number), a)
    np.testing.assert_array_equal(cresset.remainder(number, cresset.from_numpy(a)).numpy(), np.where((rest != 0) & ((rest < 0) != (a < 0)), rest + a, rest))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_next_number(dtype):
    a, b = pairs(dtype, 30)
    with np.errstate(over="ignore"):
        want = np.nextafter(a, b)
    np.testing.assert_array_equal(cresset.nextafter(cresset.from_numpy(a), cresset.from_numpy(b)).numpy(), want)
    zero, one = np.zeros(2, dtype), np.array([1, -1], dtype)
    np.testing.assert_array_equal(cresset.nextafter(cresset.from_numpy(zero), cresset.from_numpy(one)).numpy(), np.nextafter(zero, one))


def test_slope_of_logit_at_both_zeros():
    grad = cresset.ops.aten.logit_backward(cresset.ones(3), cresset.tensor([-0.0, 0.0, -1e-30]))
    assert grad[:2].tolist() == [float("inf")] * 2 and grad[2].isnan()
