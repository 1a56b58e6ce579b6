"""Paths of the CPU kernels that the small samples of the table do not reach, against NumPy."""

import numpy as np
import pytest

import cresset

rng = np.random.default_rng(7)
DTYPES = ["float32", "float64", "int32", "int64", "int16", "uint8", "complex64", "complex128", "bool"]


def array(shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    values = rng.integers(0, 200, shape)
    if dtype.startswith("complex"):
        return (values + 1j * rng.integers(0, 200, shape)).astype(dtype)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_transposed_copies(dtype):
    a = array((3, 45, 70), dtype)
    t = cresset.from_numpy(a)
    np.testing.assert_array_equal(t.permute(0, 2, 1).contiguous().numpy(), a.transpose(0, 2, 1))
    np.testing.assert_array_equal(t.permute(2, 1, 0).contiguous().numpy(), a.transpose(2, 1, 0))
    out = cresset.zeros(3, 70, 45, dtype=t.dtype).permute(0, 2, 1)
    out.copy_(t)
    np.testing.assert_array_equal(out.numpy(), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_sums_of_transposed_operands(dtype):
    a, b = array((45, 70), dtype), array((70, 45), dtype)
    np.testing.assert_array_equal((cresset.from_numpy(a) + cresset.from_numpy(b).t()).numpy(), a + b.T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks(dtype):
    a, mask = array((30, 50), dtype), rng.random((30, 50)) < 0.3
    t, m = cresset.from_numpy(a.copy()), cresset.from_numpy(mask)
    np.testing.assert_array_equal(t[m].numpy(), a[mask])
    np.testing.assert_array_equal(t.t()[m.t()].numpy(), a.T[mask.T])
    np.testing.assert_array_equal(cresset.where(m, t, t.flip(0)).numpy(), np.where(mask, a, a[::-1]))
    np.testing.assert_array_equal(t.masked_fill(m, 1).numpy(), np.where(mask, np.ones((), a.dtype), a))
    t[m] = 0
    np.testing.assert_array_equal(t.numpy(), np.where(mask, np.zeros((), a.dtype), a))


@pytest.mark.parametrize("shape", [(500,), (30, 40), (5, 0, 3), (4, 5, 6), ()])
def test_nonzero(shape):
    a = rng.integers(0, 3, shape)
    np.testing.assert_array_equal(cresset.tensor(a).nonzero().numpy(), np.argwhere(a))


def test_nonzero_of_all_and_of_nothing():
    assert cresset.zeros(40, 3).nonzero().shape == (0, 2)
    np.testing.assert_array_equal(cresset.ones(4, 3).nonzero().numpy(), np.argwhere(np.ones((4, 3))))


@pytest.mark.parametrize("n", [1, 3, 4, 1023])
def test_cumulative_sums_of_floats(n):
    a = rng.standard_normal((3, n)).astype(np.float32)
    want = np.cumsum(a.astype(np.float64), 1).astype(np.float32)
    np.testing.assert_allclose(cresset.from_numpy(a).cumsum(1).numpy(), want, rtol=1e-6, atol=1e-7)
    want = np.cumprod(a.astype(np.float64), 1).astype(np.float32)
    np.testing.assert_allclose(cresset.from_numpy(a).cumprod(1).numpy(), want, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("shape", [(2000,), (70, 100), (16, 7), (15,), (33, 64)])
def test_sums_and_softmax_of_floats(shape):
    a = rng.standard_normal(shape).astype(np.float32)
    t, wide = cresset.from_numpy(a), a.astype(np.float64)
    for dim in range(a.ndim):
        np.testing.assert_allclose(t.sum(dim).numpy(), wide.sum(dim), rtol=1e-5, atol=1e-5)
        e = np.exp(wide - wide.max(dim, keepdims=True))
        np.testing.assert_allclose(t.softmax(dim).numpy(), e / e.sum(dim, keepdims=True), rtol=2e-6)
        np.testing.assert_allclose(t.log_softmax(dim).numpy(), np.log(e / e.sum(dim, keepdims=True)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(t.abs().sum().item(), np.abs(wide).sum(), rtol=1e-6)
    a.flat[5] = np.nan
    assert np.isnan(cresset.from_numpy(a).sum().item()) and np.isnan(cresset.from_numpy(a).flatten().softmax(0).numpy()).all()
    np.testing.assert_allclose(cresset.from_numpy(a).nansum().item(), np.nansum(a.astype(np.float64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8", "int16"])
def test_unique(dtype):
    a = rng.integers(0, 200, 3000).astype(dtype)
    values, inverse, counts = cresset.unique(cresset.from_numpy(a), return_inverse=True, return_counts=True)
    v, i, c = np.unique(a, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), v)
    np.testing.assert_array_equal(inverse.numpy(), i)
    np.testing.assert_array_equal(counts.numpy(), c)
    np.testing.assert_array_equal(cresset.unique(cresset.from_numpy(a)).numpy(), v)


def test_every_nan_is_unique():
    got = cresset.unique(cresset.tensor([2.0, float("nan"), 1.0, float("nan"), 2.0])).numpy()
    np.testing.assert_array_equal(got, np.array([1, 2, np.nan, np.nan], np.float32))


@pytest.mark.parametrize("spread", [100, 2**40])
def test_sorting_long_integers_is_stable(spread):
    a = rng.integers(-spread, spread, 5000)
    a[::7] = a[0]
    for descending in (False, True):
        values, order = cresset.from_numpy(a).sort(stable=True, descending=descending)
        want = np.argsort(-a if descending else a, kind="stable")
        np.testing.assert_array_equal(order.numpy(), want)
        np.testing.assert_array_equal(values.numpy(), a[want])


def test_gather_checks_before_it_writes():
    t, index = cresset.arange(12.0).view(3, 4), cresset.zeros(3, 4, dtype=cresset.int64)
    index[2, 3] = 4
    out = cresset.full((3, 4), -1.0)
    with pytest.raises(RuntimeError, match="index 4 is out of bounds for dimension 1 with size 4"):
        cresset.gather(t, 1, index, out=out)
    assert (out == -1).all()


@pytest.mark.parametrize("transposed", [False, True])
def test_bfloat16_products(transposed):
    a, b = (cresset.from_numpy(rng.standard_normal((65, 65)).astype(np.float32)).to(cresset.bfloat16) for _ in range(2))
    if transposed:
        a, b = a.t(), b.t()
    want = a.float().numpy().astype(np.float64) @ b.float().numpy().astype(np.float64)
    np.testing.assert_allclose((a @ b).float().numpy(), want, rtol=2**-8, atol=1e-2)
