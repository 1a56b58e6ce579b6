"""Functions that kernels compute with arithmetic of their own, against the C library in double precision."""

import math

import numpy as np
import pytest

import cresset

rng = np.random.default_rng(3)
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    1e-30,
    -1e-30,
    1e30,
    -1e30,
    7.0,
    -7.0,
    16777217.0,
    np.inf,
    -np.inf,
    np.nan,
]


@pytest.mark.parametrize("n", [1, 15, 16, 17, 200_003])
def test_erf_of_floats_is_within_two_ulp(n):
    x = np.concatenate([rng.uniform(-5, 5, n // 2 + 1), 10.0 ** rng.uniform(-44, 1, n // 2)])[:n].astype(np.float32)
    got = cresset.from_numpy(x).erf().numpy()
    want = np.array([math.erf(v) for v in x.astype(np.float64)])
    assert (np.abs(got - want) <= 2 * np.spacing(np.abs(want.astype(np.float32)))).all()


def test_erf_at_the_ends():
    x = cresset.tensor([0.0, -0.0, 3.95, 4.0, -4.0, math.inf, -math.inf, 3e38, math.nan] * 3)
    got = x.erf().numpy()[:9]
    np.testing.assert_array_equal(got, np.array([0, -0.0, 1, 1, -1, 1, -1, 1, np.nan], np.float32))
    assert np.signbit(got[1])


def test_gelu_of_floats():
    x = np.linspace(-6, 6, 100_001).astype(np.float32)
    t, wide = cresset.from_numpy(x), x.astype(np.float64)
    cdf = 0.5 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in wide]))
    np.testing.assert_allclose(cresset.nn.functional.gelu(t).numpy(), wide * cdf, rtol=1e-6, atol=4e-7)
    t.requires_grad_()
    cresset.nn.functional.gelu(t).sum().backward()
    np.testing.assert_allclose(
        t.grad.numpy(), cdf + wide * np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi), rtol=1e-6, atol=4e-7
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_every_sign(dtype):
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL]).astype(dtype)
    more = np.stack([rng.integers(-40, 40, 3000) / 4, rng.integers(-12, 12, 3000) / 2], 1).astype(dtype)
    base, exponent = np.ascontiguousarray(np.concatenate([pairs, more]).T)
    with np.errstate(all="ignore"):
        want = np.power(base, exponent)
    got = cresset.from_numpy(base).pow(cresset.from_numpy(exponent)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == np.float32 else 1e-14)
    zero_or_more = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[zero_or_more]), np.signbit(want[zero_or_more]))
    for power in (3.0, 2.5, -1.5, -3.0, 0.0, 5.0):
        with np.errstate(all="ignore"):
            want = np.power(base, dtype(power))
        np.testing.assert_allclose(
            cresset.from_numpy(base).pow(power).numpy(), want, rtol=1e-6 if dtype == np.float32 else 1e-14
        )
        with np.errstate(all="ignore"):
            want = np.power(dtype(power), exponent)
        np.testing.assert_allclose(
            cresset.pow(power, cresset.from_numpy(exponent)).numpy(), want, rtol=1e-6 if dtype == np.float32 else 1e-14
        )


@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 316])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_rows_of_any_length(n, dtype):
    a = (rng.standard_normal((9, n)) * 10).astype(dtype)
    a[3, rng.integers(0, n)] = -np.inf if n > 1 else 0
    a[4] = 80
    wide = a.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    t = cresset.from_numpy(a)
    np.testing.assert_allclose(
        t.softmax(1).numpy(), e / e.sum(1, keepdims=True), rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-38
    )
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            t.log_softmax(1).numpy(),
            wide - wide.max(1, keepdims=True) - np.log(e.sum(1, keepdims=True)),
            rtol=2e-5,
            atol=1e-6,
        )
    a[5, n - 1] = np.nan
    a[6] = -np.inf
    nan_rows = np.isnan(cresset.from_numpy(a).softmax(1).numpy()).all(1)
    np.testing.assert_array_equal(nan_rows, np.isin(np.arange(9), [5, 6]))


def ulps(got, want):
    """The largest distance in units of the last place of `want`, doubles that floats can hold."""
    return np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32)))


@pytest.mark.parametrize("n", [1, 15, 256, 1000])
def test_exp_of_floats(n):
    x = np.random.default_rng(n).uniform(-103, 88.7, 5000 * n // 1000 + n).astype(np.float32)  # results below the normal numbers, too
    y = cresset.exp(cresset.tensor(x)).numpy()
    with np.errstate(under="ignore"):
        assert ulps(y.astype(np.float64), np.exp(x.astype(np.float64))) < 1.2
    alone = [cresset.exp(cresset.tensor(v)).item() for v in x[:100]]
    assert alone == y[:100].tolist(), "a number's exponential depends on its neighbours"


def test_exp_at_the_ends():
    x = cresset.tensor([-math.inf, -104.0, -103.0, -0.0, 88.7, 88.8, math.inf, math.nan])
    y = cresset.exp(x).tolist()
    assert y[:2] == [0.0, 0.0] and y[2] == 2.0**-149 and y[3] == 1.0 and y[4] < math.inf and y[5:7] == [math.inf, math.inf] and math.isnan(y[7])


def test_erfinv_of_floats_does_not_depend_on_neighbours():
    x = cresset.linspace(-0.98, 0.98, 2000)
    ends = cresset.tensor([0.995, -0.9999, 1.0, -1.0, 2.0])
    mixed = cresset.erfinv(cresset.cat([x, ends]))
    assert cresset.equal(mixed[:2000], cresset.erfinv(x))
    # mpmath, of the floats next to 0.995 and -0.9999
    np.testing.assert_allclose(mixed[2000:2002].numpy(), [1.98487282984241, -2.75103543790329], rtol=3e-7)
    assert mixed[2002:2004].tolist() == [math.inf, -math.inf] and math.isnan(mixed[2004].item())


def test_nan_to_num_beside_finite_numbers():
    x = cresset.arange(1000).float()
    x[[3, 300, 700]] = cresset.tensor([math.nan, math.inf, -math.inf])
    got, want = cresset.nan_to_num(x, 1.5, 2.5, 3.5), cresset.arange(1000).float()
    want[[3, 300, 700]] = cresset.tensor([1.5, 2.5, 3.5])
    assert cresset.equal(got, want)
